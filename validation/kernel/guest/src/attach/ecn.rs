//! Marks by ECN, which a program in front of `fq-lanes` sets: counted by `show` and by the receiver,
//! with the program and without it, and beside those of the userspace engine.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use anyhow::{Context, Result, ensure};
use netdev::link::{Home, Links};
use netdev::netns::Namespace;
use serde_json::Value;

use super::machine::Machine;
use super::{
    FAR, Path, keep_account_of_programs, print_cost_of, refused, run_parts, shortlane, succeed,
};
use crate::command::run as shell;

const FAR6: &str = "fd09::2";
const NEAR: &str = "10.8.0.1";
const PORT: u16 = 12;
const FLOWS: usize = 2;
const ATTACH: &str = "attach v0 --rate 10mbit";
const TIME: Duration = Duration::from_secs(8);

pub(crate) fn run(names: &[String]) -> Result<()> {
    run_parts(
        &[("marked", marked), ("chosen", chosen), ("received", received), ("beside", beside)],
        names,
    )
}

/// A router between two hosts, 20 ms apart: of a sender of its own the kernel queues no more than
/// two packets.
struct Routed {
    near: Namespace,
    path: Path,
}

impl Routed {
    fn new() -> Result<Self> {
        let path = Path::new()?;
        let near = Namespace::new()?;
        Links::open()?.add_veth("u0", "u1", Home::Namespace(&near))?;
        shell("ip addr add 10.8.0.254/24 dev u0")?;
        shell("ip addr add fd08::fe/64 dev u0 nodad")?;
        shell("ip addr add fd09::1/64 dev v0 nodad")?;
        shell("ip link set u0 up")?;
        forward(true)?;
        let set_up =
            |lines: [&str; 6]| lines.into_iter().try_for_each(|line| shell(line).map(drop));
        near.run(|| {
            set_up([
                "ip addr add 10.8.0.1/24 dev u1",
                "ip addr add fd08::1/64 dev u1 nodad",
                // Or super-packets would come, of which each segment has the mark.
                "ip link set u1 gso_max_segs 1 up",
                "ip route add default via 10.8.0.254",
                "ip route add default via fd08::fe",
                "sysctl -w net.ipv4.tcp_ecn=1",
            ])
        })??;
        path.far.run(|| {
            set_up([
                "ip addr add fd09::2/64 dev v1 nodad",
                "ip link set v1 gso_max_segs 1",
                "ip route add default via 10.9.0.1",
                "ip route add default via fd09::1",
                "tc qdisc add dev v1 root netem delay 20ms limit 10000",
                "sysctl -w net.ipv4.tcp_ecn=1",
            ])
        })??;
        Ok(Self { near, path })
    }

    fn ask_for_ecn(&self, asks: bool) -> Result<()> {
        let value = if asks { 1 } else { 2 };
        self.near.run(|| shell(&format!("sysctl -w net.ipv4.tcp_ecn={value}")))?.map(drop)
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        let _ = forward(false);
        let _ = shell("ip link del u0");
    }
}

fn forward(forwards: bool) -> Result<()> {
    let value = u8::from(forwards);
    shell(&format!("sysctl -w net.ipv4.ip_forward={value}"))?;
    shell(&format!("sysctl -w net.ipv6.conf.all.forwarding={value}")).map(drop)
}

/// What a queue and its packets' receiver have counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    marked: u64,
    congested: u64,
    /// Packets that came in with a mark.
    came_marked: u64,
    retransmitted: u64,
    sent: u64,
}

impl Counted {
    /// On the way to the far end.
    fn now(routed: &Routed) -> Result<Self> {
        let status = status()?;
        let lanes = status["lanes"].as_array().context("no lanes")?;
        let sum = |key: &str| lanes.iter().filter_map(|lane| lane[key].as_u64()).sum();
        Ok(Self {
            marked: status["marked"].as_u64().context("no marks")?,
            congested: sum("congested"),
            came_marked: routed.path.far.run(came_marked)??,
            retransmitted: routed.near.run(retransmitted)??,
            sent: sum("sent_packets"),
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            marked: self.marked - before.marked,
            congested: self.congested - before.congested,
            came_marked: self.came_marked - before.came_marked,
            retransmitted: self.retransmitted - before.retransmitted,
            sent: self.sent - before.sent,
        }
    }
}

fn status() -> Result<Value> {
    let document: Value = serde_json::from_str(&succeed("show v0 --json")?.output)?;
    Ok(document["attached"][0].clone())
}

fn came_marked() -> Result<u64> {
    let v6 = fs::read_to_string("/proc/thread-self/net/snmp6")?;
    let v6 = v6.lines().find_map(|line| line.strip_prefix("Ip6InCEPkts"));
    Ok(counter("netstat", "IpExt:", "InCEPkts")?
        + v6.context("no Ip6InCEPkts")?.trim().parse::<u64>()?)
}

fn retransmitted() -> Result<u64> {
    counter("snmp", "Tcp:", "RetransSegs")
}

/// A counter of the thread's network namespace: one line has the names, the next the numbers.
fn counter(file: &str, group: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/thread-self/net/{file}"))?;
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let (names, numbers) = (lines.next().context("no names")?, lines.next().context("no numbers")?);
    let mut pairs = names.split(' ').zip(numbers.split(' '));
    let (_, number) = pairs.find(|(found, _)| *found == name).with_context(|| name.to_owned())?;
    Ok(number.parse()?)
}

/// Downloads side by side, for so long; returns once all has come.
fn download(
    listener: &TcpListener,
    connect: impl Fn() -> io::Result<TcpStream>,
    time: Duration,
) -> Result<()> {
    thread::scope(|scope| -> Result<()> {
        let begin = Instant::now();
        let mut senders = Vec::new();
        for _ in 0..FLOWS {
            let mut sender = connect().context("connecting")?;
            let (mut receiver, _) = listener.accept()?;
            scope.spawn(move || {
                let mut buffer = vec![0; 1 << 16];
                while let Ok(1..) = receiver.read(&mut buffer) {}
            });
            senders.push(scope.spawn(move || -> Result<()> {
                let data = vec![0; 1 << 14];
                while begin.elapsed() < time {
                    sender.write_all(&data)?;
                }
                Ok(())
            }));
        }
        senders.into_iter().try_for_each(|sender| sender.join().expect("no panic"))
    })
}

/// To the far end; what it made the queue count.
fn downloads(routed: &Routed, to: &'static str, time: Duration) -> Result<Counted> {
    let before = Counted::now(routed)?;
    let listener = routed.path.far.run(|| TcpListener::bind((to, PORT)))??;
    routed.near.run(|| download(&listener, || TcpStream::connect((to, PORT)), time))??;
    let counted = Counted::now(routed)?.since(before);
    println!("to {to}, {} s: {counted:?}", time.as_secs());
    Ok(counted)
}

/// What `doctor` says of marks by ECN.
fn doctor() -> Result<String> {
    let document: Value = serde_json::from_str(&shortlane("doctor v0 --json")?.output)?;
    let findings = document["findings"].as_array().context("no findings")?;
    let found = findings.iter().find(|finding| finding["check"] == "ECN");
    Ok(found.map_or_else(String::new, |found| found["result"].to_string()))
}

fn filters() -> Result<String> {
    Ok(shell("tc filter show dev v0 egress").unwrap_or_default())
}

fn must_mark(counted: Counted) -> Result<()> {
    ensure!(counted.marked >= 20, "few marks: {counted:?}");
    ensure!(counted.congested == 0, "dropped where a mark can be given: {counted:?}");
    ensure!(counted.came_marked == counted.marked, "not all marks arrived: {counted:?}");
    ensure!(counted.retransmitted == 0, "{counted:?}");
    Ok(())
}

fn must_drop(counted: Counted) -> Result<()> {
    ensure!(counted.congested >= 20 && counted.marked == 0, "{counted:?}");
    ensure!(counted.came_marked == 0 && counted.retransmitted > 0, "{counted:?}");
    Ok(())
}

/// Packets that can carry a mark get it, others are dropped, as are all without the program.
fn marked() -> Result<()> {
    let routed = Routed::new()?;
    let before = Machine::now()?;
    succeed(ATTACH)?;
    ensure!(doctor()?.contains("ok"), "{}", doctor()?);
    keep_account_of_programs()?;
    must_mark(downloads(&routed, FAR, TIME)?)?;
    print_cost_of("shortlane_ecn")?;
    must_mark(downloads(&routed, FAR6, TIME)?)?;
    routed.ask_for_ecn(false)?;
    must_drop(downloads(&routed, FAR, TIME)?).context("without ECN")?;
    routed.ask_for_ecn(true)?;
    shell("tc filter del dev v0 egress")?;
    must_drop(downloads(&routed, FAR, TIME)?).context("the program is gone")?;
    ensure!(doctor()?.contains("problem"), "{}", doctor()?);
    succeed("detach v0")?;
    before.must_be_back()?;
    // While packets are queued whose flows are owed marks.
    succeed(ATTACH)?;
    let removed = thread::scope(|scope| -> Result<Counted> {
        let counted = scope.spawn(|| downloads(&routed, FAR, TIME));
        thread::sleep(TIME / 2);
        shell("tc filter del dev v0 egress")?;
        counted.join().expect("no panic")
    })?;
    ensure!(removed.marked > 0 && removed.congested > 0, "{removed:?}");
    // The other way round: the program is there, the qdisc is not.
    succeed(&format!("{ATTACH} --replace"))?;
    shell("tc qdisc del dev v0 root")?;
    shell("ping -c 3 -i 0.2 10.9.0.2")?;
    succeed("detach v0")?;
    before.must_be_back()
}

/// `ecn=no` and somebody's clsact.
fn chosen() -> Result<()> {
    let routed = Routed::new()?;
    let before = Machine::now()?;
    succeed(&format!("{ATTACH} --scheduler fq-lanes:ecn=no"))?;
    ensure!(filters()?.is_empty() && doctor()?.is_empty(), "{}", filters()?);
    must_drop(downloads(&routed, FAR, TIME)?)?;
    refused("change v0 --scheduler fq-lanes:ecn=yes", 2, &["cannot take the place of", "anew"])?;
    succeed(&format!("{ATTACH} --replace --scheduler fq-lanes:ecn=yes"))?;
    ensure!(filters()?.contains("shortlane-ecn-"), "{}", filters()?);
    succeed("change v0 --rate 12mbit")?;
    must_mark(downloads(&routed, FAR, TIME)?)?;
    succeed(&format!("{ATTACH} --replace --scheduler fq-lanes:ecn=no"))?;
    let qdiscs = shell("tc qdisc show dev v0")?;
    ensure!(!qdiscs.contains("clsact"), "it stays: {qdiscs}");
    succeed("detach v0")?;
    before.must_be_back()?;
    shell("tc qdisc add dev v0 clsact")?;
    let before = Machine::now()?;
    succeed(ATTACH)?;
    shell("tc filter del dev v0 egress")?;
    succeed("detach v0")?;
    before.must_be_back().context("a clsact that was there stays")?;
    // A filter of somebody else's that ends the way of all packets.
    shell("tc filter add dev v0 egress prio 1 matchall action ok")?;
    succeed(ATTACH)?;
    must_drop(downloads(&routed, FAR, TIME)?).context("behind a filter of somebody else's")?;
    succeed("detach v0")?;
    shell("tc qdisc del dev v0 clsact").map(drop)
}

/// What the device receives.
fn received() -> Result<()> {
    let routed = Routed::new()?;
    let before = Machine::now()?;
    succeed("attach v0 --ingress 10mbit")?;
    succeed("attach v0 --rate 10mbit")?;
    let came_before = routed.near.run(came_marked)??;
    let listener = routed.near.run(|| TcpListener::bind((NEAR, PORT)))??;
    let to_near = || TcpStream::connect((NEAR, PORT));
    routed.path.far.run(|| download(&listener, to_near, TIME))??;
    let document: Value = serde_json::from_str(&succeed("show v0 --json")?.output)?;
    let all = document["attached"].as_array().context("no list")?;
    let ingress = all.iter().find(|one| one["direction"] == "ingress").context("no ingress")?;
    let (marked, came) = (ingress["marked"].as_u64(), routed.near.run(came_marked)?? - came_before);
    ensure!(marked >= Some(20) && marked == Some(came), "{came} came marked: {ingress}");
    succeed("detach v0")?;
    before.must_be_back()
}

/// As many marks as where a packet is marked as it leaves, by the same discipline.
fn beside() -> Result<()> {
    const LONG: Duration = Duration::from_secs(60);
    let routed = Routed::new()?;
    let mut per_second = Vec::new();
    for engine in ["kernel", "userspace"] {
        succeed(&format!("{ATTACH} --engine {engine} --scheduler fq-lanes"))?;
        let counted = downloads(&routed, FAR, LONG)?;
        succeed("detach v0")?;
        let rate = counted.marked as f64 / LONG.as_secs_f64();
        let (sent, again) = (counted.sent, counted.retransmitted);
        println!("{engine}: {rate:.2} marks a second, {sent} sent, {again} of them again");
        per_second.push(rate);
    }
    let ratio = per_second[0] / per_second[1];
    ensure!((0.8..1.25).contains(&ratio), "{ratio:.2} times as many marks");
    Ok(())
}
