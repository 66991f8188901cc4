//! Sources of the usual kinds of traffic.
//!
//! What a source sends is drawn ahead, or from streams of random numbers of its own, so that it
//! does not depend on what the network makes of it: every discipline sees the same arrivals.

mod bursts;
mod cbr;
mod datagrams;
mod plan;
mod requests;
mod session;
mod transfers;
mod web;

pub use bursts::Bursts;
pub use cbr::CbrStream;
pub use datagrams::{DatagramStream, Trace};
pub use plan::{FlowPlan, Pair, drawn, in_turn};
pub use requests::RequestStream;
pub use transfers::{Opener, Transfers};
pub use web::{Visitors, Web, WebConfig, WebIndex};
