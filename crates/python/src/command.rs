//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use lab::AgentProgram;
use pyo3::prelude::*;

/// Runs the command with `words`, the program's name first, and gives its exit status. The lab
/// starts `python` with the arguments `agent` and a role to play client and server.
#[pyfunction]
pub fn command_line(
    py: Python<'_>,
    words: Vec<OsString>,
    python: PathBuf,
    agent: Vec<String>,
) -> u8 {
    let call = cli::Call { words, agent: Some(AgentProgram { path: python, arguments: agent }) };
    py.detach(|| cli::run(&call))
}
