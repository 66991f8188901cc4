//! Labs that end before their time.

use std::fs;

use nix::sys::signal::{Signal, kill};

use crate::SHORTLANE;
use crate::run::{Run, succeed};

/// Light traffic that needs little time on the idle link.
const LIGHT: [&str; 11] = [
    "lab",
    "--late-limit",
    "60%",
    "--rate",
    "3mbit",
    "--sizes",
    "fixed:size=5kb",
    "--load",
    "0.1",
    "--scheduler",
    "efd",
];

fn start(more: &[&str]) -> Run {
    Run::start(&[SHORTLANE], &[&LIGHT[..], more].concat())
}

/// The interfaces of this namespace: labs make theirs elsewhere.
fn interfaces() -> Vec<String> {
    let text = fs::read_to_string("/proc/net/dev").unwrap();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

pub(crate) fn ctrl_c_shows_whole_rounds() {
    let before = interfaces();
    let directory = tempfile::tempdir().unwrap();
    let mut run = start(&["--duration", "20s", "--out", directory.path().to_str().unwrap()]);
    run.wait_for("block 2 of 2");
    assert!(run.wait_for_agent("client").is_some());
    run.signal_all(Signal::SIGINT);
    let ended = run.end();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let says = "interrupted; what is shown rests on 1 whole round";
    assert!(ended.stderr.contains(says), "{}", ended.stderr);
    assert!(ended.stdout.contains("efd") && ended.stdout.contains("n="), "{}", ended.stdout);
    for entry in fs::read_dir(directory.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains("tmp"), "{name}");
    }
    assert_eq!(interfaces(), before);
}

pub(crate) fn sigterm_in_the_first_round() {
    let directory = tempfile::tempdir().unwrap();
    let mut run = start(&["--quick", "--out", directory.path().to_str().unwrap()]);
    run.wait_for("block 1 of");
    run.signal(Signal::SIGTERM);
    let ended = run.end();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("interrupted; no round was whole"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "no rounds, no files: {left:?}");
}

/// [`Run::end`] checks that client and server die with the command. The next run has nothing to
/// clear away, and works.
pub(crate) fn kill_leaves_nothing() {
    let before = interfaces();
    let mut run = start(&["--quick"]);
    run.wait_for("block 1 of");
    assert!(run.wait_for_agent("client").is_some());
    run.signal(Signal::SIGKILL);
    let ended = run.end();
    assert_eq!(ended.status.code(), None);
    assert_eq!(interfaces(), before);
    succeed(&[SHORTLANE], &[&LIGHT[..], &["--duration", "3s"]].concat());
}

pub(crate) fn a_client_that_dies_once() {
    let mut run = start(&["--duration", "3s", "--json"]);
    run.wait_for("block 1 of");
    kill(run.wait_for_agent("client").unwrap(), Signal::SIGKILL).unwrap();
    run.wait_for("void, repeated: efd: the client process died");
    let ended = run.end();
    assert!(ended.status.success(), "{}", ended.stderr);
    let document = ended.json();
    assert!(document["void_blocks"].as_u64().unwrap() >= 1);
    assert_eq!(document["summary"]["rounds"], 1);
}

pub(crate) fn a_server_that_always_dies() {
    let mut run = start(&["--duration", "3s"]);
    run.wait_for("block 1 of");
    while let Some(server) = run.wait_for_agent("server") {
        // It may have ended by itself, or not have been reaped yet.
        let _ = kill(server, Signal::SIGKILL);
    }
    let ended = run.end();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("3 blocks of efd in a row were void"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("void, repeated").count(), 2, "{}", ended.stderr);
}

/// In a mount namespace of its own, the disk for the results has 16 kB.
pub(crate) fn a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=16k none "$0" && "$@" --out "$0"
        status=$?; ls -A "$0" | sed 's/^/left: /' >&2; exit $status"#;
    let out = directory.path().to_str().unwrap();
    let isolated = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, out, SHORTLANE];
    for format in ["csv", "parquet"] {
        let more = ["--duration", "3s", "--format", format];
        let ended = Run::start(&isolated, &[&LIGHT[..], &more].concat()).end();
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("left: "), "{}", ended.stderr);
        let shown = ended.stdout.contains("efd") && ended.stdout.contains("n=");
        assert!(shown, "{}{}", ended.stdout, ended.stderr);
    }
}

/// Root of a user namespace that allows no more of them, and then no longer root of it.
pub(crate) fn no_namespaces() {
    let script = "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all \
                  --inh-caps=-all \"$0\" \"$@\"";
    let powerless = ["unshare", "--user", "--map-root-user", "sh", "-c", script, SHORTLANE];
    let ended = Run::start(&powerless, &LIGHT).end();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    for part in ["network namespace", "run as root", "sysctl user.max_user_namespaces=10000"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}
