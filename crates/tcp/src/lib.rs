//! TCP endpoints for discrete-event simulation.
//!
//! An [`Endpoint`] has no clock, no sockets and no payload: segments, times and byte counts go
//! in, segments and the time of the next timer come out. It is a function of what it is told, the
//! same on every machine. Many endpoints share one [`Config`], so that each stays small, and
//! nothing is allocated until a segment is lost or overtaken.
//!
//! ```
//! use tcp::{Config, Endpoint, Nanos, State};
//!
//! let config = Config::default();
//! let mut client = Endpoint::client(&config);
//! let mut server = Endpoint::server(&config);
//! client.connect(&config, Nanos::ZERO);
//! client.write(100_000);
//! client.close();
//! server.close();
//!
//! // A network that delivers at once, a millisecond after it was sent.
//! let mut now = Nanos::ZERO;
//! while !(client.is_finished() && server.is_finished()) {
//!     let to_server: Vec<_> = std::iter::from_fn(|| client.poll_transmit(&config, now)).collect();
//!     let to_client: Vec<_> = std::iter::from_fn(|| server.poll_transmit(&config, now)).collect();
//!     now += Nanos::from_millis(1);
//!     to_server.iter().for_each(|segment| server.on_segment(&config, segment, false, now));
//!     to_client.iter().for_each(|segment| client.on_segment(&config, segment, false, now));
//!     client.on_timer(&config, now);
//!     server.on_timer(&config, now);
//! }
//! assert_eq!(server.received(), 100_000);
//! ```
#![forbid(unsafe_code)]

mod bbr;
mod config;
mod control;
mod cubic;
mod delayed_ack;
mod endpoint;
mod handshake;
mod hystart;
mod presets;
mod prr;
mod push;
mod rack;
mod ranges;
mod rate;
mod receiver;
mod recovery;
mod right_sizing;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod stats;
mod timers;
mod windowed_max;

pub use config::{
    Config, ConfigError, Congestion, Growth, HyStartLaw, MAX_WINDOW, Pacing, Recovery, ReduceFrom,
    RtoFloor, SlowStartExit,
};
pub use endpoint::{Endpoint, Failure, State};
pub use recovery::Phase;
pub use scoreboard::Outstanding;
pub use segment::{Flags, SackBlocks, Segment};
pub use stats::Stats;

pub use units::Nanos;
