//! `shortlane bridge`: joins two interfaces as a bridge does whose ports are slow links.

use clap::{Args, ValueEnum};
use engine::{Forwarder, Io, LinkConfig};
use sched::{Rate, Spec};

use crate::attach::daemon::foreground;
use crate::attach::hosts;
use crate::attach::link::{self, LinkOptions};
use crate::{Failure, say};

/// The options of `shortlane bridge`.
#[derive(Args)]
pub(crate) struct Options {
    /// Join this interface, such as eth0
    left: String,
    /// Join it to this interface
    right: String,
    /// Send from LEFT to RIGHT at this rate, a little below what the link carries
    #[arg(long, allow_hyphen_values = true, value_parser = link::rate)]
    rate: Rate,
    /// Send from RIGHT to LEFT at this rate, if it differs
    #[arg(long, allow_hyphen_values = true, value_parser = link::rate)]
    back_rate: Option<Rate>,
    /// Run this discipline, such as efd:threshold=30packets
    #[arg(long, value_name = "SPEC", default_value = "fq-lanes")]
    scheduler: String,
    /// Run this discipline from RIGHT to LEFT, if it differs
    #[arg(long, value_name = "SPEC")]
    back_scheduler: Option<String>,
    /// Choose how packets are received and sent
    #[arg(long, value_enum, default_value_t = Kind::Auto)]
    io: Kind,
    #[command(flatten)]
    link: LinkOptions,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Use AF_XDP if both interfaces allow it, else packet sockets
    Auto,
    /// Use AF_XDP, the fastest; super-packets and checksums must be complete
    Xdp,
    /// Use packet sockets, which take any interface with its offloads
    Packet,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Options { left, right, .. } = options;
    let [forth, back] = configs(options)?;
    let io = match options.io {
        Kind::Auto => Io::Auto,
        Kind::Xdp => Io::Xdp,
        Kind::Packet => Io::Packet,
    };
    let engine = Forwarder::bridge(left, right, forth, back, io)?;
    let how = format!("{left} - {right} by {}", engine.io());
    foreground(engine, || say(&how))
}

/// From left to right, and back.
fn configs(options: &Options) -> Result<[LinkConfig; 2], Failure> {
    let forth: Spec = options.scheduler.parse()?;
    let back = match &options.back_scheduler {
        Some(spec) => spec.parse()?,
        None => hosts::opposite(&forth),
    };
    let link = |spec: Spec, rate| LinkConfig::on(spec.with_limit_for(rate), options.link.at(rate));
    Ok([link(forth, options.rate), link(back, options.back_rate.unwrap_or(options.rate))])
}
