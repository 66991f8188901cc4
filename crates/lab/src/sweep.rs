//! The sweep: transfers of one size beside a number of downloads, for each discipline.

use std::sync::atomic::AtomicBool;

use measure::{Flow, FlowKind};
use sched::Nanos;
use serde::Serialize;
use workload::{Random, Transfer, TransferList};

use crate::config::{Config, ConfigError, Timing, Transfers};
use crate::rows::Rows;
use crate::run::{Finished, Progress, run};

/// A grid of experiments over one configuration.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Disciplines, link, congestion controls; transfers, downloads and timing are the sweep's.
    pub base: Config,
    /// Sizes of transfers, in bytes.
    pub sizes: Vec<u64>,
    /// Numbers of long downloads.
    pub bulk: Vec<u32>,
}

/// One place of the grid.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Bytes of each transfer.
    pub size_bytes: u64,
    /// Long downloads beside them.
    pub bulk: u32,
    /// What each discipline did.
    pub results: Vec<CellResult>,
}

/// Transfers of one cell under one discipline.
#[derive(Clone, Debug, Serialize)]
pub struct CellResult {
    /// The discipline.
    pub scheduler: String,
    /// Mean completion time in ms; a transfer cut off at the end counts with its time until then,
    /// so with `incomplete` above 0 this is a lower bound.
    pub mean_ms: f64,
    /// Transfers.
    pub n: u64,
    /// Transfers cut off at the end of the block.
    pub incomplete: u64,
}

const SECOND: Nanos = Nanos::from_secs(1);
/// A cell runs at least this long, so that a handful of short transfers fit.
const LEAST_ARRIVALS: Nanos = Nanos::from_secs(4);
/// Transfers a second at most: they are to meet the bulk flows, not each other.
const MOST_PER_SECOND: u64 = 4;

impl Sweep {
    /// Runs the grid, cell by cell, and returns the cells that are whole, and why it ended early
    /// if it did.
    ///
    /// # Errors
    /// With the setting that cannot be run.
    pub fn run(
        &self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(Vec<Cell>, Option<String>), ConfigError> {
        let mut cells = Vec::new();
        for &size_bytes in &self.sizes {
            for &bulk in &self.bulk {
                let config = self.config(size_bytes, bulk);
                let finished = run(&config, stop, progress)?;
                if finished.ended_early.is_some() {
                    return Ok((cells, finished.ended_early));
                }
                cells.push(cell(&config, &finished, size_bytes, bulk));
            }
        }
        Ok((cells, None))
    }

    /// About how long the grid takes.
    #[must_use]
    pub fn total(&self) -> Nanos {
        let cells = self.sizes.iter().flat_map(|&size| self.bulk.iter().map(move |&n| (size, n)));
        let total = |(size, n)| self.timing(size, n).total(self.base.schedulers.len());
        cells.map(total).fold(Nanos::ZERO, |sum, time| sum + time)
    }

    /// The experiment of one cell.
    #[must_use]
    pub fn config(&self, size_bytes: u64, bulk: u32) -> Config {
        let mut config = self.base.clone();
        config.timing = self.timing(size_bytes, bulk);
        config.traffic.downloads = bulk;
        config.traffic.interactive = false;
        config.idle_times = false;
        config.traffic.transfers = Transfers::Listed(self.transfers(size_bytes, &config.timing));
        config
    }

    /// Long enough for a transfer to complete at the fair share, and half of that again.
    fn timing(&self, size_bytes: u64, bulk: u32) -> Timing {
        let alone_ns = size_bytes as f64 * 8e9 / self.base.link.rate.0 as f64;
        let fair = Nanos((alone_ns * f64::from(bulk + 1)) as u64);
        Timing {
            warm_up: 2 * SECOND,
            arrivals: LEAST_ARRIVALS,
            drain: SECOND + fair + fair / 2,
            rounds: 1,
            until_precise: None,
            jobs: self.base.timing.jobs,
            late_limit: self.base.timing.late_limit,
        }
    }

    /// Transfers at 15 % of the link or at [`MOST_PER_SECOND`], one at least, evenly spread but
    /// for a random part of each one's interval.
    fn transfers(&self, size_bytes: u64, timing: &Timing) -> TransferList {
        let bits = timing.arrivals.0 as f64 / 1e9 * self.base.link.rate.0 as f64 * 0.15;
        let most = timing.arrivals.0 * MOST_PER_SECOND / SECOND.0;
        let n = ((bits / (size_bytes as f64 * 8.0)) as u64).clamp(1, most.max(1));
        let interval = timing.arrivals / n;
        let mut random = Random::new(self.base.seed);
        let mut start = |index| index * interval + Nanos(random.below(interval.0 / 2));
        let transfers = (0..n).map(|index| Transfer { start: start(index), size_bytes });
        TransferList::new(transfers.collect())
    }
}

fn cell(config: &Config, finished: &Finished, size_bytes: u64, bulk: u32) -> Cell {
    let end_ns = config.timing.block().0;
    let results = config.schedulers.iter().map(|spec| {
        let scheduler = spec.to_string();
        let own = |rows: &&Rows| *rows.block.key.scheduler == scheduler;
        let flows: Vec<&Flow> = finished
            .blocks
            .iter()
            .filter(own)
            .flat_map(|rows| &rows.flows)
            .filter(|flow| flow.kind == FlowKind::Transfer)
            .collect();
        let time = |flow: &&Flow| {
            flow.completion_ns.unwrap_or_else(|| end_ns.saturating_sub(flow.start_ns)) as f64 / 1e6
        };
        let n = flows.len() as u64;
        CellResult {
            scheduler,
            mean_ms: flows.iter().map(time).sum::<f64>() / n.max(1) as f64,
            n,
            incomplete: flows.iter().filter(|flow| !flow.complete).count() as u64,
        }
    });
    Cell { size_bytes, bulk, results: results.collect() }
}
