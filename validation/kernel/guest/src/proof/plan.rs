//! Random sequences of arrivals, releases and changes, and the disciplines they are tried on.

use anyhow::{Context, Result, ensure};
use engine::kernel::{Shaping, compose};
use sched::{Nanos, Spec};

use super::frames::{Frame, Population, Variety};
use super::random::Random;

/// What happens with one arrival.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Parameters that the discipline is changed to before it.
    pub(crate) change: Option<Spec>,
    /// Time that passes before it.
    pub(crate) pause: Option<Nanos>,
    pub(crate) frame: Frame,
    /// Packets that may leave after it.
    pub(crate) release: u32,
}

/// A sequence on a fresh qdisc.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
}

/// More than a run of the qdisc lets out at once would leave at a time of their own.
const MOST_RELEASED: u64 = 60;

const FQ_LANES: &str = "fq-lanes";

/// What is fixed while a load lives: the discipline and the parameters that cannot change.
pub(crate) struct Family {
    name: &'static str,
    fixed: String,
    /// Of the threshold: it cannot change.
    threshold_in_bytes: bool,
    flow_bound: u64,
}

impl Family {
    pub(crate) fn random(name: &'static str, random: &mut Random) -> Result<Self> {
        let defaults = Spec::named(name)?;
        let has = |parameter| defaults.params().has(parameter);
        let mut fixed = Vec::new();
        let mut choose = |random: &mut Random, parameter: &str, values: &[&str]| {
            let value = random.pick(values).to_owned();
            fixed.push(format!("{parameter}={value}"));
            value
        };
        let mut remembers = name != "efd" && name != "fifo";
        let mut is_weighted = has("weight");
        if name == "lanes" {
            let kinds = ["while-queued", "every-flow", "sampled", "sample-and-hold"];
            remembers = choose(random, "accounting", &kinds) != "while-queued";
            let services = ["strict", "weighted", "guaranteed"];
            is_weighted = choose(random, "service", &services) == "weighted";
        }
        if has("buffer") {
            choose(random, "buffer", &["drop-tail", "knockout"]);
        }
        if has("sharing") && is_weighted {
            choose(random, "sharing", &["scfq", "coin"]);
        }
        if name == FQ_LANES {
            choose(random, "hosts", &["destination", "source", "none"]);
            let parts =
                ["ages", "new", "patience", "part", "floor", "half-life", "clock", "ahead", "idle"];
            let without = if random.chance(60) { "nothing" } else { random.pick(&parts) };
            choose(random, "without", &[without]);
        }
        let mut flow_bound = u64::MAX;
        if has("flows") {
            // Who makes room in a table at its bound differs between kernel and core, unless
            // there is no choice or both look at all entries; EFD's never has to choose.
            let bounds: &[&str] = match (name, remembers) {
                // Both look at sixteen entries.
                (FQ_LANES, _) => &["1", "3", "10", "16", "600", "4096"],
                (_, true) => &["1", "600", "4096"],
                (_, false) => &["1", "3", "10", "600"],
            };
            flow_bound = choose(random, "flows", bounds).parse()?;
        }
        Ok(Self { name, fixed: fixed.join(","), threshold_in_bytes: random.chance(40), flow_bound })
    }

    /// A member: all that can change while it runs, at random.
    ///
    /// `idle` is left to the caller: after a change of it the kernel judges entries that nobody
    /// has looked at since the last sweep by the new value, where the core has swept them by the
    /// old one.
    pub(crate) fn member(&self, random: &mut Random, idle: &str) -> Result<Spec> {
        for _ in 0..100 {
            let mut spec = self.try_member(random)?;
            if spec.params().has("idle") {
                spec = spec.with("idle", idle)?;
            }
            // The qdisc keeps the text for `show`, as far as there is room.
            if compose(&spec, &unshaped()).is_ok() {
                return Ok(spec);
            }
        }
        anyhow::bail!("{}: no parameters that fit", self.name)
    }

    fn try_member(&self, random: &mut Random) -> Result<Spec> {
        let mut spec: Spec = format!("{}:{}", self.name, self.fixed).parse()?;
        let limit = match random.below(10) {
            0 => "1packets".to_owned(),
            1 | 2 => format!("{}packets", random.within(2..=8)),
            3..=5 => format!("{}packets", random.within(8..=20)),
            6 | 7 => format!("{}packets", random.within(1..=64)),
            8 => format!("{}b", random.within(14..=5_000)),
            _ => format!("{}b", random.within(1_000..=60_000)),
        };
        spec = spec.with("limit", &limit)?;
        let threshold = match (self.threshold_in_bytes, random.below(8)) {
            (_, 0) => "inf".to_owned(),
            (false, 1) => "0packets".to_owned(),
            (false, 2..=5) => format!("{}packets", random.within(1..=3)),
            (false, _) => format!("{}packets", random.within(1..=12)),
            (true, 1) => "0b".to_owned(),
            (true, 2..=5) => format!("{}b", random.within(14..=3_000)),
            (true, _) => format!("{}b", random.within(14..=12_000)),
        };
        // `inf` counts in packets.
        let threshold =
            if threshold == "inf" && self.threshold_in_bytes { "4000000000b" } else { &threshold };
        let weighted = !self.fixed.contains("service=") || self.fixed.contains("=weighted");
        let guaranteed = !self.fixed.contains("service=") || self.fixed.contains("=guaranteed");
        let sampled = !self.fixed.contains("accounting=") || self.fixed.contains("=sample");
        let is_fq_lanes = self.name == FQ_LANES;
        if is_fq_lanes {
            // It marks another packet than the core.
            spec = spec.with("ecn", "no")?;
        }
        let live: [(&str, bool, &[&str]); 11] = [
            ("boundary", true, &["before", "after", "literal"]),
            ("weight", weighted, &["0.5", "0.8", "0.999", "1", "0.01"]),
            ("cap-high", weighted, &["inf", "inf", "50mbit", "10mbit"]),
            ("low-share", guaranteed, &["0", "0.1", "0.5", "0.9", "0.003"]),
            ("probability", sampled, &["0", "0.01", "0.1", "0.5", "0.9", "1"]),
            ("sampled-to", sampled, &["high", "low", "rule"]),
            ("count-sampled", sampled, &["yes", "no"]),
            ("sweep", true, &["1ms", "2ms", "5s", "inf"]),
            ("target", is_fq_lanes, &["0s", "50us", "500us", "5ms", "inf"]),
            ("interval", is_fq_lanes, &["1us", "20us", "300us", "2ms", "100ms"]),
            ("threshold", true, &[]),
        ];
        for (parameter, matters, values) in live {
            if !spec.params().has(parameter) || !matters {
                continue;
            }
            let always = parameter == "threshold";
            if always {
                spec = spec.with(parameter, threshold)?;
            } else if random.chance(70) {
                spec = spec.with(parameter, random.pick(values))?;
            }
        }
        Ok(spec)
    }

    /// Whether who makes room in the table is no matter of choice.
    pub(crate) fn flow_bound(&self) -> u64 {
        self.flow_bound
    }
}

pub(crate) fn unshaped() -> Shaping {
    Shaping::default()
}

impl Plan {
    pub(crate) fn random(family: &Family, random: &mut Random, variety: Variety) -> Result<Self> {
        let population = Population::new(random, variety);
        let arrivals = random.pick(&[5, 20, 60, 60, 150, 150, 300]);
        ensure!(arrivals < family.flow_bound().max(600), "more flows than a table may be tried on");
        let idle = random.pick(&["1ms", "3ms", "10ms", "inf"]);
        // Filling, draining, and in between.
        let mut mood = random.below(3);
        let mut steps = Vec::with_capacity(arrivals as usize);
        for n in 0..arrivals {
            if random.chance(6) {
                mood = random.below(3);
            }
            let release = match mood {
                0 => u64::from(random.chance(10)),
                1 => random.below(4),
                _ => u64::from(random.chance(60)),
            };
            let release = if random.chance(2) { MOST_RELEASED } else { release };
            let change = n == 0 || random.chance(2);
            steps.push(Step {
                change: if change { Some(family.member(random, idle)?) } else { None },
                pause: random.chance(2).then(|| Nanos::from_millis(random.within(1..=4))),
                frame: population.frame(random),
                release: release as u32,
            });
        }
        let last = steps.last_mut().context("no steps")?;
        last.release = random.pick(&[0, MOST_RELEASED as u32]);
        Ok(Self { steps })
    }
}
