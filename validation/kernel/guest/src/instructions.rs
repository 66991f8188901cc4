//! Guest instructions per packet: what a qdisc costs over none.
//!
//! Under `-icount shift=0` the machine's clock advances by a nanosecond an instruction, so that the
//! kernel's packet generator, which never sleeps, measures instructions. 64 UDP flows over a
//! dummy device, on one processor.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use engine::LinkSettings;
use engine::kernel::marks::{self, Queues};
use engine::kernel::{self, compose};
use sched::{Nanos, Rate, Spec};

use crate::command::run as shell;

const DEVICE: &str = "d0";
const KIND: &str = "shortlane";
/// Packets that are sent before and while it is measured.
type Load = (u64, u64);
const UNLOADED: Load = (2_000, 20_000);
/// Of a thousand times as many, most of which are dropped.
const FULL: Load = (500, 1_000);

/// A setting: its name and how it is put in place.
enum Setting {
    /// `tc` commands, of which the first replaces the root.
    Tc(&'static str, &'static [&'static str]),
    /// Our qdisc.
    Ours(&'static str, &'static str, Option<u64>),
    /// `fq-lanes` in each transmit queue, at this rate in all.
    PerQueue(&'static str, u64),
    /// The kernel's queues at 10 Gbit/s, with the program in front that marks packets or without.
    Queues(&'static str, Queues, Marked),
}

/// What is in front of queues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marked {
    No,
    /// Every flow is short.
    Short,
    /// Every flow is long.
    Long,
}

impl Setting {
    const fn name(&self) -> &'static str {
        let (Self::Tc(name, _)
        | Self::Ours(name, ..)
        | Self::PerQueue(name, _)
        | Self::Queues(name, ..)) = self;
        name
    }
}

/// Nothing waits: each packet is sent before the next one comes.
const UNCONGESTED: &[Setting] = &[
    Setting::Tc("noqueue", &["noqueue"]),
    Setting::Tc("pfifo", &["pfifo"]),
    Setting::Tc("sfq", &["sfq"]),
    Setting::Tc("fq_codel", &["fq_codel"]),
    Setting::Tc("fq", &["fq"]),
    Setting::Tc("cake", &["cake"]),
    Setting::Ours("fifo", "fifo", None),
    Setting::Ours("efd", "efd", None),
    Setting::Ours("fq-lanes", "fq-lanes", None),
    Setting::Ours("run2c", "run2c", None),
    Setting::Ours("sb-sh", "sb-sh", None),
    Setting::Tc("tbf + pfifo", &[TBF, "pfifo"]),
    Setting::Tc("tbf + sfq", &[TBF, "sfq"]),
    Setting::Tc("tbf + fq_codel", &[TBF, "fq_codel"]),
    Setting::Tc("tbf + cake", &[TBF, "cake"]),
    Setting::Ours("efd, shaped", "efd", Some(10_000_000_000)),
    Setting::Ours("fq-lanes, shaped", "fq-lanes", Some(10_000_000_000)),
    Setting::Ours("run2c, shaped", "run2c", Some(10_000_000_000)),
    Setting::Ours("sb-sh, shaped", "sb-sh", Some(10_000_000_000)),
];

/// Marks in front of the kernel's queues, on any kernel: nothing waits.
const MARKED: &[Setting] = &[
    Setting::Tc("noqueue", &["noqueue"]),
    Setting::Queues("cake of marks", Queues::Cake, Marked::No),
    Setting::Queues("cake, marks: short", Queues::Cake, Marked::Short),
    Setting::Queues("cake, marks: long", Queues::Cake, Marked::Long),
    Setting::Queues("prio of marks", Queues::Prio, Marked::No),
    Setting::Queues("prio, marks: short", Queues::Prio, Marked::Short),
    Setting::Queues("prio, marks: long", Queues::Prio, Marked::Long),
    Setting::Queues("htb of marks", Queues::Htb, Marked::No),
    Setting::Queues("htb, marks: short", Queues::Htb, Marked::Short),
    Setting::Queues("htb, marks: long", Queues::Htb, Marked::Long),
];

/// On a device with several transmit queues: nothing waits.
const QUEUED: &[Setting] = &[
    Setting::Tc("noqueue", &["noqueue"]),
    Setting::Tc("tbf + fq_codel", &[TBF, "fq_codel"]),
    Setting::Ours("fq-lanes, shaped", "fq-lanes", Some(10_000_000_000)),
    Setting::PerQueue("fq-lanes, per queue", 10_000_000_000),
];

const TBF: &str = "tbf rate 10gbit burst 1mb limit 10mb";
const TBF_FULL: &str = "tbf rate 8mbit burst 5kb limit 100kb";

/// The generator offers many times what the link takes; costs are per offered packet.
const OVERLOADED: &[Setting] = &[
    Setting::Tc("noqueue", &["noqueue"]),
    Setting::Tc("tbf + pfifo", &[TBF_FULL, "pfifo limit 300"]),
    Setting::Tc("tbf + sfq", &[TBF_FULL, "sfq limit 300"]),
    Setting::Tc("tbf + fq_codel", &[TBF_FULL, "fq_codel limit 300"]),
    Setting::Tc("cake", &["cake bandwidth 8mbit"]),
    Setting::Ours("efd, shaped", "efd", Some(8_000_000)),
    Setting::Ours("fq-lanes, shaped", "fq-lanes:limit=300packets", Some(8_000_000)),
    Setting::Ours("sb-sh, shaped", "sb-sh", Some(8_000_000)),
];

/// Runs every setting, or noqueue and those that are named, thrice and in turn; prints the medians as
/// a table. Marks, which take no BPF qdisc, are a table of their own, named first; and so are several
/// transmit queues, which change what the kernel does before any qdisc.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let (tables, named): (&[(&str, &[Setting], Load)], _) = match words {
        [first, named @ ..] if first == "marks" => (&[("marked", MARKED, UNLOADED)], named),
        [first, named @ ..] if first == "queues" => (&[("four queues", QUEUED, UNLOADED)], named),
        named => {
            (&[("uncongested", UNCONGESTED, UNLOADED), ("overloaded", OVERLOADED, FULL)], named)
        }
    };
    let is_wanted = |setting: &&Setting| {
        let name = &setting.name();
        named.is_empty() || *name == "noqueue" || named.iter().any(|named| named == name)
    };
    shell("modprobe pktgen")?;
    let queues = if words.first().is_some_and(|word| word == "queues") { 4 } else { 1 };
    shell(&format!("ip link add {DEVICE} numtxqueues {queues} type dummy"))?;
    shell(&format!("ip link set {DEVICE} up"))?;
    fs::write("/proc/net/pktgen/kpktgend_0", format!("add_device {DEVICE}\n"))
        .context("the packet generator")?;
    for &(title, settings, load) in tables {
        let settings: Vec<&Setting> = settings.iter().filter(is_wanted).collect();
        let mut costs: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for round in 1..=3 {
            for (at, setting) in settings.iter().enumerate() {
                let cost = measure(setting, load).with_context(|| setting.name())?;
                println!("round {round}, {}: {cost}", setting.name());
                costs.entry(at).or_default().push(cost);
            }
        }
        let median = |at| {
            let mut all = costs[&at].clone();
            all.sort_unstable();
            all[all.len() / 2]
        };
        let none = median(0);
        println!("| {title} | instructions a packet | over noqueue |\n|---|---|---|");
        for (at, setting) in settings.iter().enumerate() {
            let name = setting.name();
            println!("| {name} | {} | {:+} |", median(at), median(at) as i64 - none as i64);
        }
    }
    Ok(())
}

fn measure(setting: &Setting, (warm_up, packets): Load) -> Result<u64> {
    match setting {
        Setting::Tc(_, [root]) => {
            shell(&format!("tc qdisc replace dev {DEVICE} root {root}"))?;
        }
        Setting::Tc(_, parts) => {
            shell(&format!("tc qdisc replace dev {DEVICE} root handle 1: {}", parts[0]))?;
            shell(&format!("tc qdisc replace dev {DEVICE} parent 1:1 {}", parts[1]))?;
        }
        Setting::Ours(_, spec, rate) => {
            let spec: Spec = spec.parse()?;
            let link = link(rate.map_or(Rate::UNLIMITED, Rate));
            let _registered = kernel::load(KIND, &compose(&spec, &link.into())?, 1, None)?;
            shell(&format!("tc qdisc replace dev {DEVICE} root {KIND}"))?;
        }
        Setting::PerQueue(_, rate) => {
            kernel::attach(&kernel::Order {
                device: DEVICE,
                // As the others: without a program in front.
                spec: &"fq-lanes:ecn=no".parse()?,
                link: link(Rate(*rate)),
                replace: true,
                keep_offloads: true,
                per_queue: true,
            })?;
            let cost = generate(warm_up).and_then(|_| generate(packets))?;
            kernel::detach(DEVICE)?;
            return Ok(cost);
        }
        Setting::Queues(_, queues, marked) => {
            return with_queues(*queues, *marked, (warm_up, packets));
        }
    }
    generate(warm_up)?;
    let cost = generate(packets)?;
    shell(&format!("tc qdisc replace dev {DEVICE} root noqueue"))?;
    Ok(cost)
}

fn link(rate: Rate) -> LinkSettings {
    LinkSettings { rate, burst_time: Nanos::from_millis(5), ..LinkSettings::default() }
}

fn with_queues(queues: Queues, marked: Marked, (warm_up, packets): Load) -> Result<u64> {
    marks::attach(&marks::Order {
        device: DEVICE,
        link: link(Rate(10_000_000_000)),
        queues: Some(queues),
        join: None,
        threshold: (marked == Marked::Long).then_some(1),
        replace: true,
    })?;
    if marked == Marked::No {
        shell(&format!("tc qdisc del dev {DEVICE} clsact"))?;
    }
    let cost = generate(warm_up).and_then(|_| generate(packets))?;
    kernel::detach(DEVICE)?;
    Ok(cost)
}

/// Sends packets through the device's qdisc; nanoseconds, so instructions, for each.
fn generate(packets: u64) -> Result<u64> {
    let path = format!("/proc/net/pktgen/{DEVICE}");
    for line in [
        &format!("count {packets}"),
        "xmit_mode queue_xmit",
        "pkt_size 1000",
        "delay 0",
        "clone_skb 0",
        "dst_mac 02:00:00:00:00:01",
        "dst_min 10.0.0.2",
        "dst_max 10.0.0.2",
        "src_min 10.0.0.1",
        "src_max 10.0.0.1",
        "udp_src_min 1000",
        "udp_src_max 1063",
        "udp_dst_min 9",
        "udp_dst_max 9",
    ] {
        fs::write(&path, format!("{line}\n")).with_context(|| format!("pktgen: {line}"))?;
    }
    fs::write("/proc/net/pktgen/pgctrl", "start\n")?;
    // pkts-sofar: 20000  errors: 5678
    // Result: OK: 1234(c1200+d34) usec, 20000 (1000byte,0frags)
    // Errors are packets that the qdisc dropped at once, which do not count as sent. Of the time, 34
    // were spent waiting for the queue to let the last packet go.
    let said = fs::read_to_string(&path)?;
    let number_after = |mark| {
        let (_, rest) = said.split_once(mark)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    let dropped = number_after("errors: ").with_context(|| format!("pktgen: {said}"))?;
    let micros = number_after("(c").with_context(|| format!("pktgen: {said}"))?;
    ensure!(micros > 0, "pktgen: {said}");
    Ok(micros * 1000 / (packets + dropped))
}
