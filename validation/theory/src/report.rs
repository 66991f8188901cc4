//! Results as text.

use std::fmt::Write;

use crate::oracle::Model;
use crate::study::{Extent, Row, discipline, simultaneous};

/// What is said of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Comparisons.
    pub rows: usize,
    /// Of them, how many have the theory in their own 95 % interval.
    pub within_own: usize,
    /// And in the interval of all together.
    pub within_all: usize,
}

impl Verdict {
    /// Counts.
    #[must_use]
    pub fn of(rows: &[Row]) -> Self {
        let count = |confidence| rows.iter().filter(|row| row.agrees(confidence)).count();
        Self {
            rows: rows.len(),
            within_own: count(0.95),
            within_all: count(simultaneous(rows.len())),
        }
    }

    /// Whether simulation and theory agree.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.within_all == self.rows
    }
}

/// The results in Markdown.
#[must_use]
pub fn markdown(rows: &[Row], extent: &Extent) -> String {
    let mut text = String::new();
    let verdict = Verdict::of(rows);
    let together = simultaneous(rows.len());
    let widest = rows.iter().map(|row| row.reach(0.95) / row.theory).fold(0.0, f64::max);
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "# The simulator against queueing theory\n\n\
         Written by `make validate-theory`. The closed forms stand in `src/oracle.rs`.\n\n\
         {} of {} comparisons have the theory within the interval that makes all of them hold \
         together with 95 % (Bonferroni: {:.3} % each), {} within their own 95 % interval. \
         Half the widest 95 % interval is {:.1} % of its mean.\n\n\
         {} replicates a case of {} jobs on average, the first and last tenth not counted; {} \
         and {} packets in a job of mean size. Times and sizes are relative to the mean size. \
         `theory` is the closed form averaged over the sizes that were drawn, `simulated` the \
         extrapolation to packets of no size, `packets` what the smaller packets add and the \
         extrapolation takes out. In every run Little's law held exactly.",
        verdict.within_all,
        verdict.rows,
        100.0 * together,
        verdict.within_own,
        100.0 * widest,
        extent.replicates,
        extent.jobs,
        extent.packets,
        extent.packets / 2,
    );
    let mut last = None;
    for row in rows {
        let here = (row.case.law, row.case.load.to_bits(), name(row.model));
        if last != Some(here) {
            last = Some(here);
            let packet_bytes = (crate::study::MEAN as u32) / extent.packets;
            let _ = write!(
                text,
                "\n### {}: `{}`, load {}\n\n`{}`\n\n\
                 | size | jobs | theory | simulated | 95 % | difference | packets | agrees |\n\
                 |---|---:|---:|---:|---:|---:|---:|---|\n",
                name(row.model),
                row.case.law,
                row.case.load,
                discipline(row.model, packet_bytes),
            );
        }
        let _ = writeln!(
            text,
            "| {} | {} | {:.4} | {:.4} | ± {:.2} % | {:+.2} % | {:+.2} % | {} |",
            class(row.class),
            row.jobs,
            row.theory,
            row.simulated,
            100.0 * row.reach(0.95) / row.theory,
            100.0 * (row.simulated / row.theory - 1.0),
            100.0 * row.granularity / row.theory,
            match (row.agrees(0.95), row.agrees(together)) {
                (true, _) => "yes",
                (false, true) => "together",
                (false, false) => "NO",
            },
        );
    }
    text
}

fn name(model: Model) -> &'static str {
    match model {
        Model::Fifo => "FIFO",
        Model::ProcessorSharing => "PS",
        Model::LeastAttained => "FB",
        Model::TwoLevels { .. } => "Two levels",
        Model::ShortestRemaining => "SRPT",
    }
}

fn class(class: Option<(f64, f64)>) -> String {
    match class {
        None => "all".into(),
        Some((from, to)) if to.is_infinite() => format!("{from} and more"),
        Some((from, to)) => format!("{from} to {to}"),
    }
}
