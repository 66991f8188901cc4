//! `shortlane worst`: a search for the traffic under which a discipline does worst.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use ::worst::{Found, Harm, Setting, WorstError};
use clap::Args;
use sched::{Amount, Nanos, Rate, Spec};
use serde_json::json;

use crate::progress::ProgressLine;
use crate::{Failure, print, quantity, signals};

/// The options of `shortlane worst`.
#[derive(Args)]
pub(crate) struct Options {
    /// Try this discipline, with parameters as in `shortlane list`
    #[arg(value_name = "SPEC", value_parser = spec)]
    spec: Spec,
    /// Search for the worst case of this harm
    #[arg(long, value_enum)]
    of: What,
    /// Try this many mixes of traffic
    #[arg(long, value_name = "N", default_value_t = 4000, allow_hyphen_values = true, value_parser = quantity::number(1..=100_000_000usize))]
    runs: usize,
    /// Simulate a link of this rate
    #[arg(long, value_name = "RATE", default_value = "10mbit", value_parser = quantity::rate)]
    rate: Rate,
    /// Simulate this propagation delay, one way
    #[arg(long, value_name = "TIME", default_value = "9ms", value_parser = quantity::time)]
    delay: Nanos,
    /// Let the queue hold this much, if the discipline is given without a limit
    #[arg(long, value_name = "LIMIT", default_value = "300packets", value_parser = quantity::amount)]
    limit: Amount,
    /// Leave TCP out: what arrives does not depend on the discipline
    #[arg(long)]
    open_loop: bool,
    /// Derive every choice from this number
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = quantity::number(0..=u64::MAX))]
    seed: u64,
    /// Try this many at a time; by default one for each processor
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = quantity::number(1..=1024usize))]
    jobs: Option<usize>,
    /// Write the worst as a scenario file, for `shortlane sim`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// Maximise how long a packet of a sparse stream takes to arrive
    Wait,
    /// Maximise how long nothing arrives of a stream that always has packets queued
    Starvation,
    /// Maximise how much of its half of the link a download misses beside another host's traffic
    Unfairness,
    /// Maximise how many flows the discipline remembers
    Memory,
}

impl What {
    fn harm(self) -> Harm {
        match self {
            Self::Wait => Harm::Wait,
            Self::Starvation => Harm::Starvation,
            Self::Unfairness => Harm::Unfairness,
            Self::Memory => Harm::Memory,
        }
    }
}

fn spec(text: &str) -> Result<Spec, String> {
    text.parse().map_err(|error: sched::SpecError| error.to_string())
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let setting = Setting {
        harm: options.of.harm(),
        rate: options.rate,
        delay: options.delay,
        limit: options.limit,
        open_loop: options.open_loop,
        runs: options.runs,
        seed: options.seed,
        jobs: options.jobs.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        }),
    };
    let stop = signals::stop_flag()?;
    let mut line = ProgressLine::new();
    let found = ::worst::search(&options.spec, &setting, &stop, &mut |tried, worst| {
        line.show(tried as u64, setting.runs as u64, setting.harm.show(worst));
    });
    line.end();
    let found = found.map_err(|error| match error {
        WorstError::Scenario(_) => Failure::Usage(error.to_string()),
        WorstError::Stopped => Failure::Failed(error.to_string()),
    })?;
    if let Some(path) = &options.out {
        write(path, &found.scenario)?;
    }
    let shown = if options.json {
        format!("{:#}\n", document(options, &setting, &found))
    } else {
        report(options, &setting, &found)
    };
    print(&shown)
}

fn write(path: &Path, scenario: &str) -> Result<(), Failure> {
    std::fs::write(path, scenario)
        .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
}

fn document(options: &Options, setting: &Setting, found: &Found) -> serde_json::Value {
    json!({
        "scheduler": options.spec.to_string(),
        "of": setting.harm.name(),
        "harm": found.harm,
        "fifo": found.fifo,
        "lost": found.lost,
        "offered": found.offered,
        "traffic": found.traffic,
        "bound": found.bound.as_ref().map(|bound| json!({
            "value": bound.value, "source": bound.source,
        })),
        "reached": found.reached,
        "tried": found.tried,
        "seed": setting.seed,
        "scenario": found.scenario,
    })
}

fn report(options: &Options, setting: &Setting, found: &Found) -> String {
    let harm = setting.harm;
    let mut out = String::new();
    let mut row = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<10} {value}");
    };
    row("worst", format!("{} of {} under {}", harm.show(found.harm), harm.name(), options.spec));
    row("fifo", found.fifo.map_or("too many flows pile up".into(), |fifo| harm.show(fifo)));
    if let Some(bound) = &found.bound {
        row("bound", format!("{} ({})", harm.show(bound.value), bound.source));
    } else {
        row("bound", "none is stated".to_owned());
    }
    if let Some(reached) = found.reached {
        row(
            "reached",
            format!("{:.0} % of its bound, by the attack that came closest", reached * 100.0),
        );
    }
    if let Some(lost) = found.lost {
        row("lost", format!("{:.1} % of the victim's packets", lost * 100.0));
    }
    row("offered", format!("{:.0} % of the link, and what TCP adds", found.offered * 100.0));
    for (at, block) in found.traffic.iter().enumerate() {
        row(if at == 0 { "traffic" } else { "" }, block.clone());
    }
    row("tried", format!("{} mixes of traffic, seed {}", found.tried, setting.seed));
    match &options.out {
        Some(path) => row("written", path.display().to_string()),
        None => {
            // The victim and the attack: what stands before is the same for all.
            let traffic = found.scenario.find("\n[[traffic]]").unwrap_or(0);
            out.push_str(&found.scenario[traffic..]);
        }
    }
    out
}
