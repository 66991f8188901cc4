//! Marks against their rule: random frames of every kind, through every door of a device, at times
//! of the test's choice. The class of a `prio` that each packet got is the one that
//! [`sched::marks`] says, and the table has the flows that crate `frame` finds.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use engine::kernel::testing::MarksTrial;
use frame::{Fingerprinter, LinkType};
use netdev::netlink::Refusal;
use netdev::tc::TrafficControl;
use sched::marks::{Mark, MarkedFlow, Marks, ShortShare};
use sched::{Nanos, Needs, Rate};

use super::device::{Device, run_command};
use super::frames::{Population, Variety};
use super::model::hex;
use super::random::Random;

/// Of a `prio` whose third band is for what has no mark.
const SHORT: u32 = 0x1_0001;
const LONG: u32 = 0x1_0002;
const UNMARKED: u32 = 0x1_0003;
const PRIO: &str = "root handle 1: prio bands 3 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2";
/// Sequences for which a program is loaded, with a key of its own.
const A_LOAD: u64 = 50;

/// What was compared.
#[derive(Default)]
struct Tally {
    packets: u64,
    long: u64,
    renewed: u64,
    flows: u64,
}

pub(crate) fn run(words: &[String]) -> Result<()> {
    let (mut seed, mut sequences) = (1, 2000);
    for pair in words.chunks(2) {
        match pair {
            [option, value] if option == "--seed" => seed = value.parse().context("--seed")?,
            [option, value] if option == "--sequences" => {
                sequences = value.parse().context("--sequences")?;
            }
            _ => bail!("{}: there are --seed N, --sequences N", pair[0]),
        }
    }
    let begin = Instant::now();
    let mut device = Device::new(0)?;
    run_command(&format!("tc qdisc add dev {} {PRIO}", device.name()))?;
    let (mut tally, mut said, mut done) = (Tally::default(), begin, 0);
    while done < sequences {
        let count = A_LOAD.min(sequences - done);
        load(&mut device, seed + done, count, &mut tally).with_context(|| {
            format!("again: proof-marks --seed {} --sequences {count}", seed + done)
        })?;
        done += count;
        if said.elapsed() > Duration::from_secs(60) {
            said = Instant::now();
            println!("{done} sequences so far");
        }
    }
    let Tally { packets, long, renewed, flows } = tally;
    ensure!(long > packets / 50 && long < packets - packets / 50, "{long} of {packets} were long");
    println!(
        "{sequences} sequences: {packets} packets of {flows} flows, {long} of them long, {renewed} \
         flows short again; {:.0} s",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

fn load(device: &mut Device, seed: u64, sequences: u64, tally: &mut Tally) -> Result<()> {
    let mut random = Random::new(seed, 1);
    let key_seed = random.next();
    let trial = MarksTrial::place(device.ifindex, key_seed)?;
    let keys = Fingerprinter::from_seed(key_seed);
    let mut ids = HashSet::new();
    for sequence in 0..sequences {
        // Flows of earlier sequences have been idle by then.
        let begin = Nanos((sequence + 1) << 44);
        play(device, &trial, &keys, &mut random, begin, tally, &mut ids)
            .with_context(|| format!("sequence {sequence} of this load"))?;
    }
    let table: HashSet<u64> = trial.flows()?.into_iter().collect();
    ensure!(table == ids, "{} flows in the table, {} were sent", table.len(), ids.len());
    tally.flows += ids.len() as u64;
    Ok(())
}

fn play(
    device: &mut Device,
    trial: &MarksTrial,
    keys: &Fingerprinter,
    random: &mut Random,
    mut now: Nanos,
    tally: &mut Tally,
    ids: &mut HashSet<u64>,
) -> Result<()> {
    let mut tc = TrafficControl::open()?;
    let population = Population::new(random, Variety::Any);
    let mark_short = random.chance(50);
    let pauses: [u64; 4] = match random.below(3) {
        // Busy; mixed; with pauses around the idle time.
        0 => [1, 1_000, 10_000, 100_000],
        1 => [1_000, 100_000, 3_000_000, 400_000_000],
        _ => [1_000, 1_000_000, 999_000_000, 1_000_500_000],
    };
    let mut rule = any_rule(random);
    let mut share = ShortShare::default();
    let mut flows: HashMap<u64, MarkedFlow> = HashMap::new();
    let mut were_long = HashSet::new();
    let mut before = classes(&mut tc, device)?;
    for n in 0..40 + random.below(80) {
        now = Nanos(now.0 + random.pick(&pauses) + random.below(1_000));
        if random.chance(2) {
            // A live change.
            rule = any_rule(random);
        }
        let frame = population.frame(random);
        trial.set(rule, (SHORT, LONG), mark_short, now)?;
        if !device.send(&frame)? {
            continue;
        }
        let after = classes(&mut tc, device)?;
        let got: Vec<u32> =
            before.iter().zip(&after).filter(|(a, b)| a != b).map(|(_, b)| b.0).collect();
        before = after;
        let (_, size) = frame.cost();
        let on_link = frame.on_link();
        let id =
            keys.packet(LinkType::Ethernet, &on_link, size, Needs::default()).packet.flow.get();
        let mark = rule.mark(flows.entry(id).or_default(), &mut share, size.into(), now);
        let wanted = match mark {
            Mark::Long => LONG,
            Mark::Short if mark_short => SHORT,
            Mark::Short => UNMARKED,
        };
        ensure!(
            got == [wanted],
            "packet {n}: in {got:x?} instead of {wanted:x}, {size} bytes, {:?}: {}",
            frame.door,
            hex(&on_link)
        );
        ids.insert(id);
        tally.packets += 1;
        match mark {
            Mark::Long => {
                tally.long += 1;
                were_long.insert(id);
            }
            Mark::Short => tally.renewed += u64::from(were_long.remove(&id)),
        }
    }
    let mut arrived = Vec::new();
    device.receive(&mut arrived)
}

fn any_rule(random: &mut Random) -> Marks {
    let rate = Rate(10_u64.pow(5 + random.below(5) as u32) + random.below(90_000));
    let most = 1 << random.within(6..=16);
    match random.below(4) {
        0 => Marks::for_rate(rate),
        _ => Marks::with_threshold(rate, 200 + random.below(most)),
    }
}

/// Each class, and the bytes that it has had.
fn classes(tc: &mut TrafficControl, device: &Device) -> Result<Vec<(u32, u64)>> {
    let stats = tc.class_stats(device.ifindex).map_err(Refusal::into_system)?;
    Ok(stats.into_iter().map(|(class, stats)| (class, stats.bytes)).collect())
}
