//! Seeds as text: `7`, `1..10` (both ends included), `1,2,5`.

/// Enough for any interval; more is a typing mistake.
const MOST: u64 = 10_000;

/// What is accepted, for errors.
pub const ACCEPTED: &str =
    "one seed such as 7, a range such as 1..10, or a list such as 1,2,5; at most 10000 seeds";

/// Reads seeds; `None` for text that is none, for no seed, one seed twice, or too many.
#[must_use]
pub fn parse(text: &str) -> Option<Vec<u64>> {
    match text.split_once("..") {
        Some((first, last)) => {
            let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            let number = last.checked_sub(first)?.checked_add(1)?;
            (number <= MOST).then(|| (first..=last).collect())
        }
        None => distinct(text.split(',').map(|s| s.trim().parse().ok()).collect::<Option<_>>()?),
    }
}

/// The seeds, if there is at least one, each is named once, and they are not too many.
pub(crate) fn distinct(seeds: Vec<u64>) -> Option<Vec<u64>> {
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let fine = !seeds.is_empty() && sorted.len() == seeds.len() && seeds.len() as u64 <= MOST;
    fine.then_some(seeds)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn seeds_are_one_a_range_or_a_list() {
        assert_eq!(parse("7"), Some(vec![7]));
        assert_eq!(parse("1..3"), Some(vec![1, 2, 3]));
        assert_eq!(parse("5..5"), Some(vec![5]));
        assert_eq!(parse("3, 1"), Some(vec![3, 1]));
    }

    #[test]
    fn what_is_no_seed_is_refused() {
        for text in ["", "3..1", "..", "1..", "-1", "a", "1,1", "1,,2", "0..10000", "1.5"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
