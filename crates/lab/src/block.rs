//! One block: fresh namespaces, one discipline, one plan of traffic.

use std::fmt;
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::{EngineError, Forwarder, Io, LinkConfig, Observe, Rate, Report};
use netdev::link::{Home, LinkError, Links};
use netdev::netns::{Namespace, NetnsError, set_parameter};
use sched::{Nanos, Spec};

use crate::agents::{Agent, AgentError};
use crate::config::{AgentProgram, Bottleneck};
use crate::traffic::{ClientReport, Plan, ServerReport, monotonic_ns};

/// Client and server share a subnet: the bottleneck between them is a bridge.
const CLIENT: &str = "10.77.0.1";
const SERVER: &str = "10.77.0.2";
const PREFIX: u8 = 24;
/// The bottleneck's interfaces towards either.
const TO_CLIENT: &str = "clients";
const TO_SERVER: &str = "servers";
/// The only interface of a host.
const HOST_INTERFACE: &str = "eth0";

/// From building the plan to the start of traffic: time to start two processes...
const START_NS: u64 = 250_000_000;
/// ... and round trips: the client asks for the server's address, connects, and one to spare.
const START_ROUND_TRIPS: u64 = 3;
/// How much longer than its plan an agent may take to report.
const GRACE: Duration = Duration::from_secs(10);

/// What a block measured.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What the client saw.
    pub(crate) client: ClientReport,
    /// What the server saw.
    pub(crate) server: ServerReport,
    /// What the bottleneck did, from the server to the client (the second direction) and back.
    pub(crate) engine: Report,
}

/// Why a block has no outcome.
#[derive(Debug)]
pub enum BlockError {
    /// No namespaces.
    Namespace(NetnsError),
    /// The interfaces could not be made.
    Setup(String),
    /// The engine did not start, or stopped.
    Engine(String),
    /// Client or server did not deliver.
    Agent(AgentError),
}

impl BlockError {
    /// Whether the user wanted it to end.
    #[must_use]
    pub const fn is_interrupt(&self) -> bool {
        matches!(self, Self::Agent(error) if error.is_interrupt())
    }
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace(error) => error.fmt(f),
            Self::Setup(error) => write!(f, "cannot set up the namespaces: {error}"),
            Self::Engine(error) => f.write_str(error),
            Self::Agent(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BlockError {}

impl From<io::Error> for BlockError {
    fn from(error: io::Error) -> Self {
        Self::Setup(error.to_string())
    }
}

impl From<LinkError> for BlockError {
    fn from(error: LinkError) -> Self {
        Self::Setup(error.to_string())
    }
}

impl From<AgentError> for BlockError {
    fn from(error: AgentError) -> Self {
        Self::Agent(error)
    }
}

impl From<EngineError> for BlockError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error.to_string())
    }
}

/// A plan between the lab's two hosts, still without traffic.
#[must_use]
pub(crate) fn empty_plan() -> Plan {
    let parse = |text: &str| text.parse().expect("a constant address");
    Plan::new(parse(SERVER), parse(CLIENT))
}

/// Runs `plan` through `spec` at the bottleneck. The plan's epoch is set here.
///
/// # Errors
/// If something could not be set up or did not last, or `stop` was set.
pub(crate) fn run(
    mut plan: Plan,
    spec: &Spec,
    seed: u64,
    link: &Bottleneck,
    program: &AgentProgram,
    stop: &AtomicBool,
) -> Result<Outcome, BlockError> {
    let hosts = Hosts::new(link)?;
    let engine = hosts.engine(spec, seed, link)?;
    let start_ns = START_NS + START_ROUND_TRIPS * link.rtt.0;
    plan.epoch_ns = monotonic_ns() + start_ns;
    let observe = Observe::since(Nanos(plan.epoch_ns));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let running = scope.spawn(|| engine.run_observed(&done, observe));
        let within = Duration::from_nanos(start_ns + plan.drain_end_ns) + GRACE;
        let reports = hosts.traffic(&plan, within, program, stop);
        done.store(true, Ordering::Relaxed);
        let engine = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        if let Some(fault) = engine.fault {
            return Err(BlockError::Engine(fault));
        }
        let (client, server) = reports?;
        Ok(Outcome { client, server, engine })
    })
}

struct Hosts {
    client: Arc<Namespace>,
    middle: Namespace,
    server: Arc<Namespace>,
}

impl Hosts {
    fn new(link: &Bottleneck) -> Result<Self, BlockError> {
        let namespace = || Namespace::new().map_err(BlockError::Namespace);
        let hosts = Self {
            client: Arc::new(namespace()?),
            middle: namespace()?,
            server: Arc::new(namespace()?),
        };
        hosts.middle.run(|| -> Result<(), BlockError> {
            let mut links = Links::open()?;
            for (name, host) in [(TO_CLIENT, &hosts.client), (TO_SERVER, &hosts.server)] {
                links.add_veth(name, HOST_INTERFACE, Home::Namespace(host))?;
                quiet(name)?;
                links.offloads_off(name)?;
                links.set_up(name)?;
            }
            Ok(())
        })??;
        for (host, address) in [(&hosts.client, CLIENT), (&hosts.server, SERVER)] {
            host.run(|| configure_host(address, link))??;
        }
        if link.local_sender {
            hosts.server.run(|| shape_at_the_sender(link))??;
        }
        Ok(hosts)
    }

    fn engine(&self, spec: &Spec, seed: u64, link: &Bottleneck) -> Result<Forwarder, BlockError> {
        let direction = |spec: &Spec, rate_bps, seed| {
            let mut config = LinkConfig::new(spec.clone(), Rate(rate_bps));
            config.edge = link.edge.clone();
            config.delay = Nanos(link.rtt.0 / 2);
            config.seed = seed;
            config
        };
        let back = link.up_scheduler.as_ref().unwrap_or(spec);
        let up = direction(back, link.up_rate_bps, seed);
        let down = direction(spec, link.rate_bps, seed ^ 1);
        Ok(self.middle.run(|| Forwarder::bridge(TO_CLIENT, TO_SERVER, up, down, Io::Packet))??)
    }

    fn traffic(
        &self,
        plan: &Plan,
        within: Duration,
        program: &AgentProgram,
        stop: &AtomicBool,
    ) -> Result<(ClientReport, ServerReport), BlockError> {
        let mut server = Agent::start("server", program, &self.server, plan)?;
        server.ready(GRACE, stop)?;
        let mut client = Agent::start("client", program, &self.client, plan)?;
        client.ready(GRACE, stop)?;
        let seen = client.report(within, stop)?;
        Ok((seen, server.report(within, stop)?))
    }
}

fn configure_host(address: &str, link: &Bottleneck) -> Result<(), BlockError> {
    let mut links = Links::open()?;
    quiet(HOST_INTERFACE)?;
    // What one block learns about the path must not help the next.
    set_parameter("ipv4.tcp_no_metrics_save", "1")?;
    // What connections begin with, before they are given their own. One that begins with bbr, where
    // that is the machine's default, stays paced, and its cubic or reno is another.
    set_parameter("ipv4.tcp_congestion_control", "reno")?;
    // By default a host uses ECN where the other asks for it, and does not ask itself.
    set_parameter("ipv4.tcp_ecn", if link.ecn { "1" } else { "0" })?;
    links.set_up("lo")?;
    links.offloads_off(HOST_INTERFACE)?;
    links.set_up(HOST_INTERFACE)?;
    links.add_address(HOST_INTERFACE, address.parse().map_err(io::Error::other)?, PREFIX)?;
    Ok(())
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
    let rate = format!("{}bit", link.rate_bps / 100 * 97);
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
