//! Measures this kernel's TCP, and compares the simulator's with it.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use linux::record::{Measured, Writer};
use linux::{Case, kernel, report, simulated};
use sched::Nanos;

const USAGE: &str = "\
shortlane-linux measure FILE [OPTION...]     writes FILE; needs root or user namespaces
  --rounds N        of every case (8)
  --jobs N          blocks side by side (6)
  --late-limit F    a block whose pacer gave up more of its time is void (0.01)
  --latest MS       so is one in which anything was later than this (30)
  --set NAME=VALUE  a network parameter of the hosts, such as ipv4.tcp_tso_win_divisor=100
  --case TEXT       only cases whose name contains it
shortlane-linux compare FILE [--into REPORT] prints Markdown, and puts it into REPORT
shortlane-linux compare FILE --switch NAME   the same with one change of our model; names:";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["measure", file, ref options @ ..] => {
            Measure::new(options).and_then(|options| options.run(Path::new(file)))
        }
        ["compare", file] => compare(file, None, None),
        ["compare", file, "--into", report] => compare(file, Some(report), None),
        ["compare", file, "--switch", name] => compare(file, None, Some(name)),
        _ => Err(usage()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let names: Vec<&str> = simulated::SWITCHES.iter().map(|(name, _)| *name).collect();
    format!("{USAGE}\n  {}", names.join(", "))
}

fn compare(file: &str, into: Option<&str>, switch: Option<&str>) -> Result<(), String> {
    let switch = switch.map(|name| {
        let found = simulated::SWITCHES.iter().find(|(switch, _)| *switch == name);
        found.ok_or_else(|| format!("--switch {name} is not accepted\n{}", usage()))
    });
    let switch = switch.transpose()?;
    let read = |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let cases = Case::all();
    let measured =
        Measured::read(&read(file)?, &cases).map_err(|error| format!("{file}: {error}"))?;
    let mut compared = Vec::new();
    for case in cases {
        let mut model = simulated::Model::new(case.tcp);
        if let Some((_, change)) = switch {
            change(&mut model);
        }
        let rounds = report::rounds(&case, &measured, &model)?;
        if !rounds.is_empty() {
            compared.push((case, rounds));
        }
    }
    let text = report::markdown(&compared, &measured.comments);
    print!("{text}");
    let Some(into) = into else { return Ok(()) };
    let whole = report::replace(&read(into)?, &text).map_err(|error| format!("{into}: {error}"))?;
    fs::write(into, whole).map_err(|error| format!("{into}: {error}"))
}

struct Measure {
    rounds: u64,
    jobs: usize,
    options: kernel::Options,
    cases: Vec<Case>,
}

/// How often a block is tried.
const TRIES: u32 = 3;

/// A block to be measured.
#[derive(Clone, Copy)]
struct Block {
    case: usize,
    round: u64,
    tries: u32,
}

/// What the threads share.
struct Shared {
    blocks: VecDeque<Block>,
    writer: Writer,
    done: u64,
    void: u64,
    failed: Option<String>,
}

impl Measure {
    fn new(options: &[&str]) -> Result<Self, String> {
        let (latest, parameters) = (Nanos::from_millis(30), Vec::new());
        let strict = kernel::Options { late_limit: 0.01, latest, parameters };
        let mut measure = Self { rounds: 8, jobs: 6, options: strict, cases: Case::all() };
        for option in options.chunks(2) {
            let [name, value] = *option else { return Err(usage()) };
            let bad = || format!("{name} {value} is not accepted\n{}", usage());
            match name {
                "--rounds" => measure.rounds = value.parse().map_err(|_| bad())?,
                "--jobs" => measure.jobs = value.parse().map_err(|_| bad())?,
                "--late-limit" => measure.options.late_limit = value.parse().map_err(|_| bad())?,
                "--latest" => {
                    let ms = value.parse().map_err(|_| bad())?;
                    measure.options.latest = Nanos::from_millis(ms);
                }
                "--set" => {
                    let (name, value) = value.split_once('=').ok_or_else(bad)?;
                    measure.options.parameters.push((name.into(), value.into()));
                }
                "--case" => measure.cases.retain(|case| case.name.contains(value)),
                _ => return Err(bad()),
            }
        }
        Ok(measure)
    }

    fn run(self, file: &Path) -> Result<(), String> {
        netdev::netns::isolate().map_err(|error| error.to_string())?;
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        let writer = Writer::create(file, &self.machine()).map_err(failed)?;
        let cases = 0..self.cases.len();
        let blocks = (1..=self.rounds)
            .flat_map(|round| cases.clone().map(move |case| Block { case, round, tries: 1 }));
        let shared = Shared { blocks: blocks.collect(), writer, done: 0, void: 0, failed: None };
        let all = shared.blocks.len();
        let shared = Mutex::new(shared);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| while self.next(&shared, all) {});
            }
        });
        let mut shared = shared.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let void = format!("blocks: {} measured, {} void", shared.done, shared.void);
        eprintln!("{void}");
        shared.writer.comment(&void).map_err(failed)?;
        shared.failed.map_or(Ok(()), Err)
    }

    /// Measures a block. Returns whether there may be another.
    fn next(&self, shared: &Mutex<Shared>, all: usize) -> bool {
        let lock = || shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(block) = lock().blocks.pop_front() else { return false };
        let case = &self.cases[block.case];
        let result = kernel::run(case, &case.work(block.round), &self.options);
        let mut shared = lock();
        match result {
            Ok(outcome) => {
                shared.done += 1;
                eprintln!("{} of {all}: {}, round {}", shared.done, case.name, block.round);
                if let Err(error) = shared.writer.round(case, block.round, &outcome) {
                    shared.failed = Some(error.to_string());
                }
            }
            Err(kernel::Failure::Void(reason)) => {
                shared.void += 1;
                eprintln!("void: {}, round {}: {reason}", case.name, block.round);
                if block.tries < TRIES {
                    shared.blocks.push_back(Block { tries: block.tries + 1, ..block });
                }
            }
            Err(kernel::Failure::Fatal(reason)) => shared.failed = Some(reason),
        }
        shared.failed.is_none()
    }

    /// Where and how it is measured.
    fn machine(&self) -> Vec<String> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut lines = vec![
            format!(
                "Linux {}, {processors} processors, {} blocks side by side",
                read("/proc/sys/kernel/osrelease"),
                self.jobs
            ),
            format!(
                "void: pacer gave up more than {} of its time, or anything was later than {} ms",
                self.options.late_limit,
                self.options.latest.0 / 1_000_000
            ),
        ];
        let parameters = self.options.parameters.iter();
        lines.extend(parameters.map(|(name, value)| format!("hosts have {name}={value}")));
        lines
    }
}
