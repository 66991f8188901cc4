//! `shortlane lab`: options to configuration, progress, results.

pub(crate) mod output;
mod sweep;
mod text;

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lab::traffic::Tcp;
use lab::{
    AgentProgram, Bottleneck, Config, Scheduler, Summary, Timing, Traffic, Transfers, scheduler,
};
use netdev::netns;
use scenario::{Input, Overrides, Scenario};
use sched::edge::EdgeSpec;
use sched::{Amount, Nanos, Rate};
use serde_json::json;
use workload::{SizeLaw, TransferList};

use crate::{Call, Failure, print, quantity, signals, specs};
use output::{Output, ProgressLine};
use text::{count, merge, report};

/// The options of `shortlane lab`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    sweep: Option<Mode>,
    /// Run this scenario file, or ready scenario, instead of a lab made from the options
    #[arg(value_name = "SCENARIO", conflicts_with_all = [
        "rate", "limit", "delay", "tcp", "seed", "edge", "ecn", "local_sender", "load", "sizes",
        "transfers", "downloads", "uploads", "no_interactive", "quick", "thorough",
    ])]
    scenario: Option<PathBuf>,
    /// Build the bottleneck from this: the userspace engine, or qdiscs of this kernel, including its
    /// own (kernel:cake) and those of a script (script:FILE)
    #[arg(long, value_enum, default_value_t = Engine::Userspace)]
    engine: Engine,
    /// Use these seeds instead of the scenario's, a round for each: 7, 1..10 or 1,2,5
    #[arg(long, value_name = "SEEDS", requires = "scenario", allow_hyphen_values = true, value_parser = crate::sim::seeds)]
    seeds: Option<crate::sim::Seeds>,
    #[command(flatten)]
    link: LinkOptions,
    #[command(flatten)]
    traffic: TrafficOptions,
    /// Measure for about this long, shared between the disciplines [default: 2min]; with a scenario,
    /// for this long with each discipline and seed, instead of the scenario's time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = quantity::positive_time)]
    duration: Option<Nanos>,
    /// Measure for 20 s
    #[arg(long, conflicts_with_all = ["duration", "thorough"])]
    quick: bool,
    /// Measure until the ratios of short transfers are known within 5 % (an hour or more)
    #[arg(long, conflicts_with = "duration")]
    thorough: bool,
    /// Write every flow, packet of a stream and queue sample to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write files of this kind
    #[arg(long, value_enum, default_value_t = FileFormat::Parquet)]
    format: FileFormat,
}

/// How long a lab without a scenario takes, if nothing is said.
const TWO_MINUTES: Nanos = Nanos::from_secs(120);

/// What the kernel engine compares if nothing is named.
const IN_KERNEL: [&str; 5] = ["kernel:pfifo", "kernel:fq_codel", "kernel:cake", "efd", "fq-lanes"];

#[derive(Subcommand)]
enum Mode {
    /// Map which discipline is fastest: size of transfers against number of downloads
    Sweep(sweep::Options),
}

/// What the bottleneck is made of.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Engine {
    Userspace,
    Kernel,
}

impl From<Engine> for lab::Engine {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Userspace => Self::Userspace,
            Engine::Kernel => Self::Kernel,
        }
    }
}

/// What kind of files results are written to.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum FileFormat {
    Parquet,
    Csv,
}

impl From<FileFormat> for measure::Format {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Parquet => Self::Parquet,
            FileFormat::Csv => Self::Csv,
        }
    }
}

/// The bottleneck and what runs over it.
#[derive(Args)]
pub(crate) struct LinkOptions {
    /// Run this discipline, such as efd:threshold=30packets; may be repeated
    #[arg(long = "scheduler", value_name = "SPEC")]
    schedulers: Vec<String>,
    /// Set the rate of the bottleneck, in both directions
    #[arg(long, default_value = "10mbit", allow_hyphen_values = true, value_parser = quantity::rate)]
    rate: Rate,
    /// Set the queue limit of disciplines without one of their own [default: what the rate sends in 100ms, at least 300packets]
    #[arg(long, allow_hyphen_values = true, value_parser = quantity::amount)]
    limit: Option<Amount>,
    /// Set the round-trip time of the empty link
    #[arg(long, value_name = "RTT", default_value = "20ms", allow_hyphen_values = true, value_parser = quantity::time)]
    delay: Nanos,
    /// Use these congestion controls in turn: cubic, reno, bbr
    #[arg(long, value_delimiter = ',', default_value = "cubic", value_parser = tcp)]
    tcp: Vec<Tcp>,
    /// Seed the workload and the disciplines
    #[arg(long, default_value_t = 1, allow_hyphen_values = true, value_parser = quantity::number(0..=u64::MAX))]
    seed: u64,
    /// Tag packets of short flows by DSCP in front of the queue; parameters of the edge, such as
    /// threshold=10,update=inf
    #[arg(long, value_name = "EDGE", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    edge: Option<EdgeSpec>,
    /// Negotiate ECN, so that disciplines can mark instead of drop
    #[arg(long)]
    ecn: bool,
    /// Shape on the sending host, where TCP small queues hide the queue
    #[arg(long)]
    local_sender: bool,
    /// Run this many disciplines at a time; by default as many as the machine carries easily
    #[arg(long, value_name = "N", value_parser = quantity::number(1..=64usize))]
    jobs: Option<usize>,
    /// Repeat a block if its shaper was late for more than this part of the time, or once by more
    /// than this part of a second
    #[arg(long, value_name = "PART", default_value = "5%", value_parser = quantity::share)]
    late_limit: f64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct TrafficOptions {
    /// Set the load of the transfers, as a fraction of the link
    #[arg(long, default_value = "0.4", allow_hyphen_values = true, value_parser = load)]
    load: f64,
    /// Draw sizes of transfers from this law, such as exponential:mean=100kb or
    /// pareto:shape=1.2,mean=60kb
    #[arg(long, value_name = "LAW", default_value = "zipf:alpha=1.1,max=1000packets", value_parser = law)]
    sizes: SizeLaw,
    /// Read the transfers from a CSV file with columns start_s,size_bytes instead
    #[arg(long, value_name = "CSV", conflicts_with_all = ["load", "sizes"])]
    transfers: Option<PathBuf>,
    /// Run this many long downloads beside the transfers
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 2, value_parser = quantity::number(0..=1000u32))]
    downloads: u32,
    /// Run this many long uploads beside the transfers
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 0, value_parser = quantity::number(0..=1000u32))]
    uploads: u32,
    /// Leave out voice, video, pings and requests
    #[arg(long)]
    no_interactive: bool,
}

fn tcp(text: &str) -> Result<Tcp, String> {
    let found = Tcp::ALL.into_iter().find(|tcp| tcp.name() == text);
    found.ok_or_else(|| "it takes cubic, reno or bbr".into())
}

fn load(text: &str) -> Result<f64, String> {
    let load = text.parse().ok().filter(|load| *load > 0.0 && *load <= 5.0);
    load.ok_or_else(|| "it takes a number above 0, at most 5".into())
}

fn law(text: &str) -> Result<SizeLaw, String> {
    text.parse().map_err(|error: workload::LawError| error.to_string())
}

impl LinkOptions {
    /// The disciplines that are named, or `defaults`, with the limit of this lab.
    fn schedulers(
        &self,
        engine: lab::Engine,
        defaults: &[&'static str],
    ) -> Result<Vec<Scheduler>, Failure> {
        let named = match &self.schedulers[..] {
            [] => defaults.iter().map(ToString::to_string).collect(),
            named => named.to_vec(),
        };
        let named = scheduler::parse(&named, engine).map_err(Failure::Usage)?;
        let limited = named.into_iter().map(|one| one.with_limit(self.limit()));
        Ok(limited.collect::<Result<_, _>>()?)
    }

    fn limit(&self) -> Amount {
        self.limit.unwrap_or_else(|| sched::limit_for(self.rate))
    }

    fn jobs(&self, schedulers: usize) -> usize {
        self.jobs.unwrap_or_else(|| Timing::jobs_for(self.rate, schedulers))
    }

    fn bottleneck(&self, engine: lab::Engine) -> Bottleneck {
        Bottleneck {
            engine,
            rate: self.rate,
            up_rate: self.rate,
            up_scheduler: None,
            limit: self.limit(),
            rtt: self.delay,
            ends: lab::Ends::default(),
            edge: self.edge.clone(),
            ecn: self.ecn,
            local_sender: self.local_sender,
        }
    }
}

/// Who plays client and server.
fn agent_program(call: &Call) -> Result<AgentProgram, Failure> {
    if let Some(program) = &call.agent {
        return Ok(program.clone());
    }
    let path = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?;
    Ok(AgentProgram { path, arguments: vec!["lab-agent".into()] })
}

/// A network of our own, before any thread is started.
fn isolate() -> Result<(), Failure> {
    netns::isolate().map_err(|error| Failure::Failed(error.to_string()))
}

impl Options {
    fn config(&self, call: &Call) -> Result<Config, Failure> {
        let engine = self.engine.into();
        let defaults = match self.engine {
            Engine::Userspace => &specs::DEFAULT[..],
            Engine::Kernel => &IN_KERNEL[..],
        };
        let schedulers = self.link.schedulers(engine, defaults)?;
        let jobs = self.link.jobs(schedulers.len());
        let mut timing = if self.thorough {
            Timing::thorough(jobs, self.link.late_limit)
        } else if self.quick {
            Timing::within(Nanos::from_secs(20), schedulers.len(), jobs, self.link.late_limit)
        } else {
            let duration = self.duration.unwrap_or(TWO_MINUTES);
            Timing::within(duration, schedulers.len(), jobs, self.link.late_limit)
        };
        let transfers = match &self.traffic.transfers {
            None => Transfers::Drawn { law: self.traffic.sizes.clone(), load: self.traffic.load },
            Some(path) => {
                let name = path.display().to_string();
                let refused = |error: String| Failure::Usage(format!("--transfers {error}"));
                let file = File::open(path).map_err(|error| refused(format!("{name}: {error}")))?;
                let list = TransferList::from_csv(file, &name)
                    .map_err(|error| refused(error.to_string()))?;
                let last = list.transfers().iter().map(|t| t.start).max().unwrap_or_default();
                timing.arrivals = timing.arrivals.max(last + Nanos(1));
                Transfers::Listed(list)
            }
        };
        Ok(Config {
            schedulers,
            link: self.link.bottleneck(engine),
            traffic: Traffic {
                transfers,
                tcp: self.link.tcp.clone(),
                downloads: self.traffic.downloads,
                uploads: self.traffic.uploads,
                interactive: !self.traffic.no_interactive,
            },
            timing,
            idle_times: true,
            seed: self.link.seed,
            rounds: Vec::new(),
            labels: lab::Labels::default(),
            agent: agent_program(call)?,
        })
    }

    /// The lab of a scenario, and the scenario.
    fn of_scenario(&self, path: &Path, call: &Call) -> Result<(Config, Scenario), Failure> {
        let input = Input::read(path).map_err(Failure::Usage)?;
        let refused = |error: scenario::ScenarioError| Failure::Usage(error.to_string());
        let engine = self.engine.into();
        let named = scheduler::parse(&self.link.schedulers, engine).map_err(Failure::Usage)?;
        let named = (!named.is_empty()).then_some(named);
        let overrides = Overrides {
            schedulers: None,
            seeds: self.seeds.clone().map(|seeds| seeds.0),
            duration: self.duration,
        };
        let scenario = input.scenario(&overrides).map_err(refused)?;
        let agent = agent_program(call)?;
        let (jobs, late_limit) = (self.link.jobs, self.link.late_limit);
        let config = lab::scenario::config(&scenario, engine, named, jobs, late_limit, agent);
        Ok((config.map_err(refused)?, scenario))
    }
}

pub(crate) fn run(options: Options, call: &Call) -> Result<(), Failure> {
    if let Some(Mode::Sweep(sweep)) = options.sweep {
        return sweep::run(&sweep, call);
    }
    let (config, read) = match &options.scenario {
        Some(path) => {
            let (config, scenario) = options.of_scenario(path, call)?;
            (config, Some(scenario))
        }
        None => (options.config(call)?, None),
    };
    config.check().map_err(|error| Failure::Usage(error.to_string()))?;
    let mut files = Output::open(options.out.as_deref(), options.format)?;
    let stop = signals::stop_flag()?;
    isolate()?;
    let mut line = ProgressLine::new(config.timing.rounds * config.schedulers.len() as u64);
    let finished = lab::run(&config, &stop, &mut |progress| {
        if let lab::Progress::Done(rows) = &progress {
            files.add(rows);
        }
        line.show(&progress);
    })
    .map_err(|error| Failure::Usage(error.to_string()))?;
    line.end();
    let summary = Summary::of(&config, &finished.blocks);
    let mut scenario = text::scenario(&config);
    if let Some(read) = &read {
        merge(&mut scenario, read.describe());
    }
    let shown = if options.link.json {
        let document = json!({
            "scenario": scenario,
            "summary": summary,
            "void_blocks": finished.void,
            "ended_early": finished.ended_early,
        });
        print(&format!("{document:#}\n"))
    } else if summary.rounds > 0 {
        print(&report(&config, &summary, finished.void))
    } else {
        Ok(())
    };
    let written = files.finish(&config, call.command(), scenario, finished.ended_early.clone());
    let ended = finished.ended_early.map_or(Ok(()), |reason| {
        let basis = match summary.rounds {
            0 => "no round was whole, so there is nothing to show".to_owned(),
            rounds => format!("what is shown rests on {}", count(rounds, "whole round")),
        };
        Err(Failure::Failed(format!("{reason}; {basis}")))
    });
    crate::all([ended, shown, written])
}
