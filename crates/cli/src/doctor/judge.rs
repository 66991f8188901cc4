//! From facts to findings. Pure, so that every fault can be tried.

mod device;
mod machine;

pub(super) use self::device::device;
pub(super) use self::machine::machine;
use super::{Finding, Verdict};

fn finding(
    device: Option<&str>,
    check: &'static str,
    result: Verdict,
    found: impl Into<String>,
    remedy: &str,
) -> Finding {
    let remedy = (result != Verdict::Ok).then(|| remedy.to_owned());
    Finding { device: device.map(str::to_owned), check, result, found: found.into(), remedy }
}

fn note_unless(good: bool) -> Verdict {
    if good { Verdict::Ok } else { Verdict::Note }
}

fn problem_unless(good: bool) -> Verdict {
    if good { Verdict::Ok } else { Verdict::Problem }
}

#[cfg(test)]
mod tests;
