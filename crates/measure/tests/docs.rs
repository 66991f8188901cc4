//! `docs/results.md` says what the schema is.

use std::fs;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");

#[test]
fn the_document_has_the_columns_of_the_schema() {
    let document = fs::read_to_string(PATH).unwrap();
    let end_of_marker = document.find("-->\n").expect("a marker ends the written part") + 4;
    let written = &document[..end_of_marker];
    let expected = format!("{written}\n{}", measure::schema_markdown());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PATH, &expected).unwrap();
    } else {
        assert_eq!(document, expected, "run UPDATE_DOCS=1 cargo test -p shortlane-measure");
    }
}
