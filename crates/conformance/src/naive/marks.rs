//! What `weights` and `curves` of the examples say, read another way than the disciplines do.

/// `what@code/code` joined by `+`: what is for a packet of this DSCP, or the one without codes.
pub(super) fn of_code(text: &str, dscp: u8) -> Option<&str> {
    let parts = || text.split('+').map(|part| part.split_once('@').unwrap_or((part, "")));
    let named = parts().find(|(_, codes)| codes.split('/').any(|code| number(code) == Some(dscp)));
    named.or_else(|| parts().find(|(_, codes)| codes.is_empty())).map(|(what, _)| what)
}

fn number(code: &str) -> Option<u8> {
    const NAMES: [(&str, u8); 9] = [
        ("be", 0),
        ("le", 1),
        ("cs1", 8),
        ("af11", 10),
        ("cs2", 16),
        ("af21", 18),
        ("af41", 34),
        ("af42", 36),
        ("ef", 46),
    ];
    NAMES.iter().find(|(name, _)| *name == code).map(|(_, number)| *number)
}

/// `WEIGHTxBPR/PBS` as slopes and the size of the burst.
pub(super) fn curve(text: &str) -> (f64, f64, f64) {
    let read = |text: &str| text.parse::<f64>().unwrap_or_else(|_| panic!("{text} is no number"));
    let (weight, burst) = text.split_once('x').unwrap_or((text, "1/0b"));
    let (bpr, pbs) = burst.split_once('/').expect("a burst has a size");
    let pbs = match pbs.strip_suffix("kb") {
        Some(kilobytes) => 1024.0 * read(kilobytes),
        None => read(pbs.trim_end_matches('b')),
    };
    (read(weight) * read(bpr), read(weight), pbs)
}
