//! Proof against the core: in a real kernel, random sequences of arrivals and releases go through
//! the qdisc, and every departure, drop, lane, fingerprint and count of flows is what crate
//! `sched` gives for the same frames at the same times; the wire carries what the records say.
//!
//! A *round* is one load of the qdisc: a discipline with its fixed parameters, one to three
//! devices with an instance each, and a few sequences on each of these, every one on a fresh
//! qdisc. All of it follows from the round's seed.

mod crowd;
mod device;
mod frames;
pub(crate) mod framing;
pub(crate) mod live;
pub(crate) mod marks;
mod model;
mod plan;
pub(crate) mod probes;
mod random;

use std::time::{Duration, Instant};
use std::{process, thread};

use anyhow::{Context, Result, bail, ensure};
use engine::kernel::testing::{Event, TestHooks};
use engine::kernel::{DISCIPLINES, Instance, Registered, compose, load};
use sched::Spec;

use device::{Device, run_command};
use frames::{Frame, Variety};
use model::{Model, Records, hex};
use plan::{Family, Plan, Step, unshaped};
use random::Random;

const KIND: &str = "slproof";
const MOST_DEVICES: u64 = 3;
const SEQUENCES_A_ROUND: u64 = 16;

struct Options {
    seed: u64,
    sequences: u64,
    discipline: Option<&'static str>,
    variety: Variety,
}

impl Options {
    fn from_words(words: &[String]) -> Result<Self> {
        let mut options =
            Self { seed: 1, sequences: 2000, discipline: None, variety: Variety::Any };
        for pair in words.chunks(2) {
            let [option, value] = pair else { bail!("{} takes a value", pair[0]) };
            match option.as_str() {
                "--seed" => options.seed = value.parse().context("--seed takes a number")?,
                "--sequences" => {
                    options.sequences = value.parse().context("--sequences takes a number")?;
                }
                "--discipline" => {
                    let known = DISCIPLINES.iter().copied().find(|name| name == value);
                    options.discipline = Some(known.with_context(|| {
                        format!("--discipline {value}: there are {}", DISCIPLINES.join(", "))
                    })?);
                }
                "--frames" => {
                    options.variety = match value.as_str() {
                        "plain" => Variety::Plain,
                        "any" => Variety::Any,
                        _ => bail!("--frames {value}: it takes plain or any"),
                    }
                }
                _ => bail!(
                    "{option}: there are --seed N, --sequences N, --discipline NAME, --frames \
                     plain|any"
                ),
            }
        }
        Ok(options)
    }
}

/// What was compared.
#[derive(Default)]
struct Tally {
    sequences: u64,
    arrivals: u64,
    sent: u64,
    full: u64,
    pushed_out: u64,
    congested: u64,
    changes: u64,
}

impl Tally {
    fn add(&mut self, steps: &[Step], records: &[Event]) {
        let of = |kind| records.iter().filter(|record| record.kind == kind).count() as u64;
        self.sequences += 1;
        self.arrivals += steps.len() as u64;
        self.sent += of(1);
        self.full += of(2);
        self.pushed_out += of(3);
        self.congested += of(4);
        self.changes += steps.iter().filter(|step| step.change.is_some()).count() as u64;
    }
}

pub(crate) fn run(words: &[String]) -> Result<()> {
    let options = Options::from_words(words)?;
    let begin = Instant::now();
    // What two CPUs carry to the far end may change places there.
    run_command(&format!("taskset -p 1 {}", process::id()))?;
    let mut devices = (0..MOST_DEVICES as u32).map(Device::new).collect::<Result<Vec<_>>>()?;
    let mut tally = Tally::default();
    let (mut round, mut said) = (0, begin);
    while tally.sequences < options.sequences {
        let name = options
            .discipline
            .unwrap_or(DISCIPLINES[(options.seed + round) as usize % DISCIPLINES.len()]);
        let seed = options.seed + round;
        let before = tally.sequences;
        if let Err(error) = Round::new(name, seed, options.variety)
            .and_then(|round| round.run(&mut devices, &options, &mut tally))
        {
            let again = tally.sequences - before + MOST_DEVICES;
            return Err(error.context(format!(
                "again: proof --seed {seed} --sequences {again} --discipline {name}"
            )));
        }
        round += 1;
        if said.elapsed() > Duration::from_secs(60) {
            said = Instant::now();
            println!("{} sequences so far", tally.sequences);
        }
    }
    crowd::run(&mut devices[0]).context("a crowded chain")?;
    let Tally { sequences, arrivals, sent, full, pushed_out, congested, changes } = tally;
    println!(
        "{sequences} sequences in {round} loads: {arrivals} arrivals, {sent} sent, {full} dropped \
         at a full queue, {pushed_out} pushed out, {congested} by CoDel, {changes} live changes; \
         {:.0} s",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

/// One load.
struct Round {
    family: Family,
    template: Spec,
    hooks: TestHooks,
    devices: usize,
    variety: Variety,
    random: Random,
}

/// An instance in a sequence.
struct Trial<'d> {
    number: u32,
    device: &'d mut Device,
    instance: Instance,
    plan: Plan,
    next: usize,
    arrived: Vec<Step>,
    changed: Option<Spec>,
    received: Vec<Vec<u8>>,
    /// Arrivals and records before the sequence.
    base: (u64, u64),
}

impl Round {
    fn new(name: &'static str, seed: u64, variety: Variety) -> Result<Self> {
        let mut random = Random::new(seed, 0);
        let family = Family::random(name, &mut random)?;
        let template = family.member(&mut random, "inf")?;
        let hooks = TestHooks {
            key_seed: random.next(),
            seed: random.next(),
            only_slow_parser: random.chance(40),
            recorded: true,
        };
        let devices = random.pick(&[1, 1, 2, 3]);
        Ok(Self { family, template, hooks, devices, variety, random })
    }

    fn run(mut self, devices: &mut [Device], options: &Options, tally: &mut Tally) -> Result<()> {
        let composition = compose(&self.template, &unshaped())?;
        let registered = load(KIND, &composition, MOST_DEVICES as u32, Some(self.hooks))?;
        let devices = &mut devices[..self.devices];
        for sequence in 0..SEQUENCES_A_ROUND {
            if tally.sequences >= options.sequences {
                break;
            }
            self.sequence(devices, &registered, tally).with_context(|| {
                format!("sequence {sequence}, {} devices, {:?}", self.devices, self.hooks)
            })?;
        }
        Ok(())
    }

    fn sequence(
        &mut self,
        devices: &mut [Device],
        registered: &Registered,
        tally: &mut Tally,
    ) -> Result<()> {
        let mut trials = Vec::new();
        // Instances are given out in this order.
        for (number, device) in devices.iter_mut().enumerate() {
            let plan = Plan::random(&self.family, &mut self.random, self.variety)?;
            trials.push(Trial::begin(number as u32, device, plan, registered)?);
        }
        while trials.iter().any(|trial| trial.next < trial.plan.steps.len()) {
            let trial = self.random.below(trials.len() as u64) as usize;
            trials[trial].step(registered)?;
        }
        for trial in &mut trials {
            trial.device.detach()?;
        }
        for trial in trials {
            trial.finish(registered, &self.template, self.hooks, tally)?;
        }
        Ok(())
    }
}

impl<'d> Trial<'d> {
    fn begin(
        number: u32,
        device: &'d mut Device,
        plan: Plan,
        registered: &Registered,
    ) -> Result<Self> {
        device.attach(KIND)?;
        let instance = Instance::find(device.ifindex)?.context("the qdisc is not found")?;
        let (arrivals, events, _) = registered.progress(number);
        let mut stale = Vec::new();
        device.receive(&mut stale)?;
        Ok(Self {
            number,
            device,
            instance,
            plan,
            next: 0,
            arrived: Vec::new(),
            changed: None,
            received: Vec::new(),
            base: (arrivals, events),
        })
    }

    fn step(&mut self, registered: &Registered) -> Result<()> {
        let Some(step) = self.plan.steps.get(self.next) else { return Ok(()) };
        self.next += 1;
        if let Some(pause) = step.pause {
            thread::sleep(Duration::from_nanos(pause.0));
        }
        if let Some(spec) = &step.change {
            settle(registered, self.number, &self.instance)?;
            self.instance.change(spec, &unshaped()).with_context(|| spec.to_string())?;
            self.changed = Some(spec.clone());
        }
        let arrival = self.base.0 + self.arrived.len() as u64;
        registered.let_out(self.number, arrival, step.release)?;
        if self.device.send(&step.frame)? {
            // With the changes since the last arrival.
            self.arrived.push(Step { change: self.changed.take(), ..step.clone() });
        }
        if self.arrived.len().is_multiple_of(32) {
            self.device.receive(&mut self.received)?;
        }
        Ok(())
    }

    /// Compares; the qdisc is gone, so nothing moves any more.
    fn finish(
        mut self,
        registered: &Registered,
        template: &Spec,
        hooks: TestHooks,
        tally: &mut Tally,
    ) -> Result<()> {
        self.device.receive(&mut self.received)?;
        let (arrivals, events, _) = registered.progress(self.number);
        let records = (self.base.1..events)
            .map(|n| registered.record(self.number, n))
            .collect::<Result<Vec<_>, _>>()?;
        let arrived = arrivals - self.base.0;
        ensure!(
            arrived == self.arrived.len() as u64,
            "{arrived} arrivals were recorded, {} frames were sent",
            self.arrived.len()
        );
        let kernel = Records { base: self.base.0, records: &records };
        Model::new(template, hooks.seed, hooks.key_seed)
            .compare(&self.arrived, &kernel)
            .with_context(|| format!("device {}, {template}", self.number))?;
        check_wire(&self.arrived, &kernel, &self.received)?;
        tally.add(&self.arrived, &records);
        Ok(())
    }
}

/// Waits until no packet that may leave is held back by `cap-high`: the core is to see a change
/// between the same two events as the kernel.
fn settle(registered: &Registered, number: u32, instance: &Instance) -> Result<()> {
    loop {
        let (_, _, may_leave) = registered.progress(number);
        let backlog: u64 = instance.status().lanes.iter().map(|lane| lane.backlog_packets).sum();
        if may_leave == 0 || backlog == 0 {
            return Ok(());
        }
        thread::sleep(Duration::from_micros(200));
    }
}

/// Whether the frames at the far end are those that the records say were sent, in their order.
fn check_wire(steps: &[Step], kernel: &Records<'_>, received: &[Vec<u8>]) -> Result<()> {
    let sent = kernel.records.iter().filter(|record| record.kind == 1).map(|record| {
        let number = record.packet.wrapping_sub(kernel.base as u32) as usize;
        (number, &steps[number].frame)
    });
    let mut received = received.iter().peekable();
    for (number, frame) in sent {
        let expected = frame.on_link();
        if may_be_lost(frame) && received.peek() != Some(&&expected) {
            continue;
        }
        let came = received.next().with_context(|| format!("packet {number} did not come in"))?;
        ensure!(
            *came == expected,
            "packet {number} ({:?}, {:?}) came in as another frame: {} in place of {}",
            frame.door,
            frame.super_packet,
            hex(came),
            hex(&expected)
        );
    }
    ensure!(received.len() == 0, "{} frames more than were sent came in", received.len());
    Ok(())
}

/// The kernel throws away, on receipt, a frame that ends within its VLAN tag or its header.
fn may_be_lost(frame: &Frame) -> bool {
    const WITH_TAG: usize = 20;
    let is_tagged = frame.bytes[12..14] == [0x81, 0x00] || frame.bytes[12..14] == [0x88, 0xa8];
    frame.bytes.len() == 14 || is_tagged && frame.bytes.len() < WITH_TAG
}
