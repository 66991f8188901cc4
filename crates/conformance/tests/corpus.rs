//! The fuzzer's committed corpus, replayed without the fuzzer.

use std::fs;
use std::path::Path;

use arbitrary::{Arbitrary, Unstructured};
use conformance::Case;

#[test]
fn every_case_of_the_corpus_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/disciplines");
    let files = fs::read_dir(&corpus).unwrap_or_else(|e| panic!("{}: {e}", corpus.display()));
    let mut cases = 0;
    for path in files.map(|entry| entry.expect("a directory entry").path()) {
        let bytes = fs::read(&path).expect("a file of the corpus");
        let case = Case::arbitrary(&mut Unstructured::new(&bytes)).expect("a case");
        assert!(!case.operations.is_empty(), "{}", path.display());
        case.check().unwrap_or_else(|violation| panic!("{}: {violation}", path.display()));
        cases += 1;
    }
    assert!(cases >= 20, "{cases} cases in {}", corpus.display());
}
