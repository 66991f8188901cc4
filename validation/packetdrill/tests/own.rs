//! Scripts of our own: as they are they pass, and with one thing changed they do not.

use std::path::Path;

use packetdrill::play::Difference;
use packetdrill::report::{self, Outcome};

fn script(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The outcome with a part replaced: the line, what is expected and what is found there.
fn changed(name: &str, from: &str, to: &str) -> (usize, String, String) {
    let text = script(name);
    assert!(text.contains(from), "{name} has no {from}");
    match report::outcome(&text.replacen(from, to, 1)) {
        Outcome::Differs(Difference { line, expected, found }) => (line, expected, found),
        outcome => panic!("{name} with {to}: {outcome:?}"),
    }
}

fn parted(line: usize, expected: &str, found: &str) -> (usize, String, String) {
    (line, expected.to_owned(), found.to_owned())
}

#[test]
fn our_scripts_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let played = report::folder(&folder).unwrap();
    for (name, outcome) in &played {
        assert_eq!(*outcome, Outcome::Passed, "{name}");
    }
    assert_eq!(report::passed(&played), (7, 7));
}

#[test]
fn the_first_difference_is_told() {
    let expected = parted(17, "tcpi_snd_cwnd == 2 * start + 1", "tcpi_snd_cwnd = 20, start = 10");
    assert_eq!(changed("slow-start.pkt", "== 2 * start,", "== 2 * start + 1,"), expected);
    // Numbers, flags and options of a packet.
    let found = changed("slow-start.pkt", "> P. 1:5001(5000)", "> P. 1:4901(4900)");
    assert_eq!(found, parted(12, "P. 1:4901(4900) ack 1", ". 4501:5001(500) ack 1"));
    let found = changed("slow-start.pkt", "> P. 1:5001(5000)", "> P. 1:5501(5500)");
    assert_eq!(found, parted(12, "P. 1:5501(5500) ack 1", "no more of it by 0.054000 s"));
    let found = changed("marks.pkt", "WP. 10001", "P. 10001");
    assert_eq!(
        found,
        parted(15, "[ect0] P. 10001:11001(1000) ack 1", "W. 10001:11001(1000) ack 1")
    );
    let found = changed("client.pkt", "sack 1001:3001", "sack 1001:2001");
    assert_eq!(found.2, ". 1501:1501(0) ack 1 <sack 1001:3001>");
    let found =
        changed("client.pkt", "> . 1:1(0) ack 1 <nop,nop,TS val 120 ecr 700>", "> . 1:1(0) ack 1");
    assert_eq!(found.0, 8);
    // The timestamp is that of another moment, or answers another.
    assert_eq!(changed("client.pkt", "TS val 170 ecr 750", "TS val 175 ecr 750").0, 21);
    assert_eq!(changed("client.pkt", "TS val 170 ecr 750", "TS val 170 ecr 730").0, 21);
}

#[test]
fn times_may_be_off_by_so_much() {
    // An eighth of 0.3 s.
    assert_eq!(
        report::outcome(&script("timeout.pkt").replacen("+.3 >", "+.27 >", 1)),
        Outcome::Passed
    );
    let found = changed("timeout.pkt", "+.3 >", "+.26 >");
    assert_eq!(found.1, ". 1:1001(1000) ack 1");
    assert_eq!(found.2, "nothing by 0.392500 s");
    let found = changed("timeout.pkt", "+.3 >", "+.35 >");
    assert_eq!(found, parted(13, ". 1:1001(1000) ack 1 at 0.450000 s", "the same at 0.400000 s"));
    // Four milliseconds where the event before is near.
    let found = changed("fast-retransmit.pkt", "+0 > . 1001:2001", "+.005 > . 1001:2001");
    assert_eq!(found.2, "the same at 0.080000 s");
}

#[test]
fn the_host_has_rack_unless_the_script_says_otherwise() {
    let found = changed("rack.pkt", "tcp_recovery=1", "tcp_recovery=0");
    assert_eq!(found, parted(14, ". 1:1001(1000) ack 1", "nothing by 0.096000 s"));
}

#[test]
fn a_read_waits_for_its_data() {
    let found = changed("client.pkt", "+0...0.060 read", "+0...0.021 read");
    assert_eq!(found, parted(12, "3000 bytes to read", "0"));
    let found = changed("client.pkt", "(3, ..., 3000) = 3000", "(3, ..., 3500) = 3500");
    assert_eq!(found, parted(12, "3500 bytes to read", "3000"));
}

#[test]
fn what_the_model_does_not_have_does_not_apply() {
    let reason = |name: &str, from: &str, to: &str| {
        let text = script(name);
        assert!(text.contains(from), "{name} has no {from}");
        match report::outcome(&text.replacen(from, to, 1)) {
            Outcome::DoesNotApply { line, what, packets } => (line, what, packets),
            outcome => panic!("{name} with {to}: {outcome:?}"),
        }
    };
    let (line, what, packets) = reason("slow-start.pkt", "ack 2501 win 1024", "ack 2501 win 0");
    assert_eq!((line, what.as_str(), packets), (13, "zero windows", None));
    let (_, what, _) = reason("marks.pkt", "tcp_ecn=2", "tcp_ecn=3");
    assert_eq!(what, "AccECN");
    let (_, what, _) = reason("client.pkt", "+0 close(3) = 0", "+0 poll([{fd=3}], 1, 9) = 1");
    assert_eq!(what, "the call poll()");
    let (_, what, _) = reason("timeout.pkt", "sysctl -q", "modprobe");
    assert_eq!(what, "the command `modprobe net.ipv4.tcp_early_retrans=0`");
    // What is only looked at: the packets are played all the same.
    let (line, what, packets) = reason("slow-start.pkt", "tcpi_unacked == 20", "tcpi_rto == 20");
    assert_eq!((line, what.as_str()), (17, "tcpi_rto, which the model does not have"));
    assert_eq!(packets, Some(Ok(())));
}

#[test]
fn the_report_counts_and_lists() {
    let differs = Difference { line: 7, expected: "a".into(), found: "b".into() };
    let other = Outcome::DoesNotApply { line: 3, what: "RST".into(), packets: None };
    let played = [
        ("sack/one.pkt".into(), Outcome::Passed),
        ("sack/two.pkt".into(), Outcome::Differs(differs)),
        ("close/three.pkt".into(), other),
    ];
    let text = report::markdown(&played);
    assert!(text.contains("| close | 0 | 0 | 1 |\n| sack | 1 | 1 | 0 |\n"), "{text}");
    assert!(text.contains("1 of the 2 that apply pass: 50 %."), "{text}");
    assert!(text.contains("| sack/two.pkt | 7 | `a` | `b` |"), "{text}");
    assert!(text.contains("| RST | close/three |"), "{text}");
    let page = "before\n<!-- played: start -->\nold\n<!-- played: end -->\nafter\n";
    let new = report::replace(page, "new\n").unwrap();
    let expected = "before\n<!-- played: start -->\n\nnew\n\n<!-- played: end -->\nafter\n";
    assert_eq!(new, expected);
    assert!(report::replace("no marks", "new").is_err());
}
