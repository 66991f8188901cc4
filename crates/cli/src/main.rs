//! The `shortlane` command.

mod lab;
mod list;
mod quantity;
mod signals;

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
    /// Client or server of the lab; started by it
    #[command(hide = true)]
    LabAgent {
        /// `client` or `server`
        role: String,
    },
}

/// How a command ends: with this exit status, once everything is said.
pub(crate) enum Failure {
    /// Bad usage or bad input: exit status 2.
    Usage(String),
    /// It did not work out: exit status 1.
    Failed(String),
}

fn main() -> ExitCode {
    let command = Command::parse();
    let result = match command.action {
        Action::List(options) => list::run(&options),
        Action::Lab(options) => lab::run(*options),
        Action::LabAgent { role } => return agent(&role),
    };
    let (status, text) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(text)) => (2, text),
        Err(Failure::Failed(text)) => (1, text),
    };
    eprintln!("shortlane: {text}");
    ExitCode::from(status)
}

fn agent(role: &str) -> ExitCode {
    match role {
        "client" => ::lab::traffic::client_agent(),
        _ => ::lab::traffic::serve_agent(),
    }
}
