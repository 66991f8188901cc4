//! Kinds of traffic with their ends, volumes and laws.

mod read;

use std::collections::BTreeSet;

use sched::{Nanos, Rate};
use tcp::Config as Tcp;
use workload::{Cbr, CountLaw, DatagramList, OnOff, Requests, SizeLaw, TimeLaw, TransferList};

pub(crate) use read::{Context, read};

/// One kind of traffic between places.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Its name in results.
    pub name: String,
    /// Nodes that its data come from.
    pub from: Vec<usize>,
    /// Nodes that its data go to.
    pub to: Vec<usize>,
    /// Nothing of it starts before.
    pub start: Nanos,
    /// Nothing of it starts from then on.
    pub stop: Nanos,
    /// DSCP of its packets.
    pub dscp: u8,
    /// Whether its flows have rows.
    pub rows: bool,
    /// If the ends that its data go to open its connections, the bytes that they ask with.
    pub asked_with: Option<u64>,
    /// What it is.
    pub kind: Kind,
}

/// What traffic is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// TCP transfers at random times.
    Transfers {
        /// When and how much.
        arrivals: Arrivals,
        /// How ends are picked.
        pick: Pick,
        /// Their TCP.
        tcp: Tcp,
    },
    /// TCP flows without end.
    Persistent {
        /// How many.
        flows: u64,
        /// Time from one's start to the next's.
        stagger: Nanos,
        /// Their TCP.
        tcp: Tcp,
    },
    /// Rounds of TCP transfers at fixed times.
    Periodic {
        /// Transfers of a round.
        flows: u64,
        /// Time from round to round.
        every: Nanos,
        /// The transfers of a round start within this time.
        spread: Nanos,
        /// Application bytes of each.
        size_bytes: u64,
        /// Their TCP.
        tcp: Tcp,
    },
    /// Pages of objects, each on a TCP connection of its own.
    Web {
        /// Who opens pages.
        users: u32,
        /// From a complete page to the next.
        think: TimeLaw,
        /// Objects of a page.
        objects: CountLaw,
        /// From object to object.
        gap: TimeLaw,
        /// Bytes of an object.
        sizes: SizeLaw,
        /// Bytes that an object is asked for with.
        request_bytes: u64,
        /// Connections of a user at a time.
        connections: u32,
        /// Their TCP.
        tcp: Tcp,
    },
    /// Requests and responses on TCP connections that stay open.
    Requests {
        /// Connections.
        flows: u64,
        /// What is asked for on each, and how often.
        requests: Requests,
        /// Their TCP.
        tcp: Tcp,
    },
    /// UDP at a constant rate.
    Cbr(Stream),
    /// UDP at a constant rate in random periods.
    OnOff {
        /// How many.
        flows: u64,
        /// The rate while it is on, and the periods.
        stream: OnOff,
    },
    /// UDP packets at listed times.
    Trace(DatagramList),
    /// Flows whose packets all leave at once.
    OpenLoop {
        /// When and how much.
        arrivals: Arrivals,
        /// How ends are picked.
        pick: Pick,
        /// Bytes of a full packet.
        packet_bytes: u32,
    },
}

impl Kind {
    /// The TCP of its flows, where they have one.
    #[must_use]
    pub fn tcp(&self) -> Option<&Tcp> {
        match self {
            Self::Transfers { tcp, .. }
            | Self::Persistent { tcp, .. }
            | Self::Periodic { tcp, .. }
            | Self::Web { tcp, .. }
            | Self::Requests { tcp, .. } => Some(tcp),
            Self::Cbr(_) | Self::OnOff { .. } | Self::Trace(_) | Self::OpenLoop { .. } => None,
        }
    }

    /// How many UDP streams it has.
    pub(crate) fn streams(&self) -> u64 {
        match self {
            Self::Cbr(stream) => stream.flows,
            Self::OnOff { flows, .. } => *flows,
            Self::Trace(list) => {
                let streams = list.datagrams().iter().map(|datagram| datagram.stream);
                streams.collect::<BTreeSet<u64>>().len() as u64
            }
            _ => 0,
        }
    }
}

/// When flows arrive, and how large they are.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// A Poisson process.
    Drawn {
        /// Mean number a second.
        per_second: f64,
        /// Their sizes.
        sizes: SizeLaw,
        /// Whether sizes are spread evenly over their law.
        stratified: bool,
    },
    /// A list, the same under every seed.
    Listed(TransferList),
}

/// How the ends of a flow are picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Each end by itself.
    Random,
    /// The same place in both lists.
    Paired,
    /// The places one after another.
    InTurn,
}

/// UDP streams.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// How many.
    pub flows: u64,
    /// Rate of each.
    pub rate: Rate,
    /// Size of a packet.
    pub packet_bytes: u32,
}

impl Stream {
    /// One of them.
    #[must_use]
    pub const fn cbr(&self) -> Cbr {
        Cbr { rate: self.rate, packet_bytes: self.packet_bytes }
    }
}
