//! Client, router and server: three network namespaces in a row.
//!
//! ```text
//! server s0 --- r1 router r0 --- c0 client
//! ```
//! The scheduler is on `r0`, for what goes to the client, and on `r1` where uploads are shaped as
//! well. Half of the round-trip time is spent behind `s0` and half behind `c0`, in netem.
//! A second pair, `server h0 --- d0 client`, has the scheduler on the sending host itself and all
//! of the delay behind `d0`.

use std::net::IpAddr;

use anyhow::Result;
use netdev::link::{Home, Links};
use netdev::netns::{Namespace, set_parameter};

use crate::command;

/// Where the scheduler is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On a router, whose other interface joins segments to super-packets (GRO) or does not.
    Router { gro: bool },
    /// On the host that sends; its TCP hands down super-packets (TSO) or not.
    Host { tso: bool },
}

pub(super) struct Path {
    pub(super) client: Namespace,
    pub(super) router: Namespace,
    pub(super) server: Namespace,
}

/// Network parameters of both ends.
const PARAMETERS: [(&str, &str); 4] = [
    // Else a connection takes another `skb->hash` after each timeout, and CAKE and `fq_codel` on the
    // router, which is this same machine, another queue for it: hundreds of them in overload. A
    // router sees no such thing.
    ("core.txrehash", "0"),
    // What one block's connections have learnt is not for the next one's.
    ("ipv4.tcp_no_metrics_save", "1"),
    ("ipv4.tcp_rmem", "4096 131072 8388608"),
    ("ipv4.tcp_wmem", "4096 65536 8388608"),
];

/// Another server, and another client.
const NEIGHBOURS: (&str, &str) = ("10.2.0.3", "10.1.0.3");

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

impl Path {
    pub(super) fn new() -> Result<Self> {
        let path = Self {
            client: Namespace::new()?,
            router: Namespace::new()?,
            server: Namespace::new()?,
        };
        path.router.run(|| path.wire_router())??;
        path.server.run(|| path.wire_end("s0", "10.2.0.1", "10.2.0.2", Some("h0")))??;
        path.client.run(|| path.wire_end("c0", "10.1.0.1", "10.1.0.2", None))??;
        path.client.run(|| address_of_pair("d0", "10.3.0.1"))??;
        path.server.run(|| Links::open()?.add_address("s0", address(NEIGHBOURS.0), 24))??;
        path.client.run(|| -> Result<()> {
            Links::open()?.add_address("c0", address(NEIGHBOURS.1), 24)?;
            let (server, client) = NEIGHBOURS;
            command::run(&format!("ip route add {server} via 10.1.0.2 src {client}")).map(drop)
        })??;
        Ok(path)
    }

    fn wire_router(&self) -> Result<()> {
        let mut links = Links::open()?;
        links.add_veth("r0", "c0", Home::Namespace(&self.client))?;
        links.add_veth("r1", "s0", Home::Namespace(&self.server))?;
        for (name, own) in [("r0", "10.1.0.2"), ("r1", "10.2.0.2")] {
            links.add_address(name, address(own), 24)?;
            links.set_up(name)?;
        }
        Ok(set_parameter("ipv4.ip_forward", "1")?)
    }

    fn wire_end(&self, name: &str, own: &str, router: &str, direct: Option<&str>) -> Result<()> {
        let mut links = Links::open()?;
        if let Some(direct) = direct {
            links.add_veth(direct, "d0", Home::Namespace(&self.client))?;
            address_of_pair(direct, "10.3.0.2")?;
        }
        links.add_address(name, address(own), 24)?;
        links.set_up(name)?;
        links.add_default_route(address(router))?;
        for (name, value) in PARAMETERS {
            set_parameter(name, value)?;
        }
        Ok(())
    }

    /// Sets offloads and delay for the next block.
    pub(super) fn prepare(&self, place: Place, rtt_ms: u64) -> Result<()> {
        let (gro, tso) = match place {
            Place::Router { gro } => (gro, false),
            Place::Host { tso } => (false, tso),
        };
        let half = rtt_ms * 500;
        self.server.run(|| -> Result<()> {
            offloads("s0", false)?;
            offloads("h0", tso)?;
            delay("s0", half)
        })??;
        self.router.run(|| offloads("r0", false).and_then(|()| offloads("r1", gro)))??;
        self.client.run(|| -> Result<()> {
            offloads("c0", false)?;
            offloads("d0", false)?;
            delay("c0", half)?;
            delay("d0", rtt_ms * 1000)
        })?
    }

    /// The addresses of server and client.
    pub(super) fn addresses(place: Place) -> (IpAddr, IpAddr) {
        match place {
            Place::Router { .. } => (address("10.2.0.1"), address("10.1.0.1")),
            Place::Host { .. } => (address("10.3.0.2"), address("10.3.0.1")),
        }
    }

    /// Those of another pair of hosts that share the router's link.
    pub(super) fn neighbours() -> (IpAddr, IpAddr) {
        (address(NEIGHBOURS.0), address(NEIGHBOURS.1))
    }

    /// Where the scheduler of the downloads is.
    pub(super) fn downlink(&self, place: Place) -> (&Namespace, &'static str) {
        match place {
            Place::Router { .. } => (&self.router, "r0"),
            Place::Host { .. } => (&self.server, "h0"),
        }
    }

    /// Where the scheduler of the uploads is.
    pub(super) fn uplink(&self) -> (&Namespace, &'static str) {
        (&self.router, "r1")
    }
}

fn address_of_pair(name: &str, own: &str) -> Result<()> {
    let mut links = Links::open()?;
    links.add_address(name, address(own), 24)?;
    Ok(links.set_up(name)?)
}

fn offloads(name: &str, on: bool) -> Result<()> {
    Ok(Links::open()?.offloads(name, on)?)
}

fn delay(name: &str, micros: u64) -> Result<()> {
    let _ = command::run(&format!("tc qdisc del dev {name} root"));
    if micros > 0 {
        command::run(&format!("tc qdisc add dev {name} root netem delay {micros}us limit 20000"))?;
    }
    Ok(())
}
