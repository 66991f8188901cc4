//! What an engine is told about a link and the queue in front of it.

pub mod framing;
pub(crate) mod merge;
pub mod overhead;
