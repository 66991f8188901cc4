//! `shortlane list`, and what every command answers to bad input: exit status 2 and one line that
//! says what was found and what is accepted. Nothing here needs a network.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn shortlane(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shortlane"));
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs a command that must be refused, and checks that its only line has all of `says`.
#[track_caller]
fn refused(arguments: &[&str], says: &[&str]) {
    let output = shortlane(arguments);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?} in one line: {stderr}");
    for part in says {
        assert!(stderr.contains(part), "{arguments:?} says '{part}': {stderr}");
    }
}

#[test]
fn list_has_every_discipline_and_parameter() {
    let output = shortlane(&["list"]);
    assert!(output.status.success());
    for info in sched::registry::ALL {
        let one = shortlane(&["list", info.name]);
        assert!(one.status.success());
        let one = text(&one.stdout);
        assert!(one.starts_with(&format!("{}: {}", info.name, info.summary)), "{one}");
        assert!(text(&output.stdout).contains(one), "{}", info.name);
        assert!(!one.contains("18446744073709551614"), "a range without an end: {one}");
        let barred = ["srpt", "run2c-seq"].contains(&info.name);
        assert_eq!(one.contains("not on a live link"), barred, "{one}");
        for (def, default) in info.defaults().iter() {
            assert!(one.contains(&format!("{}={default}  [{}]", def.name, def.kind)), "{one}");
        }
    }
}

#[test]
fn list_in_json_says_everything_of_a_parameter() {
    let output = shortlane(&["list", "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    let registered: Vec<&str> = sched::registry::ALL.iter().map(|info| info.name).collect();
    assert_eq!(names, registered);
    for one in all.as_array().unwrap() {
        for key in ["summary", "source"] {
            assert!(!one[key].as_str().unwrap().is_empty(), "{key} of {}", one["name"]);
        }
        for param in one["params"].as_array().unwrap() {
            for key in ["name", "unit", "default", "range", "effect", "source"] {
                let said = param[key].as_str();
                assert!(said.is_some_and(|s| !s.is_empty()), "{key} of {param}");
            }
        }
    }
    let srpt = shortlane(&["list", "srpt", "--json"]);
    let srpt: Value = serde_json::from_slice(&srpt.stdout).unwrap();
    assert_eq!(srpt[0]["needs"], serde_json::json!(["flow-size"]));
}

#[test]
fn a_reader_that_closes_early_or_a_full_disk_is_no_panic() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shortlane"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.arg("list").stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));

    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("standard output") && stderr.contains("No space left"), "{stderr}");
}

#[test]
fn help_is_no_error() {
    for arguments in [&["--help"][..], &["lab", "--help"], &["lab", "sweep", "-h"], &["--version"]]
    {
        let output = shortlane(arguments);
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}");
        let widest = text(&output.stdout).lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|width| width <= 100), "{arguments:?}: {widest:?} columns");
    }
}

/// The Python package answers them itself.
#[test]
fn commands_in_python_say_where_they_come_from() {
    for name in ["report", "paper", "campaign"] {
        for arguments in [&[name][..], &[name, "--json", "x"], &[name, "--help"]] {
            let output = shortlane(arguments);
            let stderr = text(&output.stderr);
            assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
            let said = format!("shortlane: {name} comes with the Python package: `pip install .`");
            assert!(stderr.starts_with(&said), "{stderr}");
        }
        let help = shortlane(&["--help"]);
        assert!(text(&help.stdout).contains(&format!("\n  {name} ")));
    }
}

#[test]
fn unknown_names_are_refused() {
    refused(&["list", "nope"], &["'nope'", "fifo, efd,", "fq-codel"]);
    refused(&["lab", "--scheduler", "nope"], &["'nope'", "fifo, efd,", "fq-codel"]);
    refused(&["lab", "--scheduler", "efd:nope=1"], &["efd", "'nope'", "limit, threshold"]);
    refused(&["lab", "--engine", "kernel", "--scheduler", "kernel:nope"], &["kernel:nope", "sfq"]);
    refused(&["lab", "--scheduler", "kernel:cake"], &["kernel:cake", "--engine kernel"]);
    refused(&["lab", "--engine", "kernel", "--scheduler", "las"], &["las", "fq-lanes"]);
    refused(&["lab", "--engine", "moon"], &["--engine moon", "userspace, kernel"]);
    refused(&["lab", "--tcp", "cubic,vegas"], &["--tcp vegas", "cubic, reno or bbr"]);
    refused(
        &["lab", "--sizes", "foo:mean=3kb"],
        &["--sizes foo:mean=3kb", "exponential", "pareto"],
    );
    refused(&["lab", "--format", "xls"], &["--format xls", "parquet, csv"]);
    refused(&["lab", "--nope"], &["--nope", "--help"]);
    refused(&["nope"], &["'nope'", "--help"]);
    refused(&["lab", "--schedule", "efd"], &["--schedule", "--scheduler"]);
}

#[test]
fn values_out_of_range_are_refused() {
    let far = "efd:threshold=99999999999packets";
    refused(&["lab", "--scheduler", far], &["threshold=99999999999packets", "0 to 4000000000"]);
    refused(&["lab", "--scheduler", "efd:low-share=2"], &["low-share=2", "0 to 0.9"]);
    for load in ["0", "5.1", "NaN", "inf", "-1", "-0.5", "x"] {
        refused(&["lab", "--load", load], &[&format!("--load {load} "), "above 0, at most 5"]);
    }
    for rate in ["0mbit", "-1mbit", "99999999999999999999mbit"] {
        refused(&["lab", "--rate", rate], &[&format!("--rate {rate} "), "10mbit"]);
    }
    for rate in ["99kbit", "2001mbit"] {
        refused(&["lab", "--rate", rate], &["--rate", "100kbit to 2gbit"]);
    }
    for limit in ["0packets", "0kb", "-3packets"] {
        refused(&["lab", "--limit", limit], &[&format!("--limit {limit} "), "300packets"]);
    }
    let far = "99999999999packets";
    refused(&["lab", "--limit", far], &[&format!("limit={far}"), "1 to 4294967296 packets"]);
    refused(&["lab", "--duration", "0s"], &["--duration 0s", "above 0", "2min"]);
    refused(&["lab", "--delay", "10min"], &["--delay 600s", "at most 2s"]);
    refused(&["lab", "--jobs", "0"], &["--jobs 0", "1 to 64"]);
    refused(&["lab", "--downloads", "1001"], &["--downloads 1001", "0 to 1000"]);
    refused(&["lab", "--uploads", "-1"], &["--uploads -1", "0 to 1000"]);
    refused(&["lab", "--seed", "-1"], &["--seed -1", "0 to 18446744073709551615"]);
    refused(&["lab", "sweep", "--bulk", "1,x"], &["--bulk x", "0 to 1000"]);
    refused(&["lab", "sweep", "--sizes", "0kb"], &["--sizes 0kb", "20kb"]);
}

#[test]
fn a_missing_unit_is_refused() {
    refused(&["lab", "--rate", "10"], &["--rate 10 ", "unit", "10mbit"]);
    refused(&["lab", "--limit", "300"], &["--limit 300 ", "unit", "300packets"]);
    refused(&["lab", "--delay", "20"], &["--delay 20 ", "unit", "20ms"]);
    refused(&["lab", "--duration", "20"], &["--duration 20 ", "unit", "20s"]);
    refused(&["lab", "--scheduler", "efd:limit=300"], &["limit=300", "packets or b, kb, mb"]);
    refused(&["lab", "sweep", "--sizes", "3"], &["--sizes 3 ", "unit", "20kb"]);
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    refused(&["lab", "--quick", "--duration", "3s"], &["--quick", "--duration"]);
    refused(&["lab", "--quick", "--thorough"], &["--quick", "--thorough"]);
    refused(&["lab", "--thorough", "--duration", "3s"], &["--thorough", "--duration"]);
    refused(&["lab", "--transfers", "x", "--load", "0.3"], &["--transfers", "--load"]);
    let twice = ["lab", "--scheduler", "efd", "--scheduler", "fifo", "--scheduler", "efd"];
    refused(&twice, &["efd", "twice"]);
}

#[test]
fn disciplines_that_a_live_link_cannot_feed_are_refused() {
    for mode in [&["lab"][..], &["lab", "sweep"]] {
        let refuse =
            |name, needs| refused(&[mode, &["--scheduler", name]].concat(), &[name, needs]);
        refuse("srpt", "the size of a flow");
        refuse("run2c-seq", "byte offset in its flow");
    }
}

#[test]
fn a_bad_list_of_transfers_is_refused_by_file_line_and_column() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("list.csv");
    let path = path.to_str().unwrap();
    let refuse = |says: &[&str]| refused(&["lab", "--transfers", path], says);
    refuse(&["--transfers", path, "No such file"]);
    for (content, says) in [
        ("a,b\n0,1\n", ["list.csv:1", "'a,b'", "start_s,size_bytes"]),
        ("start_s,size_bytes\n0.1,5\nx,5\n", ["list.csv:3: column 1", "'x'", "seconds from 0"]),
        ("start_s,size_bytes\n0.1,0\n", ["list.csv:2: column 2", "'0'", "whole bytes"]),
        ("start_s,size_bytes\n0.1\n", ["list.csv:2", "1", "2"]),
        ("start_s,size_bytes\n", ["list.csv", "no transfers", "at least one"]),
        ("", ["list.csv", "", "start_s,size_bytes"]),
    ] {
        std::fs::write(path, content).unwrap();
        refuse(&says);
    }
    let directory = directory.path().to_str().unwrap();
    refused(&["lab", "--transfers", directory], &["--transfers", directory, "directory"]);
}

#[test]
fn a_place_for_results_that_cannot_be_written_is_refused_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    File::create(&file).unwrap();
    for out in [&*file, &file.join("below"), Path::new("/proc/shortlane")] {
        let out = out.to_str().unwrap();
        refused(&["lab", "--out", out], &["--out", out, "a directory"]);
    }
}
