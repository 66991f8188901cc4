//! What a discipline gives to packets by their DSCP, and how that is written.
//!
//! `1+4@ef+2@af41/af42`: things separated by `+`, each for the code points behind its `@`, which
//! `/` separates. What has no `@` is for all others.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::interface::Packet;

/// Something, and the code points that it is for.
pub(crate) struct Marked<'a> {
    pub(crate) what: &'a str,
    pub(crate) codes: Vec<u8>,
}

/// Reads `what@code/code`; without `@` there are no codes.
pub(crate) fn marked(text: &str) -> Result<Marked<'_>, String> {
    let (what, codes) = text.split_once('@').map_or((text, None), |(what, c)| (what, Some(c)));
    let codes = codes.map_or(Ok(Vec::new()), |codes| codes.split('/').map(code).collect())?;
    Ok(Marked { what: what.trim(), codes })
}

/// Reads a list without nesting; at most one of them is for all other packets.
pub(crate) fn list(text: &str) -> Result<Vec<Marked<'_>>, String> {
    let list = text.split('+').map(marked).collect::<Result<Vec<_>, _>>()?;
    if let [_, second, ..] = list.iter().filter(|m| m.codes.is_empty()).collect::<Vec<_>>()[..] {
        return Err(format!("'{}' has no codes, and is not the first such", second.what));
    }
    no_code_twice(list.iter().flat_map(|marked| marked.codes.iter().copied()))?;
    Ok(list)
}

/// Refuses a code point that two things would be for.
pub(crate) fn no_code_twice(codes: impl Iterator<Item = u8>) -> Result<(), String> {
    let mut seen = 0u64;
    for code in codes {
        if seen & 1 << code != 0 {
            return Err(format!("code {code} is there twice"));
        }
        seen |= 1 << code;
    }
    Ok(())
}

/// Reads a whole number of this range.
pub(crate) fn number(what: &str, text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = text.trim().parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!("{what} '{}' is not a whole number from {} to {}", text, range.start(), range.end())
    })
}

/// Reads a code point: 0 to 63, or one of the names of RFC 2474, 2597, 3246, 5865 and 8622.
fn code(text: &str) -> Result<u8, String> {
    let text = text.trim();
    let digit = |text: &str, range: RangeInclusive<u8>| match text.as_bytes() {
        [digit @ b'0'..=b'9'] if range.contains(&(digit - b'0')) => Some(digit - b'0'),
        _ => None,
    };
    let assured = |text: &str| {
        let (class, precedence) = text.split_at_checked(1)?;
        Some(8 * digit(class, 1..=4)? + 2 * digit(precedence, 1..=3)?)
    };
    let named = match text {
        "be" | "df" => Some(0),
        "le" => Some(1),
        "va" => Some(44),
        "ef" => Some(46),
        _ if text.starts_with("cs") => digit(&text[2..], 0..=7).map(|class| 8 * class),
        _ if text.starts_with("af") => assured(&text[2..]),
        _ => text.parse().ok().filter(|code| *code < 64),
    };
    named.ok_or_else(|| {
        format!("'{text}' is not a DSCP: 0 to 63, be, le, cs0 to cs7, af11 to af43, va, ef")
    })
}

/// A small number for every code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByCode([u8; 64]);

impl ByCode {
    /// 0 for all.
    pub(crate) const NONE: Self = Self([0; 64]);

    /// Gives the code points a number.
    pub(crate) fn set(&mut self, codes: &[u8], number: u8) {
        for code in codes {
            self.0[usize::from(*code)] = number;
        }
    }

    /// The number of a packet.
    #[inline]
    pub(crate) const fn of(&self, packet: &Packet) -> u8 {
        self.0[(packet.dscp & 63) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_the_names_of_the_standards() {
        for (name, value) in
            [("0", 0), ("63", 63), ("be", 0), ("cs1", 8), ("af11", 10), ("af43", 38), ("ef", 46)]
        {
            assert_eq!(code(name), Ok(value), "{name}");
        }
        for name in ["", "64", "-1", "af44", "af50", "af1", "cs8", "cs", "EF ", "af\u{e9}"] {
            assert!(code(name).is_err(), "{name}");
        }
    }

    #[test]
    fn lists_say_what_is_for_whom() {
        let list = list("1 + 4@ef+2@af41/10").unwrap();
        let read: Vec<_> = list.iter().map(|m| (m.what, m.codes.clone())).collect();
        assert_eq!(read, [("1", Vec::new()), ("4", [46].into()), ("2", [34, 10].into())]);
    }

    #[test]
    fn a_code_is_for_one_thing_only() {
        assert!(list("1@ef+2@46").is_err_and(|reason| reason.contains("46 is there twice")));
        assert!(list("1+2@ef+3").is_err_and(|reason| reason.contains("'3' has no codes")));
    }
}
