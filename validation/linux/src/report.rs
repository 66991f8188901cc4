//! Results as text.

use std::fmt::Write;

use crate::case::{Case, Kind};
use crate::compare::{Quantity, Round, Row, Verdict, incomplete, rows};
use crate::record::Measured;
use crate::simulated::{self, Model};

/// Between these lines of a file stands what was measured.
pub const BEGIN: &str = "<!-- measured: begin -->\n";
/// See [`BEGIN`].
pub const END: &str = "<!-- measured: end -->\n";

/// Simulates what was measured.
///
/// # Errors
/// If a round cannot be simulated.
pub fn rounds(case: &Case, measured: &Measured, model: &Model) -> Result<Vec<Round>, String> {
    let of_case = measured.rounds.iter().filter(|((name, _), _)| *name == case.name);
    let round = |((_, number), kernel): ((&String, &u64), &crate::Outcome)| {
        let simulated = simulated::run(case, &case.work(*number), *number, model)?;
        Ok(Round { number: *number, kernel: kernel.clone(), simulated })
    };
    of_case.map(|((name, number), kernel)| round(((name, number), kernel))).collect()
}

/// All comparisons in Markdown.
#[must_use]
pub fn markdown(cases: &[(Case, Vec<Round>)], comments: &[String]) -> String {
    let all: Vec<(&Case, &Vec<Round>, Vec<Row>)> =
        cases.iter().map(|(case, rounds)| (case, rounds, rows(case, rounds))).collect();
    let count = |verdict| {
        all.iter().flat_map(|(_, _, rows)| rows).filter(|row| row.verdict() == verdict).count()
    };
    let mut text = String::new();
    // Writing to a string does not fail.
    for comment in comments {
        let _ = writeln!(text, "- {comment}");
    }
    let _ = writeln!(
        text,
        "\nOf {} comparisons {} are within the tolerance (10 %; 15 % for queue and loss), {} are \
         outside of it with an interval that contains 1, and {} differ. A ratio is simulator \
         over kernel, with its 95 % interval over rounds.",
        all.iter().map(|(_, _, rows)| rows.len()).sum::<usize>(),
        count(Verdict::Within),
        count(Verdict::Unclear),
        count(Verdict::Differs),
    );
    for (title, is) in SECTIONS {
        let _ = writeln!(text, "\n### {title}\n\n{HEADER}");
        for (case, rounds, rows) in all.iter().filter(|(case, ..)| is(case.kind)) {
            rows.iter().for_each(|row| line(&mut text, case, rounds.len(), row));
        }
    }
    text.push_str("\n### Beside them\n\nPer round, kernel and simulator: segments sent again and timeouts of the flows without end; packets \
from the client for each one to it; transfers that were incomplete in all rounds.\n\n");
    text.push_str(BESIDE);
    for (case, rounds, _) in &all {
        let mean =
            |of: fn(&Round) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len().max(1) as f64;
        let (simulated, kernel) = incomplete(rounds);
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} | {kernel} | {simulated} |",
            case.name,
            mean(|round| round.kernel.retransmissions),
            mean(|round| round.simulated.retransmissions),
            mean(|round| round.kernel.timeouts),
            mean(|round| round.simulated.timeouts),
            mean(|round| round.kernel.acks),
            mean(|round| round.simulated.acks),
        );
    }
    text
}

type Section = (&'static str, fn(Kind) -> bool);
const SECTIONS: [Section; 3] = [
    ("One flow without end", |kind| matches!(kind, Kind::Endless)),
    ("Two flows with different round-trip times", |kind| matches!(kind, Kind::Shares { .. })),
    ("Transfers beside a flow without end", |kind| matches!(kind, Kind::Transfers { .. })),
];

const HEADER: &str = "| case | rounds | | kernel | simulator | ratio | 95 % | |\n\
                      |---|---:|---|---:|---:|---:|---|---|";

const BESIDE: &str = "| case | sent again | | timeouts | | acks | | incomplete | |\n\
                      |---|---:|---:|---:|---:|---:|---:|---:|---:|\n";

fn line(text: &mut String, case: &Case, rounds: usize, row: &Row) {
    let digits = match row.quantity {
        Quantity::Goodput | Quantity::Loss => 2,
        Quantity::Completion(_) => 0,
        _ => 1,
    };
    let ratio = row.ratio.map_or("-".into(), |ratio| format!("{:.2}", ratio.value));
    let interval = row.ratio.and_then(|ratio| ratio.interval);
    let interval = interval.map_or("-".into(), |(low, high)| format!("{low:.2} to {high:.2}"));
    let transfers = row.transfers.map_or(String::new(), |n| format!(" (n={n})"));
    let _ = writeln!(
        text,
        "| {} | {rounds} | {}{transfers} | {:.digits$} | {:.digits$} | {ratio} | {interval} | {} |",
        case.name,
        row.quantity.name(),
        row.kernel,
        row.simulated,
        match row.verdict() {
            Verdict::Within => "",
            Verdict::Unclear => "unclear",
            Verdict::Differs => "**differs**",
        },
    );
}

/// `file` with `text` in place of what stood between the marks.
///
/// # Errors
/// If it has no marks.
pub fn replace(file: &str, text: &str) -> Result<String, String> {
    let parts = file.split_once(BEGIN).and_then(|(before, rest)| {
        rest.split_once(END).map(|(_, after)| format!("{before}{BEGIN}\n{text}\n{END}{after}"))
    });
    parts.ok_or_else(|| format!("there are no lines {} and {}", BEGIN.trim(), END.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_before_is_replaced_and_the_rest_stays() {
        let file = format!("above\n{BEGIN}old\n{END}below\n");
        let new = replace(&file, "new").expect("marks");
        assert_eq!(new, format!("above\n{BEGIN}\nnew\n{END}below\n"));
        assert!(replace("no marks", "new").is_err());
    }

    #[test]
    fn a_report_names_what_differs() {
        let case = Case::all().remove(0);
        let outcome = |bps| crate::Outcome { goodput_bps: vec![bps], ..Default::default() };
        let rounds = (0..4).map(|number| Round {
            number,
            kernel: outcome(9e6),
            simulated: outcome(5e6 + number as f64),
        });
        let text = markdown(&[(case, rounds.collect())], &["a machine".to_owned()]);
        assert!(text.starts_with("- a machine\n\nOf 3 comparisons 2 are within"), "{text}");
        assert!(text.contains("| 9.00 | 5.00 | 0.56 | 0.56 to 0.56 | **differs** |"), "{text}");
    }
}
