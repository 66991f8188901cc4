//! A simulation: a network, sources, and time.

use sched::Nanos;
use tcp::{Config, ConfigError};

use crate::fifo_link::FifoDrops;
use crate::flow::{FlowReport, SourceId, TcpId};
use crate::network::{LinkId, Network, NetworkError, NodeId};
use crate::port::Port;
use crate::recorder::{Recorder, Sample};
use crate::source::{Context, Source};
use crate::world::{Event, Notice, World};

/// Why a simulation ended early.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// A source wants to send where no links lead.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// More is offered than can leave, and queues or flows grow without bound.
    #[error(
        "at {seconds:.3} s there were {flows} open flows and {packets} packets on their way, more \
         than the bound of {bound}: the load is more than the network carries"
    )]
    Overload {
        /// When.
        seconds: f64,
        /// Open flows.
        flows: usize,
        /// Packets queued or on a link.
        packets: usize,
        /// The bound on either.
        bound: usize,
    },
}

/// What a simulation did, in the numbers that speed is measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Events handled.
    pub events: u64,
    /// Packets that reached the end of a link.
    pub packet_hops: u64,
}

/// A network with traffic, in virtual time.
pub struct Simulation {
    world: World,
    sources: Vec<Box<dyn Source>>,
    sample_every: Option<Nanos>,
    started: bool,
    bound: usize,
    events: u64,
    /// Buffer for the notices being told.
    heard: Vec<Notice>,
}

/// How often what is bounded is looked at, in events.
const LOOK_EVERY: u64 = 4096;

impl Simulation {
    /// Nothing sends yet. Every random choice of disciplines and links is drawn from `seed`.
    #[must_use]
    pub fn new(network: Network, seed: u64) -> Self {
        Self {
            world: World::new(network, seed),
            sources: Vec::new(),
            sample_every: None,
            started: false,
            bound: 4_000_000,
            events: 0,
            heard: Vec::new(),
        }
    }

    /// Adds a TCP for connections to use.
    ///
    /// # Errors
    /// If the configuration cannot work.
    pub fn add_tcp(&mut self, config: Config) -> Result<TcpId, ConfigError> {
        config.check()?;
        self.world.tcps.push(config);
        Ok(TcpId(self.world.tcps.len() as u16 - 1))
    }

    /// Adds traffic.
    pub fn add_source(&mut self, source: Box<dyn Source>) -> SourceId {
        self.sources.push(source);
        SourceId(self.sources.len() as u32 - 1)
    }

    /// Says, before the simulation runs, that packets will go from one node to another and back.
    ///
    /// It need not be said, but makes a simulation faster: what is known to feed a link alone is
    /// settled with it in one event. It should be said of all ways or of none: a feeder that shows
    /// up later finds packets settled ahead of it, by up to the delay of one link.
    ///
    /// # Errors
    /// If the nodes are not connected.
    pub fn expect(&mut self, from: NodeId, to: NodeId) -> Result<(), NetworkError> {
        self.world.expect(from, to)
    }

    /// Tells the recorder whenever new bytes arrive in order at the receiver of the data of this
    /// connection, which `source` has still to open under this name.
    pub fn watch(&mut self, source: SourceId, index: u64) {
        self.world.watched.insert((source, index));
    }

    /// Gives all packets of a source's flows this DSCP, of which 6 bits count: those of both
    /// directions. Without, they have 0.
    pub fn mark(&mut self, source: SourceId, dscp: u8) {
        self.world.marks.insert(source, dscp & 63);
    }

    /// Looks at all ports this often.
    pub fn sample_every(&mut self, every: Nanos) {
        self.sample_every = (every > Nanos::ZERO).then_some(every);
    }

    /// Ends with [`SimError::Overload`] at more than so many open flows, or packets on their way;
    /// 4 million unless told otherwise.
    pub fn bound(&mut self, most: usize) {
        self.bound = most;
    }

    /// Runs until `end`, with what happens at `end`. May be called again, with a later end.
    ///
    /// # Errors
    /// If sources cannot reach whom they send to, or the bound is exceeded. What was recorded
    /// until then stands.
    pub fn run_until(&mut self, end: Nanos, to: &mut dyn Recorder) -> Result<(), SimError> {
        if !self.started {
            self.started = true;
            self.start(to)?;
        }
        while let Some((time, event)) = self.world.next_event(end) {
            self.world.set_now(time);
            self.events += 1;
            match event {
                Event::Wake(source) => {
                    self.with_source(SourceId(source), |source, context| source.wake(context))?
                }
                Event::Sample => self.sample(to),
                event => self.world.handle(event),
            }
            if !self.world.notices.is_empty() {
                self.tell(to)?;
            }
            if self.events.is_multiple_of(LOOK_EVERY) {
                self.look(to)?;
            }
        }
        self.world.set_now(end);
        self.take_records(to);
        Ok(())
    }

    /// The end: reports what is under way, flows that are still open, and packets that are still
    /// queued.
    pub fn finish(mut self, to: &mut dyn Recorder) {
        for (id, source) in (0..).map(SourceId).zip(&mut self.sources) {
            source.finish(&mut Context { world: &mut self.world, source: id });
        }
        for notice in self.world.notices.drain(..) {
            if let Notice::Exchange(exchange) = notice {
                to.exchange(&exchange);
            }
        }
        for report in self.world.report_open_flows() {
            to.flow(&report);
        }
        let now = self.world.now();
        for (index, link) in self.world.links.iter_mut().enumerate() {
            if let Some(link) = link.port_link() {
                debug_assert!(link.port.ledger().littles_law(now).holds());
                link.port.last_records().for_each(|r| to.packet(LinkId(index as u32), &r));
            }
        }
    }

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.world.now()
    }

    /// The network.
    #[must_use]
    pub const fn network(&self) -> &Network {
        self.world.network()
    }

    /// The port in front of a link with a discipline.
    #[must_use]
    pub fn port(&self, link: LinkId) -> Option<&Port> {
        self.world.links.get(link.index())?.port()
    }

    /// Drops of the plain FIFO in front of a link; none where a discipline stands there.
    #[must_use]
    pub fn fifo_drops(&self, link: LinkId) -> FifoDrops {
        self.world.links.get(link.index()).map_or_else(FifoDrops::default, |l| l.fifo.drops())
    }

    /// Packets that the link itself lost.
    #[must_use]
    pub fn lost_on_link(&self, link: LinkId) -> u64 {
        self.world.links.get(link.index()).map_or(0, |link| link.lost())
    }

    /// Flows that are open.
    #[must_use]
    pub fn open_flows(&self) -> usize {
        self.world.open_flows()
    }

    /// What flows that are open have had so far.
    pub fn report_open_flows(&self) -> impl Iterator<Item = FlowReport> + '_ {
        self.world.report_open_flows()
    }

    /// Packets queued or on a link.
    #[must_use]
    pub fn packets_on_their_way(&self) -> usize {
        self.world.transits.len()
    }

    /// What was done so far.
    #[must_use]
    pub const fn effort(&self) -> Effort {
        Effort { events: self.events, packet_hops: self.world.packet_hops }
    }

    /// Starts totals and time means of all ports anew: what was before does not count.
    pub fn restart_totals(&mut self) {
        let now = self.world.now();
        for link in &mut self.world.links {
            if let Some(link) = link.port_link() {
                link.port.restart_totals(now);
            }
        }
    }

    fn start(&mut self, to: &mut dyn Recorder) -> Result<(), SimError> {
        for source in 0..self.sources.len() as u32 {
            self.with_source(SourceId(source), |source, context| source.start(context))?;
        }
        if self.sample_every.is_some() {
            self.world.events.push(self.world.now().0, Event::Sample);
        }
        self.tell(to)
    }

    fn with_source(
        &mut self,
        id: SourceId,
        call: impl FnOnce(&mut dyn Source, &mut Context<'_>) -> Result<(), NetworkError>,
    ) -> Result<(), SimError> {
        let mut context = Context { world: &mut self.world, source: id };
        Ok(call(self.sources[id.index()].as_mut(), &mut context)?)
    }

    /// Hands out what happened. Sources may make more happen by it.
    fn tell(&mut self, to: &mut dyn Recorder) -> Result<(), SimError> {
        while !self.world.notices.is_empty() {
            std::mem::swap(&mut self.world.notices, &mut self.heard);
            let mut heard = std::mem::take(&mut self.heard);
            for notice in heard.drain(..) {
                match notice {
                    Notice::Probe(probe) => to.probe(&probe),
                    Notice::Advance(advance) => to.advance(&advance),
                    Notice::Exchange(exchange) => to.exchange(&exchange),
                    Notice::Exchanged { source, flow, index } => self
                        .with_source(source, |source, context| {
                            source.exchanged(flow, index, context)
                        })?,
                    Notice::Done(report) => {
                        to.flow(&report);
                        self.with_source(report.source, |source, context| {
                            source.done(&report, context)
                        })?;
                    }
                }
            }
            self.heard = heard;
        }
        Ok(())
    }

    fn sample(&mut self, to: &mut dyn Recorder) {
        let at = self.world.now();
        for (index, link) in self.world.links.iter().enumerate() {
            if let Some(port) = link.port() {
                to.sample(&Sample {
                    link: LinkId(index as u32),
                    at,
                    backlog: port.backlog(),
                    short_lane: port.ledger().short_lane(),
                    flows: port.flows() as u64,
                });
            }
        }
        if let Some(every) = self.sample_every {
            self.world.events.push((at + every).0, Event::Sample);
        }
    }

    fn look(&mut self, to: &mut dyn Recorder) -> Result<(), SimError> {
        let (flows, packets) = (self.world.open_flows(), self.world.transits.len());
        if flows.max(packets) > self.bound {
            let seconds = self.world.now().0 as f64 / 1e9;
            return Err(SimError::Overload { seconds, flows, packets, bound: self.bound });
        }
        self.take_records(to);
        Ok(())
    }

    fn take_records(&mut self, to: &mut dyn Recorder) {
        for (index, link) in self.world.links.iter_mut().enumerate() {
            if let Some(link) = link.port_link().filter(|link| link.log) {
                link.port.records().for_each(|r| to.packet(LinkId(index as u32), &r));
            }
        }
    }
}
