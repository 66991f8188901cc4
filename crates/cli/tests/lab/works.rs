//! Labs that succeed.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::unistd::geteuid;
use serde_json::Value;

use crate::SHORTLANE;
use crate::run::{Run, succeed};

const TABLES: [&str; 7] = ["blocks", "drops", "flows", "links", "probes", "progress", "samples"];

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Transfers of all classes, complete or not.
fn transfers(scheduler: &Value) -> (u64, u64) {
    let classes = scheduler["classes"].as_array().unwrap();
    let complete = classes.iter().map(|class| class["completion_ms"]["n"].as_u64().unwrap());
    let incomplete = classes.iter().map(|class| class["incomplete"].as_u64().unwrap());
    (complete.sum(), incomplete.sum())
}

fn sane(scheduler: &Value) {
    let (complete, _) = transfers(scheduler);
    assert!(complete > 0, "{scheduler}");
    let used = scheduler["utilisation"].as_f64().unwrap();
    assert!(used > 0.0 && used < 1.01, "{used}");
}

pub(crate) fn mixed_traffic() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("made/here");
    let link =
        ["lab", "--late-limit", "60%", "--duration", "5s", "--rate", "5mbit", "--json", "--seed=7"];
    let law = ["--sizes", "exponential:mean=20kb", "--tcp", "cubic,reno,bbr", "--uploads", "1"];
    let disciplines = ["--scheduler", "fifo", "--scheduler", "efd:threshold=10packets"];
    let files = ["--out", out.to_str().unwrap()];
    let ended = succeed(&[SHORTLANE], &[&link[..], &law, &disciplines, &files].concat());

    let document = ended.json();
    assert_eq!(document["ended_early"], Value::Null);
    let schedulers = document["summary"]["schedulers"].as_array().unwrap();
    let found: Vec<&str> = schedulers.iter().map(|s| s["scheduler"].as_str().unwrap()).collect();
    assert_eq!(found, ["fifo", "efd:threshold=10packets"]);
    let total = |scheduler| {
        let (complete, incomplete) = transfers(scheduler);
        complete + incomplete
    };
    assert_eq!(total(&schedulers[0]), total(&schedulers[1]), "the same workload");
    for scheduler in schedulers {
        sane(scheduler);
        for stream in ["voice", "video", "ping"] {
            let (sent, lost) = (&scheduler[stream]["sent"], &scheduler[stream]["lost"]);
            let arrived = scheduler[stream]["delay_ms"]["n"].as_u64().unwrap();
            assert!(arrived > 0, "{scheduler}");
            assert_eq!(arrived + lost.as_u64().unwrap(), sent.as_u64().unwrap());
        }
        for rate in ["downloads_mbit", "uploads_mbit"] {
            let rate = scheduler[rate]["value"].as_f64().unwrap();
            assert!(rate > 0.0 && rate < 5.0, "{scheduler}");
        }
    }

    let mut expected: Vec<String> = TABLES.iter().map(|table| format!("{table}.parquet")).collect();
    expected.push("run.json".into());
    expected.sort();
    assert_eq!(names(&out), expected);
    for table in TABLES {
        let bytes = fs::read(out.join(format!("{table}.parquet"))).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{table}");
    }
    let run: Value = serde_json::from_slice(&fs::read(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(run["seed"], 7);
    assert_eq!(run["scenario"], document["scenario"]);
}

/// A round trip longer than the start of client and server, files in CSV, and the report that people read.
pub(crate) fn listed_transfers_over_a_long_way() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list.csv");
    fs::write(&list, "start_s,size_bytes\n0,1000\n0.2,8000\n0.4,100\n").unwrap();
    let link =
        ["lab", "--late-limit", "60%", "--duration", "5s", "--rate", "5mbit", "--delay", "400ms"];
    let transfers = ["--transfers", list.to_str().unwrap(), "--no-interactive"];
    let disciplines = ["--scheduler", "fifo", "--scheduler", "las"];
    let files = ["--format", "csv", "--out", directory.path().to_str().unwrap()];
    let ended = succeed(&[SHORTLANE], &[&link[..], &transfers, &disciplines, &files].concat());

    for line in ended.stdout.lines() {
        assert!(line.chars().count() <= 100, "wider than 100 columns: {line}");
    }
    for part in ["5mbit", "RTT 400ms", "n=3", "las: "] {
        assert!(ended.stdout.contains(part), "'{part}' in {}", ended.stdout);
    }
    let flows = csv(&directory.path().join("flows.csv"));
    for scheduler in ["fifo", "las"] {
        let own = flows.iter().filter(|row| row["scheduler"] == scheduler);
        let complete = own.filter(|row| row["kind"] == "transfer" && row["complete"] == "true");
        let mut sizes: Vec<&str> = complete.map(|row| &*row["size_bytes"]).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, ["100", "1000", "8000"]);
    }
    for link in csv(&directory.path().join("links.csv")) {
        let number = |column: &str| link[column].parse::<u64>().unwrap();
        let (arrived, gone) =
            (number("arrived_packets"), number("sent_packets") + number("dropped_packets"));
        // The others are in the queue or on their long way.
        assert!(gone <= arrived && arrived <= gone + 600, "{arrived} packets in, {gone} out");
    }
}

/// Rows by column; without quoted cells.
fn csv(path: &Path) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let header: Vec<String> = lines.next().unwrap().collect();
    lines.map(|cells| header.iter().cloned().zip(cells).collect()).collect()
}

/// The same file through the simulator and the lab: the same transfers, and results of one schema.
pub(crate) fn a_scenario_in_both_engines() {
    let directory = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/one-link.toml");
    let [of_sim, of_lab] = ["sim", "lab"].map(|engine| {
        let out = directory.path().join(engine);
        let files = ["--format", "csv", "--json", "--seeds", "1", "--out", out.to_str().unwrap()];
        let late: &[&str] = if engine == "lab" { &["--late-limit", "60%"] } else { &[] };
        let run = [engine, file.to_str().unwrap()];
        let document = succeed(&[SHORTLANE], &[&run[..], &files, late].concat()).json();
        assert_eq!(document["scenario"]["name"], "one-link");
        if engine == "lab" {
            document["summary"]["schedulers"].as_array().unwrap().iter().for_each(sane);
        }
        let flows = csv(&out.join("flows.csv"));
        let transfers = flows.into_iter().filter(|row| row["kind"] == "transfer");
        let key = ["scheduler", "seed", "traffic", "index", "size_bytes", "planned_ns"];
        let mut planned: Vec<[String; 6]> =
            transfers.map(|row| key.map(|column| row[column].clone())).collect();
        planned.sort();
        // A block that was void is repeated, and its rows are kept beside those that count.
        planned.dedup();
        let probes = csv(&out.join("probes.csv"));
        assert!(probes.iter().all(|row| row["stream"] == "call") && !probes.is_empty());
        planned
    });
    assert!(!of_lab.is_empty());
    assert_eq!(of_sim, of_lab);
    let two_bottlenecks = Run::start(&[SHORTLANE], &["lab", "chain"]).end();
    assert_eq!(two_bottlenecks.status.code(), Some(2));
    let says = two_bottlenecks.stderr;
    assert!(says.contains("topology has 5 links under test; the lab has one"), "{says}");
}

/// Two receivers, two senders at different distances, pages, requests, and a link that is slow for a while.
const EVERYTHING: &str = r#"[scenario]
title = "everything"
duration = "5s"
warm-up = "1s"
seeds = 1
[topology]
kind = "free"
links = [
  { name = "link", a = "in", b = "out", rate = "5mbit", delay = "5ms", limit = "50packets", scheduler = "tested", varying = "steps:0s=5mbit,2s=1mbit,3s=5mbit" },
  { a = "near", b = "in", rate = "1gbit" },
  { a = "far", b = "in", rate = "1gbit", delay = "40ms" },
  { a = "out", b = "here", rate = "1gbit" },
  { a = "out", b = "there", rate = "1gbit" },
]
[schedulers]
run = ["efd"]
[tcp]
preset = "linux"
[[traffic]]
name = "long"
kind = "persistent"
flows = 2
opens = "receiver"
from = ["near", "far"]
to = ["here", "there"]
[[traffic]]
kind = "web"
users = 2
think = "fixed:time=100ms"
sizes = "uniform:min=1kb,max=20kb"
from = "near"
to = ["here", "there"]
[[traffic]]
kind = "requests"
flows = 2
from = "near"
to = ["here", "there"]
"#;

/// Hosts, distances, pages, requests and rates are in the lab what they are in the simulator.
pub(crate) fn a_scenario_of_everything() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("everything.toml");
    fs::write(&file, EVERYTHING).unwrap();
    let [of_sim, of_lab] = ["sim", "lab"].map(|engine| {
        let out = directory.path().join(engine);
        let files = ["--format", "csv", "--out", out.to_str().unwrap()];
        let late: &[&str] = if engine == "lab" { &["--late-limit", "60%"] } else { &[] };
        let run = [engine, file.to_str().unwrap()];
        succeed(&[SHORTLANE], &[&run[..], &files, late].concat());
        let blocks = csv(&out.join("blocks.csv"));
        let counts = blocks.iter().find(|row| row["void"] == "false").unwrap()["block"].clone();
        let links = csv(&out.join("links.csv"));
        let is_it = |row: &HashMap<String, String>| {
            row["block"] == counts && ["link", "down"].contains(&&*row["link"])
        };
        let link = links.into_iter().find(is_it).unwrap();
        // 5, 1 and twice 5 Mbit/s.
        assert_eq!(link["rate_bps"], "4000000", "{engine}");
        let used = link["utilisation"].parse::<f64>().unwrap();
        assert!((0.5..1.05).contains(&used), "{engine}: at a fixed rate it would be 1.2: {used}");
        let mut flows = csv(&out.join("flows.csv"));
        flows.retain(|row| row["block"] == counts);
        flows
    });
    let number = |row: &HashMap<String, String>, key: &str| row[key].parse::<u64>().unwrap();
    let handshake = |row| number(row, "connect_ns") - number(row, "start_ns");
    for index in ["0", "1"] {
        let long = of_lab.iter().find(|r| r["traffic"] == "long" && r["index"] == index).unwrap();
        let least = if index == "0" { 10_000_000 } else { 90_000_000 };
        assert!(handshake(long) >= least, "{long:?}");
        assert!(long["flow"].contains(if index == "0" { "10.77.0.1:" } else { "10.77.0.2:" }));
    }
    let due = |flows: &[HashMap<String, String>]| {
        let requests = flows.iter().filter(|row| row["kind"] == "request");
        let mut due: Vec<_> =
            requests.map(|row| (number(row, "index"), number(row, "planned_ns"))).collect();
        due.sort_unstable();
        due
    };
    assert_eq!(due(&of_sim), due(&of_lab));
    let objects = |flows: &[HashMap<String, String>]| -> HashMap<u64, u64> {
        let objects = flows.iter().filter(|row| row["traffic"] == "web");
        objects.map(|row| (number(row, "index"), number(row, "size_bytes"))).collect()
    };
    let (of_sim, of_lab) = (objects(&of_sim), objects(&of_lab));
    // How many pages a user gets to see is what the network is about.
    let both: Vec<_> = of_sim.iter().filter(|(index, _)| of_lab.contains_key(*index)).collect();
    assert!(both.len() > 20, "{} objects, and {}", of_sim.len(), of_lab.len());
    assert!(both.iter().all(|(index, size)| of_lab[*index] == **size));
}

/// The same file with a qdisc of this kernel as the bottleneck: the same transfers, and a link
/// that is as busy.
pub(crate) fn a_scenario_in_the_kernel() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let script = directory.path().join("queue.sh");
    let text = "#!/bin/sh
        tc qdisc $1 dev $2 root handle 1: tbf rate $3bit burst 2kb limit 1mb &&
        tc qdisc $1 dev $2 parent 1:1 handle 10: pfifo limit 300
    ";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let schedulers = ["kernel:pfifo", "script:queue.sh"];
    let script = format!("script:{}", script.display());
    let run =
        ["lab", "one-link", "--engine", "kernel", "--scheduler", schedulers[0], "--scheduler"];
    let files = ["--format", "csv", "--json", "--seeds", "1", "--out", out, "--late-limit", "10%"];
    let document = succeed(&[SHORTLANE], &[&run[..], &[&script], &files].concat()).json();
    assert_eq!(document["scenario"]["engine"], "kernel");
    assert_eq!(document["scenario"]["schedulers"], serde_json::json!(schedulers));
    for scheduler in document["summary"]["schedulers"].as_array().unwrap() {
        sane(scheduler);
        let used = scheduler["utilisation"].as_f64().unwrap();
        // Where the processor is stolen, packets and their acknowledgements come late.
        assert!(used > 0.6, "two downloads fill the link: {used}");
    }
    let info: Value =
        serde_json::from_str(&fs::read_to_string(directory.path().join("run.json")).unwrap())
            .unwrap();
    assert_eq!((&info["run"], &info["engine"]), (&"lab-kernel".into(), &"kernel".into()));
    let links = csv(&directory.path().join("links.csv"));
    let down: Vec<_> = links.iter().filter(|row| row["link"] == "down").collect();
    assert_eq!(down.len(), schedulers.len());
    for down in down {
        let number = |column: &str| down[column].parse::<u64>().unwrap();
        assert!(number("arrived_packets") >= number("sent_packets"), "{down:?}");
        let peak = number("backlog_peak_packets");
        assert!((100..=302).contains(&peak), "300 packets, and what tbf has taken: {peak}");
    }
    let flows = csv(&directory.path().join("flows.csv"));
    assert!(flows.iter().any(|row| row["kind"] == "transfer" && row["complete"] == "true"));
}

/// TCP small queues keep the queue at the sender: little of it is left at the bottleneck, where a
/// FIFO behind two downloads otherwise fills its 300 packets.
pub(crate) fn local_sender() {
    let directory = tempfile::tempdir().unwrap();
    let link = [
        "lab",
        "--late-limit",
        // What waits is asserted below, and a late pacer lets it.
        "10%",
        "--duration",
        "3s",
        "--rate",
        "5mbit",
        "--json",
        "--local-sender",
    ];
    let law = ["--sizes", "fixed:size=5kb", "--load", "0.1", "--scheduler", "fifo"];
    let files = ["--format", "csv", "--out", directory.path().to_str().unwrap()];
    let ended = succeed(&[SHORTLANE], &[&link[..], &law, &files].concat());
    let document = ended.json();
    assert_eq!(document["scenario"]["local_sender"], true);
    sane(&document["summary"]["schedulers"][0]);
    let links = csv(&directory.path().join("links.csv"));
    let down = links.iter().find(|row| row["link"] == "down").unwrap();
    let backlog: f64 = down["backlog_mean_packets"].parse().unwrap();
    assert!(backlog < 100.0, "{backlog} packets wait at the bottleneck");
}

/// Needs no more than user namespaces.
pub(crate) fn an_ordinary_user() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // Where the build stands, others may not be let in.
    let program = directory.path().join("shortlane");
    fs::copy(SHORTLANE, &program).unwrap();
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let program = program.to_str().unwrap();
    let program = match geteuid().is_root() {
        true => [&nobody[..], &[program]].concat(),
        false => vec![program],
    };
    let link = [
        "lab",
        "--late-limit",
        "60%",
        "--duration",
        "3s",
        "--rate",
        "3mbit",
        "--json",
        "--scheduler",
        "efd",
    ];
    let law = ["--sizes", "fixed:size=5kb", "--load", "0.1"];
    let arguments = [&link[..], &law].concat();
    let ended = Run::start(&program, &arguments).end();
    if ended.stderr.contains("user namespaces") {
        // Where the system keeps them from ordinary users, the remedy is named.
        assert_eq!(ended.status.code(), Some(1));
        assert!(ended.stderr.contains("run as root"), "{}", ended.stderr);
        return;
    }
    assert!(ended.status.success(), "{}", ended.stderr);
    sane(&ended.json()["summary"]["schedulers"][0]);
}

pub(crate) fn sweep() {
    let cell = [
        "lab",
        "sweep",
        "--late-limit",
        "60%",
        "--sizes",
        "10kb",
        "--bulk",
        "1",
        "--json",
        "--rate",
        "5mbit",
    ];
    let disciplines = ["--scheduler", "fifo", "--scheduler", "efd"];
    let document = succeed(&[SHORTLANE], &[&cell[..], &disciplines].concat()).json();
    assert_eq!(document["ended_early"], Value::Null);
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 1);
    assert_eq!((&cells[0]["size_bytes"], &cells[0]["bulk"]), (&10_240.into(), &1.into()));
    let results = cells[0]["results"].as_array().unwrap();
    for (result, name) in results.iter().zip(["fifo", "efd"]) {
        assert_eq!(result["scheduler"], name);
        assert!(result["n"].as_u64().unwrap() > 0 && result["mean_ms"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(results.len(), 2);
}
