//! One block: fresh namespaces, one discipline, the traffic of a round.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use engine::{EngineError, Forwarder, Observe, Rate, RateChange, Report};
use netdev::link::LinkError;
use netdev::netns::{Namespace, NetnsError};
use scenario::Varying;
use sched::Nanos;

use crate::agents::{Agent, AgentError};
use crate::config::{AgentProgram, Bottleneck, Round};
use crate::hosts::Hosts;
use crate::kernel::{Passed, Ready};
use crate::scheduler::{Engine, Scheduler};
use crate::traffic::{ClientReport, Plan, ServerReport, monotonic};

/// From building the plans to the start of traffic: time to start two processes for each...
const START: Nanos = Nanos::from_millis(250);
/// ... and round trips: the client and a router ask for addresses, the client connects, and one to
/// spare.
const START_ROUND_TRIPS: u64 = 5;
/// How much longer than its plan an agent may take to report.
const GRACE: Duration = Duration::from_secs(10);

/// What a block measured.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What client and server saw, for each plan.
    pub(crate) seen: Vec<Seen>,
    /// What the bottleneck did.
    pub(crate) bottleneck: Through,
    /// What made servers far.
    pub(crate) detours: Vec<Report>,
}

/// What the two hosts of a plan saw.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) client: ClientReport,
    pub(crate) server: ServerReport,
}

impl Outcome {
    /// What the userspace engine says of all in which it had a part.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &Report> {
        self.bottleneck.engine().into_iter().chain(&self.detours)
    }
}

/// What the bottleneck did, from the client to the server and, second, back.
#[derive(Debug)]
pub(crate) enum Through {
    Engine(Report),
    Kernel(Passed),
}

impl Through {
    /// What the userspace engine says, where it had a part in it.
    pub(crate) const fn engine(&self) -> Option<&Report> {
        match self {
            Self::Engine(report) => Some(report),
            Self::Kernel(passed) => passed.delay.as_ref(),
        }
    }
}

/// Why a block has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// No namespaces.
    #[error(transparent)]
    Namespace(NetnsError),
    /// The interfaces could not be made.
    #[error("cannot set up the namespaces: {0}")]
    Setup(String),
    /// The engine did not start, or stopped.
    #[error("{0}")]
    Engine(String),
    /// Client or server did not deliver.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

impl BlockError {
    /// Whether the user wanted it to end.
    #[must_use]
    pub const fn is_interrupt(&self) -> bool {
        matches!(self, Self::Agent(error) if error.is_interrupt())
    }
}

impl From<io::Error> for BlockError {
    fn from(error: io::Error) -> Self {
        Self::Setup(error.to_string())
    }
}

impl From<LinkError> for BlockError {
    fn from(error: LinkError) -> Self {
        Self::Setup(error.to_string())
    }
}

impl From<EngineError> for BlockError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error.to_string())
    }
}

/// Runs the plans of a round through a discipline at the bottleneck. Their epoch is set here.
///
/// # Errors
/// If something could not be set up or did not last, or `stop` was set.
pub(crate) fn run(
    mut round: Round,
    scheduler: &Scheduler,
    seed: u64,
    link: &Bottleneck,
    program: &AgentProgram,
    stop: &AtomicBool,
) -> Result<Outcome, BlockError> {
    let hosts = Hosts::new(link)?;
    let bottleneck = match link.engine {
        Engine::Userspace => Running::Engine(hosts.engine(scheduler, seed, link)?),
        Engine::Kernel => Running::Kernel(hosts.queues(scheduler, link)?),
    };
    let detours = hosts.detours()?;
    let start = START * round.plans.len() as u64 + START_ROUND_TRIPS * link.longest_rtt();
    let epoch = monotonic() + start;
    round.plans.iter_mut().for_each(|plan| plan.epoch = epoch);
    let Round { plans, varying, .. } = &round;
    let end = plans.iter().map(|plan| plan.drain_end).max().unwrap_or_default();
    let done = &AtomicBool::new(false);
    thread::scope(|scope| {
        let running = scope.spawn(move || bottleneck.run(done, epoch, end, varying));
        let observe = Observe { epoch, sample_every: Nanos::MAX };
        let delay = |detour: Forwarder| scope.spawn(move || detour.run_observed(done, observe));
        let delaying: Vec<_> = detours.into_iter().map(delay).collect();
        let within = Duration::from_nanos((start + end).0) + GRACE;
        let seen = exchange(&hosts, plans, within, program, stop);
        done.store(true, Ordering::Relaxed);
        let bottleneck = join(running)?;
        let detours = delaying.into_iter().map(join).collect::<Result<Vec<_>, _>>()?;
        let mut outcome = Outcome { seen: Vec::new(), bottleneck, detours };
        if let Some(fault) = outcome.engines().find_map(|report| report.fault.clone()) {
            return Err(BlockError::Engine(fault));
        }
        outcome.seen = seen?;
        Ok(outcome)
    })
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A bottleneck that is ready.
enum Running<'a> {
    Engine(Forwarder),
    Kernel(Ready<'a>),
}

impl Running<'_> {
    fn run(
        self,
        done: &AtomicBool,
        epoch: Nanos,
        end: Nanos,
        varying: &[Option<Varying>; 2],
    ) -> Result<Through, BlockError> {
        let changes = changes(varying, epoch);
        Ok(match self {
            Self::Engine(engine) => {
                let observe = Observe::since(epoch);
                Through::Engine(engine.run_changing(done, observe, &changes)?)
            }
            Self::Kernel(ready) => Through::Kernel(ready.run(done, epoch, end, &changes)?),
        })
    }
}

/// Another rate for a direction: 0 from the client to the server, 1 back.
fn changes(varying: &[Option<Varying>; 2], epoch: Nanos) -> Vec<RateChange> {
    let of_way = |(way, rates): (usize, &Option<Varying>)| {
        let steps = rates.iter().flat_map(|rates| rates.steps().to_vec());
        let change = move |(at, rate): (Nanos, Rate)| RateChange {
            at: epoch + at,
            direction: 1 - way,
            // A link that stalls: whatever begins on it goes on when it no longer does.
            rate: rate.max(Rate(1)),
        };
        steps.map(change).collect::<Vec<_>>()
    };
    let mut changes: Vec<RateChange> = varying.iter().enumerate().flat_map(of_way).collect();
    changes.sort_by_key(|change| change.at);
    changes
}

/// Plays client and server of every plan.
fn exchange(
    hosts: &Hosts,
    plans: &[Plan],
    within: Duration,
    program: &AgentProgram,
    stop: &AtomicBool,
) -> Result<Vec<Seen>, AgentError> {
    let start = |role, host: &Arc<Namespace>, plan| Agent::start(role, program, host, plan);
    let servers = plans.iter().map(|plan| start("server", hosts.of_server(plan.server), plan));
    let mut servers = servers.collect::<Result<Vec<_>, _>>()?;
    servers.iter_mut().try_for_each(|server| server.ready(GRACE, stop))?;
    let clients = plans.iter().map(|plan| start("client", &hosts.client, plan));
    let mut clients = clients.collect::<Result<Vec<_>, _>>()?;
    clients.iter_mut().try_for_each(|client| client.ready(GRACE, stop))?;
    let both = clients.iter_mut().zip(&mut servers).map(|(client, server)| {
        Ok(Seen { client: client.report(within, stop)?, server: server.report(within, stop)? })
    });
    both.collect()
}
