//! `metrics`, `top`, `man` and `completions` as processes: what they refuse, and a real scrape.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::{fs, thread, time};

const SHORTLANE: &str = env!("CARGO_BIN_EXE_shortlane");

fn said(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(SHORTLANE).args(arguments).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn is_refused(arguments: &[&str], status: i32, words: &[&str]) {
    let (code, _, text) = said(arguments);
    assert_eq!(code, Some(status), "{arguments:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?}: no '{word}' in: {text}");
    }
}

#[test]
fn metrics_listen_on_the_loopback_only_unless_told_otherwise() {
    for open in ["0.0.0.0:9750", "192.0.2.1:9750", "[::]:9750", "[2001:db8::1]:80"] {
        let words = [open, "not a loopback address", "--non-loopback"];
        is_refused(&["metrics", "--listen", open], 2, &words);
    }
    is_refused(&["metrics", "--listen", "9750"], 2, &["9750", "127.0.0.1:9750"]);
}

#[test]
fn a_port_that_is_taken_is_said_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    is_refused(&["metrics", "--listen", &address], 1, &[&address, "the port is in use"]);
}

/// A server, which ends with this.
struct Server(Child, SocketAddr);

impl Server {
    fn start() -> Self {
        let mut child = Command::new(SHORTLANE)
            .args(["metrics", "--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let said = child.stderr.take().expect("it is piped");
        BufReader::new(said).read_line(&mut line).expect("it tells its address");
        let address = line.trim().strip_prefix("metrics: http://");
        let address = address.and_then(|rest| rest.strip_suffix("/metrics"));
        let address = address.and_then(|address| address.parse().ok());
        Self(child, address.unwrap_or_else(|| panic!("no address in: {line}")))
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.1).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers with text");
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_scrape_by_http() {
    let server = Server::start();
    let get = |path: &str| {
        server.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    };
    let scrape = get("/metrics");
    // Whoever may not look is told so; nothing else can go wrong here.
    if scrape.starts_with("HTTP/1.1 503 ") {
        assert!(scrape.contains("needs") || scrape.contains("without the kernel"), "{scrape}");
    } else {
        assert!(scrape.starts_with("HTTP/1.1 200 "), "{scrape}");
        assert!(scrape.contains("application/openmetrics-text; version=1.0.0"), "{scrape}");
        assert!(scrape.contains("# TYPE shortlane_sojourn_seconds histogram"), "{scrape}");
        assert!(scrape.ends_with("# EOF\n"), "{scrape}");
    }
    assert!(get("/").contains("/metrics has what is attached"));
    assert!(get("/x").starts_with("HTTP/1.1 404 "));
    let post = "POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert!(server.ask(post).starts_with("HTTP/1.1 405 "));
    let rebound = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert!(server.ask(rebound).starts_with("HTTP/1.1 403 "));
    assert!(server.ask("nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // It goes on after that.
    assert!(get("/").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_signal_ends_the_server_well() {
    let mut server = Server::start();
    let pid = nix::unistd::Pid::from_raw(server.0.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it runs");
    for _ in 0..500 {
        if let Some(status) = server.0.try_wait().expect("it is ours") {
            assert_eq!(status.code(), Some(0));
            return;
        }
        thread::sleep(time::Duration::from_millis(20));
    }
    panic!("it goes on after SIGTERM");
}

#[test]
fn top_says_what_is_not_there() {
    is_refused(&["top", "no-such-device"], 2, &["'no-such-device'"]);
    is_refused(&["top", "lo", "--interval", "1ms"], 2, &["1ms", "from 50ms on"]);
    is_refused(&["top", "no-such-device", "--web"], 2, &["'no-such-device'"]);
    is_refused(&["top", "--web", "eth0"], 2, &["eth0", "127.0.0.1:9751", "stands before"]);
    is_refused(&["top", "lo", "--web", "--interval", "100ms"], 2, &["--web", "from 250ms on"]);
    is_refused(&["top", "lo", "--web", "--once"], 2, &["--web", "--once"]);
}

#[test]
fn each_command_has_a_man_page_and_every_shell_completions() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("new/man");
    let path = path.to_str().expect("text");
    let (status, _, text) = said(&["man", path]);
    assert_eq!(status, Some(0), "{text}");
    for page in ["shortlane", "shortlane-attach", "shortlane-top", "shortlane-metrics"] {
        let text = fs::read_to_string(format!("{path}/{page}.1")).expect("there is such a page");
        assert!(text.contains(".TH"), "{page}: {text}");
    }
    let attach = fs::read_to_string(format!("{path}/shortlane-attach.1")).expect("a page");
    assert!(attach.contains("overhead") && attach.contains("docsis"), "{attach}");
    assert!(!fs::exists(format!("{path}/shortlane-lab-agent.1")).expect("it can be looked for"));
    for shell in ["bash", "zsh", "fish"] {
        let (status, script, _) = said(&["completions", shell]);
        assert_eq!(status, Some(0));
        assert!(script.contains("shortlane") && script.contains("overhead"), "{shell}");
    }
    is_refused(&["completions", "tcsh"], 2, &["tcsh", "bash", "zsh", "fish"]);
    is_refused(&["man", "/dev/null/x"], 1, &["/dev/null/x"]);
}
