//! Man pages and shell completions, from the definition of the command line.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{Command, Failure, print, say};

/// The options of `shortlane man`.
#[derive(Args)]
pub(crate) struct ManOptions {
    /// Write into this directory; it is created if it does not exist
    directory: PathBuf,
}

/// The options of `shortlane completions`.
#[derive(Args)]
pub(crate) struct CompletionsOptions {
    /// Write for this shell
    shell: Shell,
}

pub(crate) fn man(options: &ManOptions) -> Result<(), Failure> {
    let directory = &options.directory;
    let failed = |error: io::Error| Failure::Failed(format!("{}: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Command::command(), directory).map_err(failed)?;
    say(&format!("man pages are in {}", directory.display()));
    Ok(())
}

pub(crate) fn completions(options: &CompletionsOptions) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut Command::command(), "shortlane", &mut text);
    print(&String::from_utf8_lossy(&text))
}
