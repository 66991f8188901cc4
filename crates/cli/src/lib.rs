//! The `shortlane` command as a library: the binary and the Python package run the same code.

#![forbid(unsafe_code)]

mod attach;
mod bridge;
mod config;
mod doctor;
mod http;
mod lab;
mod list;
mod manual;
mod metrics;
mod progress;
pub mod quantity;
mod register;
mod replay;
mod signals;
mod sim;
pub mod specs;
mod test;
mod top;
mod usage;
mod worst;

pub use list::disciplines;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::sync::LazyLock;

use ::lab::AgentProgram;
use clap::{Args, Parser, Subcommand};

/// What `--version` says beside the name: version, commit where the build knew it, engines.
static BUILT: LazyLock<String> = LazyLock::new(|| {
    let engines = if cfg!(feature = "kernel") { "kernel, userspace, bridge" } else { "bridge" };
    let commit = match option_env!("SHORTLANE_COMMIT") {
        None | Some("") => String::new(),
        Some(commit) => format!("commit {commit}; "),
    };
    format!("{} ({commit}engines: {engines})", env!("CARGO_PKG_VERSION"))
});

/// Gives short and interactive flows a short lane through a busy link.
#[derive(Parser)]
#[command(name = "shortlane", bin_name = "shortlane", version, long_version = BUILT.as_str(), max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List disciplines with their parts and parameters
    List(list::Options),
    /// Compare disciplines with this kernel's own TCP and UDP, in private namespaces
    Lab(Box<lab::Options>),
    /// Replay a capture through each discipline, open loop
    Replay(Box<replay::Options>),
    /// Simulate a scenario: any topology, any traffic, every discipline
    Sim(Box<sim::Options>),
    /// Search for the traffic under which a discipline does worst
    Worst(worst::Options),
    /// Attach a discipline to a network device
    Attach(Box<attach::AttachOptions>),
    /// Bring what is attached to what a configuration file says
    Apply(attach::apply::ApplyOptions),
    /// Bridge two interfaces, with a discipline in each direction
    Bridge(bridge::Options),
    /// Change the rate or parameters of an attached discipline while it runs
    Change(attach::ChangeOptions),
    /// Detach a discipline and restore the device
    Detach(attach::DetachOptions),
    /// Show what is attached, with its counters
    Show(attach::ShowOptions),
    /// Watch an attached discipline live
    Top(top::Options),
    /// Measure latency under load, before and after
    Test(test::Options),
    /// Serve metrics of what is attached to Prometheus
    Metrics(metrics::Options),
    /// Diagnose problems on this machine and its devices, with remedies
    Doctor(doctor::Options),
    /// Register a discipline as a qdisc for `tc`; without one, list what is registered
    Register(register::RegisterOptions),
    /// Unregister a qdisc from `tc`
    Unregister(register::UnregisterOptions),
    /// Write man pages of all commands into a directory
    Man(manual::ManOptions),
    /// Print completions for a shell
    Completions(manual::CompletionsOptions),
    /// Write one HTML page from a directory of results (in the Python package)
    Report(InPython),
    /// Run a paper's experiments again, with a verdict on each claim (in the Python package)
    Paper(InPython),
    /// Run a sweep of any size, here or on a cluster, and resume it (in the Python package)
    Campaign(InPython),
    /// Play client or server of the lab, which starts it
    #[command(hide = true)]
    LabAgent {
        /// `client` or `server`
        role: String,
    },
    /// Run the userspace engine in the background, as attach starts it
    #[command(hide = true)]
    Engine {
        /// The device, to be seen in a list of processes
        device: String,
    },
}

/// The arguments of a command that is written in Python.
#[derive(Args)]
#[command(disable_help_flag = true)]
struct InPython {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// How the command was called.
pub struct Call {
    /// The program as it was named and its arguments, as in [`std::env::args_os`].
    pub words: Vec<OsString>,
    /// The program that plays client and server of the lab; `None`: this executable.
    pub agent: Option<AgentProgram>,
}

impl Call {
    /// The words as `run.json` keeps them.
    fn command(&self) -> Vec<String> {
        self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// How a command ends that did not succeed: with this exit status, once everything is said.
pub(crate) enum Failure {
    /// Bad usage or bad input: exit status 2.
    Usage(String),
    /// It did not work out: exit status 1.
    Failed(String),
}

impl From<sched::SpecError> for Failure {
    fn from(error: sched::SpecError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<engine::EngineError> for Failure {
    fn from(error: engine::EngineError) -> Self {
        let text = error.to_string();
        if error.is_usage() { Self::Usage(text) } else { Self::Failed(text) }
    }
}

impl Failure {
    fn text(&self) -> &str {
        let (Self::Usage(text) | Self::Failed(text)) = self;
        text
    }
}

/// Runs the command, and gives its exit status: 0 if it succeeded, 2 for bad usage or bad input,
/// 1 if it did not work out.
#[must_use]
pub fn run(call: &Call) -> u8 {
    let command = match Command::try_parse_from(&call.words) {
        Ok(command) => command,
        Err(error) => return usage::answer(&error),
    };
    let result = match command.action {
        Action::List(options) => list::run(&options),
        Action::Lab(options) => lab::run(*options, call),
        Action::Replay(options) => replay::run(&options, call),
        Action::Sim(options) => sim::run(&options),
        Action::Worst(options) => worst::run(&options),
        Action::Attach(options) => attach::attach(*options, call),
        Action::Apply(options) => attach::apply::apply(&options, call),
        Action::Bridge(options) => bridge::run(&options),
        Action::Change(options) => attach::change(&options),
        Action::Detach(options) => attach::detach(&options),
        Action::Show(options) => attach::show(&options),
        Action::Top(options) => top::run(&options),
        Action::Test(options) => test::run(&options),
        Action::Metrics(options) => metrics::run(&options),
        Action::Man(options) => manual::man(&options),
        Action::Completions(options) => manual::completions(&options),
        Action::Doctor(options) => doctor::run(&options),
        Action::Register(options) => register::register(&options),
        Action::Unregister(options) => register::unregister(&options),
        Action::Report(_) => Err(in_python("report")),
        Action::Paper(_) => Err(in_python("paper")),
        Action::Campaign(_) => Err(in_python("campaign")),
        // Inside another program, one hidden command starts both.
        Action::LabAgent { role } if role != "engine" => return u8::from(!agent(&role)),
        Action::Engine { .. } | Action::LabAgent { .. } => attach::serve_engine(),
    };
    let (status, text) = match result {
        Ok(()) => return 0,
        Err(Failure::Usage(text)) => (2, text),
        Err(Failure::Failed(text)) => (1, text),
    };
    say(&format!("shortlane: {text}"));
    status
}

/// This program was built without the Python package, or the package would have answered.
fn in_python(name: &str) -> Failure {
    Failure::Usage(format!(
        "{name} comes with the Python package: `pip install .` in Shortlane's sources installs it, \
         with a `shortlane` command that has this one as well"
    ))
}

/// Joins failures into one.
fn all(results: impl IntoIterator<Item = Result<(), Failure>>) -> Result<(), Failure> {
    let mut failures: Vec<Failure> = results.into_iter().filter_map(Result::err).collect();
    match failures.len() {
        0 => Ok(()),
        1 => failures.pop().map_or(Ok(()), Err),
        _ => {
            let said: Vec<&str> = failures.iter().map(Failure::text).collect();
            Err(Failure::Failed(said.join("; ")))
        }
    }
}

/// Writes results to standard output. A closed pipe is not a failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error, and ignores that it may be closed.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Returns whether it went well.
fn agent(role: &str) -> bool {
    match role {
        "client" => ::lab::traffic::client_agent(),
        _ => ::lab::traffic::serve_agent(),
    }
}
