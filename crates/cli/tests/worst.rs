//! `shortlane worst`: what it finds is a scenario that does the harm again.

use std::path::Path;
use std::process::{Command, Output};

const SHORTLANE: &str = env!("CARGO_BIN_EXE_shortlane");

fn worst(arguments: &[&str]) -> Output {
    let mut command = Command::new(SHORTLANE);
    command.arg("worst").args(arguments).output().expect("shortlane starts")
}

fn found(arguments: &[&str]) -> serde_json::Value {
    let output = worst(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// The longest delay of the victim's packets under the first discipline, in ms.
fn replayed(scenario: &Path) -> f64 {
    let output = Command::new(SHORTLANE).arg("sim").arg(scenario).arg("--json").output();
    let output = output.expect("shortlane starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let victim = &document["summary"]["schedulers"][0]["traffic"][0];
    victim["delay_ms"]["max"].as_f64().unwrap_or_else(|| panic!("{victim}"))
}

#[test]
fn the_file_it_writes_does_the_harm_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("worst.toml");
    let path = file.to_str().expect("a path");
    let found = found(&["efd", "--of", "wait", "--runs", "32", "--out", path]);
    let harm = found["harm"].as_f64().expect("a number");
    let again = replayed(&file);
    assert!((harm - again).abs() < 0.01 * harm, "{harm} is {again} when it is run again");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), found["scenario"]);
}

#[test]
fn the_report_names_harm_fifo_and_bound() {
    let output = worst(&["fifo", "--of", "wait", "--runs", "8"]);
    let said = String::from_utf8(output.stdout).expect("text");
    for word in [
        "worst ",
        " of wait under fifo",
        "bound ",
        "(limit / rate)",
        "% of its bound",
        "traffic ",
        "seed 1",
        "[[traffic]]",
    ] {
        assert!(said.contains(word), "{word} is missing in:\n{said}");
    }
}

#[test]
fn what_it_does_not_take_is_one_line() {
    for (arguments, names) in [
        (&["nonesuch", "--of", "wait"][..], "nonesuch"),
        (&["fifo", "--of", "noise"], "noise"),
        (&["fifo"], "--of"),
        (&["fifo", "--of", "wait", "--runs", "0"], "1 to"),
        (&["srpt", "--of", "wait", "--runs", "4", "--limit", "0packets"], "packets"),
    ] {
        let output = worst(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(names), "{arguments:?}: {said}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let output = worst(&["fifo", "--of", "wait", "--runs", "2", "--out", "/nonesuch/worst.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(
        said.lines().last().is_some_and(|line| line.contains("/nonesuch/worst.toml")),
        "{said}"
    );
}
