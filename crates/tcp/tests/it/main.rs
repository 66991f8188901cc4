//! Endpoints against each other over a small deterministic network.

mod any_network;
mod bbr;
mod connection;
mod net;
mod probes;
mod rack;
mod recovery;
mod windows;
