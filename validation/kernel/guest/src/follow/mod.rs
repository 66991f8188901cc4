//! Rates that follow a link: ours on each engine, a fixed rate, and the script cake-autorate, on the
//! same bottleneck and in turn.
//!
//! `follow EXPERIMENT up|down ROUNDS [CONTROLLER...]`: in each round every controller has one run, `2..5`
//! are the second to the fifth. `docs/autorate.md` says what an experiment is. A checkout of the script
//! is taken from `/peer`, with `bash` and `fping`. What the controllers decided is left in `/out`.

mod controller;
mod echo;
mod line;
#[path = "../../../../../crates/autorate/tests/follows/radio.rs"]
mod radio;

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::controller::{ALL, Bounds, Controller, Running};
use self::echo::{Echo, Echoes, quantile};
use self::line::{ADDRESS, BEYOND, BURST, END, Line, ROUND_TRIP_MS, Way};
use self::radio::{Random, radio};
use crate::namespace::HERE;
use crate::traffic::{Running as Work, tcp_bulk, tcp_sink};

/// TCP transfers at once.
const TRANSFERS: usize = 4;
const PORT: u16 = 5001;
/// From a controller's start to the load, and from there to what is measured.
const SETTLE: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_secs(8);
/// How often a radio's rate changes.
const STEP: Duration = Duration::from_millis(100);
/// How often a noisy path's delay changes.
const FLICKER: Duration = Duration::from_millis(20);
const NOISE_MS: f64 = 40.0;
/// For small packets of which nothing delays the first.
const ALONE: Duration = Duration::from_millis(200);
const IDLE: Duration = Duration::from_secs(90);
/// How often decisions are asked for.
const NOTE: Duration = Duration::from_secs(1);

/// What a run gave, by name.
type Results = Vec<(&'static str, f64)>;

/// An experiment: its name, the bounds of the rate, the fixed rate, and a run.
type Experiment = (&'static str, Bounds, u64, fn(&mut Run) -> Result<Results>);

const EXPERIMENTS: [Experiment; 5] = [
    ("drop", Bounds(2, 20, 40), 20, drop_and_rise),
    ("radio", Bounds(2, 10, 60), 60, of_a_radio),
    ("noise", Bounds(2, 20, 40), 20, noise),
    ("idle", Bounds(2, 20, 40), 20, idle),
    ("slow", Bounds(2, 5, 10), 5, slow),
];

/// A controller on the line.
struct Run<'a> {
    line: &'a mut Line,
    running: &'a Running,
    way: Way,
    round: u64,
    begin: Instant,
    decisions: String,
    told: u64,
    /// When decisions were asked for last.
    noted: Duration,
}

pub(crate) fn run(words: &[String]) -> Result<()> {
    let usage = "follow drop|radio|noise|idle|slow up|down ROUNDS [[fixed-]ENGINE|peer]...";
    let [name, way, rounds, named @ ..] = words else { anyhow::bail!(usage) };
    let experiment = EXPERIMENTS.iter().find(|(known, ..)| known == name).context(usage)?;
    let way = if way == "up" { Way::Up } else { Way::Down };
    let (first, last) = rounds.split_once("..").unwrap_or(("1", rounds));
    let rounds = first.parse::<u64>().context(usage)?..=last.parse().context(usage)?;
    let is_wanted = |controller: &Controller| {
        let is_named = named.iter().any(|name| name == controller.name());
        controller.is_here() && (is_named || (named.is_empty() && controller.is_usual()))
    };
    let controllers: Vec<Controller> = ALL.into_iter().filter(is_wanted).collect();
    ensure!(!controllers.is_empty(), usage);
    let mut line = Line::new()?;
    let mut all: Vec<Vec<Results>> = vec![Vec::new(); controllers.len()];
    for round in rounds {
        for (controller, results) in controllers.iter().zip(&mut all) {
            let found = one(*controller, experiment, way, round, &mut line);
            let found = found.with_context(|| controller.name())?;
            println!("{name} {way:?} {} {round}:{}", controller.name(), told(&found));
            results.push(found);
        }
    }
    for (controller, results) in controllers.iter().zip(&all) {
        println!("{name} {way:?} {} medians:{}", controller.name(), told(&medians(results)));
    }
    Ok(())
}

fn one(
    controller: Controller,
    (name, bounds, fixed, experiment): &Experiment,
    way: Way,
    round: u64,
    line: &mut Line,
) -> Result<Results> {
    line.becomes_quiet()?;
    line.carries(20.0)?;
    let running = controller.start(*bounds, *fixed)?;
    thread::sleep(SETTLE);
    let begin = Instant::now();
    let mut run = Run {
        line,
        running: &running,
        way,
        round,
        begin,
        decisions: String::new(),
        told: 0,
        noted: Duration::ZERO,
    };
    let results = experiment(&mut run);
    run.note()?;
    let decisions = run.decisions + &running.log();
    fs::write(format!("/out/{name}-{way:?}-{}-{round}", controller.name()), decisions)?;
    running.stop()?;
    results
}

fn told(results: &Results) -> String {
    results.iter().map(|(what, value)| format!(" {what} {value:.1}")).collect()
}

fn medians(runs: &[Results]) -> Results {
    let of = |at: usize| {
        let mut values: Vec<f64> = runs.iter().map(|run| run[at].1).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let names = runs.first().into_iter().flatten().map(|(name, _)| *name);
    names.enumerate().map(|(at, name)| (name, of(at))).collect()
}

impl Run<'_> {
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Notes what is decided meanwhile, of which the engine remembers little.
    fn sleep_until(&mut self, then: Duration) -> Result<()> {
        while self.now() < then {
            thread::sleep(then.min(self.noted + NOTE).saturating_sub(self.now()));
            if self.now() >= self.noted + NOTE {
                self.noted = self.now();
                self.note()?;
            }
        }
        Ok(())
    }

    /// Transfers without end, until they are told to stop.
    fn load(&self) -> Result<Load> {
        let (from, to, address) = match self.way {
            Way::Up => (HERE, BEYOND, END),
            Way::Down => (BEYOND, HERE, ADDRESS),
        };
        let (sink, _) = tcp_sink(to, PORT)?;
        let address: SocketAddr = format!("{address}:{PORT}").parse()?;
        Ok(Load { sink, bulk: (0..TRANSFERS).map(|_| tcp_bulk(from, address)).collect() })
    }

    fn passed(&mut self) -> Result<u64> {
        self.line.passed(self.way)
    }

    /// Keeps what was decided since the last time.
    fn note(&mut self) -> Result<()> {
        let (lines, last) = self.running.decisions(self.told)?;
        self.decisions += &lines;
        self.told = last;
        Ok(())
    }
}

struct Load {
    sink: Work<()>,
    bulk: Vec<Work<()>>,
}

impl Load {
    fn finish(self) -> Result<()> {
        self.bulk.into_iter().try_for_each(Work::finish)?;
        self.sink.finish()
    }
}

/// 20, then 5, then 20 Mbit/s.
fn drop_and_rise(run: &mut Run) -> Result<Results> {
    let echo = Echo::start(run.begin)?;
    thread::sleep(ALONE);
    let load = run.load()?;
    run.sleep_until(WARM_UP)?;
    let fell = run.now();
    run.line.carries(5.0)?;
    run.sleep_until(fell + Duration::from_secs(8))?;
    let rose = run.now();
    run.line.carries(20.0)?;
    let mut again = f64::NAN;
    let (mut before, mut at) = (run.passed()?, run.now());
    // Until half a second in which nine tenths passed.
    while run.now() < rose + Duration::from_secs(20) {
        run.sleep_until(at + Duration::from_millis(500))?;
        let (passed, now) = (run.passed()?, run.now());
        let bits = 8.0 * (passed - before) as f64 / (now - at).as_secs_f64();
        if bits >= 18e6 {
            again = (now - rose).as_secs_f64() * 1e3;
            break;
        }
        (before, at) = (passed, now);
    }
    load.finish()?;
    let echoes = echo.finish()?;
    let extra = echoes.extra(fell, rose);
    let lost = extra.iter().filter(|ms| ms.is_infinite()).count();
    Ok(vec![
        ("late-ms", echoes.late_for(fell, rose)),
        ("most-ms", extra.iter().copied().filter(|ms| ms.is_finite()).fold(0.0, f64::max)),
        ("lost", lost as f64),
        ("again-ms", again),
    ])
}

/// What was used of what could be, in per cent, and extra delays.
fn of_span(echoes: &Echoes, (from, to): (Duration, Duration), used: f64) -> Results {
    let extra = echoes.extra(from, to);
    vec![
        ("used-%", used * 100.0),
        ("p50-ms", quantile(&extra, 0.5)),
        ("p95-ms", quantile(&extra, 0.95)),
        ("p99-ms", quantile(&extra, 0.99)),
    ]
}

/// Thirty seconds of a radio; the round is its seed.
fn of_a_radio(run: &mut Run) -> Result<Results> {
    let rates = radio(run.round);
    let echo = Echo::start(run.begin)?;
    thread::sleep(ALONE);
    run.line.carries(rates[0] / 1e6)?;
    let load = run.load()?;
    run.sleep_until(WARM_UP)?;
    let (from, before) = (run.now(), run.passed()?);
    let mut could = 0.0;
    for (step, rate) in rates[..300].iter().enumerate() {
        run.line.carries(rate / 1e6)?;
        let begin = run.now();
        run.sleep_until(from + STEP * (step as u32 + 1))?;
        could += rate / 8.0 * (run.now() - begin).as_secs_f64() + BURST as f64;
    }
    let (to, passed) = (run.now(), run.passed()? - before);
    load.finish()?;
    Ok(of_span(&echo.finish()?, (from, to), passed as f64 / could))
}

/// 20 Mbit/s over a path whose delay changes all the time, by up to 20 ms in either direction.
fn noise(run: &mut Run) -> Result<Results> {
    let mut random = Random(run.round);
    let echo = Echo::start(run.begin)?;
    thread::sleep(ALONE);
    let load = run.load()?;
    let mut before = None;
    let to = WARM_UP + Duration::from_secs(30);
    let mut next = run.now();
    while run.now() < to {
        run.line.delays(ROUND_TRIP_MS + NOISE_MS * random.next())?;
        next += FLICKER;
        run.sleep_until(next)?;
        if run.now() >= WARM_UP && before.is_none() {
            before = Some((run.now(), run.passed()?));
        }
    }
    let (to, passed) = (run.now(), run.passed()?);
    load.finish()?;
    let (from, before) = before.context("the machine stood still")?;
    let used = (passed - before) as f64 * 8.0 / 20e6 / (to - from).as_secs_f64();
    Ok(of_span(&echo.finish()?, (from, to), used))
}

/// 5 Mbit/s all the time.
fn slow(run: &mut Run) -> Result<Results> {
    run.line.carries(5.0)?;
    let echo = Echo::start(run.begin)?;
    thread::sleep(ALONE);
    let load = run.load()?;
    run.sleep_until(WARM_UP)?;
    let (from, before) = (run.now(), run.passed()?);
    run.sleep_until(WARM_UP + Duration::from_secs(30))?;
    let (to, passed) = (run.now(), run.passed()? - before);
    load.finish()?;
    let used = passed as f64 * 8.0 / 5e6 / (to - from).as_secs_f64();
    Ok(of_span(&echo.finish()?, (from, to), used))
}

/// Slow for a while, then nothing, and then a transfer over 20 Mbit/s.
fn idle(run: &mut Run) -> Result<Results> {
    run.line.carries(5.0)?;
    let load = run.load()?;
    run.sleep_until(WARM_UP)?;
    load.finish()?;
    run.line.carries(20.0)?;
    run.sleep_until(WARM_UP + IDLE)?;
    let echo = Echo::start(run.begin)?;
    thread::sleep(ALONE);
    let (from, before) = (run.now(), run.passed()?);
    let load = run.load()?;
    let mut passed = |after: u64| -> Result<f64> {
        run.sleep_until(from + Duration::from_secs(after))?;
        Ok((run.passed()? - before) as f64 / 1e3)
    };
    let (one, three, ten) = (passed(1)?, passed(3)?, passed(10)?);
    let to = run.now();
    load.finish()?;
    let extra = echo.finish()?.extra(from, to);
    Ok(vec![
        ("kB-in-1-s", one),
        ("kB-in-3-s", three),
        ("kB-in-10-s", ten),
        ("p95-ms", quantile(&extra, 0.95)),
    ])
}
