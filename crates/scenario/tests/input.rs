//! What a scenario may not say, and what is answered: file, line, key, what was found, what is
//! accepted.

use scenario::{Overrides, Scenario};

/// A small scenario that is accepted.
const GOOD: &str = r#"[scenario]
title = "t"
duration = "10s"

[topology]
kind = "dumbbell"
access = { rate = "100mbit", delay = "1ms" }
bottleneck = { rate = "10mbit", delay = "1ms" }

[schedulers]
run = ["fifo"]

[[traffic]]
kind = "transfers"
load = 0.5
"#;

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, "t.toml", None, &Overrides::default()).map_err(|e| e.to_string())
}

/// The scenario with `from` replaced must be refused in one line with these words.
#[track_caller]
fn refused(from: &str, to: &str, says: &[&str]) {
    assert!(GOOD.contains(from), "{from}");
    let error = parse(&GOOD.replacen(from, to, 1)).expect_err("it is to be refused");
    assert_eq!(error.lines().count(), 1, "{error}");
    for part in says {
        assert!(error.contains(part), "'{part}' in: {error}");
    }
}

#[test]
fn bbr_takes_sack() {
    let tcp = |keys: &str| format!("{GOOD}\n[tcp]\n{keys}\n");
    assert!(parse(&tcp("preset = \"linux\"\ncongestion = \"bbr\"")).is_ok());
    let error = parse(&tcp("congestion = \"bbr\"\nrecovery = \"newreno\"")).unwrap_err();
    assert!(
        error.starts_with("t.toml:17: tcp ") && error.contains("recovery = \"sack\""),
        "{error}"
    );
}

#[test]
fn what_is_good_is_accepted() {
    let scenario = parse(GOOD).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.seeds.len()), ("t", 10));
    assert_eq!(scenario.topology.nodes, ["left-router", "right-router", "left1", "right1"]);
}

#[test]
fn errors_name_line_key_found_and_accepted() {
    refused(
        "10mbit",
        "0mbit",
        &[
            "t.toml:8: topology.bottleneck.rate = \"0mbit\" is not accepted; it takes \"1kbit\" to \"1000gbit\"",
        ],
    );
    refused("100mbit", "9999gbit", &["t.toml:7: topology.access.rate", "\"1000gbit\""]);
    refused(
        "\"1ms\" }\nb",
        "\"-1ms\" }\nb",
        &["t.toml:7: topology.access.delay = \"-1ms\"", "it takes \"0s\" to \"10s\""],
    );
    refused(
        "load = 0.5",
        "load = -1",
        &["t.toml:15: traffic[0].load = -1", "a number above 0, at most 10"],
    );
    refused("load = 0.5", "load = nan", &["t.toml:15: traffic[0].load = nan"]);
    refused(
        "load = 0.5",
        "load = 0.5\nrate = \"1mbit\"",
        &["t.toml:16: traffic[0].rate", "beside load"],
    );
    refused("load = 0.5", "", &["t.toml:13: traffic[0] needs one of load, rate and arrivals"]);
    refused("\"10s\"", "10", &["t.toml:3: scenario.duration = 10 is not accepted; it takes"]);
    refused(
        "kind = \"transfers\"\nload = 0.5",
        "kind = \"on-off\"\nrate = \"1mbit\"\non = \"fixed:time=0s\"",
        &["t.toml:16: traffic[0].on", "\"fixed:time=0s\"", "above 0"],
    );
}

#[test]
fn unknown_keys_are_refused_with_what_was_meant() {
    refused(
        "bottleneck",
        "bottlneck",
        &["t.toml:8: topology has no key 'bottlneck'; did you mean 'bottleneck'?"],
    );
    refused("load", "lod", &["traffic[0] has no key 'lod'; did you mean 'load'?", "pick"]);
    refused("[schedulers]", "[sheduler]", &["a scenario has no key 'sheduler'", "schedulers"]);
    refused(
        "kind = \"dumbbell\"\n",
        "",
        &["topology needs 'kind'; it takes \"dumbbell\", \"chain\""],
    );
    refused(
        "\"dumbbell\"",
        "\"ring\"",
        &["t.toml:6: topology.kind = \"ring\" is not accepted", "\"free\""],
    );
    refused("\"transfers\"", "\"ftp\"", &["traffic[0].kind = \"ftp\"", "\"open-loop\""]);
    refused("[scenario]", "[scenario", &["t.toml:1: not TOML"]);
    refused(
        "title = \"t\"\n",
        "title = \"t\"\ntitle = \"u\"\n",
        &["t.toml:3: not TOML", "duplicate"],
    );
}

#[test]
fn times_and_seeds_fit_together() {
    refused(
        "\"10s\"",
        "\"10s\"\nwarm-up = \"10s\"",
        &["t.toml:4: scenario.warm-up = \"10s\"", "less than the duration, \"10s\""],
    );
    refused("\"10s\"", "\"10s\"\nseeds = []", &["t.toml:4: scenario.seeds = []", "\"1..10\""]);
    refused("\"10s\"", "\"10s\"\nseeds = \"3..1\"", &["scenario.seeds = \"3..1\""]);
    refused("\"10s\"", "\"10s\"\nseeds = [1, 1]", &["scenario.seeds = [1, 1]"]);
    refused("\"10s\"", "\"inf\"", &["t.toml:3: scenario.duration"]);
    refused(
        "load = 0.5",
        "load = 0.5\nstart = \"10s\"",
        &["traffic[0].start", "not before the end"],
    );
    refused(
        "load = 0.5",
        "load = 0.5\nstart = \"5s\"\nstop = \"5s\"",
        &["traffic[0].stop", "not later"],
    );
    let overrides = Overrides { duration: Some(sched::Nanos(1_000)), ..Overrides::default() };
    let text = GOOD.replace("\"10s\"", "\"10s\"\nwarm-up = \"1s\"");
    let error = Scenario::parse(&text, "t.toml", None, &overrides).unwrap_err().to_string();
    assert!(error.contains("less than the duration, \"1us\""), "{error}");
}

#[test]
fn schedulers_are_checked_as_everywhere() {
    refused(
        "\"fifo\"",
        "\"fifi\"",
        &["t.toml:11: schedulers.run", "no discipline is named 'fifi'"],
    );
    refused("\"fifo\"", "\"efd:treshold=3packets\"", &["efd has no parameter 'treshold'"]);
    refused("\"fifo\"", "\"fifo\", \"fifo\"", &["has fifo twice"]);
    refused("[\"fifo\"]", "[]", &["schedulers.run = []", "a list of schedulers"]);
    refused("[\"fifo\"]", "7", &["schedulers.run = 7"]);
}

#[test]
fn places_exist_and_are_joined() {
    refused(
        "load = 0.5",
        "load = 0.5\nfrom = \"rigth\"",
        &["traffic[0].from = \"rigth\" names 'rigth'", "right"],
    );
    refused(
        "load = 0.5",
        "load = 0.5\nfrom = \"right\"",
        &["traffic[0] goes from right1 to right1"],
    );
    let free = |links: &str, from: &str, to: &str| {
        format!(
            "[scenario]\ntitle = \"t\"\nduration = \"1s\"\n[schedulers]\nrun = [\"fifo\"]\n\
             [topology]\nkind = \"free\"\n{links}\n[[traffic]]\nkind = \"persistent\"\n\
             from = \"{from}\"\nto = \"{to}\"\n"
        )
    };
    let apart = "links = [{ a = \"a\", b = \"b\", rate = \"1mbit\", scheduler = \"tested\" }, \
                 { a = \"c\", b = \"d\", rate = \"1mbit\" }]";
    let error = parse(&free(apart, "a", "d")).unwrap_err();
    assert!(error.contains("t.toml:9: traffic[0] has ends that no links join: a and d"), "{error}");
    let itself = "links = [{ a = \"a\", b = \"a\", rate = \"1mbit\" }]";
    let error = parse(&free(itself, "a", "b")).unwrap_err();
    assert!(error.contains("topology.links[0].b = \"a\" is not accepted"), "{error}");
    let untested = "links = [{ a = \"a\", b = \"b\", rate = \"1mbit\" }]";
    let error = parse(&free(untested, "a", "b")).unwrap_err();
    assert!(error.contains("has no link with scheduler = \"tested\""), "{error}");
}

#[test]
fn routes_have_no_loops_and_no_gaps() {
    let with_route = |path: &str| {
        let text = format!(
            "[scenario]\ntitle = \"t\"\nduration = \"1s\"\n[schedulers]\nrun = [\"fifo\"]\n\
             [topology]\nkind = \"free\"\nlinks = [\
             {{ a = \"a\", b = \"b\", rate = \"1mbit\", scheduler = \"tested\" }},\
             {{ a = \"b\", b = \"c\", rate = \"1mbit\" }},\
             {{ a = \"a\", b = \"c\", rate = \"1mbit\" }}]\n\
             [[topology.routes]]\npath = {path}\n\
             [[traffic]]\nkind = \"persistent\"\nfrom = \"a\"\nto = \"c\"\n"
        );
        parse(&text)
    };
    assert!(with_route(r#"["a", "b", "c"]"#).is_ok());
    let looped = with_route(r#"["a", "b", "a", "c"]"#).unwrap_err();
    assert!(
        looped.contains("t.toml:10: topology.routes[0].path")
            && looped.contains("is a loop: it comes to 'a' twice"),
        "{looped}"
    );
    let nowhere = with_route(r#"["a", "x"]"#).unwrap_err();
    assert!(nowhere.contains("names 'x', which no link ends at"), "{nowhere}");
    assert!(with_route(r#"["a"]"#).unwrap_err().contains("at least two nodes"));
}

#[test]
fn every_ready_scenario_is_accepted() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut found = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        // The suite has a folder and a test of its own.
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.display().to_string();
        Scenario::parse(&text, &name, None, &Overrides::default())
            .unwrap_or_else(|e| panic!("{e}"));
        found += 1;
    }
    assert!(found > 0);
}

#[test]
fn an_edge_says_what_it_takes() {
    let edge = |text: &str| format!("\"10mbit\", edge = \"{text}\"");
    let refused = |text: &str, says: &[&str]| refused("\"10mbit\"", &edge(text), says);
    refused(
        "ratio=0",
        &["t.toml:8: topology.bottleneck.edge", "edge: ratio=0 is not accepted; ratio takes 1 to"],
    );
    refused("threshold=10packets", &["threshold=10packets is not accepted", "1 to 1073741824"]);
    refused("slr=3", &["edge has no parameter 'slr'; it has threshold"]);
    refused("short-dscp=12", &["short-dscp=12 is not accepted with long-dscp=12"]);
    for good in ["", "threshold=20,update=inf,short-dscp=46,long-dscp=0"] {
        assert!(parse(&GOOD.replacen("\"10mbit\"", &edge(good), 1)).is_ok());
    }
}

#[test]
fn thresholds_are_held_against_the_limit_of_the_link() {
    let red = |text: &str| format!("\"{text}\"");
    refused(
        "\"fifo\"",
        &red("red:max=301packets"),
        &["red: max=301packets is not accepted with limit=300packets; max takes at most that"],
    );
    refused("\"fifo\"", &red("rio-ps:ratio=0"), &["rio-ps: ratio=0 is not accepted"]);
    assert!(parse(&GOOD.replacen("\"fifo\"", &red("red:min=5packets,max=15packets"), 1)).is_ok());
}

#[test]
fn rates_that_cannot_vary_so_are_refused_with_their_line() {
    for (key, written, says) in [
        ("varying", "trace:/nowhere/trace.csv", "/nowhere/trace.csv: No such file"),
        ("back-varying", "trace:trace.csv", "needs an absolute path"),
        ("varying", "steps:0s=1mbit,1s=0bit", "the last rate is 0"),
        ("back-varying", "walk:min=1kbit", "a walk needs all of min, max, every and step"),
        ("varying", "up and down", "it takes \"trace:FILE\""),
    ] {
        refused(
            "bottleneck = { rate = \"10mbit\"",
            &format!("bottleneck = {{ rate = \"10mbit\", {key} = \"{written}\""),
            &[&format!("t.toml:8: topology.bottleneck.{key} = "), says],
        );
    }
}
