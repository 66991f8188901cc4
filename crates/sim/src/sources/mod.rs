//! Traffic of the usual kinds.

mod cbr;
mod transfers;

pub use cbr::CbrStream;
pub use transfers::{Pair, Transfers};
