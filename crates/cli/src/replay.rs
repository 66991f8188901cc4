//! `shortlane replay`: a capture through each discipline.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use measure::EventWriter;
use replay::capture::{self, Capture, CaptureError};
use replay::{Config, Progress, Report, Tables};
use sched::{Amount, Nanos, Rate};
use serde_json::json;

use crate::lab::FileFormat;
use crate::lab::output::open_results;
use crate::{Call, Failure, print, quantity, say, signals, specs};

/// The options of `shortlane replay`.
#[derive(Args)]
pub(crate) struct Options {
    /// Replay this capture: pcap or pcapng, also gzipped; - is standard input
    capture: PathBuf,
    /// Set the rate of the link
    #[arg(long, allow_hyphen_values = true, value_parser = quantity::rate)]
    rate: Rate,
    /// Set the queue limit of disciplines without one of their own
    #[arg(long, default_value = "300packets", allow_hyphen_values = true, value_parser = quantity::amount)]
    limit: Amount,
    /// Run this discipline, such as efd:threshold=30packets; may be repeated
    #[arg(long = "scheduler", value_name = "SPEC")]
    schedulers: Vec<String>,
    /// Seed random numbers and the fingerprints of flows
    #[arg(long, default_value_t = 1, allow_hyphen_values = true, value_parser = quantity::number(0..=u64::MAX))]
    seed: u64,
    /// End a flow that is silent for longer: its next packet starts a new one
    #[arg(long, value_name = "TIME", default_value = "60s", allow_hyphen_values = true, value_parser = quantity::positive_time)]
    idle: Nanos,
    /// Write the fate of every packet to this file, .csv or .parquet
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write flows, queue samples and drops to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write files of this kind into that directory
    #[arg(long, value_enum, default_value_t = FileFormat::Parquet)]
    format: FileFormat,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options, call: &Call) -> Result<(), Failure> {
    let config = options.config()?;
    let bar = progress_bar();
    let bad_input = |error: CaptureError| match error {
        CaptureError::Interrupted => Failure::Failed(error.to_string()),
        _ => Failure::Usage(format!("capture {}: {error}", options.capture.display())),
    };
    let capture = Capture::open(options.input(&bar)?).map_err(bad_input)?;
    let stop = signals::stop_flag()?;
    let mut tables = options.tables()?;
    let mut show = |progress: Progress| {
        let seconds = progress.time.0 as f64 / 1e9;
        bar.set_message(format!("{} packets, {seconds:.1} s", progress.packets));
    };
    let report = replay::run(&config, capture, &mut tables, &stop, &mut show);
    bar.finish_and_clear();
    let report = report.map_err(bad_input)?;
    for warning in &report.warnings {
        say(&format!("shortlane: {warning}"));
    }
    let capture = options.capture.display().to_string();
    let info = report.run_info(&config, &capture, call.command());
    let shown = if options.json {
        let document = json!({
            "scenario": info.scenario,
            "open_loop": replay::text::OPEN_LOOP,
            "capture": report.capture,
            "partial": report.partial,
            "warnings": report.warnings,
            "schedulers": report.schedulers,
        });
        print(&format!("{document:#}\n"))
    } else {
        print(&replay::text::report(&config, &report))
    };
    let written = tables.finish(&info, report.partial).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::Failed(format!("results not written: {}", errors.join("; ")))
    });
    crate::all([options.whole(&report), shown, written])
}

impl Options {
    fn config(&self) -> Result<Config, Failure> {
        let config = Config {
            schedulers: specs::parse(&self.schedulers, &specs::DEFAULT, self.limit)?,
            rate: self.rate,
            limit: self.limit,
            seed: self.seed,
            idle: self.idle,
        };
        config.check().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(config)
    }

    /// The bytes of the capture; reading them moves the bar.
    fn input(&self, bar: &ProgressBar) -> Result<Box<dyn Read>, Failure> {
        if self.capture == Path::new("-") {
            return Ok(Box::new(bar.wrap_read(std::io::stdin().lock())));
        }
        let file = capture::open_file(&self.capture).map_err(Failure::Usage)?;
        let metadata = file.metadata().ok().filter(|metadata| metadata.is_file());
        if let Some(metadata) = metadata {
            bar.set_length(metadata.len());
        }
        Ok(Box::new(bar.wrap_read(file)))
    }

    fn tables(&self) -> Result<Tables<'static>, Failure> {
        let mut tables = Tables::new();
        if let Some(path) = &self.events {
            tables = tables.with_events(open_events(path)?, path);
        }
        if let Some(directory) = &self.out {
            tables = tables.with_results(open_results(directory, self.format)?);
        }
        Ok(tables)
    }

    /// What ends the command if the replay was interrupted.
    fn whole(&self, report: &Report) -> Result<(), Failure> {
        if !report.partial {
            return Ok(());
        }
        let mut said =
            format!("interrupted; the figures are of the first {} packets", report.capture.packets);
        if self.events.is_some() {
            said += ", and the file of events is named .partial";
        }
        Err(Failure::Failed(said))
    }
}

fn open_events(path: &Path) -> Result<EventWriter, Failure> {
    let refused = |why: &str| {
        let takes = "it takes a file whose name ends in .csv or .parquet";
        Failure::Usage(format!("--events {} is not accepted: {why}; {takes}", path.display()))
    };
    match EventWriter::for_path(path) {
        None => Err(refused("its name says no format")),
        Some(Err(error)) => Err(refused(&error.source.to_string())),
        Some(Ok(_)) if path.is_dir() => Err(refused("it is a directory")),
        Some(Ok(writer)) => Ok(writer),
    }
}

/// A bar with the time left on a terminal, nothing elsewhere.
fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::no_length();
    let style = ProgressStyle::with_template("{bar:24} {percent} %, {eta} left  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    bar
}
