//! A device here whose peer is in another namespace, and commands on it.

use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use netdev::link::{Home, Links};
use netdev::netns::Namespace;
use nix::unistd::geteuid;

pub(super) const SHORTLANE: &str = env!("CARGO_BIN_EXE_shortlane");
pub(super) const HERE: &str = "10.9.0.1";
pub(super) const FAR: &str = "10.9.0.2";
/// How long anything may take that is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// `t0` here, its peer in another namespace.
pub(super) struct Path {
    pub(super) here: Namespace,
    pub(super) far: Namespace,
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) status: Option<i32>,
    pub(super) output: String,
    pub(super) words: String,
}

impl Path {
    pub(super) fn new() -> Option<Self> {
        if !geteuid().is_root() {
            eprintln!("SKIPPED, nothing was tested: not root");
            return None;
        }
        let (here, far) = match (Namespace::new(), Namespace::new()) {
            (Ok(here), Ok(far)) => (here, far),
            _ => {
                eprintln!("SKIPPED, nothing was tested: no namespaces");
                return None;
            }
        };
        let path = Self { here, far };
        path.here
            .run(|| {
                let mut links = Links::open().unwrap();
                links.set_up("lo").unwrap();
                links.add_veth("t0", "t1", Home::Namespace(&path.far)).unwrap();
                links.set_up("t0").unwrap();
                links.add_address("t0", HERE.parse().unwrap(), 24).unwrap();
            })
            .unwrap();
        path.far
            .run(|| {
                let mut links = Links::open().unwrap();
                links.set_up("t1").unwrap();
                links.add_address("t1", FAR.parse().unwrap(), 24).unwrap();
            })
            .unwrap();
        let tried = path.shortlane("attach t0 --rate 10mbit --engine userspace");
        if tried.status != Some(0) && tried.words.contains("needs") {
            eprintln!("SKIPPED, nothing was tested: {}", tried.words);
            return None;
        }
        assert_eq!(tried.status, Some(0), "{}", tried.words);
        path.succeed("detach t0");
        Some(path)
    }

    pub(super) fn run(&self, command: &mut Command) -> Said {
        let output = self.here.run(|| command.output().unwrap()).unwrap();
        Said {
            status: output.status.code(),
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            words: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }
    }

    pub(super) fn shortlane(&self, arguments: &str) -> Said {
        self.run(Command::new(SHORTLANE).args(arguments.split(' ')))
    }

    pub(super) fn shell(&self, script: &str) -> Said {
        self.run(Command::new("sh").args(["-c", script]).env("S", SHORTLANE))
    }

    pub(super) fn succeed(&self, arguments: &str) -> Said {
        let said = self.shortlane(arguments);
        assert_eq!(said.status, Some(0), "{arguments}: {}", said.words);
        said
    }

    /// Devices, offloads, qdiscs and filters here, as `ip`, `ethtool` and `tc` show them.
    pub(super) fn state(&self) -> String {
        let script = "ip -d link; ethtool -k t0; tc qdisc; tc filter show dev t0 ingress; \
                      tc filter show dev t0 egress; \
                      ls /run/shortlane | grep \"^$(stat -Lc %i /proc/self/ns/net)-\"";
        self.shell(script).output
    }

    /// It must become so; the kernel frees some things late.
    pub(super) fn must_be_as_before(&self, before: &str) {
        wait_for("everything is as it was", || self.state() == before);
    }

    /// Whether a datagram gets there.
    pub(super) fn reaches(&self) -> bool {
        let sink = self.far.run(|| UdpSocket::bind((FAR, 0)).unwrap()).unwrap();
        sink.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let source = self.here.run(|| UdpSocket::bind((HERE, 0)).unwrap()).unwrap();
        source.send_to(b"there?", sink.local_addr().unwrap()).unwrap();
        sink.recv(&mut [0; 10]).is_ok()
    }
}

/// No engine outlives its test.
impl Drop for Path {
    fn drop(&mut self) {
        let _ = self.here.run(|| {
            let _ = Command::new(SHORTLANE).args(["detach", "t0"]).output();
        });
    }
}

pub(super) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(20));
    }
}
