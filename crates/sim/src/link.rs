//! A link of a running simulation.

use sched::{Nanos, Packet};
use workload::Random;

use crate::fifo_link::{FifoCounts, FifoLink};
use crate::flow_names::FlowNames;
use crate::impair::Impaired;
use crate::network::{LinkConfig, Queue};
use crate::port::Port;

pub(crate) struct Link {
    pub(crate) queue: LinkQueue,
    delay: Nanos,
    impaired: Option<Box<Impaired>>,
    /// Packets lost on the link itself.
    pub(crate) lost_on_link: u64,
}

pub(crate) enum LinkQueue {
    Fifo(FifoLink),
    Port(Box<PortLink>),
}

pub(crate) struct PortLink {
    pub(crate) port: Port,
    /// When the next service is scheduled; an event at another time is stale.
    pub(crate) service_at: Nanos,
    pub(crate) log: bool,
}

impl Link {
    pub(crate) fn new(config: &LinkConfig, seed: u64, names: FlowNames) -> Self {
        let random = |purpose: &str| Random::of(seed, &format!("{purpose} {}", config.name));
        let queue = match &config.queue {
            Queue::Fifo { limit } => LinkQueue::Fifo(FifoLink::new(config.rate_bps, *limit)),
            Queue::Discipline { spec, log } => {
                let seed = random("discipline").below(u64::MAX);
                let port = Port::new(spec, config.rate_bps, seed, names, *log);
                LinkQueue::Port(Box::new(PortLink { port, service_at: Nanos::MAX, log: *log }))
            }
        };
        Self {
            queue,
            delay: config.delay,
            impaired: Impaired::new(config.impairments, random("impairments")).map(Box::new),
            lost_on_link: 0,
        }
    }

    /// When a packet whose last bit leaves at `end` arrives; `None` if the link loses it.
    #[inline]
    pub(crate) fn arrival(&mut self, end: Nanos) -> Option<Nanos> {
        let arrival = end + self.delay;
        match &mut self.impaired {
            None => Some(arrival),
            Some(impaired) => {
                let arrival = impaired.arrival(arrival);
                self.lost_on_link += u64::from(arrival.is_none());
                arrival
            }
        }
    }

    /// The port, if a discipline stands in front of the link.
    pub(crate) fn port(&self) -> Option<&Port> {
        match &self.queue {
            LinkQueue::Port(link) => Some(&link.port),
            LinkQueue::Fifo(_) => None,
        }
    }

    /// Totals, if a plain FIFO stands in front of it.
    pub(crate) fn fifo_counts(&self) -> Option<FifoCounts> {
        match &self.queue {
            LinkQueue::Fifo(link) => Some(link.counts()),
            LinkQueue::Port(_) => None,
        }
    }
}

/// What a packet's id is in the table of packets on their way.
pub(crate) const fn slot_of(packet: &Packet) -> u32 {
    packet.id as u32
}
