//! Plays the packetdrill scripts of a folder and says which of them the model follows.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use packetdrill::report;

const USAGE: &str = "\
shortlane-packetdrill FOLDER                  plays every .pkt file in it, prints Markdown
shortlane-packetdrill FOLDER --into REPORT    also puts it into REPORT";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        [folder] if !folder.starts_with('-') => run(folder, None),
        [folder, "--into", page] => run(folder, Some(page)),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(folder: &str, page: Option<&str>) -> Result<(), String> {
    let played = report::folder(Path::new(folder))?;
    if played.is_empty() {
        return Err(format!("{folder}: no .pkt file"));
    }
    let text = report::markdown(&played);
    print!("{text}");
    let Some(page) = page else { return Ok(()) };
    let failed = |error: std::io::Error| format!("{page}: {error}");
    let old = fs::read_to_string(page).map_err(failed)?;
    let new = report::replace(&old, &text).map_err(|error| format!("{page}: {error}"))?;
    fs::write(page, new).map_err(failed)
}
