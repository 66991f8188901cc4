//! What a discipline is given and what it answers: packets, quantities, parameters, the call.

mod info;
mod packet;
pub mod params;
pub mod parts;
mod qdisc;

pub use info::{Discipline, Info, Needs, always, shared};
pub use packet::{Ecn, FlowId, HostId, Packet};
pub use params::{Form, Kind, Param, ParamDef, ParamError, Params, Takes};
pub use parts::Parts;
pub use qdisc::{Backlog, Dequeue, Drop, DropReason, Event, Lane, Qdisc, Queue, Sink, Standing};
pub use units::{Amount, Factor, Level, Nanos, Rate, Share};
