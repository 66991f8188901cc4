//! The text of a scrape, and the page that documents it.

use std::fs;

use engine::status::{DropCounter, LaneCounters, Status};
use engine::{Framing, LinkSettings};
use sched::{Nanos, Rate};

use super::encode;
use super::family::{ALL, COMMON, Kind};

fn status() -> Status {
    let mut long = LaneCounters { sent_packets: 7, backlog_bytes: 1500, ..LaneCounters::default() };
    [500, 2000, 3_000_000, u64::MAX / 4].iter().for_each(|ns| long.sojourn.count(Nanos(*ns)));
    Status {
        device: "eth0".into(),
        ifindex: 2,
        scheduler: "efd:limit=\"3\"".into(),
        link: LinkSettings {
            rate: Rate(20_000_000),
            overhead: "docsis".parse().unwrap(),
            burst_time: Nanos(1),
        },
        framing: Framing { mpu: 64, ..Framing::bytes(4) },
        uptime: Nanos::from_millis(1500),
        attached_at: Nanos(1),
        lanes: vec![LaneCounters::default(), long],
        drops: vec![
            DropCounter { reason: "full".into(), lane: Some(1), packets: 3 },
            DropCounter { reason: "oversize".into(), lane: None, packets: 1 },
        ],
        flows: 5,
        demoted: 9,
        ..Status::default()
    }
}

#[test]
fn a_scrape_is_openmetrics() {
    let text = encode::text(vec![status()]).unwrap();
    for line in [
        "# TYPE shortlane_attachment info",
        r#"shortlane_attachment_info{device="eth0",direction="egress",engine="kernel",scheduler="efd:limit=\"3\"",overhead="docsis"} 1"#,
        r#"shortlane_rate_limit_bits_per_second{device="eth0",direction="egress"} 20000000"#,
        r#"shortlane_uptime_seconds{device="eth0",direction="egress"} 1.5"#,
        r#"shortlane_sent_packets_total{device="eth0",direction="egress",lane="1"} 7"#,
        r#"shortlane_dropped_packets_total{device="eth0",direction="egress",reason="full",lane="1"} 3"#,
        r#"shortlane_dropped_packets_total{device="eth0",direction="egress",reason="oversize"} 1"#,
        r#"shortlane_sojourn_seconds_bucket{le="0.000001024",device="eth0",direction="egress",lane="1"} 1"#,
        r#"shortlane_sojourn_seconds_bucket{le="+Inf",device="eth0",direction="egress",lane="1"} 4"#,
        r#"shortlane_sojourn_seconds_count{device="eth0",direction="egress",lane="1"} 4"#,
        r#"shortlane_flows_demoted_total{device="eth0",direction="egress"} 9"#,
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "no '{line}' in\n{text}");
    }
    assert!(!text.contains("shortlane_received_packets_total"), "the kernel engine has none");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn nothing_attached_is_a_scrape_as_well() {
    let text = encode::text(Vec::new()).unwrap();
    assert!(text.lines().all(|line| line.starts_with('#')), "{text}");
}

#[test]
fn names_are_as_openmetrics_wants_them_and_no_two_are_the_same() {
    let mut names: Vec<&str> = ALL.iter().map(|family| family.name).collect();
    for family in ALL {
        let is_fine = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(family.name.starts_with("shortlane_") && family.name.chars().all(is_fine));
        for suffix in ["_total", "_info", "_bucket", "_count", "_sum"] {
            assert!(!family.name.ends_with(suffix), "{}: that is added by its kind", family.name);
        }
        assert!(!family.help.ends_with('.') && !family.help.is_empty(), "{}", family.name);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
}

/// The table of the page, from the one definition.
fn table() -> String {
    let mut table = format!(
        "| metric | kind | labels beside `{}` | |\n|---|---|---|---|\n",
        COMMON.join("`, `")
    );
    for family in ALL {
        let (suffix, kind) = match family.kind {
            Kind::Counter => ("_total", "counter"),
            Kind::Gauge => ("", "gauge"),
            Kind::Histogram => ("", "histogram"),
            Kind::Info => ("_info", "info"),
        };
        let labels: Vec<String> = family.labels.iter().map(|l| format!("`{l}`")).collect();
        let (name, labels) = (family.name, labels.join(", "));
        table += &format!("| `{name}{suffix}` | {kind} | {labels} | {} |\n", family.help);
    }
    table
}

#[test]
fn the_page_has_them_all() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operators/metrics.md");
    let page = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let table = table();
    assert!(page.contains(&table), "{path} is to have this table:\n\n{table}");
}
