//! An experiment as one TOML file.
#![forbid(unsafe_code)]

mod error;
mod key;
mod reader;
mod sections;
pub mod seeds;

pub use error::ScenarioError;
