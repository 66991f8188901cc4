//! The `shortlane` command as a library: the binary and the Python package run the same code.

#![forbid(unsafe_code)]

mod attach;
mod bridge;
mod config;
mod doctor;
#[cfg(feature = "harness")]
pub mod harness;
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
    ///
    /// Makes clients, a bottleneck and servers in network namespaces, sends the same seeded traffic
    /// through each discipline in short interleaved blocks, and compares the disciplines in pairs.
    /// Needs root or user namespaces, and leaves nothing behind.
    Lab(Box<lab::Options>),
    /// Replay a capture through each discipline, open loop
    ///
    /// Each packet arrives at the time at which it was captured, whatever happened to the packets
    /// before it; each discipline has a link of its own. The capture is read once, in bounded memory.
    Replay(Box<replay::Options>),
    /// Simulate a scenario: any topology, any traffic, every discipline
    ///
    /// A scenario is a TOML file: topology, traffic, disciplines, duration, seeds. Ready scenarios are
    /// built in: --list lists their names, --show prints one to start from.
    Sim(Box<sim::Options>),
    /// Search for the traffic under which a discipline does worst
    ///
    /// Simulates thousands of traffic mixes beside a victim, varies the worst and the most unusual,
    /// and prints the worst one, beside the result of FIFO and the bound that is known. What it finds
    /// can happen; worse may exist.
    Worst(worst::Options),
    /// Attach a discipline to a network device
    ///
    /// It paces at the link's rate, so that the queue is here and not in a modem. It stays until
    /// `shortlane detach`, which leaves the device as it was.
    Attach(Box<attach::AttachOptions>),
    /// Attach, change and replace until the devices match a configuration file
    ///
    /// Says first what it will do. Running it again changes nothing. A device that the file does not
    /// name is left alone.
    Apply(attach::apply::ApplyOptions),
    /// Bridge two interfaces, with a discipline in each direction
    ///
    /// Stays in the foreground until SIGINT or SIGTERM; `show`, `change` and `top` work on LEFT and
    /// RIGHT meanwhile. The two are joined only as long as it runs, unless they are ports of a bridge
    /// of the kernel: with AF_XDP, that bridge takes over within 100 ms if this program ends, dies or
    /// stalls.
    Bridge(bridge::Options),
    /// Change the rate or parameters of an attached discipline while it runs
    ///
    /// No queued packet is lost. Settings that are not given stay as they are.
    Change(attach::ChangeOptions),
    /// Detach a discipline and restore the device
    ///
    /// Works even if a command was killed, or if somebody else removed the qdisc.
    Detach(attach::DetachOptions),
    /// Show attached disciplines: counters, lanes, sojourn times
    Show(attach::ShowOptions),
    /// Watch an attached discipline live: rate, lanes, drops, flows
    ///
    /// Keys: q quits, p pauses, d shows the other direction. --web serves a page for a browser instead.
    Top(top::Options),
    /// Measure latency under load: round trips a minute, extra delay with a grade, throughput
    ///
    /// Follows draft-ietf-ippm-responsiveness: idle, then downloads, then uploads, then both. If a
    /// discipline is attached here, names the queue that caused a delay.
    Test(test::Options),
    /// Serve metrics of attached disciplines to Prometheus
    ///
    /// Serves OpenMetrics at /metrics, for all devices of the network namespace and all engines.
    Metrics(metrics::Options),
    /// Diagnose problems on this machine and its devices, with remedies
    ///
    /// Exits with status 1 if there is a problem, else with 0.
    Doctor(doctor::Options),
    /// Register a discipline as a qdisc for `tc`; without one, list the registered ones
    ///
    /// After `shortlane register efd`, `tc qdisc add dev eth0 root shortlane_efd rate 20mbit` attaches
    /// it; the options need the plug-in that `make install-tc` installs. It stays registered until
    /// `shortlane unregister`.
    Register(register::RegisterOptions),
    /// Unregister a qdisc from `tc`
    ///
    /// Attached qdiscs of this kind stay, and work, until they are removed.
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
        Action::Engine { .. } | Action::LabAgent { .. } => attach::serve_engine(call),
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

#[cfg(test)]
mod tests;
