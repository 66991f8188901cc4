//! The comparison: real TCP of this kernel through its own schedulers and ours, in one run.
//!
//! `compare [--part NAME]... [--workload NAME]... [--setting NAME]... [--rounds N] [--seed N]
//! [--out FILE]` measures and writes one JSON document; `compare --quick` measures little and
//! judges it. A round runs every workload through every scheduler, neighbours in time, on the same
//! traffic; the next round draws another.

mod block;
mod path;
mod settings;
mod workloads;

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use workload::Random;

use block::{Block, Row};
use path::Path;
use settings::{Kinds, SETTINGS, Setting};
use workloads::{WORKLOADS, Workload};

struct Options {
    quick: bool,
    workloads: Vec<Workload>,
    settings: Vec<Setting>,
    rounds: u64,
    seed: u64,
    out: String,
}

/// What comes out.
#[derive(Serialize)]
struct Document<'a> {
    kernel: String,
    rounds: u64,
    seed: u64,
    rows: &'a [Row],
}

pub(crate) fn run(words: &[String]) -> Result<()> {
    let options = parse(words)?;
    let path = Path::new()?;
    let mut kinds = Kinds::default();
    let mut rows = Vec::new();
    for round in 0..options.rounds {
        for workload in &options.workloads {
            let mut order = options.settings.clone();
            let mut random = Random::of(options.seed + round, workload.name);
            random.shuffle(&mut order);
            for setting in order {
                let seed = options.seed + round;
                let block = Block { path: &path, setting, workload: *workload, round, seed };
                let what = || format!("{} through {}", workload.name, setting.name);
                let new = block.run(&mut kinds).with_context(what)?;
                println!("{}", line_of(&new));
                rows.extend(new);
            }
        }
        write(&options, &rows)?;
    }
    if options.quick { judge(&rows) } else { Ok(()) }
}

fn parse(words: &[String]) -> Result<Options> {
    let mut options = Options {
        quick: false,
        workloads: Vec::new(),
        settings: Vec::new(),
        rounds: 5,
        seed: 1,
        out: "/out/compare.json".into(),
    };
    let (mut parts, mut names, mut settings) = (Vec::new(), Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--quick" {
            options.quick = true;
            continue;
        }
        let value = words.next().with_context(|| format!("{word} takes a value"))?;
        match word.as_str() {
            "--part" => parts.push(value.clone()),
            "--workload" => names.push(value.clone()),
            "--setting" => settings.push(value.clone()),
            "--rounds" => options.rounds = value.parse().context("--rounds")?,
            "--seed" => options.seed = value.parse().context("--seed")?,
            "--out" => options.out.clone_from(value),
            _ => bail!(
                "no option {word}; there are --quick, --part, --workload, --setting, --rounds, \
                 --seed, --out"
            ),
        }
    }
    if options.quick {
        names = vec![QUICK.to_owned()];
        settings = [PEER, OURS].map(str::to_owned).to_vec();
        options.rounds = 2;
    }
    if settings.is_empty() {
        settings = SETTINGS.iter().map(|setting| setting.name.to_owned()).collect();
    }
    options.settings = settings::named(&settings)?;
    let wanted = |workload: &&Workload| {
        let of = |list: &[String], name: &str| list.iter().any(|each| each == name);
        (parts.is_empty() && names.is_empty())
            || of(&parts, workload.part)
            || of(&names, workload.name)
    };
    options.workloads = WORKLOADS.iter().filter(wanted).copied().collect();
    ensure!(!options.workloads.is_empty(), "no workload of {parts:?} {names:?}");
    Ok(options)
}

fn write(options: &Options, rows: &[Row]) -> Result<()> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
    let (rounds, seed) = (options.rounds, options.seed);
    let document = Document { kernel, rounds, seed, rows };
    fs::write(&options.out, serde_json::to_string(&document)?).context(options.out.clone())
}

/// A block at a glance.
fn line_of(rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let mut line = format!("{} | {} | {}", first.round, first.workload, first.setting);
    for row in rows.iter().filter(|row| row.n > 0) {
        line += &format!(" | {} {:.3}", row.metric, row.value);
    }
    line
}

/// The workload and the settings of the quick run.
const QUICK: &str = "2 cubic, no delay";
const PEER: &str = "tbf+fq_codel";
const OURS: &str = "efd";

/// Ratios with wide margins, of both rounds together.
fn judge(rows: &[Row]) -> Result<()> {
    let mean = |setting: &str, metric: &str| {
        let of = rows.iter().filter(|row| row.setting == setting && row.metric == metric);
        let (sum, n) = of.fold((0.0, 0.0), |(sum, n), row| (sum + row.value, n + 1.0));
        sum / n
    };
    let ratio = |metric: &str| mean(OURS, metric) / mean(PEER, metric);
    let (fetch, bulk) = (ratio("fetch 20000 B, ms"), ratio("download, all, Mbit/s"));
    println!("{OURS} / {PEER}: fetches of 20 kB take {fetch:.2}, long downloads get {bulk:.2}");
    ensure!(fetch <= 0.8, "fetches of 20 kB take {fetch:.2} of {PEER}'s time; at most 0.8");
    ensure!((0.9..1.1).contains(&bulk), "long downloads get {bulk:.2} of {PEER}'s rate");
    let lost = mean(OURS, "voice, lost");
    ensure!(lost <= mean(PEER, "voice, lost") + 0.01, "of the voice packets {lost:.3} were lost");
    Ok(())
}
