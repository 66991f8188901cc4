//! What holds for all numbers: [Kani](https://model-checking.github.io/kani/) proves it (`cargo kani -p
//! shortlane-units`); `cargo test` tries it at the ends of ranges.

use crate::{Amount, Nanos, Rate, Share};

/// A part is no more than the whole, and what is left is the rest, but for what rounding down takes.
fn a_part_and_the_rest_are_the_whole(whole: u64, ppb: u32) {
    let (share, whole) = (Share::from_ppb(ppb), Amount::Bytes(whole));
    let (part, rest) = (whole.part(share), whole.part(share.rest()));
    assert!(part <= whole.value() && rest <= whole.value() - part);
    assert!(whole.value() - part - rest <= 1);
    assert_eq!(whole.part(Share::ONE), whole.value());
    assert_eq!(whole.part(Share::ZERO), 0);
}

/// The time that bytes take is the longest in which the rate does not carry more than them; more of
/// them never take less.
fn bytes_take_their_time(rate: u64, bytes: u64, more: u64) {
    let (rate, time) = (Rate(rate), Rate(rate).time_of(bytes));
    assert!(time <= rate.time_of(bytes.saturating_add(more)));
    if rate.is_unlimited() || rate == Rate(0) {
        assert_eq!(time, if rate.is_unlimited() { Nanos::ZERO } else { Nanos::MAX });
        return;
    }
    let carried = |time: u64| u128::from(time) * u128::from(rate.0);
    let bits = u128::from(bytes) * 8_000_000_000;
    assert!(carried(time.0) <= bits);
    assert!(time == Nanos::MAX || carried(time.0 + 1) > bits);
}

/// Sums and differences stop at the ends.
fn times_stop_at_the_ends(a: u64, b: u64) {
    let (a, b) = (Nanos(a), Nanos(b));
    assert!(a + b >= a && a - b <= a);
    assert!(a + b == Nanos::MAX || (a + b) - b == a);
    assert_eq!(a.abs_diff(b), (a - b) + (b - a));
}

/// A draw that is as likely as a share: none for all, never for none, never less for more.
fn a_draw_is_as_likely_as_its_share(ppb: u32, more: u32) {
    let (share, larger) = (Share::from_ppb(ppb), Share::from_ppb(ppb.saturating_add(more)));
    match (share.as_draw(), larger.as_draw()) {
        (Some(draw), Some(other)) => assert!(draw <= other),
        (None, other) => assert!(share == Share::ONE && other.is_none()),
        (Some(_), None) => assert_eq!(larger, Share::ONE),
    }
    assert_eq!(Share::ZERO.as_draw(), Some(0));
}

/// Whatever stands there is read, or refused.
fn any_text_is_read_or_refused(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let _ = (text.parse::<Amount>(), text.parse::<Rate>());
    let _ = (text.parse::<Nanos>(), text.parse::<Share>());
}

#[cfg(kani)]
mod harnesses {
    #[kani::proof]
    fn a_part_and_the_rest_are_the_whole() {
        super::a_part_and_the_rest_are_the_whole(kani::any(), kani::any());
    }

    #[kani::proof]
    fn bytes_take_their_time() {
        super::bytes_take_their_time(kani::any(), kani::any(), kani::any());
    }

    #[kani::proof]
    fn times_stop_at_the_ends() {
        super::times_stop_at_the_ends(kani::any(), kani::any());
    }

    #[kani::proof]
    fn a_draw_is_as_likely_as_its_share() {
        super::a_draw_is_as_likely_as_its_share(kani::any(), kani::any());
    }

    /// Of at most six bytes.
    #[kani::proof]
    #[kani::unwind(16)]
    fn any_text_is_read_or_refused() {
        let (bytes, length): ([u8; 6], usize) = (kani::any(), kani::any());
        kani::assume(length <= bytes.len());
        super::any_text_is_read_or_refused(&bytes[..length]);
    }
}

#[cfg(test)]
mod tests {
    const ENDS: [u64; 8] = [0, 1, 7, 1000, 1 << 32, 1 << 53, u64::MAX - 1, u64::MAX];
    const SHARES: [u32; 6] = [0, 1, 333_333_333, 500_000_000, 999_999_999, 1_000_000_000];

    #[test]
    fn at_the_ends_of_ranges() {
        for a in ENDS {
            for b in ENDS {
                super::times_stop_at_the_ends(a, b);
                for c in ENDS {
                    super::bytes_take_their_time(a, b, c);
                }
            }
            for share in SHARES {
                super::a_part_and_the_rest_are_the_whole(a, share);
            }
        }
        for share in SHARES {
            for more in SHARES {
                super::a_draw_is_as_likely_as_its_share(share, more);
            }
        }
    }

    #[test]
    fn odd_texts() {
        for text in
            ["", ".", "1.", ".5%", "inf", "\u{e9}mbit", "18446744073709551616b", "0x1p", "-1"]
        {
            super::any_text_is_read_or_refused(text.as_bytes());
        }
    }
}
