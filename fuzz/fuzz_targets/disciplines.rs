//! Every discipline in the registry, with any parameters, through any sequence of operations.

#![forbid(unsafe_code)]
#![no_main]

use conformance::Case;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|case: Case| {
    if let Err(violation) = case.check() {
        panic!("{violation}\nafter {:#?}", case.operations);
    }
});
