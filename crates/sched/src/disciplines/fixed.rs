//! Arithmetic on fractions as 0.64 fixed-point numbers.

/// `base^exponent` for a 0.64 fixed-point base; `u64::MAX` stands for 1.
#[must_use]
pub(crate) fn power(base: u64, mut exponent: u32) -> u64 {
    if base == u64::MAX {
        return u64::MAX;
    }
    let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    let mut square = base;
    let mut result = u64::MAX;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, square);
        }
        square = times(square, square);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stays_one_and_zero_is_reached() {
        assert_eq!(power(u64::MAX, 65_535), u64::MAX);
        assert_eq!(power(0, 1), 0);
        assert_eq!(power(1 << 63, 64), 0);
        // Rounded down at every step.
        assert!((1u64 << 62).abs_diff(power(1 << 63, 2)) <= 4);
    }
}
