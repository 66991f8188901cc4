//! The program that marks packets: loaded, placed on a device, found again.
//!
//! It is a filter of a `clsact` qdisc, which outlives the command and keeps the program and its
//! maps; whatever removes the filter removes all of it.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use netdev::clsact::{self, Clsact, Owner, Point};
use sched::Nanos;
use sched::marks::Marks;

use super::queues::Classes;
use crate::kernel::error::KernelError;
use crate::kernel::memory::{from_bytes, to_bytes};
use crate::kernel::skeleton::marks::MarksSkelBuilder;
use crate::kernel::skeleton::marks::types::{
    sl_marks_config, sl_marks_counters, sl_marks_parts, sl_marks_state,
};
use crate::kernel::work::filters;

/// Entries of the flow table.
pub(super) const FLOWS: u64 = 32_768;
const CAPABILITY: &str = "CAP_BPF with CAP_NET_ADMIN";
const KEY: [u8; 4] = [0; 4];

/// What the program goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub(super) rule: Marks,
    pub(super) classes: Classes,
    pub(super) mark_short: bool,
}

impl Config {
    fn bytes(self) -> Vec<u8> {
        let Marks { flow_cost, class_cost, threshold, least, depth, idle } = self.rule;
        let short = if self.mark_short { self.classes.short } else { 0 };
        to_bytes(&sl_marks_config {
            flow_cost,
            class_cost,
            threshold: threshold.0,
            least: least.0,
            depth: depth.0,
            idle: idle.0,
            priority: [short.into(), self.classes.long.into()],
            test_now: 0,
        })
    }
}

pub(super) fn bpf(doing: &'static str) -> impl Fn(libbpf_rs::Error) -> KernelError {
    move |error| KernelError::bpf(doing, CAPABILITY, &error)
}

/// Loads the program and puts it on what a device sends.
pub(super) fn place(ifindex: u32, ethernet: bool, config: Config) -> Result<(), KernelError> {
    let parts = sl_marks_parts { key: key()?, ethernet: ethernet.into(), tested: 0 };
    load_and_place(ifindex, parts, &config.bytes())
}

fn load_and_place(ifindex: u32, parts: sl_marks_parts, config: &[u8]) -> Result<(), KernelError> {
    const LOADING: &str = "loading the program that marks packets";
    libbpf_rs::set_print(None);
    let mut storage = MaybeUninit::uninit();
    let mut program = MarksSkelBuilder::default().open(&mut storage).map_err(bpf(LOADING))?;
    if let Some(rodata) = &mut program.maps.rodata_data {
        rodata.parts = parts;
    }
    let program = program.load().map_err(bpf(LOADING))?;
    let map = &program.maps.sl_marks_config;
    map.update(&KEY, config, MapFlags::ANY).map_err(bpf(LOADING))?;
    let filter = program.progs.shortlane_marks.as_fd();
    Clsact::on(ifindex)
        .and_then(|clsact| clsact.add(Owner::Marks, filter, Point::Egress))
        .map_err(filters)
        .map(|_| ())
}

fn key() -> Result<[u64; 2], KernelError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| KernelError::System {
        doing: "drawing a random key",
        source: error.into(),
    })?;
    let word = |at: usize| u64::from_ne_bytes(random[at..at + 8].try_into().unwrap_or_default());
    Ok([word(0), word(8)])
}

/// The program at work on a device.
pub(super) struct Placed {
    maps: Vec<MapHandle>,
}

/// What it has counted.
pub(super) struct Counted {
    pub(super) counters: sl_marks_counters,
    pub(super) flows: u64,
}

impl Placed {
    /// `None` if none is there.
    pub(super) fn find(ifindex: u32) -> Result<Option<Self>, KernelError> {
        const FINDING: &str = "finding the program that marks packets";
        let numbers = clsact::programs(Owner::Marks, ifindex, Point::Egress).map_err(filters)?;
        let options = ProgInfoQueryOptions::default().include_map_ids(true);
        let program =
            ProgInfoIter::with_query_opts(options).find(|program| numbers.contains(&program.id));
        let Some(program) = program else { return Ok(None) };
        let open = |id: &u32| MapHandle::from_map_id(*id).map_err(bpf(FINDING));
        let maps = program.map_ids.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Some(Self { maps }))
    }

    pub(super) fn map(&self, name: &str) -> Result<&MapHandle, KernelError> {
        let gone = || KernelError::System {
            doing: "reading the maps of the program that marks packets",
            source: std::io::ErrorKind::NotFound.into(),
        };
        self.maps.iter().find(|map| map.name() == name).ok_or_else(gone)
    }

    /// What it has counted, and how many flows had a packet within the idle time.
    pub(super) fn counted(&self) -> Result<Counted, KernelError> {
        const READING: &str = "reading what the program has counted";
        let state = self.map("sl_marks_state")?;
        let bytes = state.lookup(&KEY, MapFlags::ANY).map_err(bpf(READING))?;
        let state: Option<sl_marks_state> = bytes.and_then(|bytes| from_bytes(&bytes));
        let flows = self.map("sl_marked")?.keys().count() as u64;
        let counters = state.map(|state| state.counters).unwrap_or_default();
        Ok(Counted { counters, flows })
    }

    /// Goes by something else from here on. Flows stay what they are.
    pub(super) fn configure(&self, config: Config) -> Result<(), KernelError> {
        self.go_by(&config.bytes())
    }

    fn go_by(&self, config: &[u8]) -> Result<(), KernelError> {
        let map = self.map("sl_marks_config")?;
        let doing = "changing what the program goes by";
        map.update(&KEY, config, MapFlags::ANY).map_err(bpf(doing))
    }
}

/// The program on a device, for tests: with a clock and a key of their choice.
pub struct Trial {
    ifindex: u32,
    placed: Placed,
}

impl Trial {
    /// Puts it on what an Ethernet device sends, until this is dropped. The key is that of
    /// `Fingerprinter::from_seed`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn place(ifindex: u32, key_seed: u64) -> Result<Self, KernelError> {
        let parts = sl_marks_parts { key: [key_seed, 0], ethernet: 1, tested: 1 };
        load_and_place(ifindex, parts, &to_bytes(&sl_marks_config::default()))?;
        let gone = || KernelError::Marks("the program is not found where it was put".into());
        Ok(Self { ifindex, placed: Placed::find(ifindex)?.ok_or_else(gone)? })
    }

    /// The rule and the time for what is sent from here on, and the priorities of its packets:
    /// those of short flows keep theirs if `mark_short` is not set.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set(
        &self,
        rule: Marks,
        (short, long): (u32, u32),
        mark_short: bool,
        now: Nanos,
    ) -> Result<(), KernelError> {
        let mut config = Config { rule, classes: Classes { short, long }, mark_short }.bytes();
        let at = std::mem::offset_of!(sl_marks_config, test_now);
        config[at..at + 8].copy_from_slice(&now.0.to_ne_bytes());
        self.placed.go_by(&config)
    }

    /// The flows of its table.
    ///
    /// # Errors
    /// If the map is gone.
    pub fn flows(&self) -> Result<Vec<u64>, KernelError> {
        let keys = self.placed.map("sl_marked")?.keys();
        Ok(keys.filter_map(|key| Some(u64::from_ne_bytes(key.try_into().ok()?))).collect())
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // With its device it is gone.
        let _ = clsact::tidy_up(Owner::Marks, self.ifindex);
    }
}

#[cfg(test)]
mod tests;
