//! What there is of the kernel's things that a qdisc consists of.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use libbpf_rs::query::{BtfInfoIter, LinkInfoIter, MapInfoIter, ProgInfoIter};

/// BPF objects of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Census {
    programs: usize,
    maps: usize,
    links: usize,
    types: usize,
}

impl Census {
    pub(crate) fn now() -> Self {
        Self {
            programs: ProgInfoIter::default().count(),
            maps: MapInfoIter::default().count(),
            links: LinkInfoIter::default().count(),
            // Modules have names.
            types: BtfInfoIter::default().filter(|types| types.name.is_empty()).count(),
        }
    }

    /// Waits until everything that came since is gone again; the kernel frees it a little later.
    pub(crate) fn wait_for_return(self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let now = Self::now();
            if now == self {
                return Ok(());
            }
            if begin.elapsed() > Duration::from_secs(20) {
                bail!("something stays behind: there were {self:?}, now there are {now:?}");
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Memory that the kernel itself uses, in kB.
pub(crate) fn kernel_memory() -> Result<u64> {
    let info = fs::read_to_string("/proc/meminfo")?;
    let field = |name: &str| -> Result<u64> {
        let line = info.lines().find(|line| line.starts_with(name)).context(name.to_owned())?;
        Ok(line.split_whitespace().nth(1).context("no number")?.parse()?)
    };
    Ok(field("Slab:")? + field("VmallocUsed:")? + field("Percpu:")?)
}
