//! Plays packetdrill scripts against the simulator's TCP: in virtual time, without sockets.
//!
//! A script says what a peer sends and what a host must answer, line by line. [`parse::script`]
//! reads it, [`setup::setting`] finds the configuration it wants, or why the model cannot play it, and
//! [`play::play`] plays it up to the first line that differs.
#![forbid(unsafe_code)]

pub mod check;
pub mod look;
pub mod packet;
pub mod parse;
pub mod play;
pub mod report;
pub mod script;
pub mod setup;
