//! The reference in the documentation is the one that the definitions make.

use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- made from the definitions of the keys: begin -->\n";
const END: &str = "<!-- end -->\n";

/// `UPDATE_DOCS=1 cargo test` writes it.
#[test]
fn the_reference_is_that_of_the_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the mark of its beginning");
    let (found, after) = rest.split_once(END).expect("and that of its end");
    let made = format!("\n{}\n", scenario::reference_markdown());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
        return;
    }
    let hint = "UPDATE_DOCS=1 cargo test -p shortlane-scenario writes it anew";
    for (found, made) in found.lines().zip(made.lines()) {
        assert_eq!(found, made, "{hint}");
    }
    assert_eq!(found.lines().count(), made.lines().count(), "{hint}");
}
