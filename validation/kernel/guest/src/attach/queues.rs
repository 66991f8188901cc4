//! A qdisc for each transmit queue: what they hold together of one rate, and how it is put in place.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use engine::kernel::Instance;
use engine::status::Status;
use netdev::tc::TrafficControl;

use super::killed::{KILLS, journalled, kill, kill_at, repaired, start};
use super::machine::Machine;
use super::{refused, run_parts, succeed};
use crate::command::run as shell;
use crate::faults::bench::{Link, THERE};
use crate::namespace::{self, ifindex, statistic};

const QUEUES: usize = 4;
const RATE: u64 = 50_000_000;
const ATTACH: &str = "attach v0 --rate 50mbit --per-queue";
const SIZE: usize = 1_000;
/// `TCA_CAKE_BASE_RATE64`: in bytes a second.
const CAKE_RATE: u16 = 2;
/// What the kernel puts before it, on Ethernet.
const HEADERS: usize = 14 + 20 + 8;
/// How far the rate of a second may be off.
const TOLERANCE: f64 = 0.002;
const SECONDS: u32 = 3;
/// What a flow of each queue is offered, in parts of the rate.
const LOADS: [(&str, &[f64]); 5] = [
    ("90/10", &[1.4, 0.1]),
    ("50/50", &[0.75, 0.75]),
    ("50/50, twice the rate", &[1.0, 1.0]),
    ("one alone", &[1.5]),
    ("all four", &[0.5; QUEUES]),
];

pub(crate) fn run(names: &[String]) -> Result<()> {
    run_parts(
        &[
            ("place", place),
            ("rate", rate),
            ("hosts", hosts),
            ("short", short),
            ("moved", moved),
            ("change", change),
            ("killed", killed),
            ("peer", peer),
        ],
        names,
    )
}

/// The qdiscs' counters, by queue.
fn queues() -> Result<Vec<Status>> {
    let mut found: Vec<Status> =
        Instance::on(ifindex("v0")?)?.iter().map(Instance::status).collect();
    found.sort_by_key(|status| status.qdisc.as_ref().map(|qdisc| qdisc.handle.clone()));
    ensure!(found.len() == QUEUES, "there are {} qdiscs", found.len());
    Ok(found)
}

/// Packets that have come by this queue, as `tc` tells it.
fn came_by(queue: usize) -> Result<u64> {
    let qdiscs = TrafficControl::open()?.qdiscs(ifindex("v0")?);
    let qdiscs = qdiscs.map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
    let of_queue = qdiscs.iter().find(|qdisc| qdisc.parent & 0xffff == queue as u32 + 1);
    let stats = of_queue.context("no qdisc of the queue")?.stats;
    Ok(stats.packets + u64::from(stats.qlen) + u64::from(stats.drops))
}

/// A socket whose packets go by this queue: which one is chance, and stays.
fn socket_of(queue: usize) -> Result<UdpSocket> {
    socket_from("10.9.0.1", queue)
}

fn socket_from(address: &str, queue: usize) -> Result<UdpSocket> {
    for _ in 0..400 {
        let socket = UdpSocket::bind((address, 0))?;
        socket.connect("10.9.0.2:9")?;
        let before = came_by(queue)?;
        for _ in 0..3 {
            // Nobody listens yet.
            let _ = socket.send(&[0; 20]);
        }
        if came_by(queue)? >= before + 3 {
            return Ok(socket);
        }
    }
    anyhow::bail!("no socket's packets go by queue {queue}")
}

/// A flow at work.
struct Flow {
    /// Sets it apart from flows before, of which packets may still be queued.
    round: u32,
    number: u32,
    socket: UdpSocket,
    offered: f64,
}

/// What arrived of the flows: packets of each, and how many came behind a later one.
#[derive(Debug, Default)]
struct Arrived {
    packets: Vec<u64>,
    late: u64,
}

fn flows(load: &[f64]) -> Result<Vec<Flow>> {
    static ROUNDS: AtomicU32 = AtomicU32::new(0);
    let round = ROUNDS.fetch_add(1, Ordering::Relaxed);
    let flow = |(queue, offered): (usize, &f64)| {
        let (number, offered) = (queue as u32, *offered);
        Ok(Flow { round, number, socket: socket_of(queue)?, offered })
    };
    load.iter().enumerate().map(flow).collect()
}

/// Has the flows send while `watch` looks at the link.
fn under_load<T>(flows: &[Flow], watch: impl FnOnce() -> Result<T>) -> Result<(T, Arrived)> {
    let sink = namespace::run(THERE, || UdpSocket::bind("10.9.0.2:9"))??;
    sink.set_read_timeout(Some(Duration::from_millis(200)))?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for flow in flows {
            scope.spawn(|| send(flow, &over));
        }
        let counting = scope.spawn(|| count(&sink, flows, &over));
        let watched = watch();
        over.store(true, Ordering::Relaxed);
        Ok((watched?, counting.join().expect("no panic")))
    })
}

fn send(flow: &Flow, over: &AtomicBool) {
    let bits = ((SIZE + HEADERS) * 8) as f64;
    let apart = Duration::from_secs_f64(bits / (flow.offered * RATE as f64));
    let begin = Instant::now();
    let mut packet = [0; SIZE];
    packet[..4].copy_from_slice(&flow.number.to_ne_bytes());
    packet[8..12].copy_from_slice(&flow.round.to_ne_bytes());
    for number in 0u32.. {
        thread::sleep((apart * number).saturating_sub(begin.elapsed()));
        if over.load(Ordering::Relaxed) {
            break;
        }
        packet[4..8].copy_from_slice(&number.to_ne_bytes());
        let _ = flow.socket.send(&packet);
    }
}

fn count(sink: &UdpSocket, flows: &[Flow], over: &AtomicBool) -> Arrived {
    let numbers = 1 + flows.iter().map(|flow| flow.number).max().unwrap_or(0) as usize;
    let mut arrived = Arrived { packets: vec![0; numbers], late: 0 };
    let mut next = vec![0; numbers];
    let round = flows.first().map_or(0, |flow| flow.round);
    let word = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
    let mut packet = [0; SIZE];
    while !over.load(Ordering::Relaxed) {
        let Ok(SIZE) = sink.recv(&mut packet) else { continue };
        let (flow, number) = (word(&packet[..4]) as usize, word(&packet[4..8]));
        if word(&packet[8..12]) != round {
            continue;
        }
        arrived.packets[flow] += 1;
        arrived.late += u64::from(number < next[flow]);
        next[flow] = number + 1;
    }
    arrived
}

/// The rate of each second, as a part of what it should be.
fn held() -> Result<Vec<f64>> {
    thread::sleep(Duration::from_millis(500));
    let sent = || Ok::<_, anyhow::Error>((Instant::now(), statistic("v0", "tx_bytes")?));
    let mut seconds = Vec::new();
    for _ in 0..SECONDS {
        let (begin, before) = sent()?;
        thread::sleep(Duration::from_secs(1));
        let (end, after) = sent()?;
        let allowed = RATE as f64 * (end - begin).as_secs_f64() / 8.0;
        seconds.push((after - before) as f64 / allowed);
    }
    Ok(seconds)
}

/// The rate is that of one link, however the load is split; each queue has its part of it, and no
/// flow is reordered.
fn rate() -> Result<()> {
    let _link = Link::new(QUEUES as u32)?;
    succeed(ATTACH)?;
    for (name, load) in LOADS {
        let (seconds, arrived) = under_load(&flows(load)?, held)?;
        let got = parts_of(&arrived);
        println!("{name}: rate held {seconds:.4?}, parts of the queues {got:.3?}");
        ensure!(arrived.late == 0, "{name}: {} packets came late", arrived.late);
        for second in seconds {
            ensure!((second - 1.0).abs() <= TOLERANCE, "{name}: {second:.4} of the rate");
        }
        for (got, fair) in got.iter().zip(fair_parts(load)) {
            ensure!((got - fair).abs() < 0.02, "{name}: a queue has {got:.3}, not {fair:.3}");
        }
    }
    succeed("detach v0").map(drop)
}

/// The same loads by the kernel's own qdisc of several queues, where there is one: to be read.
fn peer() -> Result<()> {
    let _link = Link::new(QUEUES as u32)?;
    shell("modprobe sch_cake")?;
    let options = [&12u16.to_ne_bytes()[..], &CAKE_RATE.to_ne_bytes(), &(RATE / 8).to_ne_bytes()];
    let mut tc = TrafficControl::open()?;
    let put = tc.replace_root(ifindex("v0")?, "cake_mq", 1 << 16, Some(&options.concat()));
    if let Err(refusal) = put {
        println!("no cake_mq here: {refusal}");
        return Ok(());
    }
    for (name, load) in LOADS {
        let (seconds, arrived) = under_load(&flows(load)?, held)?;
        println!(
            "cake_mq, {name}: rate held {seconds:.4?}, parts of the queues {:.3?}",
            parts_of(&arrived)
        );
    }
    let other = part_of_other_host(&flows_of_two_hosts()?)?;
    println!("cake_mq, one flow beside four of another host: {other:.3}");
    Ok(())
}

/// What arrived of each flow, as a part of all.
fn parts_of(arrived: &Arrived) -> Vec<f64> {
    let all: u64 = arrived.packets.iter().sum();
    arrived.packets.iter().map(|packets| *packets as f64 / all as f64).collect()
}

/// What each is to have, if those that ask for less than their part leave it to the others.
fn fair_parts(offered: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..offered.len()).collect();
    order.sort_by(|one, other| offered[*one].total_cmp(&offered[*other]));
    let (mut parts, mut left) = (vec![0.0; offered.len()], 1.0);
    for (at, queue) in order.iter().enumerate() {
        let fair = left / (offered.len() - at) as f64;
        parts[*queue] = offered[*queue].min(fair);
        left -= parts[*queue];
    }
    parts
}

/// A host with flows in all queues has what one has with a flow in one of them.
fn hosts() -> Result<()> {
    let _link = Link::new(QUEUES as u32)?;
    succeed(&format!("{ATTACH} --scheduler fq-lanes:hosts=source"))?;
    let mut flows = flows_of_two_hosts()?;
    // Nothing is kept for queues that the host has nothing in any more.
    for what in ["four", "one"] {
        let other = part_of_other_host(&flows)?;
        println!("one flow beside {what} of another host: {other:.3}");
        ensure!((other - 0.5).abs() < 0.05, "the other host has {other:.3} of the link");
        flows.drain(1..QUEUES.min(flows.len() - 1));
    }
    succeed("detach v0").map(drop)
}

/// One of each queue, and one of the first queue by another host.
fn flows_of_two_hosts() -> Result<Vec<Flow>> {
    shell("ip addr add 10.9.0.3/24 dev v0")?;
    let mut flows = flows(&[1.0; QUEUES])?;
    let (round, number) = (flows[0].round, QUEUES as u32);
    flows.push(Flow { round, number, socket: socket_from("10.9.0.3", 0)?, offered: 1.0 });
    Ok(flows)
}

fn part_of_other_host(flows: &[Flow]) -> Result<f64> {
    let (_, arrived) = under_load(flows, held)?;
    Ok(parts_of(&arrived)[QUEUES])
}

/// Small packets pass by the long flows of other queues.
fn short() -> Result<()> {
    let _link = Link::new(QUEUES as u32)?;
    succeed(ATTACH)?;
    let flows = flows(&[1.0, 1.0, 1.0, 0.01])?;
    under_load(&flows, || {
        thread::sleep(Duration::from_secs(3));
        Ok(())
    })?;
    // With nothing else in its queue it need not be new there.
    let of = &queues()?[QUEUES - 1];
    let waited: Vec<_> = of.lanes.iter().map(|lane| lane.sojourn.quantile(0.99)).collect();
    let packets = of.sent_packets();
    println!("{packets} packets of a short flow: 99 % wait less than {waited:?} in its lanes");
    // At 50 Mbit/s a frame takes 0.2 ms: some of each other queue.
    ensure!(packets > 100, "{packets} packets of it left");
    ensure!(waited.iter().all(|time| time.0 < 2_200_000), "99 % waited for {waited:?}");
    succeed("detach v0").map(drop)
}

/// A long flow that goes by another queue from now on is no new one there.
fn moved() -> Result<()> {
    let _link = Link::new(QUEUES as u32)?;
    succeed(ATTACH)?;
    let flows = flows(&[1.5])?;
    let second = Duration::from_secs(1);
    let ((before, after), _) = under_load(&flows, || {
        thread::sleep(second);
        let before = queues()?;
        // Whatever queue was its own.
        shell("tc filter add dev v0 egress matchall action skbedit queue_mapping 2")?;
        thread::sleep(second);
        Ok((before, queues()?))
    })?;
    let sent =
        |status: &Status| status.lanes.iter().map(|lane| lane.sent_packets).collect::<Vec<_>>();
    let (before, after) = (sent(&before[2]), sent(&after[2]));
    println!("packets of the lanes of its new queue: {before:?}, then {after:?}");
    let joined: Vec<u64> =
        after.iter().zip(&before).map(|(after, before)| after - before).collect();
    ensure!(joined[2] > 1_000, "the flow did not move: {joined:?}");
    ensure!(joined[0] + joined[1] < 5, "it began anew: {joined:?}");
    succeed("detach v0").map(drop)
}

/// Another rate is in force for all of them, at once.
fn change() -> Result<()> {
    let _link = Link::new(QUEUES as u32)?;
    succeed(&ATTACH.replace("50mbit", "20mbit"))?;
    let flows = flows(&[1.0, 1.0])?;
    let (seconds, _) = under_load(&flows, || {
        thread::sleep(Duration::from_millis(500));
        for _ in 0..20 {
            succeed("change v0 --rate 30mbit")?;
            succeed("change v0 --rate 50mbit")?;
        }
        held()
    })?;
    println!("after changes: rate held {seconds:.4?}");
    for second in seconds {
        ensure!((second - 1.0).abs() <= TOLERANCE, "{second:.4} of the rate");
    }
    succeed("detach v0").map(drop)
}

/// How it is put in place, what is said of it, and the way back.
fn place() -> Result<()> {
    let _link = Link::new(QUEUES as u32)?;
    let before = Machine::now()?;
    let usage = 2;
    refused(&format!("{ATTACH} --scheduler efd"), usage, &["efd", "--per-queue", "fq-lanes"])?;
    refused(&format!("{ATTACH} --engine userspace"), usage, &["--per-queue", "kernel"])?;
    succeed(ATTACH)?;
    let shown = succeed("show v0")?.output;
    ensure!(shown.contains("in each of 4 queues below mq"), "{shown}");
    let judged = succeed("doctor v0")?.output;
    ensure!(judged.contains("4 of 4 queues that it sends from have a qdisc"), "{judged}");
    refused(ATTACH, 1, &["v0", "each queue of mq", "--replace"])?;
    let flows = flows(&[0.2, 0.2, 0.2, 0.2])?;
    let (sent, _) = under_load(&flows, || {
        thread::sleep(Duration::from_secs(1));
        let document: serde_json::Value = serde_json::from_str(&succeed("show v0 --json")?.output)?;
        let all = document["attached"].as_array().context("no list")?.clone();
        ensure!(all.len() == 1 && all[0]["queues"] == 4, "{all:?}");
        all[0]["tc"]["packets"].as_u64().context("no packets")
    })?;
    let all: u64 = queues()?.iter().map(Status::sent_packets).sum();
    ensure!(sent > 1_000 && all >= sent, "{sent} packets were shown, {all} left");
    // One queue for all, and back.
    succeed("attach v0 --rate 50mbit --replace")?;
    let shown = succeed("show v0")?.output;
    ensure!(shown.contains("root") && !shown.contains("below mq"), "{shown}");
    succeed(&format!("{ATTACH} --replace"))?;
    ensure!(queues()?.len() == QUEUES, "not all queues");
    // What is left if one of them goes is put back by the next command.
    let handle = root_handle()?;
    shell(&format!("tc qdisc replace dev v0 parent {handle}2 pfifo"))?;
    let judged = super::shortlane("doctor v0")?.output;
    ensure!(judged.contains("3 of 4 queues that it sends from have a qdisc"), "{judged}");
    let said = super::shortlane("detach v0")?;
    ensure!(said.status == 0, "{}", said.words);
    before.must_be_back()?;
    shell("ip link add d0 type dummy")?;
    let said = refused(
        "attach d0 --rate 50mbit --per-queue",
        usage,
        &["d0", "transmit queues", "2 to 16"],
    );
    shell("ip link del d0")?;
    said
}

/// Killed at any time: all queues have a qdisc, or the next command puts everything back.
fn killed() -> Result<()> {
    let _link = Link::new(QUEUES as u32)?;
    let before = Machine::now()?;
    let begin = Instant::now();
    succeed(ATTACH)?;
    let takes = begin.elapsed();
    succeed("detach v0")?;
    before.must_be_back()?;
    for number in 0..KILLS {
        kill_at(ATTACH, number, takes)?;
        repaired(&before)?;
    }
    // Things happen fast once it has begun: at times that grow by little.
    let mut counts = [0; QUEUES + 1];
    for number in 0..KILLS {
        let mut child = start(ATTACH)?;
        while !journalled() && child.try_wait()?.is_none() {
            std::hint::spin_loop();
        }
        thread::sleep(Duration::from_micros(u64::from(number) * 500));
        kill(child)?;
        counts[Instance::on(ifindex("v0")?)?.len()] += 1;
        if number % 4 == 0 {
            // The next one to come repairs as well.
            let said = super::shortlane(&format!("{ATTACH} --replace"))?;
            ensure!(said.status == 0, "{}", said.words);
            ensure!(queues()?.len() == QUEUES, "not all queues");
        }
        repaired(&before)?;
    }
    println!("killed once it had begun: so often with 0 to {QUEUES} queues: {counts:?}");
    ensure!(counts[0] > 0 && counts[QUEUES] > 0, "not spread");
    Ok(())
}

fn root_handle() -> Result<String> {
    let shown = shell("tc qdisc show dev v0")?;
    let root = shown.lines().find(|line| line.starts_with("qdisc mq")).context("no mq")?;
    root.split_whitespace().nth(2).map(str::to_owned).context("no handle")
}
