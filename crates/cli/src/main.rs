//! The `shortlane` command.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cli::run(&cli::Call { words: std::env::args_os().collect(), agent: None }))
}
