//! What can go wrong, one module each: the qdisc must hold, and leave nothing behind.

pub(crate) mod bench;
mod census;
pub(crate) mod change;
pub(crate) mod flood;
pub(crate) mod killed;
pub(crate) mod leak;
pub(crate) mod memory;
pub(crate) mod misuse;
pub(crate) mod mq;
mod netlink;
pub(crate) mod register;
pub(crate) mod removal;
pub(crate) mod unload;
