//! A qdisc at work: what it is, what it has counted, and changing it while packets are queued.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::Duration;

use libbpf_rs::{MapHandle, query};

use super::compose::{Shaping, compose, framing_of, overhead_of, text_of};
use super::error::KernelError;
use super::memory::{INSTANCES, Shared};
use super::seen;
use super::skeleton::types::{sl_config, sl_qdisc, sl_shared};
use crate::datapath::clock;
use crate::settings::link::LinkSettings;
use crate::status::{EngineKind, Histogram, LaneCounters, Qdisc, Seen, Status};
use sched::{Amount, Nanos, Rate, Share, Spec, SpecError};

const FINDING: &str = "finding the qdisc's maps";
const CAPABILITY: &str = "CAP_SYS_ADMIN";
/// `SL_FROM_TC` of the shared header.
const FROM_TC: u8 = 1;

/// Name of the map that holds what a load shares.
pub(super) const SHARED: &str = ".data.shortlane";

/// A qdisc of this kind on an interface of the current network namespace.
pub struct Instance {
    shared: Shared,
    /// The number of the map that is looked into.
    map: u32,
    index: usize,
}

impl Instance {
    /// The qdisc on an interface of the current network namespace; `None` if there is none.
    ///
    /// # Errors
    /// If the kernel does not let the process look at maps.
    pub fn find(ifindex: u32) -> Result<Option<Self>, KernelError> {
        Ok(Self::on(ifindex)?.into_iter().next())
    }

    /// The qdiscs on an interface of the current network namespace: one, or one of each transmit
    /// queue.
    ///
    /// # Errors
    /// If the kernel does not let the process look at maps.
    pub fn on(ifindex: u32) -> Result<Vec<Self>, KernelError> {
        Self::having(|found| found == ifindex)
    }

    /// All qdiscs of the current network namespace.
    ///
    /// # Errors
    /// If the kernel does not let the process look at maps.
    pub fn all() -> Result<Vec<Self>, KernelError> {
        Self::having(|_| true)
    }

    /// The qdiscs on interfaces of these indices.
    fn having(wanted: impl Fn(u32) -> bool) -> Result<Vec<Self>, KernelError> {
        let system = |source| KernelError::System { doing: FINDING, source };
        let netns = fs::metadata("/proc/thread-self/ns/net").map_err(system)?.ino() as u32;
        check_permission()?;
        let mut found = Vec::new();
        for map in query::MapInfoIter::default().filter(is_shared) {
            // One may have gone in the meantime.
            let Ok(handle) = MapHandle::from_map_id(map.id) else { continue };
            let open = || Shared::open(handle.as_fd()).map_err(system);
            let shared = open()?;
            let is_one = |index: &usize| {
                let state = shared.qdisc(*index).instance;
                state.used != 0 && wanted(state.ifindex) && state.netns == netns
            };
            for index in (0..INSTANCES).filter(|index| shared.is_ours() && is_one(index)) {
                found.push(Self { shared: open()?, map: map.id, index });
            }
        }
        Ok(found)
    }

    fn qdisc(&self) -> sl_qdisc {
        self.shared.qdisc(self.index)
    }

    /// What it is and what it has counted, as far as it knows: what the kernel tells of the device
    /// and of the qdisc's place is open.
    #[must_use]
    pub fn status(&self) -> Status {
        let qdisc = self.qdisc();
        Status { seen: self.seen(&wanted(&qdisc)), ..status(&qdisc) }
    }

    /// Who was seen lately, if the discipline tells.
    fn seen(&self, config: &sl_config) -> Option<Seen> {
        let (spec, table) = (spec_of(config).ok()?, seen::table_beside(self.map)?);
        let (_, instances) = self.shared.template();
        seen::seen(&table, (self.index, instances as usize), &spec, clock::now())
    }

    /// The discipline that runs and its shaping, as they were given.
    ///
    /// # Errors
    /// If its parameters are none of this version.
    pub fn running(&self) -> Result<(Spec, Shaping), KernelError> {
        let config = wanted(&self.qdisc());
        let spec = spec_of(&config).map_err(|error| KernelError::System {
            doing: "reading the qdisc's parameters",
            source: io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
        })?;
        Ok((spec, Shaping { link: link_of(&config), link_header: config.link_header }))
    }

    /// Takes over other parameters and another shaping while packets are queued; none is lost.
    ///
    /// # Errors
    /// If the change needs other parts or more slots than the qdisc was made with.
    pub fn change(&self, spec: &Spec, shaping: &Shaping) -> Result<(), KernelError> {
        Self::change_all(std::slice::from_ref(self), spec, shaping)
    }

    /// The same for all qdiscs of a device, or for none.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn change_all(all: &[Self], spec: &Spec, shaping: &Shaping) -> Result<(), KernelError> {
        let configs: Vec<sl_config> =
            all.iter().map(|one| one.changed(spec, shaping)).collect::<Result<_, _>>()?;
        for (one, config) in all.iter().zip(&configs) {
            one.shared.configure(one.index, config);
        }
        // Nobody reads the former ones any more when this returns, so that they can be filled again.
        wait_for_programs();
        Ok(())
    }

    /// What [`change`](Self::change) would put in force.
    pub(super) fn changed(&self, spec: &Spec, shaping: &Shaping) -> Result<sl_config, KernelError> {
        let (running, running_shaping) = self.running()?;
        let before = compose(&running, &running_shaping)?;
        let after = compose(spec, shaping)?;
        if !after.has_parts_of(&before) {
            return Err(KernelError::OtherParts {
                found: spec.to_string(),
                running: running.to_string(),
            });
        }
        let now = self.qdisc();
        let slots = u64::from(now.instance.slots);
        if after.config.limit_in_bytes == 0 && after.config.limit > slots {
            let found = spec.params().amount("limit").to_string();
            return Err(KernelError::Beyond { found, most: slots });
        }
        let flow_bound = wanted(&now).flow_bound;
        Ok(sl_config { flow_bound, ..after.config })
    }
}

/// Returns once no program runs that began before, however long its processor was kept from it:
/// membarrier(2) waits for a grace period of RCU, under which the programs of a qdisc run.
fn wait_for_programs() {
    const GLOBAL: libc::c_int = 1;
    // SAFETY: no pointer is passed.
    let waited = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if waited != 0 {
        // As on processors without a timer tick (nohz_full). Programs take some microseconds.
        thread::sleep(Duration::from_millis(1));
    }
}

/// The configuration that is in force, or will be with the next packet.
fn wanted(qdisc: &sl_qdisc) -> sl_config {
    qdisc.config[(qdisc.generation & 1) as usize]
}

/// Whether a map holds what a load of this version shares.
fn is_shared(map: &query::MapInfo) -> bool {
    map.name == SHARED && map.value_size as usize == size_of::<sl_shared>()
}

/// An iterator over maps that are not to be seen just ends; this one says why.
fn check_permission() -> Result<(), KernelError> {
    let mut next = 0;
    // SAFETY: the call writes the one integer.
    let answer = unsafe { libbpf_rs::libbpf_sys::bpf_map_get_next_id(0, &mut next) };
    match -answer {
        0 | libc::ENOENT => Ok(()),
        error => Err(KernelError::system(FINDING, CAPABILITY, io::Error::from_raw_os_error(error))),
    }
}

/// The discipline with the parameters that are in force: those of the load, and of `tc`.
fn spec_of(config: &sl_config) -> Result<Spec, SpecError> {
    let mut spec: Spec = text(config).parse()?;
    if config.origin == FROM_TC {
        spec = spec.with("limit", &limit(config).to_string())?;
        if config.has_threshold != 0 {
            let written = config.threshold.saturating_sub(config.boundary_adds.into());
            let threshold = amount(written, config.threshold_in_bytes);
            spec = spec.with("threshold", &threshold.to_string())?;
        }
        if config.has_low_share != 0 {
            spec = spec.with("low-share", &Share::from_ppb(config.low_share).to_string())?;
        }
    }
    Ok(spec)
}

fn amount(value: u64, in_bytes: u8) -> Amount {
    if in_bytes == 0 { Amount::Packets(value) } else { Amount::Bytes(value) }
}

fn limit(config: &sl_config) -> Amount {
    amount(config.limit, config.limit_in_bytes)
}

pub(super) fn text(config: &sl_config) -> String {
    text_of(&config.spec)
}

/// Lanes of the discipline: those of the two-lane family if it is not known.
fn lanes(config: &sl_config) -> usize {
    spec_of(config).map_or(2, |spec| spec.info().least_lanes)
}

fn lane_counters(qdisc: &sl_qdisc, lane: usize) -> LaneCounters {
    let (state, times) = (&qdisc.instance, &qdisc.histogram);
    let (counters, queue) = (&state.counters, &state.lane[lane]);
    LaneCounters {
        enqueued_packets: counters.enqueued[lane],
        sent_packets: counters.sent[lane],
        sent_bytes: counters.sent_bytes[lane],
        full: counters.full[lane],
        pushed_out: counters.pushed_out[lane],
        congested: counters.congested[lane],
        backlog_packets: queue.tail.wrapping_sub(queue.head).into(),
        backlog_segments: queue.segments,
        backlog_bytes: queue.bytes,
        sojourn: Histogram { counts: times.bucket[lane], sum: Nanos(times.sum[lane]) },
    }
}

/// The link that is paced for. A rate of 0 is none.
fn link_of(config: &sl_config) -> LinkSettings {
    LinkSettings {
        rate: if config.rate == 0 { Rate::UNLIMITED } else { Rate(config.rate) },
        overhead: overhead_of(config),
        burst_time: Nanos(config.burst),
    }
}

fn status(qdisc: &sl_qdisc) -> Status {
    let (state, config) = (&qdisc.instance, &wanted(qdisc));
    let counters = &state.counters;
    Status {
        ifindex: state.ifindex,
        engine: EngineKind::Kernel,
        scheduler: spec_of(config).map_or_else(|_| text(config), |spec| spec.to_string()),
        limit: Some(limit(config).to_string()),
        link: link_of(config),
        framing: framing_of(config),
        attached_at: Nanos(state.attached_at),
        lanes: (0..lanes(config)).map(|lane| lane_counters(qdisc, lane)).collect(),
        marked: counters.marked,
        most_packets: state.most_packets,
        flows: (state.flows + state.alone).into(),
        most_flows: state.most_flows.max(u32::from(state.most_packets > 0)).into(),
        flow_bound: Some(config.flow_bound.into()),
        // A packet that meets an empty queue needs no entry unless a second one comes while it is
        // queued.
        flows_created: counters.flows_created,
        flows_removed: counters.flows_removed,
        demoted: counters.demoted,
        flows_untracked: counters.flows_untracked,
        fragments: counters.fragments,
        not_ip: counters.not_ip,
        super_packets: counters.super_packets,
        paced: counters.paced,
        qdisc: Some(Qdisc {
            handle: format!("{:x}:", state.handle >> 16),
            from_tc: config.origin == FROM_TC,
            no_slots: counters.no_slots,
            flushed: counters.flushed,
            lost: counters.lost,
            ..Qdisc::default()
        }),
        ..Status::default()
    }
}
