//! The `shortlane` command.

mod lab;
mod list;
mod quantity;
mod replay;
mod signals;
mod sim;
mod specs;
mod usage;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Gives short and interactive flows a short lane through a busy link.
#[derive(Parser)]
#[command(name = "shortlane", version, max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Every discipline: what it does, its parts, its parameters
    List(list::Options),
    /// This machine's own TCP and UDP through each discipline, in private namespaces
    Lab(Box<lab::Options>),
    /// A capture, open loop, through each discipline
    Replay(Box<replay::Options>),
    /// A scenario through the simulator: any topology, any traffic, every discipline
    Sim(Box<sim::Options>),
    /// Client or server of the lab; started by it
    #[command(hide = true)]
    LabAgent {
        /// `client` or `server`
        role: String,
    },
}

/// How a command ends that did not succeed: with this exit status, once everything is said.
pub(crate) enum Failure {
    /// Bad usage or bad input: exit status 2.
    Usage(String),
    /// It did not work out: exit status 1.
    Failed(String),
}

impl Failure {
    fn into_text(self) -> String {
        let (Self::Usage(text) | Self::Failed(text)) = self;
        text
    }
}

fn main() -> ExitCode {
    let command = match Command::try_parse() {
        Ok(command) => command,
        Err(error) => return usage::answer(&error),
    };
    let result = match command.action {
        Action::List(options) => list::run(&options),
        Action::Lab(options) => lab::run(*options),
        Action::Replay(options) => replay::run(&options),
        Action::Sim(options) => sim::run(&options),
        Action::LabAgent { role } => return agent(&role),
    };
    let (status, text) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(text)) => (2, text),
        Err(Failure::Failed(text)) => (1, text),
    };
    say(&format!("shortlane: {text}"));
    ExitCode::from(status)
}

/// Whatever failed, in one.
fn all(results: [Result<(), Failure>; 3]) -> Result<(), Failure> {
    let said = results.into_iter().filter_map(Result::err).map(Failure::into_text);
    let said: Vec<String> = said.collect();
    if said.is_empty() { Ok(()) } else { Err(Failure::Failed(said.join("; "))) }
}

/// Writes results to standard output. A reader that has seen enough and left is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error; if nobody can read it, so be it.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn agent(role: &str) -> ExitCode {
    match role {
        "client" => ::lab::traffic::client_agent(),
        _ => ::lab::traffic::serve_agent(),
    }
}
