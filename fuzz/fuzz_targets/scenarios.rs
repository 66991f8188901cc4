//! Any text as a scenario: accepted, or refused by a line that names the file.

#![forbid(unsafe_code)]
#![no_main]

use libfuzzer_sys::fuzz_target;
use scenario::{Overrides, Scenario};

fuzz_target!(|text: &str| {
    // Without a directory no file that it names is opened.
    if let Err(error) = Scenario::parse(text, "a.toml", None, &Overrides::default()) {
        let said = error.to_string();
        assert!(said.starts_with("a.toml"), "{said}");
    }
});
