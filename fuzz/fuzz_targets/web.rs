//! Any bytes on a connection to the page of `top --web`, with a token and without: nobody who names
//! another host, or does not have the token, gets more than a refusal and the page's own files.

#![forbid(unsafe_code)]
#![no_main]

use cli::harness::Web;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static OPEN: Web = Web::new(None);
    static CLOSED: Web = Web::new(Some("0123456789abcdef0123456789abcdef"));
}

fuzz_target!(|bytes: &[u8]| {
    // A host's name is the same in capitals.
    let small = bytes.to_ascii_lowercase();
    let names_other =
        !contains(&small, b"localhost") && !contains(&small, b"127.") && !contains(&small, b"::1");
    let said = OPEN.with(|web| web.ask(bytes));
    assert!(!(names_other && tells(&said)), "told to who named another host");
    let said = CLOSED.with(|web| web.ask(bytes));
    let has_token = contains(bytes, b"token=0123456789abcdef0123456789abcdef");
    assert!(has_token || !tells(&said), "told to who has no token");
    assert!(!contains(&said, b"0123456789abcdef"), "the token was told");
});

/// Whether an answer has what the device does.
fn tells(said: &[u8]) -> bool {
    contains(said, Web::SECRET.as_bytes())
}

fn contains(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}
