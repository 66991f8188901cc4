//! Commands of the guest, such as `ip` and `tc`.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Runs a command line, words apart by spaces, that must succeed; gives what it printed.
pub(crate) fn run(line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let program = words.next().context("no command")?;
    let output = Command::new(program).args(words).output().context(program.to_owned())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{line}: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
