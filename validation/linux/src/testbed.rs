//! Hosts of this kernel around the engine, in namespaces that vanish with the process.
//!
//! ```text
//! client --- bottleneck --- near --- detour --- far
//! ```
//! The detour is a bridge that only delays; `near` is its router as well as a server.

use std::net::IpAddr;

use engine::{Forwarder, Io, LinkConfig, Rate};
use netdev::link::{Home, Links};
use netdev::netns::{Namespace, set_parameter};
use sched::{Nanos, Spec};

use crate::case::Case;

pub(crate) const CLIENT: &str = "10.77.0.1";
pub(crate) const NEAR: &str = "10.77.0.2";
const NEAR_TO_FAR: &str = "10.78.0.1";
pub(crate) const FAR: &str = "10.78.0.2";
const FAR_NET: &str = "10.78.0.0";
const PREFIX: u8 = 24;
/// Nowhere a bottleneck.
const DETOUR_BPS: u64 = 1_000_000_000;

/// Anything that can go wrong while setting up.
type Failed = Box<dyn std::error::Error + Send + Sync>;

pub(crate) struct Hosts {
    pub(crate) client: Namespace,
    bottleneck: Namespace,
    pub(crate) near: Namespace,
    detour: Namespace,
    pub(crate) far: Namespace,
}

impl Hosts {
    /// With these network parameters set in every host: name, value.
    pub(crate) fn new(parameters: &[(String, String)]) -> Result<Self, Failed> {
        let hosts = Self {
            client: Namespace::new()?,
            bottleneck: Namespace::new()?,
            near: Namespace::new()?,
            detour: Namespace::new()?,
            far: Namespace::new()?,
        };
        let ends = [("left", &hosts.client, "eth0"), ("right", &hosts.near, "eth0")];
        hosts.bottleneck.run(|| join(ends))??;
        let ends = [("left", &hosts.near, "eth1"), ("right", &hosts.far, "eth0")];
        hosts.detour.run(|| join(ends))??;
        hosts.client.run(|| -> Result<(), Failed> {
            configure(&[("eth0", CLIENT)], parameters)?;
            Ok(Links::open()?.add_route(FAR_NET.parse()?, PREFIX, NEAR.parse()?)?)
        })??;
        hosts.near.run(|| -> Result<(), Failed> {
            set_parameter("ipv4.ip_forward", "1")?;
            configure(&[("eth0", NEAR), ("eth1", NEAR_TO_FAR)], parameters)
        })??;
        hosts.far.run(|| -> Result<(), Failed> {
            configure(&[("eth0", FAR)], parameters)?;
            Ok(Links::open()?.add_default_route(NEAR_TO_FAR.parse()?)?)
        })??;
        Ok(hosts)
    }

    /// The slow link. Data go from right to left.
    pub(crate) fn bottleneck(&self, case: &Case) -> Result<Forwarder, Failed> {
        bridge(&self.bottleneck, case.spec(), case.rate_bps, case.rtt)
    }

    /// The delay in front of `far`, if there is one.
    pub(crate) fn detour(&self, case: &Case) -> Result<Option<Forwarder>, Failed> {
        let longer = case.detour();
        let fifo: Spec = "fifo:limit=10000packets".parse()?;
        let engine = || bridge(&self.detour, fifo, DETOUR_BPS, longer);
        (longer > Nanos::ZERO).then(engine).transpose()
    }
}

fn bridge(at: &Namespace, spec: Spec, rate_bps: u64, rtt: Nanos) -> Result<Forwarder, Failed> {
    let mut config = LinkConfig::new(spec, Rate(rate_bps));
    config.delay = Nanos(rtt.0 / 2);
    Ok(at.run(|| Forwarder::bridge("left", "right", config.clone(), config, Io::Packet))??)
}

/// Joins the current namespace to two others: name here, namespace there, name there.
fn join(ends: [(&str, &Namespace, &str); 2]) -> Result<(), Failed> {
    let mut links = Links::open()?;
    for (here, namespace, there) in ends {
        links.add_veth(here, there, Home::Namespace(namespace))?;
        quiet(here)?;
        links.offloads_off(here)?;
        links.set_up(here)?;
    }
    Ok(())
}

/// Gives the current namespace's interfaces their addresses.
fn configure(interfaces: &[(&str, &str)], parameters: &[(String, String)]) -> Result<(), Failed> {
    let mut links = Links::open()?;
    // What one block learns about the path must not help the next.
    set_parameter("ipv4.tcp_no_metrics_save", "1")?;
    // Connections begin with this, and are then given their own. One that begins with bbr, where
    // that is the machine's default, is paced from then on, whatever it is given.
    set_parameter("ipv4.tcp_congestion_control", "reno")?;
    for (name, value) in parameters {
        set_parameter(name, value).map_err(|error| format!("{name}={value}: {error}"))?;
    }
    links.set_up("lo")?;
    for (name, address) in interfaces {
        quiet(name)?;
        links.offloads_off(name)?;
        links.set_up(name)?;
        links.add_address(name, address.parse::<IpAddr>()?, PREFIX)?;
    }
    Ok(())
}

/// Keeps an interface from talking on its own: no IPv6 neighbour discovery.
fn quiet(interface: &str) -> std::io::Result<()> {
    match set_parameter(&format!("ipv6.conf.{interface}.disable_ipv6"), "1") {
        // A kernel without IPv6 is quiet already.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
