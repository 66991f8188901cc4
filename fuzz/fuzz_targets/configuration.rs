//! Any text as the configuration file of `attach`: the tables of devices, or a line that says where
//! it is wrong.

#![forbid(unsafe_code)]
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(said) = cli::harness::configuration(text, "a.toml") {
        assert!(said.starts_with("a.toml"), "{said}");
    }
});
