//! A packet-level simulator: the disciplines of `sched` behind links, in virtual time.
//!
//! * [`Port`] is a queue and the transmitter behind it, with a [`Ledger`] of what happened there:
//!   the simulator's bottlenecks are ports, and `replay` sends captures through one.
//!
//! Times are integer nanoseconds. What happens at the same instant happens in the order in which
//! it was scheduled, so a run is a function of its configuration and its seed.
#![forbid(unsafe_code)]

mod events;
mod fifo_link;
mod flow;
mod flow_names;
mod impair;
mod ledger;
mod link;
mod network;
mod over_time;
mod packet_log;
mod port;
mod recorder;
mod simulation;
mod source;
pub mod sources;
mod transit;
mod transmitter;
mod varying;
mod world;

pub use account::Totals;
pub use fifo_link::FifoDrops;
pub use flow::{Connection, ENDLESS, FlowLabel, FlowReport, SourceId, TcpId};
pub use flow_names::{FlowName, FlowNames};
pub use ledger::{FlowAccount, Ledger, LittlesLaw};
pub use network::{Impairments, LinkConfig, LinkId, Network, NetworkError, NodeId, Queue};
pub use over_time::{TimeHistogram, TimeMean};
pub use packet_log::{Outcome, PacketRecord};
pub use port::{Port, Sent};
pub use recorder::{Advance, Exchange, ExchangeKind, Probe, Recorder, Sample};
pub use simulation::{Effort, SimError, Simulation};
pub use source::{Context, Source};
pub use transmitter::Transmitter;
pub use varying::{Varying, VaryingError};
