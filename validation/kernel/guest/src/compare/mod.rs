//! The comparison: real TCP of this kernel through its own schedulers and ours, in one run.
//!
//! `compare [--part NAME]... [--workload NAME]... [--setting NAME]... [--rounds N] [--first N]
//! [--out FILE]` measures and writes one JSON document; `compare --quick [--setting NAME]` measures
//! little and judges it. A round sends a workload's traffic through every scheduler, one right after the
//! other, in an order of its own; the next round draws other times. `--first` is the number of
//! the first round, which is the seed, so that rounds can be added later.

mod block;
mod path;
mod settings;
mod warm_up;
mod workloads;

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use workload::Random;

use block::{Block, Row};
use path::Path;
use settings::{FEW, Kinds, SETTINGS, Setting};
use workloads::{WORKLOADS, Workload};

struct Options {
    quick: bool,
    workloads: Vec<Workload>,
    /// Empty: as each workload says.
    settings: Vec<Setting>,
    rounds: std::ops::Range<u64>,
    out: String,
}

/// What comes out.
#[derive(Serialize)]
struct Document<'a> {
    kernel: String,
    rows: &'a [Row],
}

pub(crate) fn run(words: &[String]) -> Result<()> {
    let options = parse(words)?;
    let path = Path::new()?;
    let mut kinds = Kinds::default();
    let mut rows = Vec::new();
    for round in options.rounds.clone() {
        for workload in &options.workloads {
            let mut order = settings_of(&options, workload);
            Random::of(round, workload.name).shuffle(&mut order);
            for setting in order {
                let block = Block { path: &path, setting, workload: *workload, round };
                let what = || format!("{} through {}", workload.name, setting.name);
                let new = block.run(&mut kinds).with_context(what)?;
                println!("{}", line_of(&new));
                rows.extend(new);
            }
            // Now and then, so that a failure further on does not take what there is.
            write(&options, &rows)?;
        }
    }
    if options.quick { judge(&rows, options.settings[1].name) } else { Ok(()) }
}

fn settings_of(options: &Options, workload: &Workload) -> Vec<Setting> {
    if !options.settings.is_empty() {
        return options.settings.clone();
    }
    let wanted = |setting: &&Setting| workload.all_settings || FEW.contains(&setting.name);
    SETTINGS.iter().filter(wanted).copied().collect()
}

fn parse(words: &[String]) -> Result<Options> {
    let mut options = Options {
        quick: false,
        workloads: Vec::new(),
        settings: Vec::new(),
        rounds: 0..0,
        out: "/out/compare.json".into(),
    };
    let (mut parts, mut names, mut settings) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first, mut rounds) = (0, 3);
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
            "--rounds" => rounds = value.parse().context("--rounds")?,
            "--first" => first = value.parse().context("--first")?,
            "--out" => options.out.clone_from(value),
            _ => bail!(
                "no option {word}; there are --quick, --part, --workload, --setting, --rounds, \
                 --first, --out"
            ),
        }
    }
    if options.quick {
        names = vec![QUICK.to_owned()];
        let judged = settings.first().map_or(OURS, String::as_str);
        settings = [PEER, judged].map(str::to_owned).to_vec();
        rounds = 2;
    }
    options.rounds = first..first + rounds;
    options.settings = settings::named(&settings);
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
    let document = Document { kernel, rows };
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
const OURS: &str = "fq-lanes";

/// Ratios with wide margins, of both rounds together.
fn judge(rows: &[Row], ours: &str) -> Result<()> {
    let mean = |setting: &str, metric: &str| {
        let of = rows.iter().filter(|row| row.setting == setting && row.metric == metric);
        let (sum, n) = of.fold((0.0, 0.0), |(sum, n), row| (sum + row.value, n + 1.0));
        sum / n
    };
    let ratio = |metric: &str| mean(ours, metric) / mean(PEER, metric);
    let (fetch, bulk) = (ratio("fetch 20000 B, ms"), ratio("download, all, Mbit/s"));
    println!("{ours} / {PEER}: fetches of 20 kB take {fetch:.2}, long downloads get {bulk:.2}");
    ensure!(fetch <= 0.8, "fetches of 20 kB take {fetch:.2} of {PEER}'s time; at most 0.8");
    ensure!((0.9..1.1).contains(&bulk), "long downloads get {bulk:.2} of {PEER}'s rate");
    let lost = mean(ours, "voice, lost");
    ensure!(lost <= mean(PEER, "voice, lost") + 0.01, "of the voice packets {lost:.3} were lost");
    Ok(())
}
