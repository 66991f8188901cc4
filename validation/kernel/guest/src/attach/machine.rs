//! What of a machine `attach` may touch: it must be the same again after `detach`.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Result, bail, ensure};
use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

use crate::command::run as shell;

/// As `tc`, `ip`, `ethtool` and the ids of BPF objects tell it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Machine {
    qdiscs: String,
    links: String,
    features: Vec<String>,
    programs: usize,
    maps: usize,
    bpf_links: usize,
}

impl Machine {
    pub(super) fn now() -> Result<Self> {
        let mut features = Vec::new();
        for device in fs::read_dir("/sys/class/net")? {
            let name = device?.file_name().to_string_lossy().into_owned();
            features.push(shell(&format!("ethtool -k {name}"))?);
        }
        features.sort();
        Ok(Self {
            qdiscs: shell("tc qdisc show")?,
            links: shell("ip -d link show")?,
            features,
            programs: ProgInfoIter::default().count(),
            maps: MapInfoIter::default().count(),
            bpf_links: LinkInfoIter::default().count(),
        })
    }

    /// The same again, with no journal; what the kernel frees late is waited for.
    pub(super) fn must_be_back(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let now = Self::now()?;
            if now == *self {
                break;
            }
            if begin.elapsed() > Duration::from_secs(20) {
                bail!("it was {self:#?}\nand is {now:#?}");
            }
            thread::sleep(Duration::from_millis(50));
        }
        ensure!(!Path::new(engine::kernel::DIRECTORY).exists(), "a journal is left");
        Ok(())
    }
}
