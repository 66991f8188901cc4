//! `shortlane metrics`: what is attached, for Prometheus.

mod encode;
mod family;
mod server;

use std::net::SocketAddr;

use clap::Args;

use crate::{Failure, print};

/// The options of `shortlane metrics`.
#[derive(Args)]
pub(crate) struct Options {
    /// Listen on this address and port: a loopback address, unless --non-loopback is given
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9750", value_parser = address)]
    listen: SocketAddr,
    /// Allow an address that other machines can reach; there is neither encryption nor a password
    #[arg(long)]
    non_loopback: bool,
    /// Print the metrics once and exit
    #[arg(long)]
    once: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "it takes an address and a port, such as 127.0.0.1:9750 or [::1]:9750".into())
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Options { listen, non_loopback, once } = options;
    if *once {
        return print(&server::read()?);
    }
    if !listen.ip().is_loopback() && !non_loopback {
        return Err(Failure::Usage(format!(
            "--listen {listen} is not a loopback address: every machine that reaches it could read which \
             devices are attached and what they carry; --non-loopback if that is wanted"
        )));
    }
    server::serve(*listen)
}

#[cfg(test)]
mod tests;
