//! Runs an attack and says what it did to the victim.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use scenario::{
    Finished, LinkSummary, Observer, Overrides, Progress, Row, Scenario, SchedulerSummary, Summary,
    TrafficKind, Wanted,
};
use sched::{Rate, Spec};

use crate::attack::{Attack, Rules};
use crate::{Harm, Setting, WorstError};

const DURATION_MS: u64 = 12_000;
const WARM_UP_MS: u64 = 1_000;
/// Flows open at a time: with more, more is offered than any queue can send.
const BOUND: usize = 3000;
const VICTIM: &str = "victim";

/// What came of one attack.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// In the unit of the harm.
    pub(crate) harm: f64,
    /// Part of the victim's packets that were lost, where it is a stream.
    pub(crate) lost: Option<f64>,
    /// Most entries of the flow table.
    pub(crate) entries: u64,
    /// What the run was like, a bit for each trait: attacks that differ in it are worth keeping.
    pub(crate) traits: Vec<u32>,
}

impl Harm {
    pub(crate) fn rules(self, setting: &Setting) -> Rules {
        Rules {
            open_loop: setting.open_loop,
            // Flows of one host may share its part as they like.
            own_host: self != Self::Unfairness,
        }
    }

    fn victim(self, rate: Rate) -> String {
        let stream = |rate: u64, packet: u32| {
            format!("kind = \"cbr\"\nrate = \"{rate}bit\"\npacket = \"{packet}b\"\n")
        };
        match self {
            Self::Wait => stream((rate.0 / 500).max(1_000), 100),
            Self::Starvation => stream(rate.0 * 3 / 5, 1500),
            Self::Unfairness | Self::Memory => "kind = \"persistent\"\n".to_owned(),
        }
    }
}

/// The scenario file of an attack.
pub(crate) fn scenario(
    setting: &Setting,
    title: &str,
    schedulers: &[String],
    attack: &Attack,
) -> String {
    let rate = setting.rate.0;
    let mut text = format!(
        "[scenario]\ntitle = {title:?}\nduration = \"{DURATION_MS}ms\"\nwarm-up = \"{WARM_UP_MS}ms\"\n\
         seeds = \"{}\"\nbound = {BOUND}\n\n[topology]\nkind = \"dumbbell\"\npairs = 2\n\
         access = {{ rate = \"{}bit\", delay = \"500us\" }}\n\n[topology.bottleneck]\n\
         rate = \"{rate}bit\"\ndelay = \"{}ns\"\nlimit = \"{}\"\nback-scheduler = \"fifo\"\n\n\
         [schedulers]\nrun = {schedulers:?}\n\n[tcp]\npreset = \"linux\"\n\n\
         [record]\nsamples = \"inf\"\n",
        setting.seed,
        rate * 100,
        setting.delay.0,
        setting.limit,
    );
    let _ = write!(
        text,
        "\n[[traffic]]\nname = \"{VICTIM}\"\n{}from = \"left1\"\nto = \"right1\"\n",
        setting.harm.victim(setting.rate)
    );
    attack.write(setting.rate, &mut text);
    text
}

/// Runs `attack` under `spec`; `None` if more flows were open than are simulated.
pub(crate) fn judge(
    setting: &Setting,
    spec: &Spec,
    attack: &Attack,
) -> Result<Option<Outcome>, WorstError> {
    let text = scenario(setting, "attack", &[spec.to_string()], attack);
    let parsed = Scenario::parse(&text, "attack", None, &Overrides::default());
    let parsed = parsed.map_err(|error| WorstError::Scenario(error.to_string()))?;
    let mut arrivals = Arrivals::default();
    let wanted =
        Wanted { tables: matches!(setting.harm, Harm::Wait | Harm::Starvation), events: false };
    let finished = scenario::run(&parsed, 1, wanted, &AtomicBool::new(false), &mut arrivals)
        .map_err(WorstError::Scenario)?;
    Ok(outcome(setting, &parsed, &finished, &arrivals))
}

fn outcome(
    setting: &Setting,
    parsed: &Scenario,
    finished: &Finished,
    arrivals: &Arrivals,
) -> Option<Outcome> {
    let summary = Summary::of(parsed, finished);
    let scheduler = summary.schedulers.first().filter(|_| summary.seeds > 0)?;
    let link = &scheduler.links[0];
    let harm = match setting.harm {
        Harm::Wait => arrivals.longest_delay_ms(),
        Harm::Starvation => arrivals.longest_silence_ms(),
        Harm::Unfairness => {
            let fair = setting.rate.0 as f64 / 2e6 * 1448.0 / 1500.0;
            (1.0 - received(scheduler) / fair).max(0.0)
        }
        Harm::Memory => link.entries_peak as f64,
    };
    let traits = traits(scheduler, link, harm);
    Some(Outcome { harm, lost: arrivals.lost(), entries: link.entries_peak, traits })
}

/// What the victim received, in Mbit/s.
fn received(scheduler: &SchedulerSummary) -> f64 {
    match &scheduler.traffic[0].kind {
        TrafficKind::Persistent { mbit, .. } => mbit.map_or(0.0, |mbit| mbit.value),
        _ => 0.0,
    }
}

/// Each number that tells how the queue fared, with its power of two.
fn traits(scheduler: &SchedulerSummary, link: &LinkSummary, harm: f64) -> Vec<u32> {
    let value = |estimate: Option<measure::stats::Estimate>| estimate.map_or(0.0, |e| e.value);
    let numbers = [
        harm * 16.0,
        link.backlog_peak as f64,
        link.entries_peak as f64,
        value(link.backlog_mean),
        value(link.drop_percent) * 10.0,
        value(link.dropped_short_lane),
        value(link.dropped_long_lane),
        value(link.utilisation) * 16.0,
        value(scheduler.timeouts),
        value(scheduler.retransmissions),
    ];
    let bucket = |number: f64| (number + 1.0).log2() as u32;
    numbers.iter().enumerate().map(|(at, number)| at as u32 * 64 + bucket(*number)).collect()
}

/// What of the victim's arrived, and when.
#[derive(Default)]
struct Arrivals {
    /// When each packet was sent, and arrived.
    packets: Vec<(u64, Option<u64>)>,
}

impl Observer for Arrivals {
    fn row(&mut self, row: Row) {
        if let Row::Probe(probe) = row
            && &*probe.stream == VICTIM
        {
            let arrived = probe.delay_ns.map(|delay| probe.sent_ns + delay);
            self.packets.push((probe.sent_ns, arrived));
        }
    }

    fn progress(&mut self, _: &Progress) {}
}

impl Arrivals {
    fn after_warm_up(&self) -> Vec<(u64, Option<u64>)> {
        let counts = |(sent, _): &&(u64, _)| *sent >= WARM_UP_MS * 1_000_000;
        let mut packets: Vec<_> = self.packets.iter().filter(counts).copied().collect();
        packets.sort_unstable();
        packets
    }

    fn longest_delay_ms(&self) -> f64 {
        let delay = |(sent, arrived): (u64, Option<u64>)| arrived.map(|arrived| arrived - sent);
        let longest = self.after_warm_up().into_iter().filter_map(delay).max();
        longest.unwrap_or(0) as f64 / 1e6
    }

    /// The longest time from when the victim sent something until that, or something it sent
    /// later, arrived, or the run ended.
    fn longest_silence_ms(&self) -> f64 {
        let mut next = DURATION_MS * 1_000_000;
        let mut longest = 0;
        for (sent, arrived) in self.after_warm_up().into_iter().rev() {
            next = arrived.map_or(next, |arrived| next.min(arrived));
            longest = longest.max(next.saturating_sub(sent));
        }
        longest as f64 / 1e6
    }

    fn lost(&self) -> Option<f64> {
        let packets = self.after_warm_up();
        let lost = packets.iter().filter(|(_, arrived)| arrived.is_none()).count();
        (!packets.is_empty()).then(|| lost as f64 / packets.len() as f64)
    }
}
