//! A kind of qdisc that is registered, and what tests ask of it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, query};

use crate::kernel::error::KernelError;
use crate::kernel::memory::{Shared, from_bytes};
use crate::kernel::skeleton::types::sl_event;

/// A kind of qdisc that the kernel knows, for as long as this lives or the link is pinned.
pub struct Registered {
    pub(super) link: Link,
    pub(in crate::kernel) state: MapHandle,
    pub(super) shared: Shared,
    pub(super) release: MapHandle,
    pub(super) log: MapHandle,
    /// The program in front of it, if it needs one.
    pub(in crate::kernel) marker: Option<OwnedFd>,
    pub(super) costs: Vec<ProgramCost>,
}

/// What verifying a program took.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ProgramCost {
    /// Its name.
    pub program: String,
    /// Instructions that the verifier walked through; a million is the most it does.
    pub verified_instructions: u32,
}

/// The programs of the load that has this map.
pub(super) fn costs(data: &MapHandle) -> Result<Vec<ProgramCost>, KernelError> {
    let id = data
        .info()
        .map_err(|error| KernelError::bpf("reading what was loaded", "CAP_BPF", &error))?;
    let id = id.info.id;
    let options = query::ProgInfoQueryOptions::default().include_map_ids(true);
    let programs = query::ProgInfoIter::with_query_opts(options);
    Ok(programs
        .filter(|program| program.map_ids.contains(&id))
        .map(|program| ProgramCost {
            program: program.name.to_string_lossy().into_owned(),
            verified_instructions: program.verified_insns,
        })
        .collect())
}

/// Records and releases of an instance under test before they start over.
pub(super) const TEST_RECORDS: u32 = 4096;

/// Where an instance's record or release `n` lies.
fn test_record(instance: u32, n: u64) -> u32 {
    instance * TEST_RECORDS + n as u32 % TEST_RECORDS
}

impl Registered {
    /// What verifying each program took.
    #[must_use]
    pub fn costs(&self) -> &[ProgramCost] {
        &self.costs
    }

    /// Keeps the kind known beyond the end of this process, by a file in a BPF file system.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn pin(&mut self, path: &Path) -> Result<(), KernelError> {
        self.link
            .pin(path)
            .map_err(|error| KernelError::bpf("pinning the registration", "CAP_BPF", &error))
    }

    /// Tests only: after arrival `n` of the instance (counted from 0, modulo 4096), `packets` may
    /// leave.
    ///
    /// # Errors
    /// If the map cannot be written.
    pub fn let_out(&self, instance: u32, n: u64, packets: u32) -> Result<(), KernelError> {
        let at = test_record(instance, n).to_ne_bytes();
        self.release
            .update(&at, &packets.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| KernelError::bpf("writing a map", "CAP_BPF", &error))
    }

    /// Tests only: how many arrivals and records there were of the instance, and how many packets
    /// may still leave.
    #[must_use]
    pub fn progress(&self, instance: u32) -> (u64, u64, u64) {
        let state = self.shared.qdisc(instance as usize).instance;
        (state.arrivals, state.events, state.released)
    }

    /// Tests only: when the link of the instance is free again, by the monotonic clock.
    #[must_use]
    pub fn link_free_at(&self, instance: u32) -> u64 {
        self.shared.qdisc(instance as usize).instance.pacer.next_tx
    }

    /// Tests only: record `n` of the instance (counted from 0; the last 4096 are kept).
    ///
    /// # Errors
    /// If the map cannot be read.
    pub fn record(&self, instance: u32, n: u64) -> Result<sl_event, KernelError> {
        let reading = "reading the records of a test";
        let gone =
            || KernelError::System { doing: reading, source: io::ErrorKind::NotFound.into() };
        let at = test_record(instance, n).to_ne_bytes();
        let bytes = self
            .log
            .lookup(&at, MapFlags::ANY)
            .map_err(|error| KernelError::bpf(reading, "CAP_BPF", &error))?;
        bytes.and_then(|bytes| from_bytes(&bytes)).ok_or_else(gone)
    }
}
