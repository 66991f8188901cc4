//! What is bad, goes wrong, or is interrupted.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{SHORTLANE, SMALL, command, directory, file, sim, text};

/// A scenario or option that must be refused, in one line with all of `says`.
#[track_caller]
fn refused(scenario: &Path, arguments: &[&str], says: &[&str]) {
    let output = sim(scenario, arguments);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?} in one line: {stderr}");
    for part in says {
        assert!(stderr.contains(part), "{arguments:?} says '{part}': {stderr}");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let directory = directory();
    let scenario = file(&directory, SMALL);
    for seeds in ["", "3..1", "1,1", "x", "0..99999"] {
        refused(&scenario, &["--seeds", seeds], &["--seeds", "a range such as 1..10"]);
    }
    refused(&scenario, &["--scheduler", "fifi"], &["--scheduler", "no discipline is named 'fifi'"]);
    refused(&scenario, &["--duration", "0s"], &["--duration", "a time above 0"]);
    refused(&scenario, &["--duration", "-1s"], &["--duration", "a time above 0"]);
    refused(
        &scenario,
        &["--duration", "1s"],
        &["t.toml:5: scenario.warm-up", "less than the duration"],
    );
    refused(&scenario, &["--jobs", "0"], &["--jobs", "1 to 1024"]);
    refused(&scenario, &["--events", "e.pcap"], &["--events e.pcap", ".csv or .parquet"]);
    refused(&scenario, &["--events", "/nowhere/e.csv"], &["--events /nowhere/e.csv"]);
    refused(&scenario, &["--out", "/dev/null/x"], &["--out /dev/null/x", "it takes a directory"]);
    refused(Path::new("no-such"), &[], &["no-such", "efd-paper-8mbit"]);
}

#[test]
fn a_bad_scenario_is_answered_with_its_line() {
    let directory = directory();
    let scenario = file(&directory, &SMALL.replace("load = 0.8", "laod = 0.8"));
    refused(&scenario, &[], &["t.toml:19: traffic[0] has no key 'laod'; did you mean 'load'?"]);
    let binary = directory.path().join("binary.toml");
    fs::write(&binary, b"\xff\xfe").unwrap();
    refused(&binary, &[], &["binary.toml", "UTF-8"]);
}

#[test]
fn lists_of_transfers_are_found_beside_the_scenario() {
    let directory = directory();
    let text =
        SMALL.replace("load = 0.8\nsizes = \"zipf:alpha=1.1,max=200packets\"", "list = \"l.csv\"");
    let scenario = file(&directory, &text);
    refused(&scenario, &[], &["t.toml:19: traffic[0].list = \"l.csv\" cannot be read"]);
    let list = directory.path().join("l.csv");
    fs::write(&list, "start_s,size_bytes\n0,5\n-1,5\n").unwrap();
    refused(&scenario, &[], &["traffic[0].list", "l.csv:3: column 1 (start_s): found '-1'"]);
    fs::write(&list, "start_s,size_bytes\n3,5\n2.5,20000\n").unwrap();
    assert!(sim(&scenario, &[]).status.success());
}

#[test]
fn traces_are_found_beside_the_scenario() {
    let directory = directory();
    let voice = "kind = \"cbr\"\nrate = \"64kbit\"\npacket = \"160b\"";
    assert!(SMALL.contains(voice));
    let trace = "kind = \"trace\"\nlist = \"d.csv\"\nstart = \"3s\"";
    let scenario = file(&directory, &SMALL.replace(voice, trace));
    let list = directory.path().join("d.csv");
    fs::write(&list, "time_s,packet_bytes,stream\n0,70000,1\n").unwrap();
    refused(&scenario, &[], &["traffic[1].list", "d.csv:2", "found '70000'"]);
    fs::write(&list, "time_s,packet_bytes,stream\n0,100,7\n0.5,200,8\n99,100,7\n").unwrap();
    let out = directory.path().join("out");
    let arguments = ["--seeds", "1", "--format", "csv", "--out", out.to_str().unwrap()];
    assert!(sim(&scenario, &arguments).status.success());
    let probes = fs::read_to_string(out.join("probes.csv")).unwrap();
    let of_fifo: Vec<&str> = probes.lines().filter(|line| line.contains(",fifo,")).collect();
    assert_eq!(of_fifo.len(), 2, "{probes}");
    assert!(of_fifo[0].contains(",voice/7,0,3000000000,"), "{probes}");
    assert!(of_fifo[1].contains(",voice/8,0,3500000000,"), "{probes}");
}

#[test]
fn an_overload_without_bound_ends_and_says_so() {
    let directory = directory();
    let scenario = r#"
        [scenario]
        title = "ten times more than the link carries"
        duration = "1000s"
        bound = 5000
        [topology]
        kind = "free"
        links = [{ a = "a", b = "b", rate = "1mbit", limit = "1000000packets", scheduler = "tested" }]
        [schedulers]
        run = ["fifo"]
        [[traffic]]
        kind = "open-loop"
        from = "a"
        to = "b"
        load = 10
    "#;
    let out = directory.path().join("out");
    let output =
        sim(&file(&directory, scenario), &["--seeds", "1", "--out", out.to_str().unwrap()]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("more than the bound of 5000"), "{stderr}");
    assert!(stderr.contains("no seed is complete"), "{stderr}");
    let run = fs::read_to_string(out.join("run.json")).unwrap();
    assert!(run.contains("\"ended_early\": \"fifo, seed 1: at "), "{run}");
}

#[test]
fn ctrl_c_keeps_what_is_complete() {
    let directory = directory();
    let scenario = file(&directory, SMALL);
    let out = directory.path().join("out");
    let arguments = ["--seeds", "1..500", "--format", "csv", "--out", out.to_str().unwrap()];
    let mut child = command(&scenario, &arguments)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = stderr.next().expect("progress is told").unwrap();
    assert!(first.contains("of 1000 runs"), "{first}");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let rest: Vec<String> = stderr.map(|line| line.unwrap()).collect();
    assert_eq!(output.status.code(), Some(1), "{rest:?}");
    let last = rest.last().expect("it says why it ended");
    assert!(last.starts_with("shortlane: interrupted; what is shown rests on "), "{last}");
    assert!(text(&output.stdout).contains("efd: transfers of"));
    let run = fs::read_to_string(out.join("run.json")).unwrap();
    assert!(run.contains("\"ended_early\": \"interrupted\""), "{run}");
    let blocks = fs::read_to_string(out.join("blocks.csv")).unwrap();
    let whole = blocks.lines().filter(|line| line.contains(",false,")).count();
    assert!((1..1000).contains(&whole), "{whole}");
    // At most the runs that were under way are cut off, and marked.
    for line in blocks.lines().filter(|line| line.contains(",true,")) {
        assert!(line.contains(",interrupted,"), "{line}");
    }
}

/// In a mount namespace of its own, the disk for the results has 16 kB.
#[test]
fn a_full_disk_is_said_and_leaves_nothing() {
    let directory = directory();
    let scenario = file(&directory, SMALL);
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = r#"mount -t tmpfs -o size=16k none "$0" && "$@" --out "$0"
        status=$?; ls -A "$0" | sed 's/^/left: /' >&2; exit $status"#;
    for format in ["csv", "parquet"] {
        let output = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .args([&disk, Path::new(SHORTLANE), Path::new("sim"), &scenario])
            .args(["--format", format])
            .output()
            .unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("results not written: cannot write "), "{stderr}");
        assert!(stderr.contains("No space left on device"), "{stderr}");
        assert!(!stderr.contains("left: "), "{stderr}");
        assert!(text(&output.stdout).contains("efd: transfers of"), "{stderr}");
    }
}
