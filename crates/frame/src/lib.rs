//! From the bytes of a frame to the packet that a discipline sees.
//!
//! The edge of the system parses a frame and hashes its flow key exactly once; the discipline
//! takes the fingerprint and never looks at the frame. Every frame has a key, whatever its bytes
//! are, and none can make the parser panic.
//!
//! ```
//! use frame::{Fingerprinter, LinkType};
//! use sched::Needs;
//!
//! let fingerprinter = Fingerprinter::from_seed(1);
//! let arp = [0xff; 60];
//! let parsed = fingerprinter.packet(LinkType::Ethernet, &arp, 60, Needs::NOTHING);
//! assert_eq!(parsed.packet.size, 60);
//! ```
#![forbid(unsafe_code)]

mod dscp;
mod ecn;
mod fingerprint;
mod key;
mod link;
mod tcp;
mod traffic_class;

pub use dscp::set_dscp;
pub use ecn::mark_ce;
pub use fingerprint::{Fingerprinter, Parsed, host_key};
pub use key::{Endpoints, FlowKey, Selector, TcpSequence};
pub use link::LinkType;
pub use tcp::{TcpSegment, tcp_segment};
