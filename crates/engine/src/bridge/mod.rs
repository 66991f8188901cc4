//! A bridge between two interfaces, with a queue and a link in each direction.

pub(crate) mod ports;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use frame::{Fingerprinter, LinkType};
use netdev::link::{Link, Links};
use netdev::watch::Watch;
use sched::edge::EdgeSpec;
use sched::{Info, Nanos, Rate, Spec};

use self::ports::{Io, Port, take_io};
use crate::buffers::Buffers;
use crate::control::{self, Adjust, Command, Handle, Lock, Server};
use crate::direction::{Direction, Fault, MOST_FRAMES, MOST_SUPER_PACKETS, Parts, Side};
use crate::error::EngineError;
use crate::io::FrameIo;
use crate::live::Live;
use crate::observe::{Counters, Observe, Observer, Records};
use crate::overhead::{ETHERNET_HEADER, Overhead};
use crate::report::{DirectionReport, Report};
use crate::status::Heading;

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
    /// What a packet takes on it beside its bytes. Frames count without checksum, as in `tc`.
    pub overhead: Overhead,
    /// Bytes that the interface's frames have before the IP header.
    pub link_header: u32,
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
            overhead: Overhead::NONE,
            link_header: ETHERNET_HEADER,
            delay: Nanos::ZERO,
            burst_time: Nanos::from_millis(1),
            seed: 0,
        }
    }
}

/// What takes frames from one place to another through slow links.
pub struct Engine {
    pub(crate) ways: Vec<Way>,
    /// How frames come and go, and why so.
    pub(crate) io: String,
    /// The interfaces, which no other engine can hold meanwhile.
    pub(crate) ports: Vec<control::Port>,
    /// Sees whether the interfaces stay as the engine needs them.
    pub(crate) watch: Option<Watch>,
}

/// From an input through a queue and a link to an output.
pub(crate) struct Way {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) input: Box<dyn FrameIo>,
    pub(crate) output: Box<dyn FrameIo>,
    /// Memory for frames that the input and output share with the kernel, if they do.
    pub(crate) buffers: Option<Buffers>,
    pub(crate) config: LinkConfig,
    pub(crate) medium: Medium,
    /// As which direction of which of the engine's ports it is known.
    pub(crate) known_as: Vec<(usize, Heading)>,
    /// Makes what surrounds it ready for a change.
    pub(crate) adjust: Option<Adjust>,
}

/// What frames are like, and what becomes of some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medium {
    /// How they begin.
    pub(crate) link_type: LinkType,
    /// The largest that the output takes, but for super-packets.
    pub(crate) largest: u32,
    /// Bytes of a frame that lie together, headers included.
    pub(crate) head: usize,
    /// Whether the input splits super-packets that would take too long, so that none is refused.
    pub(crate) splits: bool,
    /// Whether frames are dropped while the output is down, rather than the engine ended.
    pub(crate) outlives_down: bool,
}

impl Medium {
    /// Between two interfaces, of which the far one has this MTU.
    pub(crate) fn bridged(mtu: u32) -> Self {
        let largest = mtu + HEADER;
        Self {
            link_type: LinkType::Ethernet,
            largest,
            head: largest as usize,
            splits: false,
            outlives_down: false,
        }
    }
}

/// Room for the Ethernet header and two VLAN tags beside the MTU.
pub(crate) const HEADER: u32 = 14 + 2 * 4;

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
        const LEFT: usize = 0;
        const RIGHT: usize = 1;
        for (config, to) in [(&left_to_right, right), (&right_to_left, left)] {
            check_config(config, to)?;
        }
        if left == right {
            return Err(EngineError::SameInterface { interface: left.to_owned() });
        }
        let ports = [Port::open(left)?, Port::open(right)?];
        let configs = [left_to_right, right_to_left];
        let (halves, io) = take_io(&ports, &configs, io)?;
        let ends = [(LEFT, RIGHT), (RIGHT, LEFT)];
        let ways =
            halves.into_iter().zip(configs).zip(ends).map(|((half, config), (from, to))| Way {
                from: ports[from].name.clone(),
                to: ports[to].name.clone(),
                input: half.input,
                output: half.output,
                buffers: half.buffers,
                config,
                medium: Medium::bridged(ports[to].link.mtu),
                known_as: vec![(to, Heading::Egress), (from, Heading::Ingress)],
                adjust: None,
            });
        let ways = ways.collect();
        let held = |port: Port| control::Port {
            name: port.name,
            ifindex: port.link.index,
            lock: port.lock,
        };
        Ok(Self { ways, io, ports: ports.map(held).into(), watch: None })
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
        self.run_with(stop, || Records::account(observe))
    }

    /// As [`run`](Self::run), and answers on the interfaces' control sockets meanwhile, by which
    /// it can be [stopped](control::stop) as well. `ready` is called when it does.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_live(self, stop: &AtomicBool, ready: impl FnOnce()) -> Result<Report, EngineError> {
        let Self { mut ways, ports, watch, .. } = self;
        let mut handles = Vec::new();
        let mut prepared = Vec::new();
        for mut way in ways.drain(..) {
            let (sender, commands) = channel();
            handles.push(Handle {
                config: way.config.clone(),
                commands: sender,
                known_as: way.known_as.clone(),
                adjust: way.adjust.take(),
            });
            let names = way.names();
            let lanes = if way.config.spec.info().parts.is_some() { 2 } else { 1 };
            prepared.push((way.prepare(Live::account(lanes), Some(commands))?, names));
        }
        let mut server = Server::new(ports, handles);
        let report = run(prepared, stop, watch, |halt| {
            ready();
            server.serve(stop, halt);
        });
        Ok(report)
    }

    fn run_with<O: Observer>(
        self,
        stop: &AtomicBool,
        observer: impl Fn() -> O,
    ) -> Result<Report, EngineError> {
        let Self { ways, ports: _ports, watch, .. } = self;
        let prepare = |way: Way| {
            let names = way.names();
            Ok((way.prepare(observer(), None)?, names))
        };
        let prepared = ways.into_iter().map(prepare).collect::<Result<_, EngineError>>()?;
        Ok(run(prepared, stop, watch, |_| {}))
    }
}

/// From, to, and the discipline.
type Names = (String, String, String);

/// Runs directions, a thread each, and `meanwhile` on the calling one.
fn run<O: Observer>(
    prepared: Vec<(Direction<O>, Names)>,
    stop: &AtomicBool,
    watch: Option<Watch>,
    meanwhile: impl FnOnce(&AtomicBool),
) -> Report {
    let halt = AtomicBool::new(false);
    let (directions, names): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
    let (ended, seen): (Vec<_>, _) = thread::scope(|scope| {
        let run = |direction: Direction<O>| {
            scope.spawn(|| {
                let _halt = Halt(&halt);
                direction.run(stop, &halt)
            })
        };
        let watch = watch.map(|watch| scope.spawn(|| watch.run(&halt)));
        let threads: Vec<_> = directions.into_iter().map(run).collect();
        meanwhile(&halt);
        (threads.into_iter().map(join).collect(), watch.and_then(join))
    });
    let mut report = Report { directions: Vec::new(), fault: seen };
    for ((direction, fault), (from, to, scheduler)) in ended.into_iter().zip(names) {
        let fault = fault.map(|fault| describe(&fault, &from, &to));
        report.fault = report.fault.or(fault);
        report.directions.push(DirectionReport { from, to, scheduler, ..direction });
    }
    report
}

/// Ends all directions when one of them ends, even if by a panic.
struct Halt<'a>(&'a AtomicBool);

impl Drop for Halt<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Way {
    /// Where it comes from, where it goes, and its discipline, for reports.
    fn names(&self) -> Names {
        (self.from.clone(), self.to.clone(), self.config.spec.to_string())
    }

    fn prepare<O: Observer>(
        self,
        observer: O,
        commands: Option<Receiver<Command>>,
    ) -> Result<Direction<O>, EngineError> {
        let Self { to, input, output, buffers, config, medium, .. } = self;
        let fingerprinter = Fingerprinter::random().map_err(|error| {
            system(&to, "drawing a key for flow fingerprints")(io::Error::other(error))
        })?;
        let own = || Buffers::with_tails(medium.head, MOST_FRAMES, MOST_SUPER_PACKETS);
        let buffers =
            buffers.map_or_else(own, Ok).map_err(system(&to, "reserving memory for frames"))?;
        let parts = Parts {
            input,
            output,
            qdisc: config.spec.clone().on_link(config.rate).build(config.seed),
            tagger: config.edge.as_ref().map(EdgeSpec::build),
            observer,
            fingerprinter,
            needs: config.spec.info().needs,
            pacing: config.pacing(),
            delay: config.delay,
            commands,
            medium,
        };
        Ok(Direction::new(parts, buffers))
    }
}

/// What the interface of this name is.
pub(crate) fn look_up(name: &str) -> Result<Link, EngineError> {
    let not_found = |error: io::Error| match error.raw_os_error() {
        Some(libc::ENODEV | libc::EINVAL | libc::ERANGE) => {
            EngineError::NoSuchInterface { interface: name.to_owned() }
        }
        _ => system(name, "looking it up")(error),
    };
    let mut links = Links::open().map_err(|error| system(name, "netlink")(error.into_system()))?;
    links.get(name).map_err(|error| not_found(error.into_system()))
}

/// Keeps other engines away from an interface.
pub(crate) fn hold(name: &str, link: &Link) -> Result<Lock, EngineError> {
    Lock::take(link.index).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => EngineError::Taken { interface: name.to_owned() },
        _ => system(name, "taking hold of it")(error),
    })
}

/// What to make of a refusal of the system's.
pub(crate) fn system(
    interface: &str,
    doing: &'static str,
) -> impl FnOnce(io::Error) -> EngineError {
    let interface = interface.to_owned();
    move |source| EngineError::System { interface, doing, source }
}

pub(crate) fn check_config(config: &LinkConfig, to: &str) -> Result<(), EngineError> {
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
