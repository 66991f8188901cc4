//! The server of the page, asked by hand: what it gives to whom, and what it bears.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use engine::status::{Auto, Decided, Heading, Status};
use sched::Rate;
use serde_json::Value;
use tokio::sync::oneshot;

use super::answer::has_token;
use super::server::{LIMITS, PAGES, Site, answered, watch_device};
use super::{LEAST_INTERVAL, address, page};
use crate::Failure;
use crate::http::{Limits, names_loopback};
use crate::top::draw::tests::status;

const OWN: &str = "Host: 127.0.0.1:9751\r\n";

/// A server in a thread of its own, which ends with this.
struct Served(SocketAddr, Option<oneshot::Sender<()>>, Option<JoinHandle<()>>);

impl Served {
    /// Looks every millisecond.
    fn start<L>(token: Option<&str>, limits: Limits, look: L) -> Self
    where
        L: Fn() -> Result<Vec<Status>, Failure> + Send + Sync + 'static,
    {
        let token = token.map(str::to_owned);
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let site = Arc::new(Site::new("eth0", LEAST_INTERVAL, token));
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let first = vec![status(1, Heading::Egress)];
                tokio::select! {
                    ended = answered(listener, limits, &site) => panic!("{ended:?}"),
                    _ = watch_device(&site, Duration::from_millis(1), first, look) => {}
                    _ = stopped => {}
                }
            });
        });
        Self(told.recv().unwrap(), Some(stop), Some(thread))
    }

    /// A device on which a second passes between two looks.
    fn usual(token: Option<&str>) -> Self {
        Self::start(token, LIMITS, second_by_second())
    }

    fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.0).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn ask(&self, path: &str, headers: &str) -> String {
        let mut answer = String::new();
        let mut stream = self.send(&format!("GET {path} HTTP/1.1\r\n{headers}\r\n"));
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn stream(&self) -> Events {
        let mut events =
            Events(BufReader::new(self.send(&format!("GET /stream HTTP/1.1\r\n{OWN}\r\n"))));
        assert!(events.line().starts_with("HTTP/1.1 200 "));
        events
    }

    /// Whether one more page is let in; it is gone again at once.
    fn has_room(&self) -> bool {
        let mut events =
            Events(BufReader::new(self.send(&format!("GET /stream HTTP/1.1\r\n{OWN}\r\n"))));
        let line = events.line();
        assert!(line.contains(" 200 ") || line.contains(" 503 "), "{line}");
        line.contains(" 200 ")
    }

    fn wait_for_room(&self) {
        let has_room = (0..1500).any(|_| {
            thread::sleep(Duration::from_millis(20));
            self.has_room()
        });
        assert!(has_room, "nobody was let go");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.1.take());
        let ended = self.2.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

fn second_by_second() -> impl Fn() -> Result<Vec<Status>, Failure> {
    let seconds = AtomicU64::new(1);
    move || Ok(vec![status(seconds.fetch_add(1, Ordering::Relaxed) + 1, Heading::Egress)])
}

/// What a page reads.
struct Events(BufReader<TcpStream>);

impl Events {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the stream has ended");
        line.trim_end().to_owned()
    }

    /// The next event of this name, over the bounds of chunks, which are lines of their own.
    fn next(&mut self, name: &str) -> Value {
        while self.line() != format!("event: {name}") {}
        serde_json::from_str(self.line().strip_prefix("data: ").unwrap()).unwrap()
    }
}

#[test]
fn addresses_are_read_with_and_without_a_port() {
    for (text, at) in [
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("192.0.2.1", "192.0.2.1:9751"),
        ("::1", "[::1]:9751"),
        ("[::1]", "[::1]:9751"),
        ("[::]:1", "[::]:1"),
    ] {
        assert_eq!(address(text), Ok(at.parse().unwrap()), "{text}");
    }
    for text in ["eth0", "", "127.0.0.1:", "127.0.0.1:65536", "localhost", ":9751"] {
        assert!(address(text).unwrap_err().contains("127.0.0.1:9751"), "{text}");
    }
}

#[test]
fn only_names_of_the_loopback_are_of_this_machine() {
    for host in [
        "127.0.0.1",
        "127.0.0.1:9751",
        "localhost:1",
        "LocalHost",
        "[::1]:9751",
        "[::1]",
        "127.1.2.3",
    ] {
        assert!(names_loopback(host), "{host}");
    }
    for host in [
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:9751",
        "192.0.2.1",
        "[::1",
        "[2001:db8::1]:9751",
        "127.0.0.1@evil.example",
        "2130706433",
    ] {
        assert!(!names_loopback(host), "{host}");
    }
}

#[test]
fn a_token_is_the_whole_token() {
    for query in ["token=abc", "x=1&token=abc"] {
        assert!(has_token(Some(query), "abc"), "{query}");
    }
    for query in [
        None,
        Some(""),
        Some("token="),
        Some("token=ab"),
        Some("token=abcd"),
        Some("token=abd"),
        Some("abc"),
    ] {
        assert!(!has_token(query, "abc"), "{query:?}");
    }
}

#[test]
fn each_answer_says_that_nothing_else_may_come_in() {
    let served = Served::usual(None);
    for (path, status, kind) in [
        ("/", 200, "text/html"),
        ("/page.js", 200, "text/javascript"),
        ("/page.css", 200, "text/css"),
        ("/uplot.js", 200, "text/javascript"),
        ("/uplot.css", 200, "text/css"),
        ("/save", 200, "text/html"),
        ("/x", 404, "text/plain"),
        ("/../etc/passwd", 404, "text/plain"),
    ] {
        let answer = served.ask(path, OWN);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer:.200}");
        for header in [
            &format!("content-type: {kind}; charset=utf-8"),
            &format!("content-security-policy: {}", page::POLICY),
            "cross-origin-resource-policy: same-origin",
            "referrer-policy: no-referrer",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
        ] {
            assert!(
                answer.contains(&format!("{header}\r\n")),
                "{path}: no {header} in {answer:.900}"
            );
        }
        assert!(!answer.contains("access-control-"), "{path}");
    }
    assert!(page::POLICY.starts_with("default-src 'none'; ") && !page::POLICY.contains("unsafe"));
    let mut refused = String::new();
    served.send(&format!("POST / HTTP/1.1\r\n{OWN}\r\n")).read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
}

#[test]
fn a_name_that_was_made_to_lead_here_gets_nothing() {
    let served = Served::usual(None);
    let foreign = ["Host: evil.example\r\n", "", "Host: 127.0.0.1\r\nHost: evil.example\r\n"];
    for path in ["/", "/stream", "/save", "/page.js"] {
        for host in foreign {
            let answer = served.ask(path, host);
            assert!(answer.starts_with("HTTP/1.1 4"), "{path} {host}: {answer:.300}");
            assert!(
                !answer.contains("eth0") && !answer.contains("<html"),
                "{path} {host}: {answer}"
            );
        }
    }
    // Pages of others may link here, and nothing else.
    let other = format!("{OWN}Sec-Fetch-Site: cross-site\r\n");
    assert!(served.ask("/", &other).starts_with("HTTP/1.1 200 "));
    for path in ["/stream", "/save", "/page.js"] {
        assert!(served.ask(path, &other).starts_with("HTTP/1.1 403 "), "{path}");
    }
}

#[test]
fn with_a_token_nobody_comes_in_without() {
    let served = Served::usual(Some("0123abcd"));
    let host = "Host: router.lan:9751\r\n";
    for path in ["/", "/stream", "/save"] {
        for query in ["", "?token=", "?token=0123abce", "?token=0123abcd0"] {
            let answer = served.ask(&format!("{path}{query}"), host);
            assert!(answer.starts_with("HTTP/1.1 403 "), "{path}{query}: {answer:.300}");
        }
    }
    assert!(served.ask("/?token=0123abcd", host).starts_with("HTTP/1.1 200 "));
    assert!(served.ask("/save?token=0123abcd", host).contains("shortlane-eth0-"));
    assert!(
        !served.ask("/save?token=0123abcd", host).contains("0123abcd"),
        "a file may be passed on"
    );
}

#[test]
fn a_page_gets_what_was_and_what_comes() {
    let served = Served::usual(None);
    let mut page = served.stream();
    assert_eq!(page.next("begin")["device"], "eth0");
    let sample = (0..5).map(|_| page.next("sample")).last().unwrap();
    // 250 packets of 1500 bytes a second, and 750.
    let way = &sample["ways"][0];
    assert_eq!((&way["way"], &way["nanos"]), (&"egress".into(), &1_000_000_000.into()));
    assert_eq!((&way["limit_bps"], &way["became_long"]), (&20_000_000.into(), &2.into()));
    let lanes = [("short", 375_000, 250), ("long", 1_125_000, 750)];
    for (lane, (name, bytes, packets)) in way["lanes"].as_array().unwrap().iter().zip(lanes) {
        assert_eq!((&lane["name"], &lane["sent_bytes"]), (&name.into(), &bytes.into()));
        assert_eq!(lane["waits"][0][1], packets);
    }
    assert_eq!(way["drops"], serde_json::json!([["full", 1, 5]]));
    let now = page.next("now");
    assert_eq!(now["attached"][0]["scheduler"], "efd:threshold=30packets");
    // One that comes later begins where the first did.
    let seen = page.next("sample")["at_ms"].as_u64().unwrap();
    let mut later = served.stream();
    assert!(later.next("sample")["at_ms"].as_u64().unwrap() < seen);
    assert!(served.ask("/save", OWN).contains("efd:threshold=30packets"));
}

#[test]
fn changes_are_told() {
    let seconds = AtomicU64::new(1);
    let served = Served::start(None, LIMITS, move || {
        let now = seconds.fetch_add(1, Ordering::Relaxed) + 1;
        let mut status = status(now, Heading::Egress);
        if now > 10 {
            (status.link.rate, status.scheduler) = (Rate(5_000_000), "fifo".into());
        }
        Ok(vec![status])
    });
    let mut page = served.stream();
    let changes = (0..20).find_map(|_| {
        let mut sample = page.next("sample");
        sample["ways"][0].get_mut("changes").map(Value::take)
    });
    let told = ["rate 20mbit to 5mbit", "scheduler efd:threshold=30packets to fifo"];
    assert_eq!(changes, Some(serde_json::json!(told)));
}

#[test]
fn decisions_are_told_once_and_at_their_time() {
    let seconds = AtomicU64::new(1);
    let served = Served::start(None, LIMITS, move || {
        let now = seconds.fetch_add(1, Ordering::Relaxed) + 1;
        let mut status = status(now, Heading::Egress);
        let decided = |number: u64| Decided {
            number,
            ns_ago: (now - number) * 1_000_000_000,
            to_bps: number * 1_000_000,
            reason: "room".into(),
            ..Decided::default()
        };
        status.link.rate = Rate(now * 1_000_000);
        status.auto = Some(Auto {
            floor_bps: 1_000_000,
            blind: now > 10,
            extra_delay_ns: Some(7),
            // Several a look.
            decisions: (1..=now / 2 * 2).map(decided).collect(),
            ..Auto::default()
        });
        Ok(vec![status])
    });
    let mut page = served.stream();
    let (mut told, mut changes) = (Vec::new(), Vec::new());
    while told.len() < 12 {
        let sample = page.next("sample");
        let way = &sample["ways"][0];
        let at_ms = sample["at_ms"].as_u64().unwrap();
        for decision in way["auto"]["decisions"].as_array().into_iter().flatten() {
            assert_eq!(decision["reason"], "room");
            assert!(decision["at_ms"].as_u64().unwrap() <= at_ms);
            told.push(decision["to_bps"].as_u64().unwrap() / 1_000_000);
        }
        changes.extend(way["changes"].as_array().into_iter().flatten().cloned());
    }
    let first = told[0];
    assert!(told.iter().copied().eq(first..first + told.len() as u64), "{told:?}");
    assert_eq!(changes, ["the link not followed to seen", "the link seen to blind"]);
}

#[test]
fn a_device_that_goes_is_told_and_may_come_back() {
    let gone = Arc::new(AtomicBool::new(false));
    let (asked, look) = (Arc::clone(&gone), second_by_second());
    let served = Served::start(None, LIMITS, move || match asked.load(Ordering::Relaxed) {
        true => Err(Failure::Usage("there is no device 'eth0'".into())),
        false => look(),
    });
    let mut page = served.stream();
    page.next("sample");
    gone.store(true, Ordering::Relaxed);
    let sample = loop {
        let sample = page.next("sample");
        if sample.get("gone").is_some() {
            break sample;
        }
    };
    assert_eq!(sample["gone"], "there is no device 'eth0'");
    assert_eq!(sample["ways"], serde_json::json!([]));
    assert!(page.next("now")["attached"][0].is_object(), "what was there last stays to be seen");
    gone.store(false, Ordering::Relaxed);
    let back = loop {
        let sample = page.next("sample");
        if sample.get("gone").is_none() {
            break sample;
        }
    };
    // What it did in between is not known.
    assert_eq!((&back["ways"][0]["nanos"], &back["ways"][0]["marked"]), (&0.into(), &0.into()));
    assert_eq!(page.next("sample")["ways"][0]["nanos"], 1_000_000_000);
}

#[test]
fn so_many_pages_and_no_more() {
    let served = Served::usual(None);
    let mut pages: Vec<Events> = (0..PAGES).map(|_| served.stream()).collect();
    assert!(!served.has_room());
    // Who looks at the page is told so by it.
    assert!(served.ask("/", OWN).starts_with("HTTP/1.1 200 "));
    pages.pop();
    served.wait_for_room();
    pages[0].next("now");
}

#[test]
fn a_stuck_browser_is_let_go() {
    let limits = Limits { unread: Duration::from_millis(200), ..LIMITS };
    // What a socket holds is full after some looks.
    let name = "x".repeat(1 << 20);
    let served = Served::start(None, limits, move || {
        Ok(vec![Status { device: name.clone(), ..status(1, Heading::Egress) }])
    });
    let stuck: Vec<Events> = (0..PAGES).map(|_| served.stream()).collect();
    assert!(!served.has_room());
    served.wait_for_room();
    drop(stuck);
}
