//! The lab: real TCP and UDP of this machine's kernel through a queue discipline.

pub mod traffic;
