//! The hosts of a block, in namespaces of their own.
//!
//! ```text
//!   clients --- bottleneck --- server --- detour --- far server
//! ```
//!
//! Clients are addresses of one host. So are servers, but those that are farther away: each of these
//! is behind a bridge that only delays, and the first server is their router.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::Arc;

use engine::{Forwarder, Io, LinkConfig, Rate};
use netdev::link::{Home, Links};
use netdev::netns::{Namespace, set_parameter};
use sched::{Nanos, Spec};

use crate::block::BlockError;
use crate::config::Bottleneck;
use crate::kernel;
use crate::scheduler::{Engine, Scheduler};

/// Clients and servers share a subnet where the bottleneck between them is a bridge, and have one
/// each where it is a router.
const BRIDGED: u8 = 16;
const ROUTED: u8 = 24;
/// The bottleneck's interfaces towards either.
pub(crate) const TO_CLIENT: &str = "clients";
pub(crate) const TO_SERVER: &str = "servers";
/// The only interface of a host, but of one that is a router.
const HOST_INTERFACE: &str = "eth0";
/// The interfaces of a detour.
const NEAR: &str = "near";
const FAR: &str = "far";

/// The address of a client, by number.
pub(crate) fn client_address(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 77, 0, 1 + number).into()
}

/// The address of a server, by its number and by whether it is farther away than others.
pub(crate) fn server_address(number: u8, is_far: bool) -> IpAddr {
    match is_far {
        false => Ipv4Addr::new(10, 77, 1, 2 + number),
        true => Ipv4Addr::new(10, 78, number, 2),
    }
    .into()
}

/// Whether a server is farther away than others.
pub(crate) fn is_far(server: IpAddr) -> bool {
    matches!(server, IpAddr::V4(address) if address.octets()[1] == 78)
}

/// The router's address in the net of a far server, and the net.
fn router_of(number: u8) -> (IpAddr, IpAddr) {
    let net = |host| Ipv4Addr::new(10, 78, number, host).into();
    (net(1), net(0))
}

pub(crate) struct Hosts {
    pub(crate) client: Arc<Namespace>,
    pub(crate) middle: Namespace,
    /// Between the middle and the server, where the kernel cannot delay by itself.
    pub(crate) delay: Option<Namespace>,
    pub(crate) server: Arc<Namespace>,
    far: Vec<FarServer>,
}

/// A server that is farther away than the first.
struct FarServer {
    address: IpAddr,
    host: Arc<Namespace>,
    detour: Namespace,
    /// What it is farther away.
    rtt: Nanos,
}

impl Hosts {
    pub(crate) fn new(link: &Bottleneck) -> Result<Self, BlockError> {
        let namespace = || Namespace::new().map_err(BlockError::Namespace);
        let (client, middle, server) = (namespace()?, namespace()?, namespace()?);
        let routed = link.engine == Engine::Kernel;
        let delay = if routed && kernel::delays_in_userspace(link) {
            Some(kernel::place_of_delay(&middle, &server, HOST_INTERFACE)?)
        } else {
            None
        };
        let (client, server) = (Arc::new(client), Arc::new(server));
        let mut hosts = Self { client, middle, delay, server, far: Vec::new() };
        hosts.middle.run(|| -> Result<(), BlockError> {
            let mut links = Links::open()?;
            links.add_veth(TO_CLIENT, HOST_INTERFACE, Home::Namespace(&hosts.client))?;
            make_quiet(&mut links, TO_CLIENT)?;
            if hosts.delay.is_none() {
                links.add_veth(TO_SERVER, HOST_INTERFACE, Home::Namespace(&hosts.server))?;
                make_quiet(&mut links, TO_SERVER)?;
            }
            Ok(())
        })??;
        let clients: Vec<IpAddr> = (0..link.ends.clients).map(client_address).collect();
        let numbered = || (0..).zip(&link.ends.servers);
        let near = numbered().filter(|(_, rtt)| rtt.0 == 0);
        // The first address is also that of the router of those that are far.
        let near = near.map(|(number, _)| server_address(number, false));
        let mut servers = vec![server_address(0, false)];
        servers.extend(near.filter(|address| *address != servers[0]).collect::<Vec<_>>());
        let prefix = if routed { ROUTED } else { BRIDGED };
        for (host, addresses) in [(&hosts.client, &clients), (&hosts.server, &servers)] {
            host.run(|| configure_host(HOST_INTERFACE, addresses, prefix, link))??;
        }
        if routed {
            hosts.route(link)?;
        }
        for (number, rtt) in numbered().filter(|(_, rtt)| rtt.0 > 0) {
            hosts.add_far(number, *rtt, link)?;
        }
        if link.local_sender {
            hosts.server.run(|| shape_at_the_sender(link))??;
        }
        Ok(hosts)
    }

    /// A server behind a detour.
    fn add_far(&mut self, number: u8, rtt: Nanos, link: &Bottleneck) -> Result<(), BlockError> {
        let namespace = || Namespace::new().map_err(BlockError::Namespace);
        let (host, detour) = (Arc::new(namespace()?), namespace()?);
        let (router, net) = router_of(number);
        let (address, towards) = (server_address(number, true), format!("eth{}", number + 1));
        detour.run(|| -> Result<(), BlockError> {
            let mut links = Links::open()?;
            links.add_veth(NEAR, &towards, Home::Namespace(&self.server))?;
            links.add_veth(FAR, HOST_INTERFACE, Home::Namespace(&host))?;
            make_quiet(&mut links, NEAR)?;
            make_quiet(&mut links, FAR)
        })??;
        self.server.run(|| -> Result<(), BlockError> {
            set_parameter("ipv4.ip_forward", "1")?;
            configure_host(&towards, &[router], ROUTED, link)
        })??;
        host.run(|| -> Result<(), BlockError> {
            configure_host(HOST_INTERFACE, &[address], ROUTED, link)?;
            kernel::steady_hashes()?;
            Ok(Links::open()?.add_default_route(router)?)
        })??;
        // Where the bottleneck is a router, the client sends everything there.
        let knows_no_way = if link.engine == Engine::Kernel { &self.middle } else { &*self.client };
        let by_way_of = server_address(0, false);
        knows_no_way.run(|| Links::open()?.add_route(net, ROUTED, by_way_of))??;
        self.far.push(FarServer { address, host, detour, rtt });
        Ok(())
    }

    /// The host of a server.
    pub(crate) fn of_server(&self, address: IpAddr) -> &Arc<Namespace> {
        let far = self.far.iter().find(|far| far.address == address);
        far.map_or(&self.server, |far| &far.host)
    }

    /// What makes servers far.
    pub(crate) fn detours(&self) -> Result<Vec<Forwarder>, BlockError> {
        self.far.iter().map(|far| only_delay(&far.detour, [NEAR, FAR], far.rtt)).collect()
    }
}

/// Joins two interfaces by a bridge that spends a round-trip time and nothing else.
pub(crate) fn only_delay(
    place: &Namespace,
    [left, right]: [&str; 2],
    rtt: Nanos,
) -> Result<Forwarder, BlockError> {
    let fifo = Spec::named("fifo").expect("the baseline is in the registry");
    let mut way = LinkConfig::new(fifo, Rate::UNLIMITED);
    way.delay = Nanos(rtt.0 / 2);
    Ok(place.run(|| Forwarder::bridge(left, right, way.clone(), way, Io::Packet))??)
}

impl Hosts {
    /// The bottleneck in the userspace engine.
    pub(crate) fn engine(
        &self,
        scheduler: &Scheduler,
        seed: u64,
        link: &Bottleneck,
    ) -> Result<Forwarder, BlockError> {
        let direction = |scheduler: &Scheduler, rate, seed| {
            let Scheduler::Ours(spec) = scheduler else {
                return Err(BlockError::Engine(format!("{scheduler} is not the engine's")));
            };
            let mut config = LinkConfig::new(spec.clone(), rate);
            config.edge = link.edge.clone();
            config.delay = Nanos(link.rtt.0 / 2);
            config.seed = seed;
            Ok(config)
        };
        let back = link.up_scheduler.as_ref().unwrap_or(scheduler);
        let up = direction(back, link.up_rate, seed)?;
        let down = direction(scheduler, link.rate, seed ^ 1)?;
        Ok(self.middle.run(|| Forwarder::bridge(TO_CLIENT, TO_SERVER, up, down, Io::Packet))??)
    }
}

fn configure_host(
    interface: &str,
    addresses: &[IpAddr],
    prefix: u8,
    link: &Bottleneck,
) -> Result<(), BlockError> {
    let mut links = Links::open()?;
    quiet(interface)?;
    // What one block learns about the path must not help the next.
    set_parameter("ipv4.tcp_no_metrics_save", "1")?;
    // What connections begin with, before they are given their own. One that begins with bbr, where
    // that is the machine's default, stays paced, and its cubic or reno is another.
    set_parameter("ipv4.tcp_congestion_control", "reno")?;
    // By default a host uses ECN where the other asks for it, and does not ask itself.
    set_parameter("ipv4.tcp_ecn", if link.ecn { "1" } else { "0" })?;
    links.set_up("lo")?;
    links.offloads_off(interface)?;
    links.set_up(interface)?;
    Ok(addresses.iter().try_for_each(|own| links.add_address(interface, *own, prefix))?)
}

/// Switches an interface on that carries packets as a wire does, and says nothing by itself.
pub(crate) fn make_quiet(links: &mut Links, name: &str) -> Result<(), BlockError> {
    quiet(name)?;
    links.offloads_off(name)?;
    Ok(links.set_up(name)?)
}

/// Keeps an interface from talking on its own: no IPv6 neighbour discovery.
fn quiet(interface: &str) -> io::Result<()> {
    match set_parameter(&format!("ipv6.conf.{interface}.disable_ipv6"), "1") {
        // A kernel without IPv6 is quiet already.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The kernel's own shaper on the sending host, just below the bottleneck's rate: there TCP
/// small queues hold each flow to a few packets, and the queue never reaches the bottleneck.
fn shape_at_the_sender(link: &Bottleneck) -> io::Result<()> {
    let rate = format!("{}bit", link.rate.0 / 100 * 97);
    let words = ["qdisc", "add", "dev", HOST_INTERFACE, "root", "tbf", "rate", &rate];
    let output = Command::new("tc").args(words).args(["burst", "5kb", "limit", "1mb"]).output();
    let output = output.map_err(|error| {
        io::Error::other(format!("--local-sender needs the command tc (iproute2): {error}"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
