//! What of a machine `attach` may touch: it must be the same again after `detach`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, mem, thread};

use anyhow::{Result, bail, ensure};
use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

use crate::command::run as shell;

/// A device's classes, in lines, but for those that are queues which come and go with packets.
pub(super) fn classes(device: &str) -> Result<String> {
    const FLEETING: [&str; 3] = ["class fq_codel ", "class cake ", "class sfq "];
    let shown = shell(&format!("tc class show dev {device}"))?;
    let stays = |line: &&str| !FLEETING.iter().any(|kind| line.starts_with(kind));
    Ok(shown.lines().filter(stays).map(|line| format!("{line}\n")).collect())
}

/// As `tc`, `ip`, `ethtool` and the ids of BPF objects tell it, in lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Machine(BTreeSet<String>);

impl Machine {
    /// Once nothing changes any more: the kernel may still free what an earlier test had.
    pub(super) fn now() -> Result<Self> {
        let begin = Instant::now();
        let mut seen = Self::seen()?;
        loop {
            thread::sleep(Duration::from_millis(500));
            let before = mem::replace(&mut seen, Self::seen()?);
            if seen == before {
                return Ok(seen);
            }
            ensure!(begin.elapsed() < Duration::from_secs(20), "{before:?} becomes {seen:?}");
        }
    }

    fn seen() -> Result<Self> {
        let mut lines = BTreeSet::new();
        let mut add = |what: &str, text: &str| {
            lines.extend(text.lines().map(|line| format!("{what}: {}", line.trim())));
        };
        for device in fs::read_dir("/sys/class/net")? {
            let name = device?.file_name().to_string_lossy().into_owned();
            add(&name, &shell(&format!("ethtool -k {name}"))?);
            add(&name, &shell(&format!("ip -d link show {name}"))?);
            add(&name, &classes(&name)?);
            for point in ["root", "ingress", "egress"] {
                // Without a qdisc there is nothing to show, which is an error.
                let filters = shell(&format!("tc filter show dev {name} {point}"));
                add(&format!("{name} {point}"), &filters.unwrap_or_default());
            }
        }
        add("tc", &shell("tc qdisc show")?);
        let (programs, maps) = (ProgInfoIter::default().count(), MapInfoIter::default().count());
        let links = LinkInfoIter::default().count();
        add("bpf", &format!("{programs} programs\n{maps} maps\n{links} links"));
        Ok(Self(lines))
    }

    /// The same again, with no journal; what the kernel frees late is waited for.
    pub(super) fn must_be_back(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let now = Self::seen()?;
            if now == *self {
                break;
            }
            if begin.elapsed() > Duration::from_secs(20) {
                let missing: Vec<_> = self.0.difference(&now.0).collect();
                let left: Vec<_> = now.0.difference(&self.0).collect();
                bail!("it is not as it was: missing {missing:#?}, new {left:#?}");
            }
            thread::sleep(Duration::from_millis(50));
        }
        ensure!(!Path::new(engine::kernel::DIRECTORY).exists(), "a journal is left");
        Ok(())
    }
}
