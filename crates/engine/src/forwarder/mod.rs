//! Directions at work: a thread each, and a thread that answers on the control sockets.

pub(crate) mod interface;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;
use std::time::Duration;

use frame::Fingerprinter;
use netdev::watch::Watch;
use sched::edge::EdgeSpec;
use sched::{Nanos, Rate};

use self::interface::system;
use crate::control::{self, Adjust, Followed, Following, Handle, Log, Pilot, Server, Threads};
use crate::datapath::buffers::Buffers;
use crate::datapath::clock;
use crate::datapath::command::Command;
use crate::datapath::direction::{Direction, Fault, MOST_FRAMES, MOST_SUPER_PACKETS, Parts, Side};
use crate::datapath::follow::{Gauge, Note, Passing, Stamps};
use crate::datapath::live::Live;
use crate::datapath::medium::Medium;
use crate::datapath::observe::{Counters, Observe, Observer, Records};
use crate::datapath::report::{DirectionReport, Report};
use crate::datapath::shaper::Pacing;
use crate::datapath::trips::Trips;
use crate::error::EngineError;
use crate::io::FrameIo;
use crate::settings::LinkConfig;
use crate::status::Heading;

/// How soon a flag to stop is seen.
const SEEN_WITHIN: Duration = Duration::from_millis(50);

/// What takes frames from one place to another through slow links.
pub struct Forwarder {
    pub(crate) ways: Vec<Way>,
    /// How frames come and go, and why so.
    pub(crate) io: String,
    /// The interfaces, which no other engine can hold meanwhile.
    pub(crate) ports: Vec<control::Port>,
    /// Sees whether the interfaces stay as the engine needs them.
    pub(crate) watch: Option<Watch>,
    /// What its rates follow, if they do.
    pub(crate) following: Option<(Following, Log)>,
}

/// Another rate for a direction.
#[derive(Clone, Copy, Debug)]
pub struct RateChange {
    /// When, on the engine's clock.
    pub at: Nanos,
    /// Of which direction: that from left to right is 0.
    pub direction: usize,
    /// The rate from then on; not 0.
    pub rate: Rate,
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

impl Forwarder {
    /// How frames come and go, and why so, in words.
    #[must_use]
    pub fn io(&self) -> &str {
        &self.io
    }

    /// Has the rates of an engine on one interface follow the link while it
    /// [runs](Self::run_live). `log` is told what an operator should know, a line each.
    #[must_use]
    pub fn following(self, following: Following, log: impl FnMut(&str) + Send + 'static) -> Self {
        Self { following: Some((following, Box::new(log))), ..self }
    }

    /// Passes frames on until `stop` is set (seen within 50 ms) or an interface fails.
    ///
    /// # Errors
    /// If the system has no randomness to key the flow fingerprints with, no memory, or no threads.
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

    /// As [`run_observed`](Self::run_observed), and changes rates when it is time, in their order.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_changing(
        self,
        stop: &AtomicBool,
        observe: Observe,
        changes: &[RateChange],
    ) -> Result<Report, EngineError> {
        if changes.is_empty() {
            return self.run_observed(stop, observe);
        }
        let Self { ways, ports: _ports, watch, .. } = self;
        let mut orders = Vec::new();
        let mut prepared = Vec::new();
        for way in ways {
            let (sender, commands) = channel();
            orders.push((sender, way.config.clone()));
            let names = way.names();
            prepared.push((way.prepare(Records::account(observe), Some(commands), None)?, names));
        }
        run(prepared, stop, watch, |halt| {
            let is_over = || stop.load(Ordering::Relaxed) || halt.load(Ordering::Relaxed);
            for change in changes {
                let left = || change.at.since(clock::now());
                while !is_over() && left() > Nanos::ZERO {
                    thread::sleep(Duration::from_nanos(left().0).min(SEEN_WITHIN));
                }
                let Some((commands, config)) = orders.get_mut(change.direction) else { continue };
                config.link.rate = change.rate;
                let spec = config.spec.clone().on_link(change.rate);
                // The answer is of no use: a rate can always change, and so can what goes with it.
                let (answer, _) = sync_channel(1);
                let pacing = Pacing::on(config);
                let _ = commands.send(Command::Change(spec.params().clone(), pacing, answer));
            }
        })
    }

    /// As [`run`](Self::run), and answers on the interfaces' control sockets meanwhile, by which
    /// it can be [stopped](control::stop) as well. `ready` is called when it does.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_live(self, stop: &AtomicBool, ready: impl FnOnce()) -> Result<Report, EngineError> {
        let Self { mut ways, ports, watch, following, .. } = self;
        let (notes, pilot) = match following {
            Some((following, log)) => {
                let (notes, pilot) = steered(&ways, &ports[0].name, following, log)
                    .map_err(system(&ports[0].name, "probing"))?;
                (notes, Some(pilot))
            }
            None => (Vec::new(), None),
        };
        let mut notes = notes.into_iter();
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
            let lanes = way.config.spec.info().least_lanes;
            prepared
                .push((way.prepare(Live::account(lanes), Some(commands), notes.next())?, names));
        }
        let mut server = Server::new(ports, Threads::new(handles), pilot);
        run(prepared, stop, watch, |halt| {
            ready();
            server.serve(stop, halt);
        })
    }

    fn run_with<O: Observer>(
        self,
        stop: &AtomicBool,
        observer: impl Fn() -> O,
    ) -> Result<Report, EngineError> {
        let Self { ways, ports: _ports, watch, .. } = self;
        let prepare = |way: Way| {
            let names = way.names();
            Ok((way.prepare(observer(), None, None)?, names))
        };
        let prepared = ways.into_iter().map(prepare).collect::<Result<_, EngineError>>()?;
        run(prepared, stop, watch, |_| {})
    }
}

/// What each direction notes, and who steers by that.
fn steered(
    ways: &[Way],
    device: &str,
    following: Following,
    log: Log,
) -> io::Result<(Vec<Note>, Pilot)> {
    let mut token = [0; 8];
    getrandom::fill(&mut token).map_err(io::Error::other)?;
    let stamps = Arc::new(Stamps::new(token));
    let trips = Fingerprinter::random().map(Trips::new).map(Arc::new).map_err(io::Error::other)?;
    let trips = (ways.len() > 1).then_some(trips);
    let note = |way: &Way| {
        let leaves = way.known_as.iter().any(|(_, heading)| *heading == Heading::Egress);
        let passing = if leaves { Passing::Departing } else { Passing::Returning };
        Note {
            gauge: Arc::new(Gauge::default()),
            stamps: Arc::clone(&stamps),
            passing,
            trips: trips.clone(),
            link: way.medium.link_type,
        }
    };
    let notes: Vec<Note> = ways.iter().map(note).collect();
    let followed = ways.iter().zip(&notes).map(|(way, note)| Followed {
        gauge: Arc::clone(&note.gauge),
        passing: note.passing,
        rate: way.config.link.rate,
        bounds: match note.passing {
            Passing::Departing => following.egress,
            Passing::Returning => following.ingress,
        },
    });
    let pilot = Pilot::new(device, &following, (stamps, trips.clone()), followed.collect(), log)?;
    Ok((notes, pilot))
}

/// From, to, and the discipline.
type Names = (String, String, String);

/// Runs directions, a thread each, and `meanwhile` on the calling one, once all take frames.
fn run<O: Observer>(
    prepared: Vec<(Direction<O>, Names)>,
    stop: &AtomicBool,
    watch: Option<Watch>,
    meanwhile: impl FnOnce(&AtomicBool),
) -> Result<Report, EngineError> {
    let halt = AtomicBool::new(false);
    let (directions, names): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
    let ended = thread::scope(|scope| -> io::Result<(Vec<_>, _)> {
        // Those that have started end if another cannot.
        let _halt = Halt(&halt);
        let (started, all_started) = channel();
        let run = |direction: Direction<O>| {
            let (started, halt) = (started.clone(), &halt);
            thread::Builder::new().spawn_scoped(scope, move || {
                let _halt = Halt(halt);
                direction.run(stop, halt, started)
            })
        };
        let watch =
            watch.map(|watch| thread::Builder::new().spawn_scoped(scope, || watch.run(&halt)));
        let watch = watch.transpose()?;
        let threads: Vec<_> = directions.into_iter().map(run).collect::<io::Result<_>>()?;
        drop(started);
        // Nothing is ever sent: it ends when the last direction has started, or has ended.
        let _ = all_started.recv();
        meanwhile(&halt);
        Ok((threads.into_iter().map(join).collect(), watch.and_then(join)))
    });
    let (ended, seen) = ended.map_err(system(&names[0].0, "starting a thread"))?;
    let mut report = Report { directions: Vec::new(), fault: seen };
    for ((direction, fault), (from, to, scheduler)) in ended.into_iter().zip(names) {
        let fault = fault.map(|fault| describe(&fault, &from, &to));
        report.fault = report.fault.or(fault);
        report.directions.push(DirectionReport { from, to, scheduler, ..direction });
    }
    Ok(report)
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
        note: Option<Note>,
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
            qdisc: config.spec.clone().on_link(config.link.rate).build(config.seed),
            tagger: config.edge.as_ref().map(EdgeSpec::build),
            observer,
            fingerprinter,
            needs: config.spec.info().needs,
            pacing: Pacing::on(&config),
            delay: config.delay,
            commands,
            medium,
            note,
        };
        Ok(Direction::new(parts, buffers))
    }
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
