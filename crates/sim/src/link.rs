//! A link of a running simulation.

use sched::edge::{EdgeSpec, Tagger};
use sched::{Nanos, Packet, Spec};
use workload::Random;

use crate::fifo_link::FifoLink;
use crate::flow_names::FlowNames;
use crate::impair::Impaired;
use crate::network::{LinkConfig, Queue};
use crate::port::Port;

/// In one cache line, unless there is something special about it.
#[repr(align(64))]
pub(crate) struct Link {
    /// Unused where a discipline stands in front of the link.
    pub(crate) fifo: FifoLink,
    delay: Nanos,
    special: Option<Box<Special>>,
}

#[derive(Default)]
struct Special {
    port: Option<PortLink>,
    impaired: Option<Impaired>,
    /// Packets lost on the link itself.
    lost: u64,
}

pub(crate) struct PortLink {
    pub(crate) port: Port,
    pub(crate) tagger: Option<Tagger>,
    /// What a packet takes beside its own bytes.
    pub(crate) overhead: u32,
    /// When the next service is scheduled; an event at another time is stale.
    pub(crate) service_at: Nanos,
    pub(crate) log: bool,
}

impl Link {
    pub(crate) fn new(config: &LinkConfig, seed: u64, names: FlowNames) -> Self {
        let random = |purpose: &str| Random::of(seed, &format!("{purpose} {}", config.name));
        let discipline = match &config.queue {
            // Only a port looks at every packet, or has a rate that varies.
            Queue::Fifo { limit } => {
                let needs_port =
                    config.edge.is_some() || config.varying.is_some() || config.overhead > 0;
                needs_port.then(|| (fifo(*limit), false))
            }
            Queue::Discipline { spec, log } => Some((spec.clone(), *log)),
        };
        let port = discipline.map(|(spec, log)| {
            let seed = random("discipline").below(u64::MAX);
            let mut port = Port::new(&spec, config.rate, seed, names, log);
            if let Some(rates) = &config.varying {
                port = port.varying(rates.clone());
            }
            let tagger = config.edge.as_ref().map(EdgeSpec::build);
            PortLink { port, tagger, overhead: config.overhead, service_at: Nanos::MAX, log }
        });
        let limit = match &config.queue {
            Queue::Fifo { limit } => *limit,
            Queue::Discipline { .. } => sched::Amount::UNLIMITED,
        };
        let impaired = Impaired::new(config.impairments, random("impairments"));
        let special = (port.is_some() || impaired.is_some())
            .then(|| Box::new(Special { port, impaired, lost: 0 }));
        Self { fifo: FifoLink::new(config.rate, limit), delay: config.delay, special }
    }

    /// When a packet whose last bit leaves at `end` arrives; `None` if the link loses it.
    #[inline]
    pub(crate) fn arrival(&mut self, end: Nanos) -> Option<Nanos> {
        let arrival = end + self.delay;
        match &mut self.special {
            Some(special) => special.arrival(arrival),
            None => Some(arrival),
        }
    }

    /// Whether packets arrive in the order in which they leave.
    pub(crate) fn keeps_order(&self) -> bool {
        self.special.as_ref().is_none_or(|special| special.impaired.is_none())
    }

    #[inline]
    pub(crate) fn port_link(&mut self) -> Option<&mut PortLink> {
        self.special.as_mut()?.port.as_mut()
    }

    /// The port, if a discipline stands in front of the link.
    pub(crate) fn port(&self) -> Option<&Port> {
        Some(&self.special.as_ref()?.port.as_ref()?.port)
    }

    /// Packets lost on the link itself.
    pub(crate) fn lost(&self) -> u64 {
        self.special.as_ref().map_or(0, |special| special.lost)
    }
}

impl Special {
    fn arrival(&mut self, arrival: Nanos) -> Option<Nanos> {
        let Some(impaired) = &mut self.impaired else { return Some(arrival) };
        let arrival = impaired.arrival(arrival);
        self.lost += u64::from(arrival.is_none());
        arrival
    }
}

/// A FIFO of this limit, or of the largest that it takes.
fn fifo(limit: sched::Amount) -> Spec {
    let fifo = Spec::named("fifo").expect("the baseline is in the registry");
    let with = |limit: sched::Amount| fifo.clone().with("limit", &limit.to_string());
    with(limit).or_else(|_| with(sched::Amount::Packets(1 << 32))).expect("it takes that many")
}

/// What a packet's id is in the table of packets on their way.
pub(crate) const fn slot_of(packet: &Packet) -> u32 {
    packet.id as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_link_takes_one_cache_line() {
        assert_eq!(size_of::<Link>(), 64);
    }
}
