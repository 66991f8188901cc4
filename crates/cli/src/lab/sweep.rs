//! `shortlane lab sweep`: the fastest discipline, by size of transfers and number of downloads.

use clap::Args;
use lab::{Config, Sweep, Timing, Traffic, Transfers};
use sched::Amount;
use serde_json::json;
use workload::SizeLaw;

use super::output::ProgressLine;
use super::{LinkOptions, agent_program, isolate};
use crate::{Call, Failure, print, quantity, say, signals};

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    link: LinkOptions,
    /// Use transfers of these sizes
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        value_parser = bytes,
        default_value = "5kb,20kb,50kb,200kb,1mb,5mb"
    )]
    sizes: Vec<u64>,
    /// Use these numbers of downloads
    #[arg(
        long,
        value_name = "NUMBERS",
        value_delimiter = ',',
        value_parser = quantity::number(0..=1000u32),
        default_value = "1,4,16"
    )]
    bulk: Vec<u32>,
}

fn bytes(text: &str) -> Result<u64, String> {
    let bytes = text.parse().ok().and_then(Amount::bytes).filter(|n| *n > 0);
    bytes.ok_or_else(|| "it takes bytes above 0 with their unit, such as 20kb or 1mb".into())
}

const DEFAULT_SCHEDULERS: [&str; 4] = ["fifo", "fq-codel", "efd", "fq-lanes"];

pub(crate) fn run(options: &Options, call: &Call) -> Result<(), Failure> {
    let sweep = options.sweep(call)?;
    for &size in &options.sizes {
        let config = sweep.config(size, options.bulk[0]);
        config.check().map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let stop = signals::stop_flag()?;
    isolate()?;
    let cells = options.sizes.len() * options.bulk.len();
    say(&format!(
        "{cells} cells, {} blocks, about {:.0} minutes",
        cells * sweep.base.schedulers.len(),
        sweep.total().0 as f64 / 6e10
    ));
    let mut line = ProgressLine::new((cells * sweep.base.schedulers.len()) as u64).counting();
    let (cells, ended_early) = sweep
        .run(&stop, &mut |progress| line.show(&progress))
        .map_err(|error| Failure::Usage(error.to_string()))?;
    line.end();
    if options.link.json {
        print(&format!("{:#}\n", json!({ "cells": cells, "ended_early": ended_early })))?;
    } else {
        print(&lab::text::map(&cells))?;
    }
    match ended_early {
        Some(reason) => Err(Failure::Failed(format!("{reason}; {} cells are whole", cells.len()))),
        None => Ok(()),
    }
}

impl Options {
    fn sweep(&self, call: &Call) -> Result<Sweep, Failure> {
        let engine = lab::Engine::Userspace;
        let schedulers = self.link.schedulers(engine, &DEFAULT_SCHEDULERS)?;
        let jobs = self.link.jobs(schedulers.len());
        let base = Config {
            schedulers,
            link: self.link.bottleneck(engine),
            traffic: Traffic {
                transfers: Transfers::Drawn { law: SizeLaw::efd_paper(), load: 0.1 },
                tcp: self.link.tcp.clone(),
                downloads: 0,
                uploads: 0,
                interactive: false,
            },
            timing: Timing::thorough(jobs, self.link.late_limit),
            idle_times: false,
            rounds: Vec::new(),
            labels: lab::Labels::default(),
            seed: self.link.seed,
            agent: agent_program(call)?,
        };
        Ok(Sweep { base, sizes: self.sizes.clone(), bulk: self.bulk.clone() })
    }
}
