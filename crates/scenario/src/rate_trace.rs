//! Files of rates over time: `time,rate`, and Mahimahi's.

use sched::{Nanos, Rate};
use sim::{Varying, VaryingError};

/// Bits of a packet of Mahimahi's, and so what one line lets through in its millisecond.
const MAHIMAHI_BITS: u64 = 1500 * 8;
const MILLISECOND: Nanos = Nanos::from_millis(1);
/// Beyond this a file is no trace of a link: 30 bits of milliseconds are 12 days.
const LONGEST_MS: u64 = 1 << 30;
/// Memory of a run: 16 bytes a step.
pub(crate) const MOST_STEPS: u64 = 10_000_000;

/// Reads a file that holds until `end`: Mahimahi's starts again when it is over, as there.
///
/// # Errors
/// Names file, line, what was found and what is accepted.
pub(crate) fn parse(text: &str, file: &str, end: Nanos) -> Result<Varying, String> {
    let mut lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    match lines.next() {
        Some((_, "time_s,rate_bps")) => steps(lines, file),
        Some(first) => mahimahi(std::iter::once(first).chain(lines), file, end),
        None => Err(format!("{file}: is empty; it takes {ACCEPTED}")),
    }
}

const ACCEPTED: &str = "lines of time_s,rate_bps under a heading of these words, or a whole number \
                        of milliseconds on each line, as Mahimahi's traces have them";

fn steps<'a>(lines: impl Iterator<Item = (usize, &'a str)>, file: &str) -> Result<Varying, String> {
    let mut steps = Vec::new();
    let mut numbers = Vec::new();
    for (number, line) in lines {
        let step = line.split_once(',').and_then(|(time, rate)| {
            let seconds: f64 = time.trim().parse().ok()?;
            let rate: u64 = rate.trim().parse().ok().filter(|rate| *rate <= 1_000_000_000_000)?;
            let within = (0.0..=LONGEST_MS as f64 / 1e3).contains(&seconds);
            within.then(|| (Nanos((seconds * 1e9).round() as u64), Rate(rate)))
        });
        steps.push(step.ok_or_else(|| {
            format!("{file}:{number}: '{line}' is not accepted; it takes seconds,bits a second")
        })?);
        numbers.push(number);
    }
    Varying::new(&steps).map_err(|error| {
        let at = match error {
            VaryingError::Start(_) => numbers.first(),
            VaryingError::Back(step) => numbers.get(step),
            VaryingError::Stalled => numbers.last(),
            VaryingError::Empty => None,
        };
        match at {
            Some(number) => format!("{file}:{number}: {error}"),
            None => format!("{file}: {error}"),
        }
    })
}

fn mahimahi<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    file: &str,
    end: Nanos,
) -> Result<Varying, String> {
    let mut packets: Vec<(u64, u64)> = Vec::new();
    for (number, line) in lines {
        let wrong = |what| format!("{file}:{number}: '{line}' {what}");
        let at = line.parse().ok().filter(|at| *at <= LONGEST_MS);
        let at: u64 = at.ok_or_else(|| wrong(format!("is not accepted; it takes {ACCEPTED}")))?;
        match packets.last_mut() {
            Some((before, _)) if at < *before => {
                return Err(wrong(format!("goes back: {before} stands before it")));
            }
            Some((before, count)) if at == *before => *count += 1,
            _ => packets.push((at, 1)),
        }
    }
    let length = packets.last().map_or(0, |(at, _)| *at);
    if length == 0 {
        return Err(format!("{file}: its last time is 0; a trace lasts at least 1 ms"));
    }
    let steps = (end.0 / MILLISECOND.0 / length + 1).saturating_mul(2 * packets.len() as u64);
    if steps > MOST_STEPS {
        return Err(format!("{file}: is {steps} steps until the end; at most {MOST_STEPS}"));
    }
    // A line of millisecond n is let through in the one that ends there; the first has those of 0.
    let mut steps: Vec<(Nanos, Rate)> = Vec::new();
    let mut put = |at: Nanos, rate: u64| match steps.last_mut() {
        Some((last, known)) if *last == at => known.0 += rate,
        Some((_, known)) if known.0 == rate => {}
        _ => steps.push((at, Rate(rate))),
    };
    put(Nanos::ZERO, 0);
    let mut round = 0;
    while round <= end.0 {
        for (at, count) in &packets {
            let start = Nanos(round + at.saturating_sub(1) * MILLISECOND.0);
            put(start, count * MAHIMAHI_BITS * 1_000);
            put(start + MILLISECOND, 0);
        }
        round += length * MILLISECOND.0;
    }
    // What comes after the end of the run does not matter, but has a rate.
    put(Nanos(round) + MILLISECOND, MAHIMAHI_BITS * 1_000);
    Varying::new(&steps).map_err(|error| format!("{file}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    fn read(text: &str) -> Result<Varying, String> {
        parse(text, "link.csv", SECOND)
    }

    #[test]
    fn steps_hold_until_the_next() {
        let rates = read("time_s,rate_bps\n0,8000000\n0.25,0\n\n0.5,4000000\n").expect("a trace");
        assert_eq!(rates.bits(Nanos::ZERO, SECOND), 2_000_000 + 2_000_000);
        assert_eq!(rates.bits(Nanos::from_millis(250), Nanos::from_millis(500)), 0);
    }

    #[test]
    fn a_trace_of_mahimahis_gives_a_packet_a_line_and_starts_again() {
        let rates = read("1\n3\n3\n10\n").expect("a trace");
        let given = |from, to| rates.bits(Nanos::from_millis(from), Nanos::from_millis(to));
        assert_eq!(given(0, 1), MAHIMAHI_BITS);
        assert_eq!(given(1, 2), 0);
        assert_eq!(given(2, 3), 2 * MAHIMAHI_BITS);
        assert_eq!(given(0, 10), 4 * MAHIMAHI_BITS);
        assert_eq!(given(0, 1_000), 400 * MAHIMAHI_BITS, "100 times");
    }

    #[test]
    fn a_trace_that_would_fill_the_memory_is_refused() {
        let error = parse("1\n2\n", "link", Nanos::from_secs(86_400)).expect_err("a day");
        assert!(error.starts_with("link: is 172800004 steps until the end"), "{error}");
    }

    #[test]
    fn refusals_name_file_and_line() {
        for (text, says) in [
            ("", "link.csv: is empty"),
            ("time_s,rate_bps\n0,1\n\n2,5\n1,5\n", "link.csv:5: step 3: its time is not later"),
            ("time_s,rate_bps\n3,1\n", "link.csv:2: a course of rates begins at 0"),
            ("time_s,rate_bps\n0,1\n1,0\n", "link.csv:3: the last rate is 0"),
            ("time_s,rate_bps\n0,fast\n", "link.csv:2: '0,fast' is not accepted"),
            ("time_s,rate_bps\nNaN,1\n", "link.csv:2: 'NaN,1' is not accepted"),
            ("time_s,rate_bps\n", "link.csv: a course of rates has at least one step"),
            ("1\n5\n4\n", "link.csv:3: '4' goes back: 5 stands before it"),
            ("1\nfast\n", "link.csv:2: 'fast' is not accepted"),
            ("0\n0\n", "link.csv: its last time is 0"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.starts_with(says), "{error}");
        }
    }
}
