//! Searches for the traffic under which a discipline does worst.
//!
//! A *victim* shares a link with an *attack*: up to four blocks of traffic, with TCP or without,
//! from the victim's host or another. The search keeps a population of attacks. It changes and
//! crosses those that do most harm and those under which the queue fared in a way not seen before
//! (drops, backlog, entries, marks, timeouts, by their powers of two), as a fuzzer keeps inputs that
//! reach new code. What it finds is simplified as far as it stays as bad, and is a scenario file:
//! whoever doubts it runs it.
//!
//! A search finds a lower bound of what can happen. It shows that a claim is wrong, and never that
//! it is right.
#![forbid(unsafe_code)]

mod attack;
mod bounds;
mod draw;
mod judge;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use sched::Spec;
use units::{Amount, Nanos, Rate};

pub use bounds::Bound;

use attack::Attack;
use draw::Draw;
use judge::Outcome;

/// Attacks that are tried at a time, whatever the number of threads: the search is the same.
const BATCH: usize = 16;
/// Attacks that are kept for the harm they do.
const ELITE: usize = 12;
/// Attacks that are kept for what was new about them.
const ODD: usize = 64;
/// Parts of a bound, in each of which an attack is new; their number is a trait beyond all others.
const STEPS: f64 = 20.0;
const NEAR_BOUND: u32 = 1 << 16;
/// A simpler attack that does this part of the harm is taken instead.
const AS_BAD: f64 = 0.97;

/// What is to be bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// How long a packet of a sparse stream takes to arrive, in ms: 100 bytes, a 500th of the link.
    Wait,
    /// How long nothing arrives of a stream that always has packets queued, in ms: 0.6 of the link.
    Starvation,
    /// The part of half a link that the only download of a host does not get, beside another host.
    Unfairness,
    /// Most entries of the flow table.
    Memory,
}

impl Harm {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Wait, Self::Starvation, Self::Unfairness, Self::Memory];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Starvation => "starvation",
            Self::Unfairness => "unfairness",
            Self::Memory => "memory",
        }
    }

    /// A number of it, as it is read: `312 ms`.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Wait | Self::Starvation if value < 10.0 => format!("{value:.1} ms"),
            Self::Wait | Self::Starvation => format!("{value:.0} ms"),
            Self::Unfairness => format!("{:.0} % of its share missing", value * 100.0),
            Self::Memory => format!("{value:.0} entries"),
        }
    }
}

/// Where to search, and how long.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What is to be bad.
    pub harm: Harm,
    /// Rate of the link.
    pub rate: Rate,
    /// Its propagation delay, one way.
    pub delay: Nanos,
    /// What its queue holds, if the discipline is not given a limit.
    pub limit: Amount,
    /// No TCP in the attack.
    pub open_loop: bool,
    /// Attacks to try.
    pub runs: usize,
    /// Every choice derives from it; it is the seed of the scenarios as well.
    pub seed: u64,
    /// Attacks that are tried at the same time.
    pub jobs: usize,
}

/// The worst that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The harm, in its unit.
    pub harm: f64,
    /// The same attack under `fifo`, if `fifo` does not let too many flows pile up.
    pub fifo: Option<f64>,
    /// Part of the victim's packets that were lost, where it is a stream.
    pub lost: Option<f64>,
    /// What the attack offers whatever the queue does, as a part of the link's rate.
    pub offered: f64,
    /// The attack, a block each.
    pub traffic: Vec<String>,
    /// What is proved or stated of this harm, if anything is.
    pub bound: Option<Bound>,
    /// The largest part of its own bound that any attack reached; above 1 a bound does not hold.
    pub reached: Option<f64>,
    /// A scenario that runs it, under the discipline and `fifo`.
    pub scenario: String,
    /// Attacks that were tried.
    pub tried: usize,
    /// Kinds of fate of the queue that were seen.
    pub traits: usize,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorstError {
    /// A scenario of the search was refused, by the simulator or by the discipline.
    Scenario(String),
    /// The search was stopped before anything was found.
    Stopped,
}

impl fmt::Display for WorstError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(why) => f.write_str(why),
            Self::Stopped => f.write_str("stopped before anything was found"),
        }
    }
}

impl std::error::Error for WorstError {}

/// An attack with what came of it.
#[derive(Clone)]
struct Tried {
    attack: Attack,
    outcome: Outcome,
}

/// Searches until `setting.runs` attacks were tried or `stop` is set; `progress` hears after each
/// batch how many were tried, and the worst so far.
///
/// # Errors
/// If the simulator takes no scenario with this discipline, or nothing was tried.
pub fn search(
    spec: &Spec,
    setting: &Setting,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(usize, f64),
) -> Result<Found, WorstError> {
    let rules = setting.harm.rules(setting);
    let mut draw = Draw::new(setting.seed);
    let mut kept = Kept::default();
    while kept.tried < setting.runs && !stop.load(Ordering::Relaxed) {
        let batch: Vec<Attack> = (0..BATCH.min(setting.runs - kept.tried))
            .map(|_| match kept.parents(&mut draw) {
                Some((first, _)) if draw.below(4) > 0 => first.changed(rules, &mut draw),
                Some((first, second)) if draw.below(2) == 0 => first.crossed(&second, &mut draw),
                _ => Attack::drawn(rules, &mut draw),
            })
            .collect();
        for (attack, outcome) in batch.iter().zip(judged(spec, setting, &batch)?) {
            kept.tried += 1;
            if let Some(outcome) = outcome {
                let bound = bounds::bound(spec, setting, &outcome);
                kept.add(Tried { attack: attack.clone(), outcome }, bound.as_ref());
            }
        }
        progress(kept.tried, kept.worst().map_or(0.0, |worst| worst.outcome.harm));
    }
    let worst = kept.worst().cloned().ok_or(WorstError::Stopped)?;
    let worst = simplified(spec, setting, worst)?;
    found(spec, setting, &kept, &worst)
}

/// What is kept of all that was tried.
#[derive(Default)]
struct Kept {
    /// The worst first.
    elite: Vec<Tried>,
    /// What showed something new, the latest last.
    odd: Vec<Attack>,
    traits: std::collections::BTreeSet<u32>,
    tried: usize,
    /// The largest part of its bound that any reached.
    reached: Option<f64>,
}

impl Kept {
    fn add(&mut self, tried: Tried, bound: Option<&Bound>) {
        let known = self.traits.len();
        self.traits.extend(&tried.outcome.traits);
        if let Some(bound) = bound {
            let part = tried.outcome.harm / bound.value;
            self.reached = Some(self.reached.map_or(part, |most| most.max(part)));
            // Close to its bound is a kind of fate, too.
            self.traits.insert(NEAR_BOUND + (part * STEPS) as u32);
        }
        if self.traits.len() > known {
            self.odd.push(tried.attack.clone());
            self.odd.drain(..self.odd.len().saturating_sub(ODD));
        }
        let twin = self.elite.iter().any(|one| one.attack == tried.attack);
        let at = self.elite.partition_point(|one| one.outcome.harm >= tried.outcome.harm);
        if at < ELITE && !twin {
            self.elite.insert(at, tried);
            self.elite.truncate(ELITE);
        }
    }

    fn worst(&self) -> Option<&Tried> {
        self.elite.first()
    }

    /// Two to go on from: mostly of the worst, else of the odd.
    fn parents(&self, draw: &mut Draw) -> Option<(Attack, Attack)> {
        let mut one = || match draw.below(3) {
            0 if !self.odd.is_empty() => Some(draw.one_of(&self.odd).clone()),
            _ if self.elite.is_empty() => None,
            _ => Some(draw.one_of(&self.elite).attack.clone()),
        };
        Some((one()?, one()?))
    }
}

/// What comes of each attack, some at a time.
fn judged(
    spec: &Spec,
    setting: &Setting,
    attacks: &[Attack],
) -> Result<Vec<Option<Outcome>>, WorstError> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![None; attacks.len()]);
    thread::scope(|scope| {
        for _ in 0..setting.jobs.clamp(1, attacks.len().max(1)) {
            scope.spawn(|| {
                while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at = attacks.iter().position(|one| std::ptr::eq(one, attack));
                    let outcome = judge::judge(setting, spec, attack);
                    let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    outcomes[at.expect("it is of these")] = Some(outcome);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.into_iter().map(|outcome| outcome.expect("each was tried")).collect()
}

/// The same without the blocks that it does not take.
fn simplified(spec: &Spec, setting: &Setting, worst: Tried) -> Result<Tried, WorstError> {
    let mut left = worst;
    loop {
        let simpler = left.attack.simpler();
        let outcomes = judged(spec, setting, &simpler)?;
        let best = simpler
            .into_iter()
            .zip(outcomes)
            .filter_map(|(attack, outcome)| Some((attack, outcome?)))
            .max_by(|(_, a), (_, b)| a.harm.total_cmp(&b.harm))
            .filter(|(_, outcome)| outcome.harm >= AS_BAD * left.outcome.harm);
        match best {
            Some((attack, outcome)) => left = Tried { attack, outcome },
            None => return Ok(left),
        }
    }
}

fn found(spec: &Spec, setting: &Setting, kept: &Kept, worst: &Tried) -> Result<Found, WorstError> {
    let fifo: Spec = "fifo".parse().expect("it is registered");
    let under_fifo = judge::judge(setting, &fifo, &worst.attack)?;
    let harm = setting.harm;
    let title = format!(
        "The worst {} under {spec} in {} attacks: {}; under fifo: {}",
        harm.name(),
        kept.tried,
        harm.show(worst.outcome.harm),
        under_fifo.as_ref().map_or("not simulated".into(), |under| harm.show(under.harm)),
    );
    let mut schedulers = vec![spec.to_string(), fifo.to_string()];
    schedulers.dedup();
    Ok(Found {
        harm: worst.outcome.harm,
        fifo: under_fifo.map(|under| under.harm),
        lost: worst.outcome.lost,
        offered: worst.attack.offered(),
        traffic: worst.attack.words(),
        bound: bounds::bound(spec, setting, &worst.outcome),
        reached: kept.reached,
        scenario: judge::scenario(setting, &title, &schedulers, &worst.attack),
        tried: kept.tried,
        traits: kept.traits.len(),
    })
}

#[cfg(test)]
mod tests;
