//! Any bytes as what a client says to an engine, an engine to a client, and the journal to whoever
//! comes next: read, or refused; what is read is said again as it was.

#![forbid(unsafe_code)]
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    engine::control::harness::request(bytes);
    engine::control::harness::answer(bytes);
    engine::kernel::harness::journal(bytes);
});
