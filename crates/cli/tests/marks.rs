//! Marks as an operator has them: in front of an htb made for them and of one that is there, with
//! real TCP, shown, changed, broken by others, killed, detached.
//!
//! This takes root, since no user namespace may load BPF programs; without it each test says that
//! it was skipped. CAKE and the others, which not every kernel has, are tested in guests.
#![cfg(feature = "kernel")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::thread;

use netdev::link::{Home, Links};
use netdev::netns::Namespace;
use nix::unistd::geteuid;
use serde_json::Value;

const SHORTLANE: &str = env!("CARGO_BIN_EXE_shortlane");
const HERE: &str = "10.9.0.1";
const FAR: &str = "10.9.0.2";
const JOIN: &str = "tc qdisc add dev t0 root handle 1: htb default 10 &&
    tc class add dev t0 parent 1: classid 1:1 htb rate 100mbit &&
    tc class add dev t0 parent 1:1 classid 1:10 htb rate 90mbit ceil 100mbit &&
    tc class add dev t0 parent 1:1 classid 1:20 htb rate 10mbit ceil 100mbit prio 1";

/// `t0` here, its peer in another namespace.
struct Path {
    here: Namespace,
    far: Namespace,
    /// A process there, so that the namespace counts as one in use.
    inhabitant: Child,
}

#[derive(Debug)]
struct Said {
    status: Option<i32>,
    output: String,
    words: String,
}

impl Path {
    fn new() -> Option<Self> {
        if !geteuid().is_root() {
            eprintln!("SKIPPED, nothing was tested: not root");
            return None;
        }
        let (Ok(here), Ok(far)) = (Namespace::new(), Namespace::new()) else {
            eprintln!("SKIPPED, nothing was tested: no namespaces");
            return None;
        };
        let sleep = || Command::new("sleep").arg("600").spawn().unwrap();
        let inhabitant = here.run(sleep).unwrap();
        let path = Self { here, far, inhabitant };
        let end = |name: &str, address: &str| {
            let mut links = Links::open().unwrap();
            links.set_up(name).unwrap();
            links.add_address(name, address.parse().unwrap(), 24).unwrap();
        };
        path.here
            .run(|| {
                let mut links = Links::open().unwrap();
                links.add_veth("t0", "t1", Home::Namespace(&path.far)).unwrap();
                end("t0", HERE);
            })
            .unwrap();
        path.far.run(|| end("t1", FAR)).unwrap();
        let tried = path.shell(&format!("{JOIN} && tc qdisc del dev t0 root"));
        if tried.status != Some(0) {
            eprintln!("SKIPPED, nothing was tested: {}", tried.words);
            return None;
        }
        Some(path)
    }

    fn run(&self, command: &mut Command) -> Said {
        let output = self.here.run(|| command.output().unwrap()).unwrap();
        Said {
            status: output.status.code(),
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            words: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }
    }

    fn shortlane(&self, arguments: &str) -> Said {
        self.run(Command::new(SHORTLANE).args(arguments.split(' ')))
    }

    fn shell(&self, script: &str) -> Said {
        self.run(Command::new("sh").args(["-c", script]))
    }

    fn succeed(&self, arguments: &str) -> Said {
        let said = self.shortlane(arguments);
        assert_eq!(said.status, Some(0), "{arguments}: {}", said.words);
        said
    }

    fn tc(&self, arguments: &str) -> String {
        let said = self.shell(&format!("tc {arguments}"));
        assert_eq!(said.status, Some(0), "tc {arguments}: {}", said.words);
        said.output
    }

    /// It must be refused in one line with these words.
    fn refused(&self, arguments: &str, status: i32, words: &[&str]) {
        let said = self.shortlane(arguments);
        assert_eq!(said.status, Some(status), "{arguments}: {}", said.words);
        assert_eq!(said.words.lines().count(), 1, "{arguments}: {}", said.words);
        for word in words {
            assert!(said.words.contains(word), "{arguments}: no '{word}' in: {}", said.words);
        }
    }

    /// What `tc` and `ip` show of everything that attaching may touch, but for the carrier, which a
    /// new veth gets a moment later.
    fn state(&self) -> String {
        let show = "tc qdisc show; tc class show dev t0; tc filter show dev t0 egress;
            tc filter show dev t0 ingress; ip -o link | sed 's/ state .*//; s/NO-CARRIER,//';
            ls /run/shortlane | grep \"^$(stat -Lc %i /proc/self/ns/net)-\"";
        self.shell(show).output
    }

    fn status(&self) -> Vec<Value> {
        let document: Value = serde_json::from_str(&self.succeed("show --json").output).unwrap();
        document["attached"].as_array().unwrap().clone()
    }

    /// One direction of it, as the engine tells.
    fn only(&self) -> Value {
        let mut all = self.status();
        assert_eq!(all.len(), 1, "{all:#?}");
        all.remove(0)
    }

    fn faults(&self) -> String {
        let said = self.shortlane("doctor t0 --json");
        let document: Value = serde_json::from_str(&said.output).unwrap();
        let findings = document["findings"].as_array().unwrap().iter();
        let of_marks = findings.filter(|f| f["check"] == "marks" && f["result"] == "problem");
        of_marks.map(|finding| finding["found"].as_str().unwrap().to_owned()).collect()
    }

    /// Sends this much over one connection, and waits until all of it is there.
    fn transfer(&self, bytes: usize) {
        let listener = self.far.run(|| TcpListener::bind((FAR, 0)).unwrap()).unwrap();
        let to = listener.local_addr().unwrap();
        let reader = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all.len()
        });
        let mut stream = self.here.run(|| TcpStream::connect(to).unwrap()).unwrap();
        stream.write_all(&vec![7; bytes]).unwrap();
        drop(stream);
        assert_eq!(reader.join().unwrap(), bytes);
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        let _ = self.inhabitant.kill();
        let _ = self.inhabitant.wait();
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn lane(status: &Value, lane: usize, key: &str) -> u64 {
    number(&status["lanes"][lane][key])
}

#[test]
fn a_long_transfer_goes_to_the_long_class_and_detach_leaves_nothing() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    path.succeed("attach t0 --rate 50mbit --engine marks --queues htb");
    let status = path.only();
    assert_eq!(status["engine"], "marks");
    assert_eq!(number(&status["rate_bps"]), 50_000_000);
    // 88 ms of the rate.
    assert_eq!(status["scheduler"], "marks:queues=htb,threshold=550000bytes");
    path.transfer(100_000);
    let short = path.only();
    assert_eq!((lane(&short, 1, "sent_packets"), number(&short["demoted"])), (0, 0));
    assert!(lane(&short, 0, "sent_bytes") > 100_000);
    path.transfer(3_000_000);
    let long = path.only();
    assert_eq!(number(&long["demoted"]), 1);
    let bytes = lane(&long, 1, "sent_bytes");
    assert!((2_300_000..3_500_000).contains(&bytes), "{bytes} bytes in the long class");
    assert!(number(&long["flows"]) >= 2 && number(&long["flows_created"]) >= 2);
    assert!(path.succeed("show t0").output.contains("t0: marks, rate 50mbit"));
    let top = path.succeed("top t0 --once").output;
    assert!(top.contains("marks") && top.contains("50mbit"), "{top}");
    let metrics = path.succeed("metrics --once").output;
    let of_long = |line: &&str| {
        line.starts_with("shortlane_sent_bytes_total{") && line.contains("lane=\"1\"")
    };
    let sent: Vec<u64> = metrics
        .lines()
        .filter(of_long)
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    // The last acknowledgement may leave between two of the readings.
    let later = lane(&path.only(), 1, "sent_bytes");
    assert!(sent.len() == 1 && (bytes..=later).contains(&sent[0]), "{bytes}, {sent:?}, {later}");
    assert_eq!(path.faults(), "");
    path.refused("attach t0 --rate 1mbit --engine marks --queues htb", 1, &["already", "change"]);
    path.refused("attach t0 --rate 1mbit --engine userspace", 1, &["marks in front of htb"]);
    path.refused("change t0 --scheduler efd", 2, &["take no --scheduler"]);
    path.refused("change t0 --rate unlimited", 2, &["take a rate"]);
    path.succeed("change t0 --rate 20mbit --overhead 18");
    assert!(path.tc("class show dev t0").contains("rate 1250Kbit overhead 18 ceil 20Mbit"));
    let changed = path.only();
    assert_eq!(changed["scheduler"], "marks:queues=htb,threshold=220000bytes");
    assert_eq!(number(&changed["demoted"]), 1, "what was counted stays");
    path.succeed("detach t0");
    assert_eq!(path.state(), before);
}

#[test]
fn both_directions_come_and_go() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    let tried =
        path.shortlane("attach t0 --ingress 40mbit --rate 50mbit --engine marks --queues htb");
    if tried.words.contains("sl-in-") && tried.status != Some(0) {
        return eprintln!("SKIPPED, nothing was tested: {}", tried.words);
    }
    assert_eq!(tried.status, Some(0), "{}", tried.words);
    path.transfer(200_000);
    let both = path.status();
    let directions: Vec<&Value> = both.iter().map(|status| &status["direction"]).collect();
    assert_eq!(directions, ["egress", "ingress"]);
    assert!(both.iter().all(|status| lane(status, 0, "sent_packets") > 10), "{both:#?}");
    path.succeed("change t0 --ingress 30mbit");
    let rates: Vec<u64> = path.status().iter().map(|status| number(&status["rate_bps"])).collect();
    assert_eq!(rates, [50_000_000, 30_000_000]);
    path.succeed("detach t0");
    assert_eq!(path.state(), before);
}

#[test]
fn queues_that_are_there_are_joined_and_stay() {
    let Some(path) = Path::new() else { return };
    path.refused("attach t0 --rate 50mbit --join 1:10,1:20", 1, &["nothing to join"]);
    let made = path.shell(JOIN);
    assert_eq!(made.status, Some(0), "{}", made.words);
    // Somebody's own filter, and a clsact for it.
    path.tc("qdisc add dev t0 clsact");
    path.tc("filter add dev t0 egress prio 1 protocol ip u32 match u32 0 0 flowid 1:10");
    let before = path.state();
    path.refused("attach t0 --rate 50mbit --queues htb", 1, &["htb 1:", "--replace"]);
    path.refused("attach t0 --rate 50mbit --join cake", 1, &["htb 1:", "--join SHORT,LONG"]);
    path.refused("attach t0 --rate 50mbit --join 1:10,1:30", 1, &["no class 1:30", "1:20"]);
    path.refused("attach t0 --join 1:10,1:20", 1, &["does not tell its rate"]);
    path.refused("attach t0 --rate 50mbit --join 1:10", 2, &["two classes"]);
    assert_eq!(path.state(), before);
    path.tc("filter del dev t0 egress");
    path.tc("filter add dev t0 egress prio 9 protocol ip u32 match u32 0 0 flowid 1:10");
    let before = path.state();
    path.succeed("attach t0 --rate 50mbit --join 1:10,1:20");
    path.transfer(3_000_000);
    let status = path.only();
    assert_eq!(status["scheduler"], "marks:joined=htb,threshold=550000bytes");
    assert!(lane(&status, 1, "sent_bytes") > 2_300_000, "{status:#}");
    assert!(lane(&status, 0, "sent_bytes") > 300_000, "{status:#}");
    path.refused("change t0 --overhead 18", 1, &["somebody's", "tc changes"]);
    path.succeed("change t0 --rate 40mbit");
    assert_eq!(path.faults(), "");
    // What is somebody's, overhead and burst, is not wanted to be another.
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("shortlane.toml");
    let apply = |rate: &str| {
        fs::write(&file, format!("[t0]\nrate = \"{rate}\"\njoin = \"1:10,1:20\"\n")).unwrap();
        path.succeed(&format!("apply {}", file.display())).output
    };
    assert_eq!(apply("40mbit"), "t0: as it is\n");
    assert_eq!(apply("50mbit"), "t0: change: send at 50mbit instead of 40mbit\n");
    assert_eq!(number(&path.only()["rate_bps"]), 50_000_000);
    path.succeed("detach t0");
    assert_eq!(path.state(), before);
}

#[test]
fn traffic_passes_and_detach_cleans_up_whatever_is_broken() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    let attach = "attach t0 --rate 50mbit --engine marks --queues htb";
    // The program is removed.
    path.succeed(attach);
    path.tc("filter del dev t0 egress");
    path.transfer(1_000_000);
    assert!(path.faults().contains("the program is gone"), "{}", path.faults());
    assert_eq!(lane(&path.only(), 1, "sent_packets"), 0, "unmarked packets are short");
    path.succeed("detach t0");
    // Another qdisc takes the place: its classes are not those that marks name.
    path.succeed(attach);
    let other = JOIN.replace("qdisc add", "qdisc replace");
    assert_eq!(path.shell(&other).status, Some(0));
    path.transfer(1_000_000);
    assert!(path.faults().contains("no longer htb"), "{}", path.faults());
    let packets = |class: &str| path.tc(&format!("-s class show dev t0 classid {class}"));
    assert!(packets("1:20").contains("Sent 0 bytes"), "{}", packets("1:20"));
    path.succeed("detach t0");
    assert!(path.state().contains("htb 1:"), "what somebody has put there stays");
    assert!(!path.state().contains("clsact"));
    path.tc("qdisc del dev t0 root");
    assert_eq!(path.state(), before);
    // The queues are removed.
    path.succeed(attach);
    path.tc("qdisc del dev t0 root");
    path.transfer(1_000_000);
    path.succeed("detach t0");
    assert_eq!(path.state(), before);
}

#[test]
fn a_command_that_is_killed_leaves_nothing_for_good() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    let attach = "attach t0 --rate 50mbit --engine marks --queues htb";
    let mut attached = 0;
    for step in 0..24 {
        let kill = format!("timeout -s KILL 0.0{:02} {SHORTLANE} {attach}", step * 4);
        attached += u32::from(path.shell(&kill).status == Some(0));
        let detached = path.shortlane("detach t0");
        let said = &detached.words;
        assert!(detached.status == Some(0) || said.contains("not attached"), "{said}");
        assert_eq!(path.state(), before, "killed after {} ms", step * 4);
    }
    eprintln!("{attached} of 24 were attached before they were killed");
}
