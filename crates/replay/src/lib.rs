//! Captured traffic, open loop, through queue disciplines.
#![forbid(unsafe_code)]

pub mod capture;
