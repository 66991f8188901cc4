//! Measures this kernel's TCP, and compares the simulator's with it.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use lab::AgentProgram;
use linux::record::{Measured, Writer};
use linux::{Case, kernel, report, simulated};

const USAGE: &str = "\
shortlane-linux measure FILE [OPTION...]     writes FILE; needs root or user namespaces
  --rounds N        of every case (8)
  --jobs N          blocks side by side (6)
  --late-limit F    when a block is void, as `shortlane lab` has it (0.03)
  --set NAME=VALUE  a network parameter of the hosts, such as ipv4.tcp_tso_win_divisor=100
  --case TEXT       only cases whose name contains it
shortlane-linux compare FILE [--into REPORT] prints Markdown, and puts it into REPORT
shortlane-linux compare FILE --switch NAME   the same with one change of our model; names:";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["lab-agent", "client"] => return agent(lab::traffic::client_agent()),
        ["lab-agent", _] => return agent(lab::traffic::serve_agent()),
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

fn agent(went_well: bool) -> ExitCode {
    if went_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

/// What the threads share.
struct Shared {
    /// What is still to be measured: case and round.
    blocks: VecDeque<(usize, u64)>,
    writer: Writer,
    done: u64,
    void: u64,
    failed: Option<String>,
}

impl Measure {
    fn new(options: &[&str]) -> Result<Self, String> {
        let path = std::env::current_exe().map_err(|error| error.to_string())?;
        let agent = AgentProgram { path, arguments: vec!["lab-agent".into()] };
        let options_of = kernel::Options { late_limit: 0.03, parameters: Vec::new(), agent };
        let mut measure = Self { rounds: 8, jobs: 6, options: options_of, cases: Case::all() };
        for option in options.chunks(2) {
            let [name, value] = *option else { return Err(usage()) };
            let bad = || format!("{name} {value} is not accepted\n{}", usage());
            match name {
                "--rounds" => measure.rounds = value.parse().map_err(|_| bad())?,
                "--jobs" => measure.jobs = value.parse().map_err(|_| bad())?,
                "--late-limit" => measure.options.late_limit = value.parse().map_err(|_| bad())?,
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
        let blocks =
            (1..=self.rounds).flat_map(|round| cases.clone().map(move |case| (case, round)));
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
        let Some((case, round)) = lock().blocks.pop_front() else { return false };
        let case = &self.cases[case];
        let result = kernel::run(case, &case.work(round), round, &self.options);
        let mut shared = lock();
        match result {
            Ok((outcome, void)) => {
                shared.done += 1;
                shared.void += void;
                eprintln!("{} of {all}: {}, round {round}", shared.done, case.name);
                if let Err(error) = shared.writer.round(case, round, &outcome) {
                    shared.failed = Some(error.to_string());
                }
            }
            Err(reason) => shared.failed = Some(format!("{}, round {round}: {reason}", case.name)),
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
            format!("void: by the lab's late limit of {}", self.options.late_limit),
        ];
        let parameters = self.options.parameters.iter();
        lines.extend(parameters.map(|(name, value)| format!("hosts have {name}={value}")));
        lines
    }
}
