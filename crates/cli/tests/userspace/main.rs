//! The userspace engine as an operator has it: attached to a veth with real TCP and UDP on both
//! sides, shown, changed, killed, stopped, detached.
//!
//! This takes root, since no user namespace may load BPF programs; without it each test says that
//! it was skipped.
#![cfg(feature = "kernel")]

mod apply;
mod auto;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod killed;
mod path;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use engine::kernel::inspect::machine;
use netdev::link::Links;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use self::path::{FAR, PATIENCE, Path, SHORTLANE, wait_for};

impl Path {
    /// It must be refused in one line with these words.
    fn refused(&self, arguments: &str, status: i32, words: &[&str]) {
        let said = self.shortlane(arguments);
        assert_eq!(said.status, Some(status), "{arguments}: {}", said.words);
        assert_eq!(said.words.lines().count(), 1, "{arguments}: {}", said.words);
        for word in words {
            assert!(said.words.contains(word), "{arguments}: no '{word}' in: {}", said.words);
        }
    }

    fn status(&self) -> Vec<Value> {
        let document: Value = serde_json::from_str(&self.succeed("show --json").output).unwrap();
        document["attached"].as_array().unwrap().clone()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.status()[0]["pid"].as_i64().unwrap() as i32)
    }

    /// Runs `job` while bytes flow over TCP from here; they must arrive as they were sent. Returns
    /// how many there were.
    fn under_load(&self, job: impl FnOnce(&AtomicU64) + Send) -> u64 {
        let listener = self.far.run(|| TcpListener::bind((FAR, 0)).unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut stream = self.here.run(|| TcpStream::connect(address).unwrap()).unwrap();
        let (over, received) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            let counted = &received;
            let sink = scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut buffer = [0; 1 << 16];
                let mut at = 0u64;
                loop {
                    let length = stream.read(&mut buffer).expect("bytes keep coming");
                    for byte in &buffer[..length] {
                        assert_eq!(*byte, pattern(at), "byte {at}");
                        at += 1;
                    }
                    counted.store(at, Ordering::Relaxed);
                    if length == 0 {
                        return at;
                    }
                }
            });
            let over = &over;
            let source = scope.spawn(move || {
                let mut at = 0u64;
                while !over.load(Ordering::Relaxed) {
                    let bytes: Vec<u8> = (at..at + 10_000).map(pattern).collect();
                    stream.write_all(&bytes).unwrap();
                    at += bytes.len() as u64;
                }
                at
            });
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(&received)));
            over.store(true, Ordering::Relaxed);
            let (sent, arrived) = (source.join().unwrap(), sink.join().unwrap());
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            assert_eq!(sent, arrived);
            arrived
        })
    }
}

fn pattern(at: u64) -> u8 {
    (at * at / 251 + at) as u8
}

/// Until so many more bytes have arrived.
fn flows_on(received: &AtomicU64, bytes: u64) {
    let until = received.load(Ordering::Relaxed) + bytes;
    wait_for("bytes flow", || received.load(Ordering::Relaxed) >= until);
}

#[test]
fn all_lanes_are_shown_before_packets_come() {
    let Some(path) = Path::new() else { return };
    path.succeed("attach t0 --rate 20mbit --engine userspace");
    let text = path.succeed("show t0").output;
    let head = text.lines().find(|line| line.trim_start().starts_with("new"));
    let names: Vec<&str> = head.unwrap_or_default().split_whitespace().collect();
    assert_eq!(names, ["new", "young", "old"], "{text}");
    assert!(!text.contains("became long"), "no lane is the long one: {text}");
    path.succeed("detach t0");
}

#[test]
fn it_is_attached_shown_changed_and_detached_under_load() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    let said = path.succeed(
        "attach t0 --rate 20mbit --ingress 40mbit --engine userspace --scheduler efd:limit=200packets",
    );
    assert!(said.words.contains("20mbit") && said.words.contains("40mbit"), "{}", said.words);
    path.under_load(|received| {
        flows_on(received, 1_000_000);
        let [egress, ingress] = &path.status()[..] else { panic!("two directions") };
        assert_eq!(egress["device"], "t0");
        assert_eq!(
            (&egress["direction"], &ingress["direction"]),
            (&"egress".into(), &"ingress".into())
        );
        assert_eq!(
            (&egress["rate_bps"], &ingress["rate_bps"]),
            (&20_000_000.into(), &40_000_000.into())
        );
        assert_eq!(
            (&egress["engine"], &egress["limit"]),
            (&"userspace".into(), &"200packets".into())
        );
        let flow = &egress["biggest_flows"][0];
        assert!(flow["flow"].as_str().unwrap().starts_with("10.9.0.1:"), "{flow}");
        // A sender that gets no processor lets the queue drain, and efd forgets the flow.
        let bytes = |what: &str| flow[what]["bytes"].as_u64().unwrap();
        assert!(bytes("arrived") >= bytes("sent") && bytes("arrived") > 1000, "{flow}");
        let sent = |status: &Value, what: &str| -> u64 {
            let lanes = status["lanes"].as_array().unwrap();
            lanes.iter().filter_map(|lane| lane[what].as_u64()).sum()
        };
        let packets = |status: &Value| sent(status, "sent_packets");
        assert!(packets(egress) > 600 && packets(ingress) > 100, "{egress}\n{ingress}");
        // By the engine's clock, since this test's may be late; 10 ms may be caught up with.
        let most = (egress["uptime_ns"].as_u64().unwrap() + 10_000_000) * 20 / 8 / 1000 + 1514;
        assert!(sent(egress, "sent_bytes") <= most, "more than {most} bytes: {egress}");

        for change in [
            "--rate 200mbit",
            "--ingress 100mbit",
            "--rate 30mbit --overhead 24",
            "--scheduler efd:limit=300packets",
            "--burst-time 3ms",
        ] {
            path.succeed(&format!("change t0 {change}"));
            flows_on(received, 200_000);
        }
        let now = path.status();
        assert_eq!(now[0]["rate_bps"], 30_000_000);
        assert_eq!(now[1]["rate_bps"], 100_000_000);
        assert_eq!(
            (&now[0]["overhead_bytes"], &now[0]["burst_ns"]),
            (&24.into(), &3_000_000.into())
        );
        assert_eq!(now[1]["limit"], "300packets");
        assert_eq!(now[0]["pid"], egress["pid"], "the same engine");

        let text = path.succeed("show").output;
        for part in ["t0: efd, rate 30mbit", "t0 ingress: efd, rate 100mbit", "short lane"] {
            assert!(text.contains(part), "no '{part}' in\n{text}");
        }
        let wide = text.lines().find(|line| line.chars().count() > 80);
        assert!(wide.is_none(), "more than 80 columns: {wide:?}");
        path.succeed("detach t0");
        flows_on(received, 1_000_000);
    });
    path.must_be_as_before(&before);
    path.refused("show t0", 1, &["t0 is not attached"]);
    path.refused("change t0 --rate 1mbit", 1, &["t0 is not attached"]);
    assert!(path.status().is_empty());
}

#[test]
fn a_killed_engine_leaves_nothing_and_the_next_one_works() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    for _ in 0..3 {
        path.succeed("attach t0 --rate 20mbit --ingress 20mbit --engine userspace");
        let engine = path.pid();
        path.under_load(|received| {
            flows_on(received, 300_000);
            kill(engine, Signal::SIGKILL).unwrap();
            flows_on(received, 1_000_000);
        });
        wait_for("the engine is gone", || path.status().is_empty());
        if !machine().tcx {
            // Filters, which let everything pass.
            let said = path.succeed("detach t0");
            assert!(said.words.contains("had left"), "{}", said.words);
        }
        path.must_be_as_before(&before);
    }
    path.succeed("attach t0 --rate 20mbit --engine userspace");
    path.succeed("detach t0");
    path.must_be_as_before(&before);
}

#[test]
fn traffic_passes_a_stopped_engine_and_detach_ends_it() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    path.succeed("attach t0 --rate 1mbit --engine userspace");
    let engine = path.pid();
    kill(engine, Signal::SIGSTOP).unwrap();
    wait_for("traffic passes", || path.reaches());
    let pid = engine.to_string();
    path.refused("show t0", 1, &[&pid, "does not answer", "detach"]);
    path.refused("change t0 --rate 2mbit", 1, &[&pid, "does not answer"]);
    path.refused("attach t0 --rate 2mbit", 1, &[&pid, "does not answer"]);
    let said = path.succeed("detach t0");
    assert!(said.words.contains("was killed"), "{}", said.words);
    path.must_be_as_before(&before);
    path.refused("detach t0", 1, &["t0 is not attached"]);
}

#[test]
fn without_memory_for_frames_nothing_is_attached() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    let attach = "attach t0 --rate 9mbit --engine userspace";
    let limited = || {
        let mut command = Command::new("prlimit");
        command.arg("--as=120000000").arg(SHORTLANE).args(attach.split(' '));
        command.output().expect("prlimit starts")
    };
    let output = path.here.run(limited).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("t0") && said.contains("memory for frames"), "{said}");
    path.must_be_as_before(&before);
}

#[test]
fn one_engine_a_device() {
    let Some(path) = Path::new() else { return };
    path.succeed("attach t0 --rate 20mbit --engine userspace");
    let first = path.pid();
    let words = [&format!("process {first}")[..], "shortlane change t0", "--replace"];
    for engine in ["userspace", "kernel", "auto"] {
        path.refused(&format!("attach t0 --rate 9mbit --engine {engine}"), 1, &words);
    }
    // What cannot take its place does not cost it.
    let unfit = "attach t0 --rate 9mbit --engine userspace --replace --scheduler srpt";
    path.refused(unfit, 2, &["srpt needs the size of a flow"]);
    assert_eq!(path.pid(), first);
    path.succeed("attach t0 --ingress 9mbit --engine userspace --replace --scheduler fq-codel");
    assert_ne!(path.pid(), first);
    let now = path.status();
    assert_eq!(now.len(), 1, "{now:?}");
    assert_eq!(
        (&now[0]["direction"], &now[0]["scheduler"]),
        (&"ingress".into(), &"fq-codel".into())
    );
    path.refused("change t0 --rate 9mbit", 2, &["egress is not attached", "--replace"]);
}

#[test]
fn what_cannot_be_attached_is_refused() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    let attach = |rest: &str| format!("attach {rest} --engine userspace");
    path.refused(&attach("t7 --rate 1mbit"), 2, &["'t7'", "there are lo, t0"]);
    path.refused(&attach("lo --rate 1mbit"), 2, &["loopback"]);
    path.refused(
        &attach("t0 --rate 1mbit --scheduler srpt"),
        2,
        &["srpt needs the size of a flow"],
    );
    path.refused(&attach("t0 --rate 1mbit --scheduler run2c-seq"), 2, &["byte offset"]);
    // Of root without capabilities.
    let caps = "setpriv --bounding-set=-all --inh-caps=-all $S attach t0 --rate 1mbit \
                --engine userspace";
    let said = path.shell(caps);
    assert_eq!(said.status, Some(1), "{}", said.words);
    for word in ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF"] {
        assert!(said.words.contains(word), "no {word}: {}", said.words);
    }
    assert_eq!(path.state(), before);
}

#[test]
fn the_least_capabilities_are_enough() {
    let Some(path) = Path::new() else { return };
    let least = "net_admin,+net_raw,+bpf";
    // By its path: a shell of busybox prefers a setpriv of its own.
    let as_somebody = format!(
        "/usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all,+{least} \
         --ambient-caps=-all,+{least} --bounding-set=-all,+{least}"
    );
    // Some machines keep /dev/net/tun for root, which is another matter than capabilities.
    let said = path.shell(&format!(
        "exec unshare --mount sh -ec 'mount -t tmpfs none /dev/net; \
         mknod -m 666 /dev/net/tun c 10 200; \
         {as_somebody} $S attach t0 --rate 5mbit --ingress 5mbit --engine userspace; \
         {as_somebody} $S show t0; {as_somebody} $S change t0 --rate 6mbit; \
         {as_somebody} $S detach t0'"
    ));
    assert_eq!(said.status, Some(0), "{}", said.words);
    assert!(said.output.contains("rate 5mbit"), "{}", said.output);
}

#[test]
fn a_configuration_file_has_the_options_as_keys() {
    let Some(path) = Path::new() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shortlane.toml");
    let with = |text: &str, arguments: &str| {
        std::fs::write(&file, text).unwrap();
        arguments.replace("FILE", file.to_str().unwrap())
    };
    let sound = "# the uplink\n[t0]\nrate = \"20mbit\"\nscheduler = \"efd:threshold=9packets\"\n\
                 engine = \"userspace\"\noverhead = 24\nreplace = false\nburst-time = \"2ms\"\n";
    path.succeed(&with(sound, "attach --config FILE"));
    let now = path.status();
    assert_eq!((&now[0]["rate_bps"], &now[0]["overhead_bytes"]), (&20_000_000.into(), &24.into()));
    assert_eq!(now[0]["scheduler"], "efd:threshold=9packets");
    path.succeed(&with(sound, "attach t0 --config FILE --replace --rate 7mbit"));
    let now = path.status();
    assert_eq!((&now[0]["rate_bps"], &now[0]["burst_ns"]), (&7_000_000.into(), &2_000_000.into()));
    path.succeed("detach t0");

    let line = |number: u32| format!("{}:{number}:", file.display());
    for (text, at, words) in [
        ("[t0]\nrate = \"1mbit\"\nlimit = 3\n", 3, ["no key 'limit'", "burst-time"]),
        ("[t0]\n\nrate = \"1m\"\n", 3, ["rate = \"1m\"", "unlimited"]),
        ("[t0]\nrate = 1\n", 2, ["rate = 1", "with its unit"]),
        ("[t0]\nrate = [1]\n", 2, ["rate = [1]", "in quotes"]),
        ("[t0]\nreplace = \"yes\"\n", 2, ["replace = \"yes\"", "true or false"]),
        ("[t0]\noverhead = 5000\n", 2, ["overhead = 5000", "from -64 to 1024"]),
        ("[t0]\nengine = \"gpu\"\n", 2, ["engine = \"gpu\"", "auto, kernel, marks, userspace"]),
        ("[t0]\nconfig = \"x\"\n", 2, ["no key 'config'", "rate"]),
        ("rate = \"1mbit\"\n", 1, ["'rate' is not a table", "[eth0]"]),
        ("[t0.5]\nrate = \"1mbit\"\n", 1, ["in quotes", "[\"t0.5\"]"]),
        ("[t0\n", 1, ["not TOML", ""]),
    ] {
        path.refused(&with(text, "attach --config FILE"), 2, &[&line(at), words[0], words[1]]);
    }
    path.refused(&with("[t1]\n", "attach t0 --config FILE"), 2, &["no table [t0]", "it has t1"]);
    path.refused("attach t0 --config /nonexistent", 2, &["/nonexistent", "No such file"]);
    assert!(path.status().is_empty());
}

/// A foreground engine that says when it works, as to systemd.
fn foreground(path: &Path, script: &str) -> (Child, UnixDatagram, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("notify");
    let heard = UnixDatagram::bind(&socket).unwrap();
    heard.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("S", SHORTLANE).env("NOTIFY_SOCKET", &socket);
    command.stderr(Stdio::piped());
    let child = path.here.run(|| command.spawn().unwrap()).unwrap();
    assert_eq!(hear(&heard), "READY=1");
    (child, heard, directory)
}

fn hear(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 100];
    let length = socket.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[test]
fn in_the_foreground_it_tells_systemd_and_ends_with_a_signal() {
    let Some(path) = Path::new() else { return };
    let before = path.state();
    let attach = "exec $S attach t0 --rate 5mbit --engine userspace --foreground";
    // Whatever becomes of its log: a full disk, a closed descriptor.
    for log in ["", " 2>/dev/full", " 2>&-", " 2>&- >&- <&-"] {
        let (mut child, heard, _directory) = foreground(&path, &format!("{attach}{log}"));
        assert_eq!(path.pid().as_raw() as u32, child.id());
        wait_for("traffic passes", || path.reaches());
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        assert_eq!(hear(&heard), "STOPPING=1");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{log}");
        path.must_be_as_before(&before);
    }
}

#[test]
fn a_renamed_device_keeps_its_engine_and_a_removed_one_ends_it() {
    let Some(path) = Path::new() else { return };
    let attach = "exec $S attach t0 --rate 5mbit --engine userspace --foreground";
    let (mut child, ..) = foreground(&path, attach);
    // Older kernels rename no device that is up.
    let rename = "ip link set t0 name uplink0 || \
                  { ip link set t0 down && ip link set t0 name uplink0 && ip link set uplink0 up; }";
    assert_eq!(path.shell(rename).status, Some(0));
    assert_eq!(path.status()[0]["device"], "uplink0");
    path.succeed("change uplink0 --rate 6mbit");
    assert_eq!(path.shell("ip link del uplink0").status, Some(0));
    let status = child.wait().unwrap().code();
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert_eq!(status, Some(1), "{words}");
    assert!(words.contains("removed"), "{words}");
    assert!(path.status().is_empty());
}

/// The findings of `doctor` about a check of `t0`, with its exit status.
fn doctor(path: &Path, check: &str) -> (Option<i32>, Vec<Value>) {
    let said = path.shortlane("doctor t0 --json");
    let document: Value = serde_json::from_str(&said.output).unwrap();
    let all = document["findings"].as_array().unwrap().clone();
    let about = |finding: &Value| finding["device"] == "t0" && finding["check"] == check;
    (said.status, all.into_iter().filter(about).collect())
}

fn is_problem(path: &Path, check: &str, words: &str) {
    let (status, found) = doctor(path, check);
    assert_eq!(status, Some(1), "{found:?}");
    let [found] = &found[..] else { panic!("{check}: {found:?}") };
    assert_eq!(found["result"], "problem", "{found}");
    assert!(found["found"].as_str().unwrap().contains(words), "{found}");
    assert!(!found["remedy"].as_str().unwrap().is_empty());
    let text = path.shortlane("doctor t0").output;
    assert!(text.contains(&format!("PROBLEM t0: {check}: ")), "{text}");
}

#[test]
fn doctor_finds_injected_faults() {
    let Some(path) = Path::new() else { return };
    let sound = |check: &str| {
        let (_, found) = doctor(&path, check);
        assert!(found.iter().all(|found| found["result"] == "ok"), "{found:?}");
    };
    for check in ["link", "rate", "redirect", "root qdisc", "filters", "XDP"] {
        sound(check);
    }
    // A veth says that it carries 10 Gbit/s.
    path.succeed("attach t0 --rate 20gbit --engine userspace");
    is_problem(&path, "rate", "egress at 20gbit is more than the link's 10gbit");
    path.succeed("change t0 --rate 1gbit");
    sound("rate");
    path.far.run(|| Links::open().unwrap().set_down("t1").unwrap()).unwrap();
    is_problem(&path, "link", "without a carrier");
    path.far.run(|| Links::open().unwrap().set_up("t1").unwrap()).unwrap();
    path.succeed("detach t0");

    // The kernel engine's ifb without its filter.
    let index = path.here.run(|| netdev::link::index_of("t0").unwrap()).unwrap();
    let ifb = path.shell(&format!("ip link add sl-in-{index} type ifb"));
    assert_eq!(ifb.status, Some(0), "{}", ifb.words);
    is_problem(&path, "redirect", "has been removed");
    path.shell(&format!("ip link del sl-in-{index}"));
    sound("redirect");

    path.shell("tc qdisc add dev t0 root handle 5: pfifo; tc qdisc add dev t0 clsact");
    path.shell("tc filter add dev t0 ingress protocol all u32 match u32 0 0 flowid 1:1");
    for (check, words) in [("root qdisc", "pfifo 5:"), ("filters", "ingress: u32")] {
        let (_, found) = doctor(&path, check);
        assert_eq!(found[0]["result"], "note", "{found:?}");
        assert!(found[0]["found"].as_str().unwrap().contains(words), "{found:?}");
    }
    path.refused("doctor t7", 2, &["'t7'"]);
}
