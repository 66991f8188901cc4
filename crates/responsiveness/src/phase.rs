//! One phase: load in some directions, probes beside it, and what they found.

use std::io;
use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use crate::client::{Connection, Handshakes, PATIENCE, Target};
use crate::error::Error;
use crate::score::{Samples, WINDOW, is_stable};

/// The draft's interval, of 5 s for now, shortened so that a phase has more than a window of them.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// Connections that a direction begins with, and more with each interval: more than the draft's
/// one, as it allows, to be quick.
const INITIAL: usize = 4;
const MORE: usize = 2;
/// Most in a direction (MNP).
const MOST: usize = 16;
/// Pairs of probes in a second, at most (half of MPS).
const MOST_PAIRS: f64 = 50.0;
/// And without load.
const IDLE_PAIRS: f64 = 20.0;
/// What a pair of probes takes, in bytes, by the draft; and the part of the rate for them (PTC).
const PAIR_BYTES: f64 = 6000.0;
const PROBED_PART: f64 = 0.05;
/// Pairs in flight; more would only wait behind each other.
const IN_FLIGHT: usize = 100;

/// What is under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Nothing.
    Idle,
    /// The way from the server.
    Down,
    /// The way to it.
    Up,
    /// Both.
    Both,
}

impl Load {
    /// All, in their order.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Down, Self::Up, Self::Both];

    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Down => "down",
            Self::Up => "up",
            Self::Both => "both",
        }
    }

    /// Whether it loads the way from the server.
    #[must_use]
    pub const fn is_down(self) -> bool {
        matches!(self, Self::Down | Self::Both)
    }

    /// Whether it loads the way to the server.
    #[must_use]
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Up | Self::Both)
    }
}

/// How far a number is to be trusted, by the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Too few intervals.
    Low,
    /// It was not stable yet.
    Medium,
    /// It was stable.
    High,
}

/// What a phase found, over its last four intervals.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was under load.
    pub load: Load,
    /// How long the probes took.
    pub samples: Samples,
    /// TCP handshakes of new connections as the kernel timed them: the network's delay.
    pub delays: Vec<Duration>,
    /// Bits per second from the server; 0 without load on that way.
    pub down_bps: f64,
    /// Bits per second to the server; 0 without load on that way.
    pub up_bps: f64,
    /// Whether rates and responsiveness were stable.
    pub confidence: Confidence,
    /// All the phase, second by second.
    pub intervals: Vec<Interval>,
}

/// A second of a phase.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Bytes from the server.
    pub down_bytes: u64,
    /// Bytes to it.
    pub up_bytes: u64,
    /// The network's delays.
    pub delays: Vec<Duration>,
    samples: Samples,
}

enum Probed {
    Separate(Handshakes, Duration),
    Loaded(Duration),
}

/// Runs a phase of this many intervals.
pub(crate) async fn run(target: &Target, load: Load, intervals: usize) -> Result<Measured, Error> {
    let gone = |found: String| Error::Gone { phase: load.name(), found };
    let mut phase = Phase {
        target,
        load,
        begun: [0; 2],
        opening: JoinSet::new(),
        loads: JoinSet::new(),
        down: Vec::new(),
        up: Vec::new(),
    };
    phase.add(INITIAL);
    let mut done: Vec<Interval> = Vec::new();
    let mut probes = JoinSet::new();
    let mut before = phase.carried().map_err(|error| gone(error.to_string()))?;
    let mut begun = Instant::now();
    while done.len() < intervals {
        let mut current = Interval::default();
        let mut ticks = interval(Duration::from_secs_f64(1.0 / pairs(load, done.last())));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let end = sleep_until(begun + INTERVAL);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => break,
                _ = ticks.tick(), if probes.len() < 2 * IN_FLIGHT => phase.probe(&mut probes),
                Some(probed) = probes.join_next() => current.add(joined(probed).map_err(gone)?),
                Some(opened) = phase.opening.join_next() => {
                    let opened = opened.unwrap_or_else(|error| Err(error.to_string()));
                    phase.put_load_on(opened.map_err(gone)?);
                }
                Some(found) = phase.loads.join_next() => {
                    return Err(gone(found.unwrap_or_else(|error| error.to_string())));
                }
            }
        }
        let now = phase.carried().map_err(|error| gone(error.to_string()))?;
        (current.down_bytes, current.up_bytes) = (now.0 - before.0, now.1 - before.1);
        done.push(current);
        begun += INTERVAL;
        if load != Load::Idle && done.len() < intervals {
            phase.add(MORE);
        }
        before = now;
    }
    told(measured(load, done), intervals)
}

/// What a phase found, or why that is nothing.
fn told(measured: Measured, intervals: usize) -> Result<Measured, Error> {
    let load = measured.load;
    if load.is_down() && measured.down_bps == 0.0 || load.is_up() && measured.up_bps == 0.0 {
        return Err(Error::Gone { phase: load.name(), found: "no byte passes any more".into() });
    }
    let samples = &measured.samples;
    if samples.http.is_empty() || load != Load::Idle && samples.loaded.is_empty() {
        return Err(Error::Slow { phase: load.name(), seconds: WINDOW.min(intervals) });
    }
    Ok(measured)
}

/// Pairs of probes in a second, for the rate that the latest interval had.
fn pairs(load: Load, latest: Option<&Interval>) -> f64 {
    let carried = match (load, latest) {
        (Load::Idle, _) => return IDLE_PAIRS,
        (_, None) => 0,
        (Load::Down, Some(latest)) => latest.down_bytes,
        (Load::Up, Some(latest)) => latest.up_bytes,
        (Load::Both, Some(latest)) => latest.down_bytes.min(latest.up_bytes),
    };
    let affordable = PROBED_PART * carried as f64 / INTERVAL.as_secs_f64() / PAIR_BYTES;
    affordable.clamp(2.0, MOST_PAIRS)
}

fn joined(
    probed: Result<Result<Probed, String>, tokio::task::JoinError>,
) -> Result<Probed, String> {
    probed.unwrap_or_else(|error| Err(error.to_string()))
}

impl Interval {
    fn add(&mut self, probed: Probed) {
        match probed {
            Probed::Separate(took, http) => {
                self.samples.tcp.push(took.tcp);
                self.samples.tls.extend(took.tls);
                self.samples.http.push(http);
                self.delays.push(took.network);
            }
            Probed::Loaded(took) => self.samples.loaded.push(took),
        }
    }
}

#[derive(Clone, Copy)]
enum Way {
    Down,
    Up,
}

struct Phase<'a> {
    target: &'a Target,
    load: Load,
    /// Connections begun, by way.
    begun: [usize; 2],
    opening: JoinSet<Result<(Way, Connection), String>>,
    /// They end only by failing.
    loads: JoinSet<String>,
    down: Vec<Connection>,
    up: Vec<Connection>,
}

impl Phase<'_> {
    /// Begins up to this many connections more in each direction under load; a handshake through a
    /// long queue must not keep the probes waiting.
    fn add(&mut self, connections: usize) {
        let ways = [(Way::Down, self.load.is_down()), (Way::Up, self.load.is_up())];
        for way in ways.into_iter().filter_map(|(way, loaded)| loaded.then_some(way)) {
            let begun = &mut self.begun[way as usize];
            let more = connections.min(MOST - *begun);
            *begun += more;
            for _ in 0..more {
                let target = self.target.clone();
                self.opening.spawn(async move {
                    let connected = timeout(PATIENCE, target.connect()).await;
                    let late = |_| format!("no connection within {PATIENCE:?}");
                    let connection = connected.map_err(late)?.map_err(|fault| fault.to_string())?;
                    Ok((way, connection))
                });
            }
        }
    }

    /// Puts load on a connection.
    fn put_load_on(&mut self, (way, connection): (Way, Connection)) {
        let (target, loaded) = (self.target.clone(), connection.clone());
        match way {
            Way::Down => {
                self.down.push(connection);
                self.loads.spawn(async move { target.download(loaded).await });
            }
            Way::Up => {
                self.up.push(connection);
                self.loads.spawn(async move { target.upload(loaded).await });
            }
        }
    }

    /// Begins a probe of each kind.
    fn probe(&self, probes: &mut JoinSet<Result<Probed, String>>) {
        let target = self.target.clone();
        probes.spawn(async move {
            let late = |_| format!("a probe had no answer within {PATIENCE:?}");
            let (took, http) = timeout(PATIENCE, target.probe()).await.map_err(late)??;
            Ok(Probed::Separate(took, http))
        });
        let all = self.down.len() + self.up.len();
        if all == 0 {
            return;
        }
        let chosen = fastrand::usize(..all);
        let connection = self.down.iter().chain(&self.up).nth(chosen).expect("one of them").clone();
        let target = self.target.clone();
        probes.spawn(async move {
            let late = |_| format!("a probe beside a load had no answer within {PATIENCE:?}");
            Ok(Probed::Loaded(
                timeout(PATIENCE, target.probe_on(&connection)).await.map_err(late)??,
            ))
        });
    }

    /// Bytes that all connections have carried, from the server and to it.
    fn carried(&self) -> io::Result<(u64, u64)> {
        let mut all = (0, 0);
        for connection in &self.down {
            all.0 += connection.carried()?.0;
        }
        for connection in &self.up {
            all.1 += connection.carried()?.1;
        }
        Ok(all)
    }
}

fn measured(load: Load, intervals: Vec<Interval>) -> Measured {
    let window = &intervals[intervals.len().saturating_sub(WINDOW)..];
    let (mut samples, mut delays) = (Samples::default(), Vec::new());
    for Interval { samples: its, delays: some, .. } in window {
        samples.tcp.extend(&its.tcp);
        samples.tls.extend(&its.tls);
        samples.http.extend(&its.http);
        samples.loaded.extend(&its.loaded);
        delays.extend(some);
    }
    let seconds = INTERVAL.as_secs_f64() * window.len() as f64;
    let bps =
        |bytes: fn(&Interval) -> u64| window.iter().map(bytes).sum::<u64>() as f64 * 8.0 / seconds;
    let confidence = if intervals.len() < WINDOW {
        Confidence::Low
    } else {
        let series = |of: &dyn Fn(&Interval) -> f64| intervals.iter().map(of).collect::<Vec<_>>();
        let rates = series(&|each| (each.down_bytes + each.up_bytes) as f64);
        let rpm =
            series(&|each| each.samples.round_trips_per_minute(load != Load::Idle).unwrap_or(0.0));
        let rates_hold = load == Load::Idle || is_stable(&rates);
        if rates_hold && is_stable(&rpm) { Confidence::High } else { Confidence::Medium }
    };
    let (down_bps, up_bps) = (bps(|each| each.down_bytes), bps(|each| each.up_bytes));
    Measured { load, samples, delays, down_bps, up_bps, confidence, intervals }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_a_second(up_bytes: u64, loaded: &[u64]) -> Result<Measured, Error> {
        let ms = |each: &[u64]| each.iter().copied().map(Duration::from_millis).collect();
        let samples = Samples { http: ms(&[20]), loaded: ms(loaded), ..Samples::default() };
        told(measured(Load::Up, vec![Interval { up_bytes, samples, ..Interval::default() }]), 1)
    }

    #[test]
    fn a_slow_link_is_not_taken_for_a_server_that_is_gone() {
        assert!(of_a_second(1_000_000, &[20]).is_ok());
        let slow = of_a_second(1_000_000, &[]).unwrap_err();
        assert!(matches!(slow, Error::Slow { phase: "up", seconds: 1 }), "{slow}");
        let gone = of_a_second(0, &[]).unwrap_err();
        assert!(matches!(gone, Error::Gone { phase: "up", .. }), "{gone}");
    }
}
