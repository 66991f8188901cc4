//! A bridge between two interfaces, with a queue and a link in each direction.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::AtomicBool;
use std::thread;

use frame::Fingerprinter;
use sched::edge::EdgeSpec;
use sched::{Info, Nanos, Spec};

use crate::direction::{Direction, Fault, Parts, Side};
use crate::error::EngineError;
use crate::framing::Framing;
use crate::link::{Link, Links};
use crate::observe::{Counters, Ledger, Observe, Observer};
use crate::packet_socket::PacketSocket;
use crate::report::{DirectionReport, Report};
use crate::shaper::{Pacing, Rate};

/// A queue, and the link behind it.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The discipline of the queue.
    pub spec: Spec,
    /// An edge in front of the queue, which writes into the DSCP of every packet whether it is
    /// one of a short flow.
    pub edge: Option<EdgeSpec>,
    /// Rate of the link.
    pub rate: Rate,
    /// What a frame takes up on it. Frames count without checksum, as in `tc`.
    pub framing: Framing,
    /// Propagation delay: a frame is released this long after its transmission has started.
    pub delay: Nanos,
    /// How far a late wake-up of the engine may be caught up.
    pub burst_time: Nanos,
    /// Seed of the discipline's random generator.
    pub seed: u64,
}

impl LinkConfig {
    /// A link without overhead and propagation delay.
    #[must_use]
    pub fn new(spec: Spec, rate: Rate) -> Self {
        Self {
            spec,
            edge: None,
            rate,
            framing: Framing::NONE,
            delay: Nanos::ZERO,
            burst_time: Nanos::from_millis(1),
            seed: 0,
        }
    }
}

/// Two interfaces, joined as by a bridge whose ports are slow links.
pub struct Engine {
    left: Port,
    right: Port,
    left_to_right: LinkConfig,
    right_to_left: LinkConfig,
}

/// An interface, held.
struct Port {
    name: String,
    link: Link,
    input: PacketSocket,
    output: PacketSocket,
    /// Its name keeps other engines away, and vanishes with the process.
    lock: UnixDatagram,
}

/// Room for the Ethernet header and two VLAN tags beside the MTU.
const HEADER: u32 = 14 + 2 * 4;

impl Engine {
    /// Takes hold of two interfaces of the calling thread's network namespace. Frames are
    /// received from now on, and passed on when the engine [runs](Self::run).
    ///
    /// # Errors
    /// If an interface cannot be used, or a link cannot be made as configured.
    pub fn bridge(
        left: &str,
        right: &str,
        left_to_right: LinkConfig,
        right_to_left: LinkConfig,
    ) -> Result<Self, EngineError> {
        for (config, to) in [(&left_to_right, right), (&right_to_left, left)] {
            check_config(config, to)?;
        }
        if left == right {
            return Err(EngineError::SameInterface { interface: left.to_owned() });
        }
        let (left, right) = (Port::open(left)?, Port::open(right)?);
        Ok(Self { left, right, left_to_right, right_to_left })
    }

    /// Passes frames on until `stop` is set (seen within 50 ms) or an interface fails.
    ///
    /// # Errors
    /// If the system has no randomness to key the flow fingerprints with.
    pub fn run(self, stop: &AtomicBool) -> Result<Report, EngineError> {
        self.run_with(stop, Counters::default)
    }

    /// As [`run`](Self::run), and keeps a ledger of flows and samples of the queues.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_observed(self, stop: &AtomicBool, observe: Observe) -> Result<Report, EngineError> {
        self.run_with(stop, || Ledger::new(observe))
    }

    fn run_with<O: Observer>(
        self,
        stop: &AtomicBool,
        observer: impl Fn() -> O,
    ) -> Result<Report, EngineError> {
        let Self { left, right, left_to_right, right_to_left } = self;
        let (left_input, left_output, left) = left.split();
        let (right_input, right_output, right) = right.split();
        let forth = (left_input, right_output);
        let back = (right_input, left_output);
        let forth = direction(&left_to_right, forth, right.link.mtu, observer(), &right.name)?;
        let back = direction(&right_to_left, back, left.link.mtu, observer(), &left.name)?;

        let halt = AtomicBool::new(false);
        let (forth, back) = thread::scope(|scope| {
            let forth = scope.spawn(|| forth.run(stop, &halt));
            let back = scope.spawn(|| back.run(stop, &halt));
            (join(forth), join(back))
        });
        let fault = forth.1.as_ref().map(|fault| describe(fault, &left.name, &right.name));
        let fault = fault.or_else(|| back.1.as_ref().map(|f| describe(f, &right.name, &left.name)));
        Ok(Report {
            left_to_right: label(forth.0, &left.name, &right.name, &left_to_right.spec),
            right_to_left: label(back.0, &right.name, &left.name, &right_to_left.spec),
            fault,
        })
    }
}

/// What remains of a port whose sockets have gone to the two directions.
struct Held {
    name: String,
    link: Link,
    _lock: UnixDatagram,
}

impl Port {
    fn open(name: &str) -> Result<Self, EngineError> {
        let interface = || name.to_owned();
        let system =
            |doing| move |source| EngineError::System { interface: name.to_owned(), doing, source };
        let not_found = |error: io::Error| match error.raw_os_error() {
            Some(libc::ENODEV | libc::EINVAL | libc::ERANGE) => {
                EngineError::NoSuchInterface { interface: name.to_owned() }
            }
            _ => system("looking it up")(error),
        };
        let mut links = Links::open().map_err(|error| system("netlink")(error.into_system()))?;
        let link = links.get(name).map_err(|error| not_found(error.into_system()))?;
        if !link.ethernet {
            return Err(EngineError::NotEthernet { interface: interface() });
        }
        if !link.up {
            return Err(EngineError::Down { interface: interface() });
        }
        let lock = lock(link.index).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => EngineError::Taken { interface: interface() },
            _ => system("taking hold of it")(error),
        })?;
        let socket = |result: io::Result<_>| {
            result.map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    EngineError::NoPermission { interface: interface() }
                }
                _ => system("opening a packet socket")(error),
            })
        };
        let input = socket(PacketSocket::receiver(link.index))?;
        let output = socket(PacketSocket::sender(link.index))?;
        Ok(Self { name: interface(), link, input, output, lock })
    }

    fn split(self) -> (PacketSocket, PacketSocket, Held) {
        let held = Held { name: self.name, link: self.link, _lock: self.lock };
        (self.input, self.output, held)
    }
}

/// Names in the abstract space of Unix sockets belong to one network namespace, as interface
/// indices do, and to the process that bound them.
fn lock(ifindex: u32) -> io::Result<UnixDatagram> {
    let name = format!("shortlane/interface/{ifindex}");
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

fn check_config(config: &LinkConfig, to: &str) -> Result<(), EngineError> {
    if config.rate == Rate(0) {
        return Err(EngineError::RateZero { interface: to.to_owned() });
    }
    let Info { name: discipline, needs, .. } = config.spec.info();
    let needed = match (needs.flow_size, needs.offset) {
        (true, _) => "the size of a flow before it ends",
        (false, true) => "a packet's byte offset in its flow",
        (false, false) => return Ok(()),
    };
    Err(EngineError::Unsuitable { discipline, needed })
}

fn direction<O: Observer>(
    config: &LinkConfig,
    (input, output): (PacketSocket, PacketSocket),
    mtu: u32,
    observer: O,
    to: &str,
) -> Result<Direction<O>, EngineError> {
    let fingerprinter = Fingerprinter::random().map_err(|error| EngineError::System {
        interface: to.to_owned(),
        doing: "drawing a key for flow fingerprints",
        source: io::Error::other(error),
    })?;
    Ok(Direction::new(Parts {
        input: Box::new(input),
        output: Box::new(output),
        qdisc: config.spec.clone().on_link(config.rate.0).build(config.seed),
        tagger: config.edge.as_ref().map(EdgeSpec::build),
        observer,
        fingerprinter,
        needs: config.spec.info().needs,
        pacing: Pacing {
            rate: config.rate,
            framing: config.framing,
            burst_time: config.burst_time,
        },
        delay: config.delay,
        largest_frame: mtu + HEADER,
    }))
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn describe(fault: &Fault, from: &str, to: &str) -> String {
    let interface = match fault.side {
        Side::Input => from,
        Side::Output => to,
    };
    let what = match fault.error.raw_os_error() {
        Some(libc::ENETDOWN) => "the interface went down or was removed",
        Some(libc::ENXIO | libc::ENODEV) => "the interface was removed",
        _ => return format!("{interface}: {}", fault.error),
    };
    format!("{interface}: {what}")
}

fn label(report: DirectionReport, from: &str, to: &str, spec: &Spec) -> DirectionReport {
    let (from, to) = (from.to_owned(), to.to_owned());
    DirectionReport { from, to, scheduler: spec.to_string(), ..report }
}
