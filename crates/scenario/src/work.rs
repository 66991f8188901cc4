//! All runs of a scenario, in parallel. Results come out in the order of seeds and schedulers,
//! whatever the number of threads: files are the same bytes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use sched::Nanos;

use crate::idle::IdleTimes;
use crate::job::{Ended, Job, build};
use crate::record::Wanted;
use crate::rows::Row;
use crate::scenario::Scenario;
use crate::tally::{Tally, pair};

/// Watches runs and takes their rows.
pub trait Observer {
    /// A row, in an order that depends on the scenario alone.
    fn row(&mut self, row: Row);
    /// How far things are; called a few times a second.
    fn progress(&mut self, progress: &Progress);
}

/// How far a scenario is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time that has passed in all runs together.
    pub passed: Nanos,
    /// Simulated time of all runs.
    pub total: Nanos,
    /// Runs that are complete.
    pub runs: u64,
    /// Runs in all.
    pub total_runs: u64,
}

/// What came of a scenario.
#[derive(Debug, Default)]
pub struct Finished {
    /// Complete runs.
    pub(crate) runs: Vec<Run>,
    /// Why there are fewer runs than the scenario has.
    pub ended_early: Option<String>,
}

/// A complete run.
#[derive(Debug)]
pub(crate) struct Run {
    /// Place of its scheduler and of its seed.
    pub(crate) scheduler: usize,
    pub(crate) round: usize,
    pub(crate) tally: Tally,
}

impl Finished {
    /// How many runs are complete.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.len()
    }
}

/// Runs every scheduler with every seed, `threads` at a time, until `stop` is set. The first seed
/// has a row per packet if `wanted` says so, all others do not.
///
/// # Errors
/// If the network cannot be built at all.
pub fn run(
    scenario: &Scenario,
    threads: usize,
    wanted: Wanted,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Finished, String> {
    let idle = IdleTimes::new(scenario, build(scenario, None, false)?);
    let work = Work {
        scenario,
        idle: &idle,
        wanted,
        threads: threads.max(1),
        halt: AtomicBool::new(false),
        passed_ns: AtomicU64::new(0),
        shared: Mutex::new(Shared::default()),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        for _ in 0..work.threads.min(work.total()) {
            scope.spawn(|| work.work());
        }
        Ok(work.collect(stop, observer))
    })
}

struct Work<'a> {
    scenario: &'a Scenario,
    idle: &'a IdleTimes<'a>,
    wanted: Wanted,
    threads: usize,
    /// Set when no run is to go on.
    halt: AtomicBool,
    passed_ns: AtomicU64,
    shared: Mutex<Shared>,
    changed: Condvar,
}

#[derive(Default)]
struct Shared {
    /// The next run to be started.
    next: usize,
    /// Runs whose results have been taken.
    taken: usize,
    /// Results of runs that were started, in their order.
    results: VecDeque<Receiver<Message>>,
}

enum Message {
    Rows(Vec<Row>),
    Ended(Ended),
}

/// Rows travel in parcels of this many; so many parcels may wait. A run that is far ahead of its
/// turn waits with them: memory is bounded whatever a run writes.
const PARCEL: usize = 512;
const PARCELS: usize = 64;

/// How often progress is told, and the flag to stop looked at.
const TICK: Duration = Duration::from_millis(100);

impl Work<'_> {
    fn total(&self) -> usize {
        self.scenario.seeds.len() * self.scenario.schedulers.len()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed)
    }

    /// A thread: one run after another.
    fn work(&self) {
        while let Some((index, sender)) = self.next() {
            self.run(index, &sender);
        }
    }

    /// The next run and where its results go. Waits while results of too many runs wait.
    fn next(&self) -> Option<(usize, SyncSender<Message>)> {
        let mut shared = self.shared();
        loop {
            if self.halted() || shared.next == self.total() {
                return None;
            }
            if shared.next < shared.taken + 2 * self.threads {
                break;
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        let index = shared.next;
        shared.next += 1;
        let (sender, receiver) = sync_channel(PARCELS);
        shared.results.push_back(receiver);
        self.changed.notify_all();
        Some((index, sender))
    }

    fn run(&self, index: usize, sender: &SyncSender<Message>) {
        let (round, scheduler) = self.place(index);
        let wanted = Wanted { events: self.wanted.events && round == 0, ..self.wanted };
        let job = Job {
            scenario: self.scenario,
            idle: self.idle,
            spec: &self.scenario.schedulers[scheduler],
            seed: self.scenario.seeds[round],
            round: round as u64,
            block: index as u64,
            wanted,
            stop: &self.halt,
        };
        let mut parcel = Vec::new();
        let mut out = |row| {
            parcel.push(row);
            if parcel.len() == PARCEL {
                // Only a collector that panicked does not take it.
                let _ = sender.send(Message::Rows(std::mem::take(&mut parcel)));
            }
        };
        let passed = |time: Nanos| {
            self.passed_ns.fetch_add(time.0, Ordering::Relaxed);
        };
        let ended = job.run(&mut out, &passed);
        let _ = sender.send(Message::Rows(parcel));
        let _ = sender.send(Message::Ended(ended));
    }

    /// Seeds one after another, so that what is complete early is whole seeds.
    fn place(&self, index: usize) -> (usize, usize) {
        let schedulers = self.scenario.schedulers.len();
        (index / schedulers, index % schedulers)
    }

    /// Takes results in their order.
    fn collect(&self, stop: &AtomicBool, observer: &mut dyn Observer) -> Finished {
        let mut finished = Finished::default();
        for index in 0..self.total() {
            let Some(results) = self.started(index, stop, observer, &finished) else { break };
            let ended = self.take(&results, stop, observer, &finished);
            self.shared().taken = index + 1;
            self.changed.notify_all();
            match ended {
                Ended::Complete(tally) => {
                    let (round, scheduler) = self.place(index);
                    finished.runs.push(Run { scheduler, round, tally: *tally });
                    self.compare(&mut finished.runs, round);
                }
                Ended::Stopped => {
                    finished.ended_early.get_or_insert_with(|| "interrupted".into());
                }
                Ended::Failed(reason) => {
                    self.halt();
                    finished.ended_early.get_or_insert(reason);
                }
            }
        }
        if finished.runs.len() < self.total() {
            finished.ended_early.get_or_insert_with(|| "interrupted".into());
        }
        self.tell(observer, &finished);
        finished
    }

    /// Once a seed is complete, its runs are compared.
    fn compare(&self, runs: &mut [Run], round: usize) {
        let first = runs.iter().position(|run| run.round == round).unwrap_or(runs.len());
        let of_seed = &mut runs[first..];
        if of_seed.len() == self.scenario.schedulers.len() {
            let reference = of_seed[self.scenario.reference()].tally.clone();
            pair(&reference, of_seed.iter_mut().map(|run| &mut run.tally));
        }
    }

    fn halt(&self) {
        self.halt.store(true, Ordering::Relaxed);
        // Whoever is about to wait holds the lock: with it, none misses the call.
        let _shared = self.shared();
        self.changed.notify_all();
    }

    /// The results of the run, once it is started; `None` if it never will be.
    fn started(
        &self,
        index: usize,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
        finished: &Finished,
    ) -> Option<Receiver<Message>> {
        loop {
            if stop.load(Ordering::Relaxed) {
                self.halt();
            }
            let shared = self.shared();
            if shared.next <= index && self.halted() {
                return None;
            }
            let (mut shared, _) = self
                .changed
                .wait_timeout_while(shared, TICK, |shared| shared.results.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(results) = shared.results.pop_front() {
                return Some(results);
            }
            drop(shared);
            self.tell(observer, finished);
        }
    }

    fn take(
        &self,
        results: &Receiver<Message>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
        finished: &Finished,
    ) -> Ended {
        loop {
            match results.recv_timeout(TICK) {
                Ok(Message::Rows(rows)) => rows.into_iter().for_each(|row| observer.row(row)),
                Ok(Message::Ended(ended)) => return ended,
                Err(RecvTimeoutError::Timeout) => {}
                // The thread panicked, and the scope will say so.
                Err(RecvTimeoutError::Disconnected) => return Ended::Stopped,
            }
            if stop.load(Ordering::Relaxed) && !self.halted() {
                self.halt();
            }
            self.tell(observer, finished);
        }
    }

    fn tell(&self, observer: &mut dyn Observer, finished: &Finished) {
        observer.progress(&Progress {
            passed: Nanos(self.passed_ns.load(Ordering::Relaxed)),
            total: self.scenario.duration * self.total() as u64,
            runs: finished.runs.len() as u64,
            total_runs: self.total() as u64,
        });
    }
}
