//! The schedulers that are compared, each as somebody who runs a link would set it up.
//!
//! Those that take a limit get the same one; fq_codel, fq_pie and CAKE bound their delay themselves
//! and keep their defaults, as `fq-lanes` keeps what `attach` gives it at this rate. Every shaper may catch up [`BURST`], but CAKE, whose shaper has no such
//! setting.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use anyhow::Result;
use engine::LinkSettings;
use engine::kernel::marks::{self, Queues};
use engine::kernel::{self, Registered, compose, load};
use sched::{Nanos, Rate, Spec};

use crate::command;

/// How far behind its schedule a shaper may be and still catch up.
const BURST: Nanos = Nanos::from_millis(5);
/// The queue that a limit allows, at the link's rate.
const LIMIT: Nanos = Nanos::from_millis(240);
/// Qdiscs of one load: one for each direction.
const INSTANCES: u32 = 2;

/// A setting: its name in tables, and how it is made.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    /// A shaper with this queue under it; `LIMIT` stands for the limit in packets.
    UnderTbf(&'static str),
    /// With these options beside its rate.
    Cake(&'static str),
    /// Classes for what is urgent by its kind and for the rest, with these queues.
    Hfsc(&'static str),
    /// One of this project's disciplines.
    Ours(&'static str),
    /// Marks in front of these queues, as `attach --engine marks` puts them there.
    Marks(Queues),
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting { name: "tbf+pfifo", how: How::UnderTbf("pfifo limit LIMIT") },
    Setting { name: "tbf+sfq", how: How::UnderTbf("sfq limit LIMIT perturb 10") },
    Setting { name: "tbf+fq_codel", how: How::UnderTbf("fq_codel") },
    Setting { name: "tbf+fq_pie", how: How::UnderTbf("fq_pie") },
    Setting { name: "tbf+hhf", how: How::UnderTbf("hhf limit LIMIT") },
    Setting { name: "cake", how: How::Cake("") },
    Setting { name: "cake besteffort", how: How::Cake("besteffort") },
    Setting { name: "cake diffserv4", how: How::Cake("diffserv4") },
    // Fair among flows, whosever they are.
    Setting { name: "cake flows", how: How::Cake("flows") },
    Setting { name: "hfsc+sfq", how: How::Hfsc("sfq limit LIMIT perturb 10") },
    Setting { name: "hfsc+fq_codel", how: How::Hfsc("fq_codel") },
    Setting { name: "fq-lanes", how: How::Ours("fq-lanes") },
    Setting { name: "efd", how: How::Ours("efd") },
    Setting { name: "efd:low-share=0.1", how: How::Ours("efd:low-share=0.1") },
    Setting { name: "sb-sh", how: How::Ours("sb-sh") },
    Setting { name: "run2c", how: How::Ours("run2c") },
    Setting { name: "efd:threshold=inf", how: How::Ours("efd:threshold=inf") },
    Setting { name: "marks+cake", how: How::Marks(Queues::Cake) },
    Setting { name: "marks+prio", how: How::Marks(Queues::Prio) },
    Setting { name: "marks+htb", how: How::Marks(Queues::Htb) },
];

/// Those that need no BPF qdiscs, for kernels without: what `--setting older` stands for.
const OLDER: [&str; 5] = ["tbf+fq_codel", "cake", "marks+cake", "marks+prio", "marks+htb"];

/// Those that every workload runs.
pub(super) const FEW: [&str; 7] =
    ["tbf+fq_codel", "cake", "fq-lanes", "efd", "marks+cake", "marks+prio", "marks+htb"];

/// The settings of these names; one that is not in the table is one of our disciplines, with
/// parameters.
pub(super) fn named(names: &[String]) -> Vec<Setting> {
    let find = |name: &String| {
        let known = SETTINGS.iter().find(|setting| setting.name == name).copied();
        known.unwrap_or_else(|| {
            let name: &'static str = name.clone().leak();
            Setting { name, how: How::Ours(name) }
        })
    };
    let older = |name: &String| match name.as_str() {
        "older" => OLDER.map(str::to_owned).to_vec(),
        _ => vec![name.clone()],
    };
    names.iter().flat_map(older).map(|name| find(&name)).collect()
}

/// A discipline with the limit that all have, unless it names its own or is as `attach` makes it.
fn with_limit(spec: &str, rate_bps: u64) -> Result<Spec> {
    let spec: Spec = spec.parse()?;
    if spec.params().is_given("limit") {
        return Ok(spec);
    }
    if spec.info().name == "fq-lanes" {
        return Ok(spec.with_limit_for(Rate(rate_bps)));
    }
    Ok(spec.with("limit", &format!("{}packets", limit_packets(rate_bps)))?)
}

/// Packets of 1500 bytes that a limit allows at this rate.
fn limit_packets(rate_bps: u64) -> u64 {
    (rate_bps / 8 * LIMIT.0 / 1_000_000_000).div_ceil(1500)
}

fn burst_bytes(rate_bps: u64) -> u64 {
    rate_bps / 8 * BURST.0 / 1_000_000_000
}

/// The loads of our disciplines: one for each discipline and rate, kept for further blocks.
#[derive(Default)]
pub(super) struct Kinds {
    loaded: HashMap<(&'static str, u64), (String, Registered)>,
}

impl Kinds {
    /// The name of the qdisc kind that this discipline has at this rate.
    fn name(&mut self, spec: &'static str, rate_bps: u64) -> Result<&str> {
        let number = self.loaded.len();
        let kind = match self.loaded.entry((spec, rate_bps)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let spec = with_limit(spec, rate_bps)?;
                let name = format!("shortlane{number}");
                let registered =
                    load(&name, &compose(&spec, &link(rate_bps).into())?, INSTANCES, None)?;
                new.insert((name, registered))
            }
        };
        Ok(&kind.0)
    }
}

fn link(rate_bps: u64) -> LinkSettings {
    LinkSettings { rate: Rate(rate_bps), burst_time: BURST, ..LinkSettings::default() }
}

impl Setting {
    /// Puts the scheduler on a device of the calling thread's namespace, afresh, by its commands.
    pub(super) fn put_on(&self, device: &str, rate_bps: u64, commands: &[String]) -> Result<()> {
        // What an earlier block has left goes first; there may be nothing.
        let _ = kernel::detach(device);
        let How::Marks(queues) = self.how else {
            return put_on(device, commands);
        };
        let _ = command::run(&format!("tc qdisc del dev {device} root"));
        marks::attach(&marks::Order {
            device,
            link: link(rate_bps),
            queues: Some(queues),
            join: None,
            threshold: None,
            replace: false,
        })?;
        Ok(())
    }

    /// The `tc` commands that put the scheduler on `DEV`; none for marks, which need none.
    pub(super) fn commands(&self, rate_bps: u64, kinds: &mut Kinds) -> Result<Vec<String>> {
        let queue = |queue: &str| queue.replace("LIMIT", &limit_packets(rate_bps).to_string());
        Ok(match self.how {
            How::UnderTbf(child) => {
                let (child, burst) = (queue(child), burst_bytes(rate_bps));
                // The limit is that of the queue which tbf makes until it gets its child.
                let tbf = format!("tbf rate {rate_bps}bit burst {burst} limit 1mb");
                vec![
                    format!("qdisc add DEV root handle 1: {tbf}"),
                    format!("qdisc add DEV parent 1:1 handle 10: {child}"),
                ]
            }
            How::Cake(options) => {
                vec![format!("qdisc add DEV root cake bandwidth {rate_bps}bit {options}")]
            }
            How::Hfsc(leaf) => hfsc(rate_bps, &queue(leaf)),
            How::Ours(spec) => {
                vec![format!("qdisc add DEV root {}", kinds.name(spec, rate_bps)?)]
            }
            How::Marks(_) => Vec::new(),
        })
    }
}

fn put_on(device: &str, commands: &[String]) -> Result<()> {
    // Not `replace`: it would keep what an earlier block has left of the same kind.
    let _ = command::run(&format!("tc qdisc del dev {device} root"));
    for line in commands {
        command::run(&format!("tc {}", line.replace("DEV", &format!("dev {device}"))))?;
    }
    Ok(())
}

/// UDP (voice, names, games) and TCP packets without data go ahead with a fifth of the rate
/// guaranteed within 10 ms; ports cannot tell a short fetch from a long one, so the rest is one
/// class.
fn hfsc(rate_bps: u64, leaf: &str) -> Vec<String> {
    let (urgent, rest) = (rate_bps / 5, rate_bps - rate_bps / 5);
    let filter = "filter add DEV parent 1: protocol ip";
    vec![
        "qdisc add DEV root handle 1: hfsc default 20".to_owned(),
        format!(
            "class add DEV parent 1: classid 1:1 hfsc sc rate {rate_bps}bit ul rate {rate_bps}bit"
        ),
        format!(
            "class add DEV parent 1:1 classid 1:10 hfsc sc umax 1500b dmax 10ms rate {urgent}bit"
        ),
        format!("class add DEV parent 1:1 classid 1:20 hfsc sc rate {rest}bit"),
        format!("qdisc add DEV parent 1:10 handle 10: {leaf}"),
        format!("qdisc add DEV parent 1:20 handle 20: {leaf}"),
        format!("{filter} prio 1 u32 match ip protocol 17 0xff flowid 1:10"),
        format!("{filter} prio 2 u32 match ip protocol 6 0xff match u16 0 0xffc0 at 2 flowid 1:10"),
    ]
}
