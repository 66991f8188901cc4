//! Which shelf may know which: the interface knows itself, containers know the interface,
//! disciplines know both, and nothing below the registry knows it or the specs that it reads.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder of `src` and the modules that its files may name.
const SHELVES: [(&str, &[&str]); 3] = [
    ("interface", &["interface"]),
    ("queues", &["interface", "queues"]),
    ("disciplines", &["interface", "queues", "disciplines"]),
];

#[test]
fn no_file_imports_from_a_shelf_above_its_own() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (shelf, known) in SHELVES {
        let files = files_below(&source.join(shelf));
        assert!(files.len() > 4, "{shelf} has {} files", files.len());
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            assert_eq!(strangers(&text, known), [""; 0], "{}", file.display());
        }
    }
}

#[test]
fn an_import_from_above_is_found_and_one_of_a_test_is_not() {
    let text = "use crate::interface::Packet;\nuse crate::registry;\nlet spec: crate::Spec;\n";
    assert_eq!(strangers(text, &["interface"]), ["registry", "Spec"]);
    let text =
        "use crate::queues::ring;\n\n#[cfg(test)]\nmod tests {\n    use crate::spec::Spec;\n}\n";
    assert_eq!(strangers(text, &["queues"]), [""; 0]);
}

/// The modules of the crate that `text` names outside its tests, beyond those it may know.
fn strangers<'a>(text: &'a str, known: &[&str]) -> Vec<&'a str> {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let module = |rest: &'a str| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    };
    let named = code.split("crate::").skip(1).map(module);
    named.filter(|name| !known.contains(name)).collect()
}

/// The sources in a folder, but for those that are tests from end to end.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of sources");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let paths = paths.filter(|path| path.file_name().is_some_and(|name| name != "tests.rs"));
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
