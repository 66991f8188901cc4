//! Any bytes as the lists that a scenario names: transfers, datagrams, rates over time.

#![forbid(unsafe_code)]
#![no_main]

use libfuzzer_sys::fuzz_target;
use sched::Nanos;
use workload::{DatagramList, TransferList};

/// Mahimahi's traces are unrolled until then.
const END: Nanos = Nanos::from_millis(20_000);

fuzz_target!(|bytes: &[u8]| {
    // To begin to read a list takes the CSV reader longer than most inputs: each goes to one.
    match bytes.first() {
        Some(b'0'..=b'9') => rates(bytes),
        Some(b't') => {
            datagrams(bytes);
            rates(bytes);
        }
        _ => transfers(bytes),
    }
});

fn transfers(bytes: &[u8]) {
    match TransferList::from_csv(bytes, "a.csv") {
        Ok(list) => assert!(list.transfers().is_sorted_by_key(|transfer| transfer.start)),
        Err(error) => names_the_file(&error.to_string()),
    }
}

fn datagrams(bytes: &[u8]) {
    match DatagramList::from_csv(bytes, "a.csv") {
        Ok(list) => assert!(list.datagrams().is_sorted_by_key(|datagram| datagram.time)),
        Err(error) => names_the_file(&error.to_string()),
    }
}

fn rates(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = scenario::harness::rate_trace(text, "a.csv", END) {
        names_the_file(&error);
    }
}

fn names_the_file(said: &str) {
    assert!(said.starts_with("a.csv"), "{said}");
}
