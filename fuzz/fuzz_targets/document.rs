//! Any bytes as the document that `shortlane test` gets from a server: addresses of one host, which
//! are the same when they are written and read again, or one line that says what is wrong with it.

#![forbid(unsafe_code)]
#![no_main]

use libfuzzer_sys::fuzz_target;
use responsiveness::Security;
use responsiveness::harness::{Read, document};

/// Whoever asks sees all of a line.
const LONGEST_LINE: usize = 600;
const ADDRESS: &str = "router:4043";

fuzz_target!(|bytes: &[u8]| {
    for (security, scheme) in [(Security::Plain, "http://"), (Security::Tls, "https://")] {
        match document(bytes, security, ADDRESS) {
            Ok(read) => takes(&read, security, scheme),
            Err(error) => refuses(&error.to_string()),
        }
    }
});

fn takes(read: &Read, security: Security, scheme: &str) {
    let again = document(&read.again, security, ADDRESS);
    assert_eq!(again.as_ref().ok(), Some(read), "written and read again");
    let hosts = read.urls.each_ref().map(|url| {
        let behind = url.strip_prefix(scheme).expect("the scheme that was asked for");
        behind.split(['/', '?']).next().unwrap_or_default()
    });
    let is_it = |host: &&str| host.eq_ignore_ascii_case(hosts[0]) && !host.is_empty();
    assert!(hosts.iter().all(is_it), "{hosts:?}");
    if let Some((host, _)) = &read.instead {
        assert!(!host.is_empty() && is_line(host), "{host:?}");
    }
}

fn refuses(said: &str) {
    assert!(said.starts_with(ADDRESS) && said.contains("its "), "{said}");
    assert!(is_line(said), "{said:?}");
    assert!(said.chars().count() <= LONGEST_LINE, "{said}");
}

/// Whether a terminal shows it as one line, and does nothing else.
fn is_line(said: &str) -> bool {
    !said.chars().any(|character| character.is_control() || "\u{2028}\u{2029}".contains(character))
}
