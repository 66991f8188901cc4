//! The bottleneck as qdiscs of this kernel, on a router between the hosts.
//!
//! ```text
//!   client          router                             server
//!   eth0 --- veth --- clients | servers --- veth --- eth0
//!                     ^ down    ^ up
//! ```
//!
//! Half of the round-trip time is spent behind each host, in netem; where the kernel has none, all
//! of it is spent between router and server, in the userspace engine.

mod count;
#[cfg(feature = "kernel")]
mod ours;
#[cfg(not(feature = "kernel"))]
#[path = "without.rs"]
mod ours;
mod queue;

use std::io;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::{Forwarder, Observe, RateChange, Report};
use netdev::link::{Home, Links};
use netdev::netns::{Namespace, set_parameter};
use sched::{Nanos, Rate};

use crate::block::BlockError;
use crate::config::{Bottleneck, Config, ConfigError};
use crate::hosts::{
    Hosts, TO_CLIENT, TO_SERVER, client_address, make_quiet, only_delay, server_address,
};
use crate::scheduler::Scheduler;

pub(crate) use count::Counted;
pub(crate) use ours::can;
use queue::Queue;

/// The router's own addresses.
pub(crate) const GATE_OF_CLIENT: &str = "10.77.0.254";
pub(crate) const GATE_OF_SERVER: &str = "10.77.1.254";
/// The end of the delay that the router is joined to.
const TO_ROUTER: &str = "routers";

/// What happened at the bottleneck.
#[derive(Debug)]
pub(crate) struct Passed {
    /// From the client to the server, and back.
    pub(crate) queues: [Counted; 2],
    /// What the delay was made by, where the kernel has no netem.
    pub(crate) delay: Option<Report>,
}

/// A bottleneck that is ready.
pub(crate) struct Ready<'a> {
    hosts: &'a Hosts,
    delay: Option<Forwarder>,
    /// From the client to the server, and back.
    queues: Box<[Queue; 2]>,
}

/// Whether the kernel has netem.
fn has_netem() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let tried = Namespace::new().ok().and_then(|stage| {
            stage.run(|| tc("qdisc add dev lo root netem delay 1ms").is_ok()).ok()
        });
        tried.unwrap_or(false)
    })
}

/// Whether a delay is the userspace engine's.
pub(crate) fn delays_in_userspace(link: &Bottleneck) -> bool {
    link.rtt.0 > 0 && !has_netem()
}

/// Puts each discipline on a device of a namespace that nobody else has.
///
/// # Errors
/// Names the first that the kernel does not take, and says why.
pub(crate) fn check(config: &Config) -> Result<(), ConfigError> {
    let stage = Namespace::new().map_err(|error| ConfigError(error.to_string()))?;
    let link = &config.link;
    for scheduler in config.schedulers.iter().chain(&link.up_scheduler) {
        let tried = stage.run(|| Queue::try_out(scheduler, link));
        tried
            .and_then(|tried| tried)
            .map_err(|why| ConfigError(format!("{scheduler} cannot be had here: {why}")))?;
    }
    Ok(())
}

impl Hosts {
    /// Makes the router a router, and puts the delay behind the hosts or beside it.
    pub(crate) fn route(&self, link: &Bottleneck) -> Result<(), BlockError> {
        self.middle.run(|| -> Result<(), BlockError> {
            let mut links = Links::open()?;
            for (name, own) in [(TO_CLIENT, GATE_OF_CLIENT), (TO_SERVER, GATE_OF_SERVER)] {
                links.add_address(name, own.parse().map_err(io::Error::other)?, 24)?;
            }
            Ok(set_parameter("ipv4.ip_forward", "1")?)
        })??;
        for (host, gate) in [(&self.client, GATE_OF_CLIENT), (&self.server, GATE_OF_SERVER)] {
            host.run(|| -> Result<(), BlockError> {
                let gate = gate.parse().map_err(io::Error::other)?;
                Links::open()?.add_default_route(gate)?;
                steady_hashes()?;
                if link.rtt.0 > 0 && !delays_in_userspace(link) {
                    let half = link.rtt.0.div_ceil(2_000);
                    // Twice what a window of any block holds: netem is to lose nothing.
                    tc(&format!("qdisc add dev eth0 root netem delay {half}us limit 100000"))?;
                }
                Ok(())
            })??;
        }
        Ok(())
    }

    /// The queues of both directions, used once where that matters, and what delays.
    pub(crate) fn queues<'a>(
        &'a self,
        scheduler: &Scheduler,
        link: &Bottleneck,
    ) -> Result<Ready<'a>, BlockError> {
        let back = link.up_scheduler.as_ref().unwrap_or(scheduler);
        let (down, up) = self.middle.run(|| -> Result<_, BlockError> {
            let down = Queue::put_on(TO_CLIENT, scheduler, link.rate, link)?;
            let up = Queue::put_on(TO_SERVER, back, link.up_rate, link)?;
            Ok((down, up))
        })??;
        let delay = self.delay.as_ref();
        let delay = delay.map(|home| only_delay(home, [TO_ROUTER, TO_SERVER], link.rtt));
        let delay = delay.transpose()?;
        self.middle.run(|| {
            let to_client = down.warm_up(client_address(0));
            let to_server = up.warm_up(server_address(0, false));
            thread::sleep(to_client?.max(to_server?));
            io::Result::Ok(())
        })??;
        Ok(Ready { hosts: self, delay, queues: Box::new([up, down]) })
    }
}

impl Ready<'_> {
    /// Counts and delays until `done`, in times since `epoch`; queues are counted until `end`.
    pub(crate) fn run(
        self,
        done: &AtomicBool,
        epoch: Nanos,
        end: Nanos,
        changes: &[RateChange],
    ) -> Result<Passed, BlockError> {
        let Self { hosts, delay, queues } = self;
        let queues = &*queues;
        let passed = thread::scope(|scope| -> Result<_, BlockError> {
            let observe = Observe { epoch, sample_every: Nanos::MAX };
            let delaying =
                delay.map(|delay| scope.spawn(move || delay.run_observed(done, observe)));
            let changing = scope.spawn(move || {
                hosts.middle.run(|| change_rates(queues, changes, done)).and_then(|changed| changed)
            });
            let counting = hosts.middle.run(|| {
                count::both([(TO_SERVER, TO_CLIENT), (TO_CLIENT, TO_SERVER)], done, epoch, end)
            });
            // A queue that cannot be counted ends what delays for it.
            let halted = counting.as_ref().is_err() || counting.as_ref().is_ok_and(Result::is_err);
            if halted {
                done.store(true, Ordering::Relaxed);
            }
            changing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            let delay = delaying.map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            Ok(Passed { queues: counting??, delay: delay.transpose()? })
        });
        let taken_off = hosts.middle.run(|| queues.iter().try_for_each(Queue::take_off))?;
        let passed = passed?;
        taken_off?;
        Ok(passed)
    }
}

/// Changes rates when it is time, until `done`.
fn change_rates(queues: &[Queue; 2], changes: &[RateChange], done: &AtomicBool) -> io::Result<()> {
    for change in changes {
        count::wait_until(change.at, done);
        if done.load(Ordering::Relaxed) {
            break;
        }
        queues[change.direction].change_rate(change.rate)?;
    }
    Ok(())
}

/// Makes the place of a delay in userspace, between router and server.
pub(crate) fn place_of_delay(
    middle: &Namespace,
    server: &Namespace,
    host_interface: &str,
) -> Result<Namespace, BlockError> {
    let place = Namespace::new().map_err(BlockError::Namespace)?;
    middle.run(|| -> Result<(), BlockError> {
        let mut links = Links::open()?;
        links.add_veth(TO_SERVER, TO_ROUTER, Home::Namespace(&place))?;
        make_quiet(&mut links, TO_SERVER)
    })??;
    place.run(|| -> Result<(), BlockError> {
        let mut links = Links::open()?;
        links.add_veth(TO_SERVER, host_interface, Home::Namespace(server))?;
        make_quiet(&mut links, TO_ROUTER)?;
        make_quiet(&mut links, TO_SERVER)
    })??;
    Ok(place)
}

/// Else a connection takes another `skb->hash` after each timeout, and the queues of the router,
/// which is this same machine, know it by that. A real router sees no such thing.
pub(crate) fn steady_hashes() -> io::Result<()> {
    match set_parameter("core.txrehash", "0") {
        // Linux before 5.18 is not asked.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Runs `tc` in the calling thread's namespace.
fn tc(line: &str) -> io::Result<()> {
    run(Command::new("tc").args(line.split_whitespace())).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::other(format!("it needs the command tc (iproute2): {error}"))
        }
        _ => error,
    })
}

/// Runs a program to its end. The error is what it says first.
fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().map(|said| said.trim().trim_start_matches("Error: "));
    Err(io::Error::other(match said {
        Some(said) if !said.is_empty() => said.to_owned(),
        _ => format!("{} failed", command.get_program().to_string_lossy()),
    }))
}

/// What `bytes` take on a link, and some for the machine.
fn time_of(bytes: u64, rate: Rate) -> Duration {
    Duration::from_nanos(rate.time_of(bytes).0) + Duration::from_millis(500)
}
