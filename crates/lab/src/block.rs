//! One block: fresh namespaces, one discipline, one plan of traffic.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::{EngineError, Forwarder, Io, LinkConfig, Observe, Rate, Report};
use netdev::link::{Home, LinkError, Links};
use netdev::netns::{Namespace, NetnsError, set_parameter};
use sched::Nanos;

use crate::agents::{Agent, AgentError};
use crate::config::{AgentProgram, Bottleneck};
use crate::kernel::{self, Passed, Ready};
use crate::scheduler::{Engine, Scheduler};
use crate::traffic::{ClientReport, Plan, ServerReport, monotonic_ns};

/// Client and server share a subnet where the bottleneck between them is a bridge, and have one
/// each where it is a router.
const CLIENT: &str = "10.77.0.1";
const SERVER: &str = "10.77.1.2";
const BRIDGED: u8 = 16;
const ROUTED: u8 = 24;
/// The bottleneck's interfaces towards either.
pub(crate) const TO_CLIENT: &str = "clients";
pub(crate) const TO_SERVER: &str = "servers";
/// The only interface of a host.
const HOST_INTERFACE: &str = "eth0";

/// From building the plan to the start of traffic: time to start two processes...
const START_NS: u64 = 250_000_000;
/// ... and round trips: the client and a router ask for addresses, the client connects, and one to
/// spare.
const START_ROUND_TRIPS: u64 = 5;
/// How much longer than its plan an agent may take to report.
const GRACE: Duration = Duration::from_secs(10);

/// What a block measured.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What the client saw.
    pub(crate) client: ClientReport,
    /// What the server saw.
    pub(crate) server: ServerReport,
    /// What the bottleneck did.
    pub(crate) bottleneck: Through,
}

/// What the bottleneck did, from the client to the server and, second, back.
#[derive(Debug)]
pub(crate) enum Through {
    Engine(Report),
    Kernel(Passed),
}

impl Through {
    /// What the userspace engine says, where it had a part in it.
    pub(crate) const fn engine(&self) -> Option<&Report> {
        match self {
            Self::Engine(report) => Some(report),
            Self::Kernel(passed) => passed.delay.as_ref(),
        }
    }
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

/// Runs `plan` through a discipline at the bottleneck. The plan's epoch is set here.
///
/// # Errors
/// If something could not be set up or did not last, or `stop` was set.
pub(crate) fn run(
    mut plan: Plan,
    scheduler: &Scheduler,
    seed: u64,
    link: &Bottleneck,
    program: &AgentProgram,
    stop: &AtomicBool,
) -> Result<Outcome, BlockError> {
    let hosts = Hosts::new(link)?;
    let bottleneck = match link.engine {
        Engine::Userspace => Running::Engine(hosts.engine(scheduler, seed, link)?),
        Engine::Kernel => Running::Kernel(hosts.queues(scheduler, link)?),
    };
    let start_ns = START_NS + START_ROUND_TRIPS * link.rtt.0;
    plan.epoch_ns = monotonic_ns() + start_ns;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let running = scope.spawn(|| bottleneck.run(&done, plan.epoch_ns, plan.drain_end_ns));
        let within = Duration::from_nanos(start_ns + plan.drain_end_ns) + GRACE;
        let reports = hosts.traffic(&plan, within, program, stop);
        done.store(true, Ordering::Relaxed);
        let through = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        if let Some(fault) = through.engine().and_then(|report| report.fault.clone()) {
            return Err(BlockError::Engine(fault));
        }
        let (client, server) = reports?;
        Ok(Outcome { client, server, bottleneck: through })
    })
}

/// A bottleneck that is ready.
enum Running<'a> {
    Engine(Forwarder),
    Kernel(Ready<'a>),
}

impl Running<'_> {
    fn run(self, done: &AtomicBool, epoch_ns: u64, end_ns: u64) -> Result<Through, BlockError> {
        Ok(match self {
            Self::Engine(engine) => {
                let observe = Observe::since(Nanos(epoch_ns));
                Through::Engine(engine.run_observed(done, observe)?)
            }
            Self::Kernel(ready) => Through::Kernel(ready.run(done, epoch_ns, end_ns)?),
        })
    }
}

pub(crate) struct Hosts {
    pub(crate) client: Arc<Namespace>,
    pub(crate) middle: Namespace,
    /// Between the middle and the server, where the kernel cannot delay by itself.
    pub(crate) delay: Option<Namespace>,
    pub(crate) server: Arc<Namespace>,
}

impl Hosts {
    fn new(link: &Bottleneck) -> Result<Self, BlockError> {
        let namespace = || Namespace::new().map_err(BlockError::Namespace);
        let (client, middle, server) = (namespace()?, namespace()?, namespace()?);
        let routed = link.engine == Engine::Kernel;
        let delay = if routed && kernel::delays_in_userspace(link) {
            Some(kernel::place_of_delay(&middle, &server, HOST_INTERFACE)?)
        } else {
            None
        };
        let (client, server) = (Arc::new(client), Arc::new(server));
        let hosts = Self { client, middle, delay, server };
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
        for (host, address) in [(&hosts.client, CLIENT), (&hosts.server, SERVER)] {
            host.run(|| configure_host(address, if routed { ROUTED } else { BRIDGED }, link))??;
        }
        if routed {
            hosts.route(link)?;
        }
        if link.local_sender {
            hosts.server.run(|| shape_at_the_sender(link))??;
        }
        Ok(hosts)
    }

    /// The addresses of client and server.
    pub(crate) fn addresses() -> (IpAddr, IpAddr) {
        let plan = empty_plan();
        (plan.client, plan.server)
    }

    fn engine(
        &self,
        scheduler: &Scheduler,
        seed: u64,
        link: &Bottleneck,
    ) -> Result<Forwarder, BlockError> {
        let direction = |scheduler: &Scheduler, rate_bps, seed| {
            let Scheduler::Ours(spec) = scheduler else {
                return Err(BlockError::Engine(format!("{scheduler} is not the engine's")));
            };
            let mut config = LinkConfig::new(spec.clone(), Rate(rate_bps));
            config.edge = link.edge.clone();
            config.delay = Nanos(link.rtt.0 / 2);
            config.seed = seed;
            Ok(config)
        };
        let back = link.up_scheduler.as_ref().unwrap_or(scheduler);
        let up = direction(back, link.up_rate_bps, seed)?;
        let down = direction(scheduler, link.rate_bps, seed ^ 1)?;
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

fn configure_host(address: &str, prefix: u8, link: &Bottleneck) -> Result<(), BlockError> {
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
    links.add_address(HOST_INTERFACE, address.parse().map_err(io::Error::other)?, prefix)?;
    Ok(())
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
