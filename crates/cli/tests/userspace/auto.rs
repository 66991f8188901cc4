//! A rate that follows the link: real TCP through a bottleneck beyond the device, whose rate drops
//! and comes back.

mod drop;
mod line;

use std::process::Command;

use netdev::netns::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use self::line::{AUTO, BASE, END, Line, Way, extra_ms, rate, sh};
use crate::foreground;
use crate::path::{Path, wait_for};

/// By words for `attach`. Queues that every kernel has, and the others.
const USERSPACE: &str = "--engine userspace";
const HTB: &str = "--engine marks --queues htb";
const CAKE: &str = "--engine marks --queues cake";
const KERNEL: &str = "--engine kernel";

fn follows(way: Way, engine: &str) {
    let Some(line) = Line::with(engine) else { return };
    let before = line.path.state();
    line.path.succeed(&format!("attach t0 --rate {AUTO} --ingress {AUTO} --probe {END} {engine}"));
    let sees = || line.status(way)["auto"]["blind"] == false;
    wait_for("probes are answered", sees);
    line.under_load(way, || {
        wait_for("the link is used", || rate(&line.status(way)) >= 15_000_000);
        let lowered = || line.status(way)["auto"]["lowered"].as_u64().unwrap();
        let lowered_before = lowered();
        line.carries(5);
        wait_for("the rate falls", || {
            lowered() > lowered_before && rate(&line.status(way)) < 7_000_000
        });
        wait_for("the queue is gone", || extra_ms(&line.status(way)) < 30);
        let status = line.status(way);
        let said = status["auto"]["last_decision"].as_str().unwrap();
        assert!(said.contains(" -> ") && said.contains("queue"), "{status}");
        line.carries(20);
        line.rate_becomes("the rate rises", way, |rate| rate >= 15_000_000);
    });
    wait_for("an idle line is at its base", || rate(&line.status(way)) == BASE);
    line.carries(5);
    line.under_load(way, || {
        line.rate_becomes("the rate falls", way, |rate| rate < 7_000_000);
        // The traffic itself is answered.
        sh(&line.end, "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all");
        line.carries(20);
        line.rate_becomes("it rises by the traffic", way, |rate| rate >= 15_000_000);
        line.carries(5);
        line.rate_becomes("it falls by the traffic", way, |rate| rate < 7_000_000);
    });
    wait_for("without traffic it is blind", || line.status(way)["auto"]["blind"] == true);
    assert_eq!(rate(&line.status(way)), BASE);
    let text = line.path.succeed("show t0").output;
    assert!(text.contains("blind, at the base"), "{text}");
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert!(wide.is_none(), "more than 80 columns: {wide:?}");
    let (option, key) = match way {
        Way::Up => ("--rate", "egress"),
        Way::Down => ("--ingress", "ingress"),
    };
    line.path.succeed(&format!("change t0 {option} 9mbit"));
    let status = line.status(way);
    assert_eq!((&status["direction"], &status["rate_bps"]), (&key.into(), &9_000_000.into()));
    assert!(status["auto"].is_null(), "what is set by hand stays: {status}");
    match way {
        Way::Up => drop(line.path.succeed("detach t0")),
        Way::Down => {
            let pid = line.status(Way::Up)["auto"]["pid"].take();
            kill(pid_of(&pid), Signal::SIGKILL).unwrap();
            let by = format!(" by {END}");
            wait_for("nobody follows", || !line.path.succeed("show").output.contains(&by));
            // Where a killed engine leaves something.
            line.path.shortlane("detach t0");
        }
    }
    line.path.must_be_as_before(&before);
}

fn pid_of(value: &Value) -> Pid {
    Pid::from_raw(value.as_i64().unwrap() as i32)
}

#[test]
fn an_upload_follows_the_link() {
    follows(Way::Up, USERSPACE);
}

#[test]
fn a_download_follows_the_link() {
    follows(Way::Down, USERSPACE);
}

#[test]
fn an_upload_follows_the_link_in_front_of_htb() {
    follows(Way::Up, HTB);
}

#[test]
fn a_download_follows_the_link_in_front_of_htb() {
    follows(Way::Down, HTB);
}

#[test]
fn an_upload_follows_the_link_in_front_of_cake() {
    follows(Way::Up, CAKE);
}

#[test]
fn a_download_follows_the_link_in_front_of_cake() {
    follows(Way::Down, CAKE);
}

#[test]
fn an_upload_follows_the_link_in_the_kernel() {
    follows(Way::Up, KERNEL);
}

#[test]
fn a_download_follows_the_link_in_the_kernel() {
    follows(Way::Down, KERNEL);
}

/// A follower that is stopped, or killed, leaves a queue in the kernel at its base.
fn falls_back(engine: &str, how: Signal) {
    let Some(line) = Line::with(engine) else { return };
    let before = line.path.state();
    let attach = format!("attach t0 --rate {AUTO} --probe {END} {engine}");
    line.path.succeed(&attach);
    line.path.refused(&attach, 1, &["already", "--replace"]);
    wait_for("probes are answered", || line.status(Way::Up)["auto"]["blind"] == false);
    let pid = pid_of(&line.status(Way::Up)["auto"]["pid"]);
    let children = || std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let guard = Pid::from_raw(children().trim().parse().unwrap());
    kill(guard, Signal::SIGKILL).unwrap();
    let is_another = || children().trim().parse::<i32>().is_ok_and(|pid| pid != guard.as_raw());
    wait_for("there is another guard", is_another);
    line.carries(5);
    let rate_now = || rate(&line.status(Way::Up));
    line.under_load(Way::Up, || {
        wait_for("the rate falls", || rate_now() < 7_000_000);
        kill(pid, how).unwrap();
        wait_for("it is at its base", || rate_now() == BASE);
    });
    assert!(line.path.succeed("show t0").output.contains("is gone"));
    let said = line.path.shortlane("doctor t0").output;
    assert!(said.contains("PROBLEM t0: following: egress: the process"), "{said}");
    line.path.succeed(&format!("{attach} --replace"));
    wait_for("it follows", || line.status(Way::Up)["auto"]["blind"] == false);
    line.path.succeed("change t0 --rate 9mbit");
    wait_for("nobody follows", || line.status(Way::Up)["auto"].is_null());
    let status = line.status(Way::Up);
    assert_eq!((rate(&status), status["follows"].is_null()), (9_000_000, true), "{status}");
    line.path.succeed("detach t0");
    line.path.must_be_as_before(&before);
}

#[test]
fn in_front_of_htb_it_is_at_its_base_when_nobody_follows() {
    falls_back(HTB, Signal::SIGKILL);
    falls_back(HTB, Signal::SIGSTOP);
}

#[test]
fn in_the_kernel_it_is_at_its_base_when_nobody_follows() {
    falls_back(KERNEL, Signal::SIGKILL);
}

#[test]
fn it_follows_by_one_direction_alone() {
    let Some(line) = Line::new() else { return };
    line.path.succeed(&format!("attach t0 --ingress {AUTO} --probe {END} --engine userspace"));
    // Where nobody sees the probes depart.
    wait_for("probes are answered", || line.status(Way::Up)["auto"]["blind"] == false);
    line.path.succeed(&format!("attach t0 --rate {AUTO} --probe {END} --replace"));
    // Where nobody sees their answers come.
    wait_for("probes are answered", || line.status(Way::Up)["auto"]["blind"] == false);
    assert_eq!(line.status(Way::Up)["direction"], "egress");
    line.path.succeed("detach t0");
}

#[test]
fn a_dry_run_only_tells() {
    let Some(line) = Line::new() else { return };
    let attach = format!(
        "exec $S attach t0 --rate {AUTO} --ingress {AUTO} --probe {END} --dry-run --foreground"
    );
    let (child, ..) = foreground(&line.path, &attach);
    let status = || {
        let status = line.status(Way::Up);
        assert_eq!(rate(&status), BASE, "it stays: {status}");
        assert_eq!(rate(&line.status(Way::Down)), BASE);
        status
    };
    wait_for("probes are answered", || status()["auto"]["blind"] == false);
    line.carries(5);
    line.under_load(Way::Up, || {
        wait_for("it would fall more than once", || {
            status()["auto"]["lowered"].as_u64().unwrap() > 1
        });
    });
    let auto = &status()["auto"];
    assert_eq!(auto["dry_run"], true);
    let decisions = auto["decisions"].as_array().unwrap();
    let fell = decisions.iter().find(|decision| decision["reason"] == "queue").unwrap();
    assert_eq!(fell["from_bps"], BASE);
    assert!(fell["to_bps"].as_u64().unwrap() < 7_000_000, "{fell}");
    let numbers: Vec<u64> = decisions.iter().map(|d| d["number"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a + 1 == *b), "{numbers:?}");
    assert!(line.path.succeed("show t0").output.contains("a dry run: the rate stays at its base"));
    line.path.succeed("detach t0");
    let said = child.wait_with_output().unwrap().stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("t0: dry run: egress 20000kbit -> "), "{said}");
}

#[test]
fn detach_and_a_follower_in_the_foreground_take_the_same_queues_off() {
    let Some(line) = Line::with(HTB) else { return };
    let attach = format!("exec $S attach t0 --rate {AUTO} --probe {END} {HTB} --foreground");
    for _ in 0..8 {
        let (child, ..) = foreground(&line.path, &attach);
        line.path.succeed("detach t0");
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    line.path.refused("detach t0", 1, &["t0 is not attached"]);
}

#[test]
fn without_answers_it_is_blind_and_at_its_base_until_some_come() {
    let Some(line) = Line::new() else { return };
    let ignores = |on| format!("echo {on} > /proc/sys/net/ipv4/icmp_echo_ignore_all");
    sh(&line.end, &ignores(1));
    // A firewall that refuses, and a host that is silent.
    sh(&line.path.here, "ip route add prohibit 192.0.2.1");
    for probe in ["192.0.2.1", END] {
        let attach = format!(
            "exec $S attach t0 --rate {AUTO} --probe {probe} --engine userspace --foreground"
        );
        let (child, ..) = foreground(&line.path, &attach);
        let auto = || line.status(Way::Up)["auto"].take();
        // With one direction the answers to the traffic do not pass here.
        line.under_load(Way::Up, || {
            let sent = || line.status(Way::Up)["handed_on"]["packets"].as_u64().unwrap();
            wait_for("traffic passes", || sent() > 500);
            assert_eq!((auto()["blind"].take(), rate(&line.status(Way::Up))), (true.into(), BASE));
            assert_eq!(auto()["decisions"].as_array().unwrap().len(), 0, "{}", auto());
            if probe == END {
                sh(&line.end, &ignores(0));
                wait_for("it sees", || auto()["blind"] == false);
                sh(&line.end, &ignores(1));
                wait_for("it is blind again", || auto()["blind"] == true);
                assert_eq!(rate(&line.status(Way::Up)), BASE);
            }
        });
        line.path.succeed("detach t0");
        let said = child.wait_with_output().unwrap().stderr;
        let said = String::from_utf8_lossy(&said);
        let blind = format!("t0: no probe to {probe} is answered: at the base rate, blind");
        let times = said.matches(&blind).count();
        assert_eq!(times, if probe == END { 2 } else { 1 }, "{said}");
        let sees = format!("t0: {probe} answers: the rate follows the link");
        assert_eq!(said.contains(&sees), probe == END, "{said}");
    }
}

/// The link-local address of a device, once the kernel lets it be used.
fn link_local(namespace: &Namespace, device: &str) -> String {
    let script = format!("ip -o -6 address show dev {device} scope link -tentative");
    let find = || {
        let output = namespace.run(|| Command::new("sh").args(["-c", &script]).output().unwrap());
        let text = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
        let address = text.split_whitespace().skip_while(|word| *word != "inet6").nth(1)?;
        Some(address.split('/').next()?.to_owned())
    };
    wait_for("an address that can be used", || find().is_some());
    find().unwrap()
}

#[test]
fn probes_go_by_ipv6_as_well() {
    let Some(line) = Line::new() else { return };
    sh(&line.end, "ip address add fd00:9::3/64 dev e0 nodad");
    sh(&line.path.here, "ip address add fd00:9::1/64 dev t0 nodad");
    let near = link_local(&line.end, "e0");
    link_local(&line.path.here, "t0");
    // Any machine is fast enough for a rate that falls, an emulated one as well.
    line.carries(5);
    for probe in ["fd00:9::3".to_owned(), near.clone(), format!("{near}%t0")] {
        let attach = format!("attach t0 --rate {AUTO} --ingress {AUTO} --probe {probe} --replace");
        line.path.succeed(&attach);
        wait_for("probes are answered", || line.status(Way::Down)["auto"]["blind"] == false);
        line.under_load(Way::Up, || {
            wait_for("the rate falls", || rate(&line.status(Way::Up)) < 10_000_000);
        });
    }
}

#[test]
fn it_goes_by_what_is_there_if_no_probe_is_named() {
    let Some(line) = Line::new() else { return };
    let directory = tempfile::tempdir().unwrap();
    let resolvers = directory.path().join("resolv.conf");
    // No other file of this machine is to be read.
    let attach = |words: &str| {
        let script = format!(
            "mount --bind {} /etc/resolv.conf && \
             {{ test ! -d /run/systemd/resolve || mount -t tmpfs none /run/systemd/resolve; }} && \
             exec $S attach t0 --rate {AUTO} --engine userspace --replace{words}",
            resolvers.display()
        );
        line.path.run(
            Command::new("unshare")
                .args(["--mount", "sh", "-c", &script])
                .env("S", crate::path::SHORTLANE),
        )
    };
    let probe = || line.status(Way::Up)["auto"]["probe"].take();
    let chosen = |address: &str, why: &str| {
        let said = attach("");
        assert_eq!(said.status, Some(0), "{}", said.words);
        let line = format!("t0: probes go to {address}, the {why}");
        assert!(said.words.contains(&line), "{}", said.words);
        assert_eq!(probe(), address);
    };
    let near = link_local(&line.end, "e0");
    link_local(&line.path.here, "t0");
    // A resolver that is a neighbour says no more than the gateway, and one elsewhere nothing.
    std::fs::write(
        &resolvers,
        format!("nameserver 127.0.0.1\nnameserver {END}\nnameserver 192.0.2.53\n"),
    )
    .unwrap();
    let said = attach("");
    assert_eq!(said.status, Some(2), "{}", said.words);
    assert!(said.words.contains("no default gateway"), "{}", said.words);
    sh(&line.path.here, &format!("ip -6 route add default via {near} dev t0"));
    chosen(&near, "default gateway");
    wait_for("it answers", || line.status(Way::Up)["auto"]["blind"] == false);
    sh(&line.path.here, &format!("ip route add default via {END} dev t0"));
    chosen("192.0.2.53", "resolver of /etc/resolv.conf");
    sh(&line.path.here, "ip route add 192.0.2.0/24 dev lo");
    chosen(END, "default gateway");
    wait_for("it answers", || line.status(Way::Up)["auto"]["blind"] == false);
    // Whoever is named is asked.
    assert_eq!(attach(" --probe 192.0.2.7").status, Some(0));
    assert_eq!(probe(), "192.0.2.7");
}

#[test]
fn what_cannot_follow_is_refused() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    path.refused(
        &format!("attach t0 --rate {AUTO} --probe {END} --join 1:10,1:20"),
        2,
        &["--join", "--queues"],
    );
    path.refused(
        &format!("attach t0 --rate {AUTO}"),
        2,
        &["no default gateway", "--probe ADDRESS"],
    );
    for option in ["--probe 192.0.2.1", "--dry-run"] {
        let words = ["auto:FLOOR..BASE", option.split(' ').next().unwrap()];
        path.refused(&format!("attach t0 --rate 9mbit {option}"), 2, &words);
    }
    let elsewhere = format!("attach t0 --rate {AUTO} --probe fe80::1%lo");
    path.refused(&elsewhere, 2, &["not beyond t0"]);
    for bounds in ["auto", "auto:20mbit", "auto:5mbit..100mbit", "auto:9mbit..5mbit..20mbit"] {
        let attach = format!("attach t0 --rate {bounds} --probe {END}");
        path.refused(&attach, 2, &["three rates that rise", "auto:5mbit..20mbit..100mbit"]);
    }
    assert_eq!(path.state(), before);
}
