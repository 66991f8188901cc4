//! `shortlane sim`: what it does with a scenario, and what it answers to bad ones.

mod faults;
mod works;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const SHORTLANE: &str = env!("CARGO_BIN_EXE_shortlane");

/// Half a minute of a loaded 2 Mbit/s link, a stream beside it.
const SMALL: &str = r#"
[scenario]
title = "small"
duration = "30s"
warm-up = "2s"
seeds = "1..3"

[topology]
kind = "dumbbell"
pairs = 2
access = { rate = "20mbit", delay = "1ms" }
bottleneck = { rate = "2mbit", delay = "5ms", limit = "30packets" }

[schedulers]
run = ["fifo", "efd"]

[[traffic]]
kind = "transfers"
load = 0.8
sizes = "zipf:alpha=1.1,max=200packets"

[[traffic]]
name = "voice"
kind = "cbr"
rate = "64kbit"
packet = "160b"
"#;

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

/// A file of this text in `directory`.
fn file(directory: &TempDir, text: &str) -> PathBuf {
    let path = directory.path().join("t.toml");
    std::fs::write(&path, text).expect("a file can be written");
    path
}

fn command(scenario: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(SHORTLANE);
    command.arg("sim").arg(scenario).args(arguments).stdin(Stdio::null());
    command
}

fn sim(scenario: &Path, arguments: &[&str]) -> Output {
    command(scenario, arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is text")
}

/// The standard output of a run that must succeed.
#[track_caller]
fn succeeds(scenario: &Path, arguments: &[&str]) -> String {
    let output = sim(scenario, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}
