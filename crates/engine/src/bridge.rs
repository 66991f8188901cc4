//! A bridge between two interfaces, with a queue and a link in each direction.

use std::fmt;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::AtomicBool;
use std::thread;

use frame::Fingerprinter;
use sched::edge::EdgeSpec;
use sched::{Amount, Info, Nanos, Spec};

use crate::buffers::Buffers;
use crate::direction::{Direction, Fault, MOST_FRAMES, Parts, Side};
use crate::error::EngineError;
use crate::io::{FrameIo, Half};
use crate::link::{Link, Links};
use crate::observe::{Counters, Ledger, Observe, Observer};
use crate::packet_socket::PacketSocket;
use crate::report::{DirectionReport, Report};
use crate::shaper::{Pacing, Rate};
use crate::xdp;

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
    /// Bytes that the link adds to each frame (24 for Ethernet's preamble, checksum and gap), or
    /// takes off it (-14 to count IP packets). Frames count without checksum, as in `tc`.
    pub overhead: i32,
    /// What a frame counts at least, overhead included, in bytes.
    pub least_size: u32,
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
            overhead: 0,
            least_size: 0,
            delay: Nanos::ZERO,
            burst_time: Nanos::from_millis(1),
            seed: 0,
        }
    }
}

/// How a bridge takes frames from its interfaces and gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// `AF_XDP` where it can be had and loses nothing, else `AF_PACKET`.
    #[default]
    Auto,
    /// `AF_XDP`, which is faster.
    Xdp,
    /// `AF_PACKET`, which any interface and driver can do, without privileges on the machine, and
    /// with super-packets and checksums left to do.
    Packet,
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Xdp => "xdp",
            Self::Packet => "packet",
        })
    }
}

/// What takes frames from one place to another through slow links.
pub struct Engine {
    ways: Vec<Way>,
    /// How frames come and go, and why so.
    io: String,
    /// Their names keep other engines away, and vanish with the process.
    _locks: Vec<UnixDatagram>,
}

/// From an input through a queue and a link to an output.
struct Way {
    from: String,
    to: String,
    input: Box<dyn FrameIo>,
    output: Box<dyn FrameIo>,
    /// Memory for frames that the input and output share with the kernel, if they do.
    buffers: Option<Buffers>,
    config: LinkConfig,
    /// Largest frame that the output takes.
    largest_frame: u32,
}

/// An interface, held.
struct Port {
    name: String,
    link: Link,
    lock: UnixDatagram,
}

/// Room for the Ethernet header and two VLAN tags beside the MTU.
const HEADER: u32 = 14 + 2 * 4;

impl Engine {
    /// Takes hold of two interfaces of the calling thread's network namespace, to join them as by
    /// a bridge. Frames are received from now on, and passed on when the engine
    /// [runs](Self::run). The first direction is from left to right.
    ///
    /// # Errors
    /// If an interface cannot be used, or a link cannot be made as configured.
    pub fn bridge(
        left: &str,
        right: &str,
        left_to_right: LinkConfig,
        right_to_left: LinkConfig,
        io: Io,
    ) -> Result<Self, EngineError> {
        for (config, to) in [(&left_to_right, right), (&right_to_left, left)] {
            check_config(config, to)?;
        }
        if left == right {
            return Err(EngineError::SameInterface { interface: left.to_owned() });
        }
        let ports = [Port::open(left)?, Port::open(right)?];
        let configs = [left_to_right, right_to_left];
        let (halves, io) = take_io(&ports, &configs, io)?;
        let [left, right] = &ports;
        let ends = [(left, right), (right, left)];
        let ways = halves.into_iter().zip(configs).zip(ends).map(|((half, config), (from, to))| Way {
            from: from.name.clone(),
            to: to.name.clone(),
            input: half.input,
            output: half.output,
            buffers: half.buffers,
            config,
            largest_frame: to.largest_frame(),
        });
        let ways = ways.collect();
        Ok(Self { ways, io, _locks: ports.map(|port| port.lock).into() })
    }

    /// How frames come and go, and why so, in words.
    #[must_use]
    pub fn io(&self) -> &str {
        &self.io
    }

    /// Passes frames on until `stop` is set (seen within 50 ms) or an interface fails.
    ///
    /// # Errors
    /// If the system has no randomness to key the flow fingerprints with, or no memory.
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
        let Self { ways, _locks, .. } = self;
        let names: Vec<_> = ways.iter().map(Way::names).collect();
        let directions: Vec<_> =
            ways.into_iter().map(|way| way.prepare(observer())).collect::<Result<_, _>>()?;
        let halt = AtomicBool::new(false);
        let ended: Vec<_> = thread::scope(|scope| {
            let run = |direction: Direction<O>| scope.spawn(|| direction.run(stop, &halt));
            let threads: Vec<_> = directions.into_iter().map(run).collect();
            threads.into_iter().map(join).collect()
        });
        let mut report = Report { directions: Vec::new(), fault: None };
        for ((direction, fault), (from, to, scheduler)) in ended.into_iter().zip(names) {
            let fault = fault.map(|fault| describe(&fault, &from, &to));
            report.fault = report.fault.or(fault);
            report.directions.push(DirectionReport { from, to, scheduler, ..direction });
        }
        Ok(report)
    }
}

impl Way {
    /// Where it comes from, where it goes, and its discipline, for reports.
    fn names(&self) -> (String, String, String) {
        (self.from.clone(), self.to.clone(), self.config.spec.to_string())
    }

    fn prepare<O: Observer>(self, observer: O) -> Result<Direction<O>, EngineError> {
        let Self { to, input, output, buffers, config, largest_frame, .. } = self;
        let system = |doing, source| EngineError::System { interface: to.clone(), doing, source };
        let fingerprinter = Fingerprinter::random().map_err(|error| {
            system("drawing a key for flow fingerprints", io::Error::other(error))
        })?;
        let own = || Buffers::new(largest_frame as usize, MOST_FRAMES);
        let buffers = buffers
            .map_or_else(own, Ok)
            .map_err(|error| system("reserving memory for frames", error))?;
        let parts = Parts {
            input,
            output,
            qdisc: config.spec.clone().on_link(config.rate.0).build(config.seed),
            tagger: config.edge.as_ref().map(EdgeSpec::build),
            observer,
            fingerprinter,
            needs: config.spec.info().needs,
            pacing: Pacing {
                rate: config.rate,
                overhead: config.overhead,
                least_size: config.least_size,
                burst_time: config.burst_time,
            },
            delay: config.delay,
            largest_frame,
        };
        Ok(Direction::new(parts, buffers))
    }
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
        Ok(Self { name: interface(), link, lock })
    }

    fn for_xdp(&self) -> xdp::Port<'_> {
        xdp::Port { name: &self.name, link: &self.link, largest_frame: self.largest_frame() }
    }

    /// Most bytes of a frame, so that it fits through the interface.
    fn largest_frame(&self) -> u32 {
        self.link.mtu + HEADER
    }

    /// `AF_PACKET` sockets to receive and to send.
    fn packet_sockets(&self) -> Result<(PacketSocket, PacketSocket), EngineError> {
        let open = || {
            let index = self.link.index;
            Ok((PacketSocket::receiver(index)?, PacketSocket::sender(index)?))
        };
        open().map_err(|source: io::Error| {
            let interface = self.name.clone();
            match source.kind() {
                io::ErrorKind::PermissionDenied => EngineError::NoPermission { interface },
                _ => EngineError::System { interface, doing: "opening a packet socket", source },
            }
        })
    }
}

/// What both directions take frames from and give them to, and how that was chosen.
fn take_io(
    ports: &[Port; 2],
    configs: &[LinkConfig; 2],
    io: Io,
) -> Result<([Half; 2], String), EngineError> {
    let reason = match io {
        Io::Packet => None,
        Io::Xdp => {
            let bridge = xdp::open(&ports.each_ref().map(Port::for_xdp), most_packets(configs))?;
            return Ok((bridge.halves, bridge.how));
        }
        Io::Auto => match xdp::open(&ports.each_ref().map(Port::for_xdp), most_packets(configs)) {
            Ok(bridge) => return Ok((bridge.halves, bridge.how)),
            Err(reason) => Some(reason),
        },
    };
    let [left, right] = ports;
    let ((from_left, to_left), (from_right, to_right)) =
        (left.packet_sockets()?, right.packet_sockets()?);
    let half = |input, output| Half { input: Box::new(input), output: Box::new(output), buffers: None };
    let halves = [half(from_left, to_right), half(from_right, to_left)];
    let how = reason.map_or_else(
        || "AF_PACKET".to_owned(),
        |reason| format!("AF_PACKET, since AF_XDP cannot be had: {reason}"),
    );
    Ok((halves, how))
}

/// Most packets that a queue is to hold, as far as it counts packets.
fn most_packets(configs: &[LinkConfig; 2]) -> usize {
    let limit = |config: &LinkConfig| {
        let params = config.spec.params();
        match params.has("limit").then(|| params.amount("limit")) {
            Some(Amount::Packets(packets)) => packets as usize,
            _ => 0,
        }
    };
    configs.iter().map(limit).max().unwrap_or(0).min(MOST_FRAMES)
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
