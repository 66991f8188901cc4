//! Has the rates of an engine follow the link: asks, looks, and lets the controllers decide.

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use autorate::{Bounds, Controller, Decision, Echo, Load, Meter, Path, Reason, Traffic, View};
use sched::{Nanos, Rate};

use super::decisions::Decisions;
use super::prober::Prober;
use crate::datapath::clock;
use crate::datapath::follow::{Gauge, Passing, Stamps};
use crate::datapath::trips::Trips;
use crate::status::Auto;

/// How often it decides.
const TICK: Nanos = Nanos::from_millis(25);
/// Later than this by the clock, when an answer was read says nothing of when it came.
const LATE: Nanos = Nanos::from_millis(100);
/// Between two probes of a link with next to nothing on it.
const IDLE: Nanos = Nanos::from_secs(1);
/// Between two probes of a busy link: as close as that, but for [`PROBE_BITS`].
const CLOSEST: u64 = TICK.0;
const WIDEST: u64 = 200_000_000;
/// What a probe takes at most, hundredfold: probes take at most 1 % of the floor.
const PROBE_BITS: u64 = 100 * 8 * 100;
/// Of a full packet.
const PACKET_BITS: u64 = 8 * 1_500;
/// Over which the use of a direction is measured.
const SPAN: Nanos = Nanos::from_millis(150);
/// A line of the log is not followed by another one for so long.
const QUIET: Nanos = Nanos::from_secs(1);

/// Where lines for the log go.
pub(crate) type Log = Box<dyn FnMut(&str) + Send>;

/// Which rates follow the link, and what they go by.
#[derive(Clone, Copy, Debug)]
pub struct Following {
    /// Of what leaves.
    pub egress: Option<Bounds>,
    /// Of what arrives.
    pub ingress: Option<Bounds>,
    /// A host beyond the link, which answers ICMP echo requests.
    pub probe: IpAddr,
    /// Whether it is known to be there. One that may be in front of the link's queue does not say
    /// that there is none.
    pub is_beyond: bool,
    /// Whether decisions are told only, and the rates stay.
    pub dry_run: bool,
}

/// One direction, as the pilot knows it.
pub(crate) struct Followed {
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) passing: Passing,
    /// The rate now.
    pub(crate) rate: Rate,
    pub(crate) bounds: Option<Bounds>,
}

struct Way {
    followed: Followed,
    controller: Option<Controller>,
    sent: Meter,
    received: Meter,
    decisions: Decisions,
    logged: Option<Nanos>,
}

/// Steers the rates.
pub(crate) struct Pilot {
    prober: Prober,
    stamps: Arc<Stamps>,
    trips: Option<Arc<Trips>>,
    path: Path,
    traffic: Traffic,
    is_beyond: bool,
    view: View,
    ways: Vec<Way>,
    /// Whether the direction in which probes depart is seen.
    sees_departures: bool,
    dry_run: bool,
    last_tick: Nanos,
    next_probe: Nanos,
    blind: bool,
    log: Log,
}

impl Pilot {
    pub(crate) fn new(
        device: &str,
        following: &Following,
        (stamps, trips): (Arc<Stamps>, Option<Arc<Trips>>),
        ways: Vec<Followed>,
        log: Log,
    ) -> std::io::Result<Self> {
        let now = clock::now();
        let way = |followed: Followed| Way {
            controller: followed.bounds.map(|bounds| Controller::new(bounds, now)),
            followed,
            sent: Meter::default(),
            received: Meter::default(),
            decisions: Decisions::default(),
            logged: None,
        };
        let sees_departures = ways.iter().any(|way| way.passing == Passing::Departing);
        Ok(Self {
            prober: Prober::new(device, following.probe, Arc::clone(&stamps))?,
            stamps,
            trips,
            path: Path::new(),
            traffic: Traffic::default(),
            is_beyond: following.is_beyond,
            view: View::default(),
            ways: ways.into_iter().map(way).collect(),
            sees_departures,
            dry_run: following.dry_run,
            last_tick: now,
            next_probe: now,
            blind: false,
            log,
        })
    }

    /// What to poll beside the time of the next tick.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.prober.as_fd()
    }

    /// When it wants to be called next, whatever happens.
    pub(super) fn next_tick(&self) -> Nanos {
        self.last_tick + TICK
    }

    /// A direction has been given another rate by hand, which stays: the controller is dismissed.
    pub(super) fn dismiss(&mut self, way: usize, rate: Rate) {
        if let Some(way) = self.ways.get_mut(way) {
            way.controller = None;
            way.followed.rate = rate;
        }
    }

    /// Whether any rate follows the link.
    pub(super) fn steers(&self) -> bool {
        self.ways.iter().any(|way| way.controller.is_some())
    }

    /// Hears answers, and on time decides. Returns the directions whose rate is to be another one.
    pub(super) fn turn(&mut self) -> Vec<(usize, Rate)> {
        let now = clock::now();
        let late = now - self.last_tick > LATE;
        while let Some(number) = self.prober.receive() {
            self.hear(number, now, late);
        }
        if now < self.next_tick() {
            return Vec::new();
        }
        self.last_tick = now;
        if !self.steers() {
            return Vec::new();
        }
        note_departures(&mut self.path, &self.stamps);
        while let Some(trip) = self.trips.as_ref().and_then(|trips| trips.take()) {
            self.traffic.answer(trip);
        }
        let slowest = self.ways.iter().map(|way| way.followed.rate.0).min().unwrap_or(0);
        let packet = Nanos(PACKET_BITS * 1_000_000_000 / slowest.max(1));
        self.view = self.path.look(now).beside(self.traffic.look(now, packet), self.is_beyond);
        let decided = self.decide(now);
        self.tell(&decided, now);
        self.ask(now);
        if self.dry_run {
            return Vec::new();
        }
        decided.into_iter().map(|(way, decision)| (way, decision.to)).collect()
    }

    fn hear(&mut self, number: u32, now: Nanos, late: bool) {
        if let Some(echo) = echo(&self.stamps, number, now, late, self.sees_departures) {
            self.path.answer(number, echo);
        }
    }

    /// Sends a probe, if it is time to.
    fn ask(&mut self, now: Nanos) {
        let mut controllers = self.ways.iter().filter_map(|way| way.controller.as_ref());
        let floors = controllers.clone().map(|controller| controller.bounds().floor().0);
        let apart =
            (PROBE_BITS * 1_000_000_000 / floors.min().unwrap_or(1).max(1)).clamp(CLOSEST, WIDEST);
        let busy =
            controllers.any(|controller| controller.sent() >= controller.bounds().floor().0 / 10);
        // Of an idle link the next one is not waited for.
        let next = if busy { self.next_probe.min(now + Nanos(apart)) } else { self.next_probe };
        if now < next {
            self.next_probe = next;
            return;
        }
        self.next_probe = now + if busy { Nanos(apart) } else { IDLE };
        let number = self.path.send();
        self.prober.send(number);
        if !self.sees_departures {
            self.stamps.departs(number, clock::now());
        }
    }

    fn decide(&mut self, now: Nanos) -> Vec<(usize, Decision)> {
        for way in &mut self.ways {
            let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            way.sent.look(now, load(&way.followed.gauge.sent));
            way.received.look(now, load(&way.followed.gauge.received));
        }
        let shares: Vec<f64> = self.ways.iter().map(Way::share).collect();
        let mut decided = Vec::new();
        for (at, way) in self.ways.iter_mut().enumerate() {
            let other_busier = shares.iter().any(|share| *share > 2.0 * shares[at]);
            let gauge = &way.followed.gauge;
            let Some(controller) = &mut way.controller else { continue };
            let load = Load {
                sent: gauge.sent.load(Ordering::Relaxed),
                delivered: match way.followed.passing {
                    Passing::Departing => self.view.passed,
                    Passing::Returning => way.received.over(controller.span(&self.view)),
                },
                other_busier,
            };
            if let Some(decision) = controller.decide(&self.view, &load, now) {
                if self.dry_run {
                    controller.stay(decision.from);
                } else {
                    way.followed.rate = decision.to;
                }
                way.decisions.note(decision);
                decided.push((at, decision));
            }
        }
        decided
    }

    /// A rate that was decided on could not be set.
    pub(super) fn failed(&mut self, why: &str) {
        (self.log)(&format!("the rate stays: {why}"));
    }

    /// What an operator should know: that a queue was found, that nothing is seen, and that it is
    /// seen again.
    fn tell(&mut self, decided: &[(usize, Decision)], now: Nanos) {
        // The first probes are given their time.
        let blind = self.view.blind && self.path.is_unanswered();
        if blind != self.blind {
            self.blind = blind;
            let address = self.prober.address();
            let line = match blind {
                true => format!("no probe to {address} is answered: at the base rate, blind"),
                false if self.path.is_unanswered() => {
                    format!(
                        "{address} does not answer, the traffic does: the rate follows the link"
                    )
                }
                false => format!("{address} answers: the rate follows the link"),
            };
            (self.log)(&line);
        }
        for (at, decision) in decided {
            let way = &mut self.ways[*at];
            let is_new = way.logged.is_none_or(|logged| now - logged >= QUIET);
            if is_new && (self.dry_run || matches!(decision.reason, Reason::Queue { .. })) {
                way.logged = Some(now);
                let direction = match way.followed.passing {
                    Passing::Departing => "egress",
                    Passing::Returning => "ingress",
                };
                let dry = if self.dry_run { "dry run: " } else { "" };
                (self.log)(&format!("{dry}{direction} {decision}"));
            }
        }
    }

    /// How a direction stands, if it is steered.
    pub(super) fn describe(&self, way: usize) -> Option<Auto> {
        let way = self.ways.get(way)?;
        let bounds = way.controller.as_ref()?.bounds();
        let now = clock::now();
        let last = way.decisions.last();
        Some(Auto {
            floor_bps: bounds.floor().0,
            base_bps: bounds.base().0,
            ceiling_bps: bounds.ceiling().0,
            probe: self.prober.address().to_string(),
            pid: process::id(),
            dry_run: self.dry_run,
            blind: self.view.blind,
            round_trip_ns: self.view.baseline.map(|time| time.0),
            extra_delay_ns: self.view.recent.map(|(extra, _)| extra.0),
            lowered: way.decisions.count("queue"),
            raised: way.decisions.count("room"),
            last_decision: last.map(Decision::to_string),
            last_reason: last.map(|decision| decision.reason.name().to_owned()),
            decided_ns_ago: last.map(|decision| (now - decision.at).0),
            decided: way.decisions.counts(),
            decisions: way.decisions.told(now),
        })
    }
}

/// When the probe that is answered left and when its answer came, as far as that was seen. An answer
/// that is read in time and was not seen to pass comes now.
pub(super) fn echo(
    stamps: &Stamps,
    number: u32,
    now: Nanos,
    late: bool,
    counts_bytes: bool,
) -> Option<Echo> {
    let (departed, bytes) = stamps.departed(number)?;
    let returned = stamps.returned(number).or((!late).then_some(now))?;
    Some(Echo { departed, returned, bytes_before: counts_bytes.then_some(bytes) })
}

/// Tells a path which of its probes have been seen to leave.
pub(super) fn note_departures(path: &mut Path, stamps: &Stamps) {
    let seen = |number: u32| Some((number, stamps.departed(number)?.0));
    let departed: Vec<(u32, Nanos)> = path.awaited().filter_map(seen).collect();
    departed.into_iter().for_each(|(number, at)| path.depart(number, at));
}

impl Way {
    /// The part of its rate that a direction uses.
    fn share(&self) -> f64 {
        self.sent.over(SPAN).unwrap_or(0) as f64 / self.followed.rate.0.max(1) as f64
    }
}
