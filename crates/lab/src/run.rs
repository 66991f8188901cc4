//! The whole experiment: rounds of blocks in interleaved order.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicBool;
use std::thread;

use measure::Key;
use units::Nanos;

use crate::block::{self, BlockError, Outcome};
use crate::config::{Config, Round};
use crate::idle::IdleTimes;
use crate::kernel;
use crate::rows::{Rows, Source};
use crate::scheduler::{Engine, Scheduler};
use crate::summary::Summary;
use crate::traffic::monotonic;
use crate::{config, plan};

/// What the caller is told while the lab runs.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// Times on the idle link are being measured.
    Idle,
    /// A block begins.
    Block {
        /// Its number, from 0.
        number: u64,
        /// Blocks expected in all.
        of: u64,
        /// The discipline.
        scheduler: &'a str,
    },
    /// A block does not count and is repeated.
    Void {
        /// The discipline, or `the idle link`.
        scheduler: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A block is over; here are its rows, void or not.
    Done(&'a Rows),
}

/// How a lab ended. What was measured until then is in `blocks` in any case.
#[derive(Debug, Default)]
pub struct Finished {
    /// Blocks that count, of complete rounds only: every discipline on the same traffic.
    pub blocks: Vec<Rows>,
    /// Blocks that were void and repeated.
    pub void: u64,
    /// Why the lab ended before its time.
    pub ended_early: Option<String>,
}

/// How often a block is tried before the lab gives up.
const TRIES: u32 = 3;
/// A block is void if the pacer gave up more of its sending time than `Timing::late_limit`, or the
/// engine lost more of the packets than this before they reached the queue...
const MOST_PACKETS_LOST: f64 = 0.001;
/// ... or woke up later than this for each percent of the limit, or client or server did so.
const MOST_LATE: Nanos = Nanos::from_millis(10);

/// Runs the experiment.
///
/// # Errors
/// With the setting that cannot be run. What goes wrong later ends the lab early: see
/// [`Finished::ended_early`].
pub fn run(
    config: &Config,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Finished, config::ConfigError> {
    config.check()?;
    if config.link.engine == Engine::Kernel {
        kernel::check(config)?;
    }
    let mut finished = Finished::default();
    if let Err(error) = (Rounds { config, stop, progress, start: monotonic(), number: 0, done: 0 })
        .run_into(&mut finished)
    {
        let interrupted = error.is_interrupt();
        finished.ended_early =
            Some(if interrupted { "interrupted".to_owned() } else { error.to_string() });
    }
    Ok(finished)
}

struct Rounds<'a, 'p> {
    config: &'a Config,
    stop: &'a AtomicBool,
    progress: &'p mut dyn FnMut(Progress<'_>),
    start: Nanos,
    /// The next block's number.
    number: u64,
    /// Blocks that count, so far.
    done: u64,
}

impl Rounds<'_, '_> {
    fn run_into(&mut self, finished: &mut Finished) -> Result<(), BlockError> {
        let config = self.config;
        let idle = if config.idle_times {
            self.idle_times(&mut finished.void)?
        } else {
            IdleTimes::default()
        };
        let most = config.timing.until_precise.unwrap_or(config.timing.rounds);
        for round in 0..most {
            let sent =
                plan::of_round(config, round).map_err(|e| BlockError::Engine(e.to_string()))?;
            let blocks = self.round(round, &sent, &idle, &mut finished.void)?;
            finished.blocks.extend(blocks);
            let enough = round + 1 >= config.timing.rounds;
            if enough && Summary::of(config, &finished.blocks).is_precise() {
                break;
            }
        }
        Ok(())
    }

    fn idle_times(&mut self, void: &mut u64) -> Result<IdleTimes, BlockError> {
        let config = self.config;
        (self.progress)(Progress::Idle);
        let list = config.transfers(0).map_err(|e| BlockError::Engine(e.to_string()))?;
        let largest = list.transfers().iter().map(|t| t.size_bytes).max().unwrap_or(0);
        let tcp = config.traffic.tcp[0];
        let mut tries = 0;
        loop {
            tries += 1;
            match IdleTimes::measure(largest, tcp, &config.link, &config.agent, self.stop) {
                Err(BlockError::Agent(error)) if !error.is_interrupt() => {
                    self.repeat("the idle link", &error.to_string(), tries, void)?;
                }
                other => return other,
            }
        }
    }

    /// Every discipline once on the same plan, `jobs` of them side by side.
    fn round(
        &mut self,
        round: u64,
        sent: &Round,
        idle: &IdleTimes,
        void: &mut u64,
    ) -> Result<Vec<Rows>, BlockError> {
        let count = self.config.schedulers.len();
        // Rotated, so that no discipline is always first or always after the same one.
        let order = (0..count).map(|index| (index + round as usize) % count);
        let mut pending: Vec<&Scheduler> = order.map(|at| &self.config.schedulers[at]).collect();
        let mut whole = Vec::new();
        let mut tries = 0;
        while !pending.is_empty() {
            tries += 1;
            let mut again = Vec::new();
            for specs in pending.chunks(self.config.timing.jobs) {
                let (start, outcomes) = self.side_by_side(specs, round, sent);
                for (spec, outcome) in specs.iter().zip(outcomes) {
                    let void_reason = match outcome {
                        Ok(outcome) => {
                            let reason = too_late(&outcome, self.config.timing.late_limit);
                            let rows = self.rows(spec, round, sent, &outcome, idle, start, &reason);
                            (self.progress)(Progress::Done(&rows));
                            if reason.is_none() {
                                whole.push(Rows { samples: Vec::new(), ..rows });
                            }
                            reason
                        }
                        Err(BlockError::Agent(error)) if !error.is_interrupt() => {
                            Some(error.to_string())
                        }
                        Err(error) => return Err(error),
                    };
                    if let Some(reason) = void_reason {
                        self.repeat(&spec.to_string(), &reason, tries, void)?;
                        again.push(*spec);
                    }
                }
            }
            pending = again;
        }
        Ok(whole)
    }

    /// Runs one block of each discipline at the same time. Returns also when that was.
    fn side_by_side(
        &mut self,
        specs: &[&Scheduler],
        round: u64,
        sent: &Round,
    ) -> (Nanos, Vec<Result<Outcome, BlockError>>) {
        let config = self.config;
        let of = config.timing.rounds * config.schedulers.len() as u64;
        for (spec, index) in specs.iter().zip(0..) {
            let number = self.done + index;
            let scheduler = &spec.to_string();
            (self.progress)(Progress::Block { number, of: of.max(number + 1), scheduler });
        }
        let start = monotonic() - self.start;
        let stop = self.stop;
        let outcomes = thread::scope(|scope| {
            let running: Vec<_> = specs
                .iter()
                .map(|spec| {
                    let seed = seed_of(config.seed, round, &spec.to_string());
                    scope.spawn(move || {
                        block::run(sent.clone(), spec, seed, &config.link, &config.agent, stop)
                    })
                })
                .collect();
            let joined = running
                .into_iter()
                .map(|block| block.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.collect()
        });
        (start, outcomes)
    }

    /// Says that a block is repeated, unless this was its last try.
    fn repeat(
        &mut self,
        scheduler: &str,
        reason: &str,
        tries: u32,
        void: &mut u64,
    ) -> Result<(), BlockError> {
        if tries >= TRIES {
            return Err(BlockError::Engine(format!(
                "{TRIES} blocks of {scheduler} in a row were void, the last one because {reason}; \
                 if the machine is too busy, free a processor or lower --rate or --jobs"
            )));
        }
        *void += 1;
        (self.progress)(Progress::Void { scheduler, reason });
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn rows(
        &mut self,
        spec: &Scheduler,
        round: u64,
        sent: &Round,
        outcome: &Outcome,
        idle: &IdleTimes,
        start: Nanos,
        void_reason: &Option<String>,
    ) -> Rows {
        let config = self.config;
        let key = Key {
            run: config.link.engine.run().into(),
            scheduler: spec.to_string().as_str().into(),
            seed: config.rounds.get(round as usize).map_or(config.seed, |round| round.seed),
            round,
            block: self.number,
        };
        self.number += 1;
        self.done += u64::from(void_reason.is_none());
        let (link, warm_up) = (&config.link, config.timing.warm_up);
        let labels = &config.labels;
        let mut rows = Source { key, sent, outcome, idle, link, labels, warm_up }.rows();
        rows.block.start_ns = start.0;
        rows.block.void = void_reason.is_some();
        rows.block.void_reason = void_reason.as_deref().map(Into::into);
        rows
    }
}

/// The reason why a block does not count, if there is one.
fn too_late(outcome: &Outcome, late_limit: f64) -> Option<String> {
    let most_late = Nanos((MOST_LATE.0 as f64 * 100.0 * late_limit) as u64);
    for direction in outcome.engines().flat_map(|report| &report.directions) {
        let punctuality = &direction.punctuality;
        let lost = punctuality.lost.0 as f64 / direction.duration.0.max(1) as f64;
        if lost > late_limit {
            return Some(format!("the pacer gave up {:.1} % of its time", lost * 100.0));
        }
        if punctuality.max_late > most_late {
            return Some(format!("the pacer woke {} ms late", punctuality.max_late.0 / 1_000_000));
        }
        let lost = direction.lost_in_kernel;
        if lost as f64 > MOST_PACKETS_LOST * direction.received.packets as f64 {
            return Some(format!("the engine was too late for {lost} packets"));
        }
    }
    let of_hosts = outcome.seen.iter().map(|s| s.client.worst_late.max(s.server.worst_late));
    let late = of_hosts.max().unwrap_or_default();
    (late > most_late).then(|| format!("client or server was {} ms late", late.0 / 1_000_000))
}

/// A seed for the discipline's own choices, different in every block.
fn seed_of(seed: u64, round: u64, scheduler: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, round, scheduler).hash(&mut hasher);
    hasher.finish()
}
