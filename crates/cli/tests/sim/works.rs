//! What a scenario gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{SHORTLANE, SMALL, directory, file, succeeds};

/// The records of a CSV file, by column.
fn csv(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let record = |line: &str| {
        let cells = line.split(',').map(str::to_owned);
        header.iter().map(ToString::to_string).zip(cells).collect()
    };
    lines.map(record).collect()
}

fn number(record: &BTreeMap<String, String>, column: &str) -> u64 {
    record[column].parse().unwrap_or_else(|_| panic!("{column} of {record:?}"))
}

#[test]
fn the_same_scenario_gives_the_same_bytes_whatever_the_threads() {
    let directory = directory();
    let scenario = file(&directory, SMALL);
    let mut results = Vec::new();
    for jobs in ["1", "4"] {
        let out = directory.path().join(jobs);
        let events = directory.path().join(format!("{jobs}.parquet"));
        let (out_arg, events_arg) = (out.to_str().unwrap(), events.to_str().unwrap());
        let shown = succeeds(
            &scenario,
            &["--jobs", jobs, "--out", out_arg, "--events", events_arg, "--json"],
        );
        let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                (name, fs::read(path).unwrap())
            })
            .collect();
        files.sort();
        files.push(("events".into(), fs::read(events).unwrap()));
        results.push((shown, files));
    }
    let names: Vec<&str> = results[0].1.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["blocks", "drops", "flows", "links", "probes", "progress"]
        .map(|table| format!("{table}.parquet"));
    assert_eq!(names[..6], expected);
    assert_eq!(names[6..], ["run.json", "samples.parquet", "events"]);
    assert!(results[0] == results[1], "one thread and four give different results");
}

#[test]
fn every_scheduler_sees_the_same_workload_and_every_seed_another() {
    let directory = directory();
    let scenario = file(&directory, SMALL);
    let out = directory.path().join("out");
    succeeds(&scenario, &["--out", out.to_str().unwrap(), "--format", "csv"]);
    let mut workloads: BTreeMap<(String, u64), Vec<[u64; 3]>> = BTreeMap::new();
    for flow in csv(&out.join("flows.csv")).iter().filter(|flow| flow["kind"] == "transfer") {
        let place = (flow["scheduler"].clone(), number(flow, "seed"));
        let drawn = ["index", "start_ns", "size_bytes"].map(|column| number(flow, column));
        workloads.entry(place).or_default().push(drawn);
    }
    // Rows come as flows end.
    workloads.values_mut().for_each(|flows| flows.sort_unstable());
    assert_eq!(workloads.len(), 6);
    for seed in 1..=3 {
        let of = |scheduler: &str, seed| &workloads[&(scheduler.to_owned(), seed)];
        assert!(of("fifo", seed).len() > 30);
        assert_eq!(of("fifo", seed), of("efd", seed), "seed {seed}");
        assert_ne!(of("fifo", seed), of("fifo", seed % 3 + 1));
    }
    let blocks = csv(&out.join("blocks.csv"));
    let order: Vec<(u64, &str)> =
        blocks.iter().map(|b| (number(b, "seed"), b["scheduler"].as_str())).collect();
    let expected = [(1, "fifo"), (1, "efd"), (2, "fifo"), (2, "efd"), (3, "fifo"), (3, "efd")];
    assert_eq!(order, expected);
    assert!(blocks.iter().all(|block| block["void"] == "false"));
}

/// What went in has come out, was dropped, or is there still; in the order that a link allows.
#[test]
fn events_are_the_packets_of_the_bottleneck() {
    let directory = directory();
    let scenario = file(&directory, SMALL);
    let (events, out) = (directory.path().join("e.csv"), directory.path().join("out"));
    let (events_arg, out_arg) = (events.to_str().unwrap(), out.to_str().unwrap());
    succeeds(&scenario, &["--events", events_arg, "--out", out_arg, "--format", "csv"]);
    let header = fs::read_to_string(&events).unwrap();
    let contract = "scheduler,index,arrival_ns,size_bytes,flow,lane,outcome,reason,departure_ns";
    assert_eq!(header.lines().next(), Some(contract));
    let rows = csv(&events);
    for link in csv(&out.join("links.csv")) {
        if link["link"] != "bottleneck" || link["seed"] != "1" {
            continue;
        }
        let own: Vec<_> = rows.iter().filter(|row| row["scheduler"] == link["scheduler"]).collect();
        assert_eq!(own.len() as u64, number(&link, "arrived_packets"));
        let of = |outcome: &str| own.iter().filter(|row| row["outcome"] == outcome).count() as u64;
        assert_eq!(of("dropped"), number(&link, "dropped_packets"));
        assert!(of("dropped") > 0 && of("departed") > 1000);
        assert!(own.iter().enumerate().all(|(at, row)| number(row, "index") == at as u64));
        assert!(own.is_sorted_by_key(|row| number(row, "arrival_ns")));
        assert_eq!(number(own[0], "arrival_ns"), 0, "the clock starts at the first packet");
        let departed = own.iter().filter(|row| row["outcome"] == "departed");
        let mut departures: Vec<(u64, u64)> =
            departed.map(|r| (number(r, "departure_ns"), number(r, "size_bytes"))).collect();
        departures.sort_unstable();
        // 2 Mbit/s is 4000 ns a byte.
        for pair in departures.windows(2) {
            assert!(pair[1].0 - pair[0].0 >= pair[1].1 * 4000, "{pair:?}");
        }
    }
}

#[test]
fn the_summary_says_who_wins() {
    let directory = directory();
    let scenario = file(&directory, SMALL);
    let shown = succeeds(&scenario, &["--json"]);
    let document: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(document["ended_early"], Value::Null);
    let summary = &document["summary"];
    assert_eq!((&summary["seeds"], &summary["reference"]), (&3.into(), &"fifo".into()));
    let efd = &summary["schedulers"][1];
    assert_eq!(efd["scheduler"], "efd");
    let short = &efd["traffic"][0]["classes"][0];
    assert_eq!(short["packets"], "<=20");
    let ratio = short["vs_reference"]["value"].as_f64().unwrap();
    assert!(ratio > 0.05 && ratio < 0.8, "EFD is made for short transfers: {ratio}");
    let slowdown = short["slowdown"]["value"].as_f64().unwrap();
    assert!((1.0..5.0).contains(&slowdown), "{slowdown}");
    let voice = &efd["traffic"][1];
    assert_eq!((&voice["name"], &voice["kind"]), (&"voice".into(), &"stream".into()));
    // 50 packets a second in 28 s after the warm-up, three seeds; a few are on their way at the end.
    let sent = voice["sent"].as_u64().unwrap();
    assert!((4180..=4200).contains(&sent), "{sent}");
    let report = succeeds(&scenario, &[]);
    assert!(report.contains("efd: transfers of <= 20 packets take 0."), "{report}");
    for line in report.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn options_come_before_what_the_file_says() {
    let directory = directory();
    let scenario = file(&directory, SMALL);
    let more = ["--scheduler", "las", "--scheduler", "fifo", "--seeds", "5,9", "--duration", "4s"];
    let shown = succeeds(&scenario, &[&more[..], &["--json"]].concat());
    let document: Value = serde_json::from_str(&shown).unwrap();
    let described = &document["scenario"];
    assert_eq!(described["schedulers"], serde_json::json!(["las", "fifo"]));
    assert_eq!(described["seeds"], serde_json::json!([5, 9]));
    assert_eq!(described["duration_ns"], 4_000_000_000u64);
    assert_eq!(document["summary"]["reference"], "fifo");
}

#[test]
fn ready_scenarios_are_listed_and_shown() {
    let list = std::process::Command::new(SHORTLANE).args(["sim", "--list"]).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(scenario::library::ALL.len() >= 10);
    for ready in scenario::library::ALL {
        assert!(list.lines().any(|line| line.starts_with(ready.name)), "{}: {list}", ready.name);
        assert_eq!(succeeds(Path::new(ready.name), &["--show"]), ready.text);
    }
}
