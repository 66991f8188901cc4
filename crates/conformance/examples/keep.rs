//! Labels cases of the fuzzers that are to be kept: each with the discipline that it is read as now, so
//! that it stays that one's case when others are added.
//!
//! `cargo run -p shortlane-conformance --example keep -- fuzz/corpus/disciplines`, or `fuzz/corpus/path`,
//! whose links have only what a live link can have.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use conformance::label;
use sched::registry;

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = PathBuf::from(std::env::args().nth(1).ok_or("the folder of a corpus is missing")?);
    let is_live = corpus.file_name().is_some_and(|name| name == "path");
    let all = registry::ALL.iter().copied();
    let known: Vec<_> = all.filter(|info| !is_live || info.needs.of_no_link().is_none()).collect();
    for entry in fs::read_dir(&corpus)? {
        let path = entry?.path();
        let mut bytes = fs::read(&path)?;
        let Some(first) = bytes.first_chunk_mut() else { continue };
        let info = label::find(u16::from_le_bytes(*first), &known);
        let labelled = label::of(info.name).to_le_bytes();
        if *first != labelled {
            *first = labelled;
            fs::write(&path, &bytes)?;
            println!("{}: {}", path.display(), info.name);
        }
    }
    Ok(())
}
