//! Containers that know packets and flows, and no discipline.

pub mod flow_table;
pub(crate) mod heap;
pub(crate) mod per_flow;
pub mod ring;
pub(crate) mod runs;
