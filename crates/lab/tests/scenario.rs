//! Scenarios as labs: what is taken, and what is refused by name.

use lab::traffic::Tcp;
use lab::{AgentProgram, Engine, scheduler};
use scenario::{Overrides, Scenario};

const GOOD: &str = r#"[scenario]
title = "t"
duration = "5s"
warm-up = "1s"
seeds = "3..4"

[topology]
kind = "dumbbell"
access = { rate = "1gbit", delay = "1ms" }
bottleneck = { rate = "10mbit", back-rate = "2mbit", delay = "8ms", limit = "50packets" }

[schedulers]
run = ["fifo", "efd"]

[tcp]
preset = "linux"

[[traffic]]
kind = "transfers"
arrivals = 20

[[traffic]]
kind = "periodic"
every = "1s"
size = "10kb"
tcp = { congestion = "reno" }

[[traffic]]
kind = "persistent"
flows = 2

[[traffic]]
name = "up"
kind = "persistent"
from = "right"
to = "left"

[[traffic]]
name = "call"
kind = "cbr"
rate = "64kbit"
packet = "160b"
flows = 2
"#;

fn read(text: &str) -> Result<lab::Config, String> {
    read_for(text, Engine::Userspace, None)
}

fn read_for(text: &str, engine: Engine, named: Option<&[&str]>) -> Result<lab::Config, String> {
    let read = Scenario::parse(text, "t.toml", None, &Overrides::default());
    let scenario = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let agent = AgentProgram { path: "agent".into(), arguments: Vec::new() };
    let named = named.map(|names| {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        scheduler::parse(&names, engine).unwrap()
    });
    let config = lab::scenario::config(&scenario, engine, named, None, 0.05, agent);
    config.map_err(|error| error.to_string())
}

#[test]
fn a_seed_is_a_round_of_what_the_simulator_sends() {
    let config = read(GOOD).unwrap();
    let link = &config.link;
    assert_eq!((link.rate.0, link.up_rate.0), (10_000_000, 2_000_000));
    assert_eq!(link.rtt.0, 20_000_000);
    assert_eq!(
        config.schedulers[0].ours().unwrap().params().amount("limit").to_string(),
        "50packets"
    );
    assert_eq!((config.timing.warm_up.0, config.timing.block().0), (1_000_000_000, 5_000_000_000));
    let seeds: Vec<u64> = config.rounds.iter().map(|round| round.seed).collect();
    assert_eq!(seeds, [3, 4]);
    let plan = &config.rounds[0].plans[0];
    assert_ne!(plan.transfers, config.rounds[1].plans[0].transfers);
    // Two kinds of transfers take turns in ids: the periodic ones have the odd.
    let periodic: Vec<_> = plan.transfers.iter().filter(|t| t.id % 2 == 1).collect();
    assert_eq!(periodic.len(), 5);
    assert!(periodic.iter().all(|t| t.size_bytes == 10_240 && t.tcp == Tcp::Reno));
    assert_eq!(config.labels.transfer(3).as_deref(), Some("periodic"));
    assert_eq!(config.labels.transfer(4).as_deref(), Some("transfers"));
    assert!(plan.transfers.iter().filter(|t| t.id % 2 == 0).all(|t| t.tcp == Tcp::Cubic));
    assert_eq!((plan.downloads.len(), plan.uploads.len()), (2, 1));
    assert_eq!(config.labels.persistent(plan.uploads[0].id.into()).as_deref(), Some("up"));
    let calls: Vec<&str> = plan.cbr.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(calls, ["call/0", "call/1"]);
    config.check().unwrap();
}

#[test]
fn a_line_of_links_is_one_way() {
    let line = "[topology]\nkind = \"free\"\nlinks = [\n\
         { a = \"home\", b = \"gate\", rate = \"1gbit\", delay = \"1ms\" },\n\
         { a = \"net\", b = \"gate\", rate = \"4mbit\", delay = \"5ms\", scheduler = \"tested\", \
           back-scheduler = \"fifo\" },\n]\n";
    let (head, rest) = GOOD.split_once("[topology]").unwrap();
    let (_, rest) = rest.split_once("[schedulers]").unwrap();
    let traffic = "[[traffic]]\nkind = \"persistent\"\nfrom = \"net\"\nto = \"home\"\n";
    let rest = rest.split_once("[[traffic]]").unwrap().0;
    let config = read(&format!("{head}{line}[schedulers]{rest}{traffic}")).unwrap();
    assert_eq!(config.link.rtt.0, 12_000_000);
    assert_eq!(config.link.up_scheduler.unwrap().to_string(), "fifo");
    assert_eq!(config.rounds[0].plans[0].downloads.len(), 1);
}

#[test]
fn what_the_lab_cannot_do_is_refused_with_its_line() {
    let bottleneck = "limit = \"50packets\"";
    for (from, to, says) in [
        (
            "kind = \"dumbbell\"",
            "kind = \"dumbbell\"\npairs = 5",
            "pairs of hosts; the lab takes 16",
        ),
        (bottleneck, "loss = 0.1", "t.toml:10: topology.bottleneck.loss = 0.1 cannot"),
        (
            bottleneck,
            "overhead = \"20b\"",
            "t.toml:10: topology.bottleneck.overhead = \"20b\" cannot",
        ),
        (
            "rate = \"1gbit\"",
            "rate = \"1gbit\", overhead = \"14b\"",
            "t.toml:9: topology.access.overhead = \"14b\" cannot",
        ),
        (bottleneck, "jitter = \"1ms\"", "t.toml:10: topology.bottleneck.jitter = \"1ms\" cannot"),
        (
            "rate = \"1gbit\"",
            "rate = \"1gbit\", varying = \"steps:0s=1mbit\"",
            "t.toml:9: topology.access.varying = \"steps:0s=1mbit\" cannot",
        ),
        (
            "rate = \"10mbit\"",
            "rate = \"3gbit\"",
            "t.toml:10: topology.bottleneck.rate = \"3gbit\" is not",
        ),
        (
            "rate = \"1gbit\"",
            "rate = \"50mbit\"",
            "t.toml:9: topology.access.rate = \"50mbit\" cannot",
        ),
        ("\"efd\"]", "\"srpt\"]", "t.toml:13: schedulers.run has srpt, which needs"),
        (
            "preset = \"linux\"",
            "preset = \"ns2\"",
            "t.toml:16: tcp.preset = \"ns2\" is of the simulator's",
        ),
        (
            "preset = \"linux\"",
            "preset = \"linux\"\nmss = \"500b\"",
            "t.toml:17: tcp.mss = \"500b\" is of",
        ),
        ("congestion = \"reno\"", "ecn = true", "t.toml:18: traffic[0].tcp uses ECN"),
        (
            "kind = \"transfers\"\narrivals = 20",
            "kind = \"on-off\"\nrate = \"1mbit\"",
            "t.toml:19: traffic[0].kind = \"on-off\" cannot",
        ),
        ("arrivals = 20", "arrivals = 20\ndscp = 8", "t.toml:21: traffic[0].dscp = 8 cannot"),
        (
            "arrivals = 20",
            "arrivals = 20\nfrom = \"right\"\nto = \"left\"",
            "t.toml:21: traffic[0].from = \"right\" cannot",
        ),
        ("packet = \"160b\"", "packet = \"40b\"", "traffic[4].packet = \"40b\" cannot"),
        ("flows = 2\n\n", "flows = 1001\n\n", "traffic[2].flows = 1001 are too many"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = read(&GOOD.replacen(from, to, 1)).expect_err(to);
        assert!(error.contains(says), "{error}\nnot {says}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn the_kernel_has_forms_of_its_own_of_what_it_does_not_take_from_us() {
    let classic = GOOD.replace("\"fifo\", \"efd\"", "\"fq-codel\", \"cake\"");
    let config = read_for(&classic, Engine::Kernel, None).unwrap();
    let names: Vec<String> = config.schedulers.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["kernel:fq_codel", "kernel:cake"]);
    let config = read_for(GOOD, Engine::Kernel, Some(&["kernel:sfq"])).unwrap();
    assert_eq!(config.schedulers[0].to_string(), "kernel:sfq");
    let config = read_for(GOOD, Engine::Kernel, Some(&["marks:cake"])).unwrap();
    assert_eq!(config.schedulers[0].to_string(), "marks:cake");
    // As in userspace: the same transfers at the same times.
    assert_eq!(config.rounds[0].plans, read(GOOD).unwrap().rounds[0].plans);
}

#[test]
fn what_only_the_userspace_engine_can_do_is_refused_with_its_line() {
    for (from, to, says) in [
        (
            "\"efd\"]",
            "\"las\"]",
            "t.toml:13: schedulers.run has what --engine kernel cannot take: las: ",
        ),
        (
            "limit = \"50packets\"",
            "edge = \"\"",
            "t.toml:10: topology.bottleneck.edge = \"\" is of the userspace engine",
        ),
        (
            "limit = \"50packets\"",
            "varying = \"steps:0s=1mbit,1s=0bit,2s=1mbit\"",
            "t.toml:10: topology.bottleneck.varying = \"steps:0s=1mbit,1s=0bit,2s=1mbit\" stalls",
        ),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = read_for(&GOOD.replacen(from, to, 1), Engine::Kernel, None).expect_err(to);
        assert!(error.contains(says), "{error}\nnot {says}");
    }
}

/// A folder of scenarios.
fn folder(name: &str) -> String {
    format!("{}/../../scenarios/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A file of the suite, as the lab takes it.
fn of_suite(name: &str) -> Result<lab::Config, String> {
    read(&std::fs::read_to_string(format!("{}/{name}.toml", folder("rfc7928"))).unwrap())
}

#[test]
fn what_is_measured_beside_the_kernel_and_of_its_tcp_is_taken() {
    let marks = ["kernel:fq_codel", "marks:cake"];
    for (of, engine, named) in
        [("kernel", Engine::Kernel, Some(&marks[..])), ("linux", Engine::Userspace, None)]
    {
        let files: Vec<_> = std::fs::read_dir(folder(of)).unwrap().map(Result::unwrap).collect();
        assert!(files.len() >= 10, "{of}");
        for file in files {
            let text = std::fs::read_to_string(file.path()).unwrap();
            let config = read_for(&text, engine, named);
            config.unwrap_or_else(|error| panic!("{}: {error}", file.path().display()));
        }
    }
}

#[test]
fn hosts_have_addresses_and_each_pair_of_them_a_plan() {
    let config = of_suite("fairness").unwrap();
    assert_eq!((config.link.ends.clients, config.link.ends.servers.len()), (2, 2));
    let plans = &config.rounds[0].plans;
    let downloads: Vec<_> = plans
        .iter()
        .map(|plan| (plan.server.to_string(), plan.client.to_string(), plan.downloads.len()))
        .collect();
    let [one, two] = ["10.77.0.1", "10.77.0.2"].map(String::from);
    let [left1, left2] = ["10.77.1.2", "10.77.1.3"].map(String::from);
    let of_many = [(left1.clone(), one.clone(), 5), (left2.clone(), one, 4)];
    let of_one = [(left1, two.clone(), 1), (left2, two, 0)];
    assert_eq!(downloads, [of_many, of_one].concat());
    let mut ports: Vec<u16> = plans.iter().map(|plan| plan.port).collect();
    ports.dedup();
    assert_eq!(ports.len(), 4, "servers of one host listen at different ports");
}

#[test]
fn a_server_may_be_farther_away() {
    let config = of_suite("round-trips").unwrap();
    assert_eq!(config.link.rtt.0, 20_000_000);
    let far: Vec<u64> = config.link.ends.servers.iter().map(|rtt| rtt.0).collect();
    assert_eq!(far, [0, 140_000_000]);
    let servers: Vec<String> =
        config.rounds[0].plans.iter().map(|plan| plan.server.to_string()).collect();
    assert_eq!(servers, ["10.77.1.2", "10.78.1.2"]);
}

#[test]
fn pages_and_requests_are_those_of_the_seed() {
    let config = of_suite("mix").unwrap();
    let plan = &config.rounds[0].plans[0];
    assert_eq!((plan.visitors.len(), plan.sessions.len()), (4, 1));
    assert!(plan.visitors.iter().all(|visitor| !visitor.pages.is_empty()));
    assert_ne!(plan.visitors, config.rounds[1].plans[0].visitors);
    assert_eq!(config.labels.requests(0).0.as_deref(), Some("service"));
    assert_eq!(config.labels.transfer(plan.visitors[3].number).as_deref(), Some("web"));
    let varying = of_suite("varying").unwrap();
    assert_eq!(varying.rounds[0].varying[0].as_ref().unwrap().steps().len(), 5);
    assert!(varying.rounds[0].varying[1].is_none());
}

#[test]
fn all_of_the_suite_is_taken_but_what_mixes_ecn() {
    for name in ["fairness", "unresponsive", "bursts", "mild", "heavy", "varying", "mix"] {
        of_suite(name).unwrap_or_else(|error| panic!("{error}"));
    }
    assert!(of_suite("ecn").unwrap_err().contains("uses ECN and others do not"));
}
