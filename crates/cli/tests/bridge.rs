//! `bridge`: what it refuses, and that it ends as it is told, in a network namespace of its own.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};

const SHORTLANE: &str = env!("CARGO_BIN_EXE_shortlane");

/// It must end with this status and say one line with all these words.
fn is_refused(arguments: &[&str], status: i32, words: &[&str]) {
    let output = Command::new(SHORTLANE).args(arguments).output().expect("the program starts");
    let text = said(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?}: no '{word}' in: {text}");
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

#[test]
fn bad_usage_is_said_in_one_line() {
    is_refused(&["bridge", "lo"], 2, &["<RIGHT>"]);
    is_refused(&["bridge", "lo", "lo2"], 2, &["--rate"]);
    let bridge = |left, option, value| ["bridge", left, "nope1", "--rate", "1mbit", option, value];
    is_refused(&bridge("nope1", "--io", "auto"), 2, &["nope1", "two interfaces"]);
    is_refused(&bridge("nope0", "--io", "auto"), 2, &["nope0", "no such interface"]);
    is_refused(&bridge("lo", "--io", "packet"), 2, &["lo", "no Ethernet frames"]);
    is_refused(&bridge("nope0", "--io", "dpdk"), 2, &["auto, xdp, packet"]);
    is_refused(&bridge("nope0", "--back-rate", "0mbit"), 2, &["above 0"]);
    is_refused(&bridge("nope0", "--overhead", "5000"), 2, &["from -64 to 1024"]);
    is_refused(&bridge("nope0", "--scheduler", "srpt"), 2, &["srpt", "size of a flow"]);
    is_refused(&bridge("nope0", "--back-scheduler", "x"), 2, &["no discipline is named 'x'"]);
}

#[test]
fn it_says_how_packets_come_and_go_and_ends_at_a_signal() {
    if !Uid::effective().is_root() {
        eprintln!("SKIPPED, nothing was tested: it takes root");
        return;
    }
    for io in ["auto", "packet"] {
        let script = "ip link add left type veth peer name far1 && ip link set left up && \
                      ip link set far1 up && ip link add right type veth peer name far2 && \
                      ip link set right up && ip link set far2 up && exec \"$0\" \"$@\"";
        let mut child = Command::new("unshare")
            .args(["--net", "sh", "-c", script, SHORTLANE, "bridge", "left", "right"])
            .args(["--rate", "10mbit", "--io", io])
            .stderr(Stdio::piped())
            .spawn()
            .expect("unshare starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let line = lines.next().expect("a line").expect("text");
        // The driver of a veth takes VLAN tags off unless it is told not to.
        assert!(line.starts_with("left - right by AF_PACKET"), "{line}");
        assert_eq!(line.contains("takes VLAN tags off"), io == "auto", "{line}");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
        kill(pid, Signal::SIGTERM).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        assert!(lines.next().is_none(), "and says nothing more");
    }
}
