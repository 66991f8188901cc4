//! Which floor may know which: front ends know the floors below them and not each other, and the
//! data path knows nobody above.

use std::fs;
use std::path::{Path, PathBuf};

const SETTINGS: &[&str] = &["settings"];
const STATUS: &[&str] = &["settings", "status"];
const DATAPATH: &[&str] = &["settings", "status", "datapath"];
const IO: &[&str] = &["settings", "status", "datapath", "io"];
const CONTROL: &[&str] = &["settings", "status", "datapath", "control"];
const FORWARDER: &[&str] =
    &["settings", "status", "datapath", "io", "control", "error", "forwarder"];

/// A folder of `src`, and the modules beside itself that its files may name.
const FLOORS: [(&str, &[&str]); 9] = [
    ("settings", SETTINGS),
    ("status", STATUS),
    ("datapath", DATAPATH),
    ("io", IO),
    ("control", CONTROL),
    ("forwarder", FORWARDER),
    ("bridge", FORWARDER),
    ("userspace", FORWARDER),
    ("kernel", DATAPATH),
];

#[test]
fn no_file_imports_from_a_floor_above_its_own() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (floor, known) in FLOORS {
        let files = files_below(&source.join(floor));
        assert!(!files.is_empty(), "{floor} has no files");
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            assert_eq!(strangers(&text, floor, known), [""; 0], "{}", file.display());
        }
    }
}

#[test]
fn an_import_from_above_is_found_and_one_of_a_test_is_not() {
    let text = "use crate::settings::LinkConfig;\nuse crate::bridge::Way;\nlet io: crate::Io;\n";
    assert_eq!(strangers(text, "datapath", DATAPATH), ["bridge", "Io"]);
    let text = "use crate::io;\n\n#[cfg(test)]\nmod tests {\n    use crate::kernel::Kind;\n}\n";
    assert_eq!(strangers(text, "io", IO), [""; 0]);
}

/// The modules of the crate that `text` names outside its tests, beyond those it may know.
fn strangers<'a>(text: &'a str, floor: &str, known: &[&str]) -> Vec<&'a str> {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let module = |rest: &'a str| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    };
    let named = code.split("crate::").skip(1).map(module);
    named.filter(|name| *name != floor && !known.contains(name)).collect()
}

/// The sources in a folder, but for those that are tests from end to end.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of sources");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let paths = paths.filter(|path| path.file_name().is_some_and(|name| name != "tests.rs"));
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
