//! The fuzzer's committed corpus, replayed without the fuzzer.

use std::fs;
use std::path::{Path, PathBuf};

use arbitrary::{Arbitrary, Unstructured};
use conformance::{Case, label};
use sched::registry;

fn files_of(target: &str) -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&corpus).unwrap_or_else(|e| panic!("{}: {e}", corpus.display()));
    files.map(|entry| entry.expect("a directory entry").path()).collect()
}

#[test]
fn every_case_is_that_of_the_discipline_it_was_kept_for() {
    for target in ["disciplines", "path"] {
        for path in files_of(target) {
            let bytes = fs::read(&path).expect("a file of the corpus");
            let label = bytes.first_chunk().map(|bytes| u16::from_le_bytes(*bytes));
            let of = registry::ALL.iter().find(|info| Some(label::of(info.name)) == label);
            let info = of.unwrap_or_else(|| {
                let file = path.display();
                panic!("{file}: no label; cargo run -p shortlane-conformance --example keep");
            });
            let name = path.file_name().expect("a name").to_string_lossy();
            let is_named = target == "disciplines";
            assert!(!is_named || name.starts_with(&format!("{}-", info.name)), "{name}");
        }
    }
}

#[test]
fn every_case_of_the_corpus_holds() {
    let mut cases = 0;
    for path in files_of("disciplines") {
        let bytes = fs::read(&path).expect("a file of the corpus");
        let case = Case::arbitrary(&mut Unstructured::new(&bytes)).expect("a case");
        assert!(!case.operations.is_empty(), "{}", path.display());
        case.check().unwrap_or_else(|violation| panic!("{}: {violation}", path.display()));
        cases += 1;
    }
    assert!(cases >= 20, "{cases} cases");
}
