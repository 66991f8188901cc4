//! Prints the results of the study in Markdown; `--quick` simulates less.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use theory::report::{Verdict, markdown};
use theory::study::{self, Extent};

fn main() -> ExitCode {
    let mut extent = Extent::FULL;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--quick" => extent = Extent::QUICK,
            other => {
                eprintln!("'{other}' is not accepted; the one option is --quick");
                return ExitCode::from(2);
            }
        }
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let progress = |done, all| {
        let end = if done == all { "\n" } else { "" };
        eprint!("\r{done} of {all} replicates{end}");
    };
    match study::run(&extent, threads, &progress) {
        Ok(rows) => {
            print!("{}", markdown(&rows, &extent));
            if Verdict::of(&rows).holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
