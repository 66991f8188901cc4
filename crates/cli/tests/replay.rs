//! `shortlane replay`: what it prints and writes, what it refuses, how it ends.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

const SHORTLANE: &str = env!("CARGO_BIN_EXE_shortlane");

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn header(linktype: u32) -> Vec<u8> {
    let fields = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65535, linktype];
    fields.map(u32::to_le_bytes).concat()
}

/// Packet `number`, a UDP packet of 1000 bytes; every tenth one is of a flow of its own.
fn record(number: u32) -> Vec<u8> {
    let flow = if number.is_multiple_of(10) { number as u16 | 0x8000 } else { 5 };
    let micros = number * 500;
    let head = [micros / 1_000_000, micros % 1_000_000, 1000, 1000];
    let mut record = head.map(u32::to_le_bytes).concat();
    record.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 3, 0xda, 0, 0, 0, 0, 64, 17]);
    record.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    record.extend(flow.to_be_bytes());
    record.resize(16 + 1000, 0);
    record
}

fn pcap(packets: u32) -> Vec<u8> {
    [header(1), (0..packets).flat_map(record).collect()].concat()
}

/// A directory with a capture in it.
struct Scene {
    directory: TempDir,
}

impl Scene {
    fn new(capture: &[u8]) -> Self {
        let scene = Self { directory: tempfile::tempdir().unwrap() };
        fs::write(scene.path("x.pcap"), capture).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(SHORTLANE);
        command.current_dir(&self.directory).arg("replay").args(arguments).stdin(Stdio::null());
        command
    }

    fn replay(&self, arguments: &[&str]) -> Output {
        self.command(&[&["x.pcap", "--rate", "10mbit"], arguments].concat()).output().unwrap()
    }

    #[track_caller]
    fn succeeds(&self, arguments: &[&str]) -> Output {
        let output = self.replay(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        output
    }

    /// Replays, which must be refused with one line that has all of `says`.
    #[track_caller]
    fn refuses(&self, arguments: &[&str], says: &[&str]) {
        let output = self.command(arguments).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        assert_eq!(stderr.lines().count(), 1, "{arguments:?} in one line: {stderr}");
        for part in says {
            assert!(stderr.contains(part), "{arguments:?} says '{part}': {stderr}");
        }
    }

    fn names(&self) -> Vec<String> {
        names_in(self.directory.path())
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_report_is_readable_and_fits_a_terminal() {
    let output = Scene::new(&pcap(2000)).succeeds(&[]);
    let shown = text(&output.stdout);
    assert_eq!(text(&output.stderr), "");
    for part in [
        "pcap; Ethernet; 2000 packets, 2000000 bytes, 201 flows in 1.000 s",
        "16.0 Mbit/s in the busiest second",
        "10mbit, queue limit 300packets; the capture offers 160",
        "Open loop",
        "fifo",
        "fq-codel",
        "las",
        "cake",
        "efd",
        "fq-lanes",
        "first 20",
        ">1000",
        "200 flows",
        "1 flow ",
        "pushed-out",
    ] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    for line in shown.lines() {
        assert!(line.chars().count() <= 100, "{line}\nin\n{shown}");
    }
}

#[test]
fn the_json_document_has_it_all_and_repeats() {
    let scene = Scene::new(&pcap(2000));
    let arguments = ["--json", "--scheduler", "fifo", "--scheduler", "efd:threshold=5packets"];
    let output = scene.succeeds(&arguments);
    assert_eq!(output.stdout, scene.succeeds(&arguments).stdout);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["partial"], false);
    assert_eq!(document["scenario"]["rate_bps"], 10_000_000);
    let capture = &document["capture"];
    assert_eq!((&capture["packets"], &capture["flows"]), (&2000.into(), &201.into()));
    assert_eq!(capture["link_types"][0]["name"], "Ethernet");
    let [fifo, efd] = document["schedulers"].as_array().unwrap().as_slice() else {
        panic!("two schedulers: {document}");
    };
    assert_eq!(efd["scheduler"], "efd:threshold=5packets");
    for scheduler in [fifo, efd] {
        let number = |key: &str| scheduler[key].as_u64().unwrap();
        assert_eq!(number("arrived_packets"), 2000);
        assert_eq!(number("sent_packets") + number("dropped_packets"), 2000);
        assert_eq!(number("queued_packets"), 0);
        for key in ["mean_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns"] {
            assert!(scheduler["delay"][key].is_number(), "{key}");
        }
    }
    let short = |scheduler: &Value| {
        let class = &scheduler["classes"][0];
        assert_eq!((&class["size_class"], &class["flows"]), (&"<=20".into(), &200.into()));
        (class["delay"]["mean_ns"].as_f64().unwrap(), class["dropped_packets"].as_u64().unwrap())
    };
    let ((fifo_delay, fifo_drops), (efd_delay, efd_drops)) = (short(fifo), short(efd));
    assert!(efd_delay * 50.0 < fifo_delay, "{efd_delay} against {fifo_delay}");
    assert!(fifo_drops > 0 && efd_drops == 0, "{fifo_drops}, {efd_drops}");
}

#[test]
fn events_have_a_row_per_scheduler_and_packet() {
    let scene = Scene::new(&pcap(500));
    let run = ["--scheduler", "fifo", "--scheduler", "efd", "--limit", "20packets"];
    scene.succeeds(&[&run[..], &["--events", "e.csv"]].concat());
    let rows = fs::read_to_string(scene.path("e.csv")).unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "scheduler,index,arrival_ns,size_bytes,flow,lane,outcome,reason,departure_ns",
            "fifo:limit=20packets,0,0,1000,10.0.0.1:32768 > 10.0.0.2:0 udp,0,departed,,800000",
            "efd:limit=20packets,0,0,1000,10.0.0.1:32768 > 10.0.0.2:0 udp,0,departed,,800000",
        ]
        .map(|line| line.replace(":limit=20packets", ""))
    );
    assert_eq!(lines.len(), 1 + 2 * 500);
    assert!(lines.iter().any(|line| line.ends_with(",dropped,full,")), "{rows}");
    scene.succeeds(&[&run[..], &["--events", "e.parquet"]].concat());
    assert!(fs::read(scene.path("e.parquet")).unwrap().starts_with(b"PAR1"));
    assert_eq!(scene.names(), ["e.csv", "e.parquet", "x.pcap"]);
}

#[test]
fn tables_are_those_of_the_results_schema() {
    let scene = Scene::new(&pcap(2000));
    scene.succeeds(&["--out", "results", "--format", "csv"]);
    let names = names_in(&scene.path("results"));
    let expected = ["blocks", "drops", "flows", "links", "probes", "progress", "run", "samples"];
    assert_eq!(names.len(), expected.len());
    assert!(names.iter().zip(expected).all(|(name, table)| name.starts_with(table)), "{names:?}");
    let table = |name: &str| fs::read_to_string(scene.path("results").join(name)).unwrap();
    assert_eq!(table("blocks.csv").lines().count(), 1 + 6);
    assert_eq!(table("links.csv").lines().count(), 1 + 6);
    assert_eq!(table("flows.csv").lines().count(), 1 + 6 * 201);
    assert_eq!(table("samples.csv").lines().count(), 1 + 6 * 10);
    let is_row =
        |row: &str| row.contains(",captured,") && row.contains(",10.0.0.1:5 > 10.0.0.2:0 udp,");
    assert_eq!(table("flows.csv").lines().filter(|row| is_row(row)).count(), 6);
    let run: Value = serde_json::from_str(&table("run.json")).unwrap();
    assert_eq!((&run["run"], &run["scenario"]["partial"]), (&"replay".into(), &false.into()));
    assert_eq!(run["scenario"]["capture_facts"]["packets"], 2000);
    assert_eq!(names_in(&scene.path("results")), names);
}

#[test]
fn standard_input_is_a_capture_too() {
    let scene = Scene::new(&pcap(100));
    let mut command = scene.command(&["-", "--rate", "10mbit", "--json", "--scheduler", "fifo"]);
    command.stdin(File::open(scene.path("x.pcap")).unwrap());
    let output = command.output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["capture"]["packets"], 100);
}

#[test]
fn what_is_no_capture_is_refused() {
    let scene = Scene::new(b"");
    let rate = ["--rate", "10mbit"];
    let refuses = |file: &str, says: &[&str]| scene.refuses(&[&[file][..], &rate].concat(), says);
    refuses("x.pcap", &["x.pcap", "it is empty", "pcap and pcapng"]);
    refuses("absent.pcap", &["absent.pcap", "No such file", "it takes a pcap or pcapng file"]);
    refuses(".", &["capture .:", "it is a directory", "it takes a pcap or pcapng file"]);
    for (content, says) in [
        (&b"\x7fELF-and-more"[..], &["begins with 7f 45 4c 46", "pcap and pcapng"][..]),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03garbage of no use", &["x.pcap", "deflate"]),
        (b"\x1f\x8b\x08", &["x.pcap", "unexpected end of file"]),
        (&header(1), &["it has no packets"]),
        (&header(1)[..9], &["header is cut off after 9 bytes"]),
        (&[header(105), record(0)].concat(), &["link type is 105", "1 (Ethernet), 101 (raw IP)"]),
    ] {
        fs::write(scene.path("x.pcap"), content).unwrap();
        refuses("x.pcap", says);
        assert_eq!(scene.names(), ["x.pcap"], "nothing is left behind");
    }
}

#[test]
fn bad_options_are_refused() {
    let scene = Scene::new(&pcap(10));
    let refuses = |more: &[&str], says: &[&str]| {
        scene.refuses(&[&["x.pcap", "--rate", "10mbit"], more].concat(), says);
    };
    scene.refuses(&["x.pcap"], &["--rate", "--help"]);
    scene.refuses(&["x.pcap", "--rate", "10"], &["--rate 10 ", "unit", "10mbit"]);
    scene.refuses(&["x.pcap", "--rate", "0bit"], &["--rate 0bit", "above 0"]);
    scene.refuses(&["--rate", "1mbit"], &["CAPTURE", "--help"]);
    refuses(&["--limit", "0packets"], &["--limit 0packets", "300packets"]);
    refuses(&["--scheduler", "edf"], &["'edf'", "efd"]);
    refuses(&["--scheduler", "srpt"], &["srpt cannot run on a capture", "the size of every flow"]);
    refuses(&["--scheduler", "efd", "--scheduler", "efd"], &["efd", "twice"]);
    refuses(&["--idle", "0s"], &["--idle 0s", "above 0"]);
    refuses(&["--events", "e.txt"], &["--events e.txt", "ends in .csv or .parquet"]);
    refuses(&["--events", "absent/e.csv"], &["--events absent/e.csv", "No such file", ".parquet"]);
    refuses(&["--out", "x.pcap"], &["--out x.pcap", "a directory"]);
    fs::create_dir(scene.path("d.csv")).unwrap();
    refuses(&["--events", "d.csv"], &["--events d.csv", "it is a directory"]);
    assert_eq!(scene.names(), ["d.csv", "x.pcap"]);
}

#[test]
fn what_is_wrong_with_a_capture_is_said_and_the_rest_replayed() {
    let whole = pcap(100);
    let scene = Scene::new(&whole[..whole.len() - 1]);
    let output = scene.succeeds(&["--scheduler", "fifo", "--json"]);
    let said =
        "damaged at byte 100608: it ends in the middle of a record; replayed are the 99 packets";
    assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["capture"]["packets"], 99);
    assert_eq!(document["capture"]["damage"], "it ends in the middle of a record");
    assert_eq!(document["warnings"].as_array().unwrap().len(), 1);

    fs::write(scene.path("x.pcap"), [header(1), record(7), record(3), record(9)].concat()).unwrap();
    let output = scene.succeeds(&["--scheduler", "fifo"]);
    let said = "1 of 3 packets were captured before their predecessor, by up to 2 ms";
    assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
}

/// In a mount namespace of its own, the disk for what is written has 32 kB.
#[test]
fn a_full_disk_fails_the_command_and_not_the_report() {
    let scene = Scene::new(&pcap(5000));
    fs::create_dir(scene.path("disk")).unwrap();
    let script = r#"mount -t tmpfs -o size=32k none disk && "$0" "$@"
        status=$?; find disk -type f | sed 's/^/left: /' >&2; exit $status"#;
    for to in [&["--events", "disk/e.csv"], &["--events", "disk/e.parquet"], &["--out", "disk/out"]]
    {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, SHORTLANE]);
        command.args(["replay", "x.pcap", "--rate", "10mbit"]).args(to);
        let output = command.current_dir(&scene.directory).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("results not written: cannot write disk/"), "{stderr}");
        assert!(stderr.contains("No space left on device"), "{stderr}");
        assert!(!stderr.contains("left: "), "{stderr}");
        assert!(text(&output.stdout).contains("Time in the queue"), "{stderr}");
    }
}

#[test]
fn standard_output_that_is_full_fails_the_command() {
    let scene = Scene::new(&pcap(10));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = scene.command(&["x.pcap", "--rate", "10mbit"]);
    let output = command.stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write to standard output"));
}

/// A capture without end, from standard input: only the signal ends the command.
#[test]
fn ctrl_c_keeps_what_is_complete_and_marks_it_partial() {
    let scene = Scene::new(b"");
    let arguments = ["-", "--rate", "10mbit", "--scheduler", "efd", "--json"];
    let mut command =
        scene.command(&[&arguments[..], &["--events", "e.csv", "--out", "o"]].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feed = thread::spawn(move || -> std::io::Result<()> {
        stdin.write_all(&header(1))?;
        (0..)
            .map(|number| record(number % 1_000_000))
            .try_for_each(|record| stdin.write_all(&record))
    });
    // The signal is caught before the files are opened.
    while !scene.path("o").exists() {
        thread::sleep(Duration::from_millis(5));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let ended = feed.join().unwrap().unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::BrokenPipe);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("interrupted; the figures are of the first"), "{stderr}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["partial"], true);
    let packets = document["capture"]["packets"].as_u64().unwrap();
    assert_eq!(scene.names(), ["e.partial.csv", "o", "x.pcap"]);
    let rows = fs::read_to_string(scene.path("e.partial.csv")).unwrap();
    assert_eq!(rows.lines().count() as u64, 1 + packets);
    let run = fs::read(scene.path("o").join("run.json")).unwrap();
    let run: Value = serde_json::from_slice(&run).unwrap();
    assert_eq!(
        (&run["scenario"]["partial"], &run["ended_early"]),
        (&true.into(), &"interrupted".into())
    );
}
