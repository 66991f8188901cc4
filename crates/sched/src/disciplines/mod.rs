//! The disciplines, each in a file of its own, beside what those of a family share.

pub(crate) mod cake;
pub(crate) mod codel;
pub(crate) mod drr;
pub(crate) mod early;
pub(crate) mod fair;
pub(crate) mod fifo;
pub(crate) mod fixed;
pub(crate) mod fq_codel;
pub(crate) mod fq_lanes;
pub mod lanes;
pub(crate) mod marked;
pub mod marks;
pub(crate) mod sorted;
