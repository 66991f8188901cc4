//! Loading the programs, and registering them as a kind of qdisc.

mod registered;
mod verifier;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{ErrorKind, MapCore, MapHandle, Object, OpenObject};

pub use self::registered::{ProgramCost, Registered};
use self::registered::{TEST_RECORDS, costs};
use super::compose::Composition;
use super::error::KernelError;
use super::fq_lanes::{block_size, with_sizes};
use super::instance::SHARED;
use super::memory::{INSTANCES, Plain, Shared, from_bytes, to_bytes};
use super::skeleton::fq_lanes::types::fql_parts;
use super::skeleton::fq_lanes::{FqLanesSkelBuilder, OpenFqLanesSkel};
use super::skeleton::types::sl_parts;
use super::skeleton::{OpenShortlaneSkel, ShortlaneSkelBuilder};

const LOADING: &str = "loading BPF programs";
const CAPABILITY: &str = "CAP_BPF with CAP_NET_ADMIN and CAP_PERFMON (or CAP_SYS_ADMIN)";
/// How long a name that another process is just registering is waited for.
const NAME_WAIT: Duration = Duration::from_secs(5);

/// What tests fix or switch on.
#[derive(Clone, Copy, Debug)]
pub struct TestHooks {
    /// Key of the fingerprints, as `Fingerprinter::from_seed` takes it.
    pub key_seed: u64,
    /// Seed of the random choices, as [`sched::Spec::build`] takes it.
    pub seed: u64,
    /// Reads every packet the way unusual ones are read.
    pub only_slow_parser: bool,
    /// Lets packets out only as [`Registered::let_out`] says, and records what happens.
    pub recorded: bool,
}

/// Loads a composition for this many qdiscs and registers it under a name of 1 to 15 bytes.
///
/// If another process has registered the name it is waited for, for five seconds: `attach` needs
/// it for a moment only.
///
/// # Errors
/// If the process lacks a capability, the kernel lacks a feature, the verifier refuses (its log
/// is in a file that the error names) or there is not enough memory.
pub fn load(
    kind: &str,
    composition: &Composition,
    instances: u32,
    hooks: Option<TestHooks>,
) -> Result<Registered, KernelError> {
    if instances == 0 || instances as usize > INSTANCES {
        return Err(KernelError::Instances { found: instances, most: INSTANCES });
    }
    check_kernel()?;
    let parts = parts(composition, instances, hooks)?;
    Job { kind, composition, instances, parts }.run()
}

/// What is to be loaded.
struct Job<'a> {
    kind: &'a str,
    composition: &'a Composition,
    instances: u32,
    parts: sl_parts,
}

fn system(error: libbpf_rs::Error) -> KernelError {
    KernelError::bpf(LOADING, CAPABILITY, &error)
}

impl Job<'_> {
    fn run(&self) -> Result<Registered, KernelError> {
        let mut storage = MaybeUninit::uninit();
        verifier::listen(|| match &self.composition.fq_lanes {
            None => register(self, "shortlane", self.open_lanes(&mut storage)?),
            Some(own) => register(self, "fq_lanes", self.open_fq_lanes(&mut storage, own)?),
        })
    }

    /// Entries of a map with so many for each instance.
    fn entries(&self, each: u32) -> Result<u32, KernelError> {
        let all = each.checked_mul(self.instances);
        all.ok_or_else(|| out_of_memory(self.composition, self.instances))
    }

    /// Entries of a map that only tests need.
    fn tested(&self) -> u32 {
        if self.parts.tested == 0 { 1 } else { self.instances * TEST_RECORDS }
    }

    fn write_kind(&self, id: &mut [i8]) {
        for (into, byte) in id.iter_mut().zip(self.kind.bytes().chain([0])) {
            *into = byte as i8;
        }
    }

    /// The two-lane family.
    fn open_lanes<'o>(
        &self,
        storage: &'o mut MaybeUninit<OpenObject>,
    ) -> Result<OpenShortlaneSkel<'o>, KernelError> {
        let mut open = ShortlaneSkelBuilder::default().open(storage).map_err(system)?;
        if let Some(rodata) = &mut open.maps.rodata_data {
            rodata.parts = self.parts;
        }
        if let Some(data) = &mut open.maps.data_shortlane_data {
            data.sl_shared.template = self.composition.config;
            data.sl_shared.instances = self.instances.into();
        }
        self.write_kind(&mut open.struct_ops.shortlane_mut().id);
        let (parts, maps) = (&self.parts, &mut open.maps);
        for (map, entries) in [
            (&mut maps.sl_slots, self.entries((parts.ring_mask + 1) * 2)?),
            (&mut maps.sl_buckets, self.entries(parts.bucket_mask + 1)?),
            (&mut maps.sl_flows, self.entries(parts.flows)?),
            (&mut maps.sl_release, self.tested()),
            (&mut maps.sl_log, self.tested()),
        ] {
            map.set_max_entries(entries).map_err(system)?;
        }
        Ok(open)
    }

    fn open_fq_lanes<'o>(
        &self,
        storage: &'o mut MaybeUninit<OpenObject>,
        own: &fql_parts,
    ) -> Result<OpenFqLanesSkel<'o>, KernelError> {
        let mut open = FqLanesSkelBuilder::default().open(storage).map_err(system)?;
        let rodata = open.maps.rodata_data.as_mut().ok_or_else(|| missing_map("rodata"))?;
        let own = with_sizes(own, &rodata.fql_parts);
        (rodata.parts, rodata.fql_parts) = (same(&self.parts)?, own);
        rodata.fql_nat = self.composition.nat as u32;
        if let Some(data) = &mut open.maps.data_shortlane_data {
            data.sl_shared.template = same(&self.composition.config)?;
            data.sl_shared.instances = self.instances.into();
        }
        self.write_kind(&mut open.struct_ops.fq_lanes_mut().id);
        for mut program in open.open_object_mut().progs_mut() {
            if program.section() == "tc" {
                let is_needed =
                    self.composition.program().is_some_and(|name| program.name() == name);
                program.set_autoload(is_needed);
            }
        }
        let maps = &mut open.maps;
        maps.fql_blocks.set_value_size(block_size(&own)).map_err(system)?;
        for (map, entries) in [
            (&mut maps.fql_blocks, self.instances),
            (&mut maps.fql_packets, self.entries(own.slots)?),
            (&mut maps.fql_seen, self.entries(own.seen)?),
            (&mut maps.sl_release, self.tested()),
            (&mut maps.sl_log, self.tested()),
        ] {
            map.set_max_entries(entries).map_err(system)?;
        }
        Ok(open)
    }
}

/// A structure of the shared header as another object file has it.
fn same<T: Plain>(value: &impl Plain) -> Result<T, KernelError> {
    let differs =
        || KernelError::System { doing: LOADING, source: io::ErrorKind::InvalidData.into() };
    from_bytes(&to_bytes(value)).ok_or_else(differs)
}

/// Loads what was opened and registers the qdisc that it calls `ops`.
fn register<'o>(
    job: &Job<'_>,
    ops: &str,
    open: impl OpenSkel<'o>,
) -> Result<Registered, KernelError> {
    let mut skeleton =
        open.load().map_err(|error| why_not_loaded(&error, job.composition, job.instances))?;
    let object = skeleton.object_mut();
    let (release, log) = (map(object, "sl_release")?, map(object, "sl_log")?);
    let state = map(object, SHARED)?;
    let shared = Shared::open(state.as_fd()).map_err(|source| {
        KernelError::system("looking into the qdisc's state", CAPABILITY, source)
    })?;
    let costs = costs(&state)?;
    let needed = job.composition.program();
    let marker = object.progs().find(|program| needed.is_some_and(|name| program.name() == name));
    let marker = marker.map(|program| program.as_fd().try_clone_to_owned()).transpose();
    let marker = marker.map_err(|source| KernelError::System { doing: LOADING, source })?;
    let mut maps = object.maps_mut();
    let mut ops = maps.find(|map| map.name() == ops).ok_or_else(|| missing_map(ops))?;
    let begin = Instant::now();
    let link = loop {
        match ops.attach_struct_ops() {
            Ok(link) => break link,
            Err(error)
                if error.kind() == ErrorKind::AlreadyExists && begin.elapsed() < NAME_WAIT =>
            {
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(KernelError::NameTaken { name: job.kind.to_owned() });
            }
            Err(error) => {
                return Err(KernelError::bpf("registering the qdisc", CAPABILITY, &error));
            }
        }
    };
    Ok(Registered { link, state, shared, release, log, marker, costs })
}

fn map(object: &Object, name: &str) -> Result<MapHandle, KernelError> {
    let map = object.maps().find(|map| map.name() == name).ok_or_else(|| missing_map(name))?;
    MapHandle::try_from(&map).map_err(system)
}

fn missing_map(name: &str) -> KernelError {
    let source = io::Error::new(io::ErrorKind::NotFound, format!("the object has no map {name}"));
    KernelError::System { doing: LOADING, source }
}

/// The parts with keys and seeds.
fn parts(
    composition: &Composition,
    instances: u32,
    hooks: Option<TestHooks>,
) -> Result<sl_parts, KernelError> {
    let mut parts = sl_parts { instances, ..composition.parts };
    match hooks {
        Some(hooks) => {
            parts.key = [hooks.key_seed, 0];
            parts.host_key = frame::host_key(parts.key);
            parts.sampler_seed = xoshiro_state(hooks.seed);
            parts.coin_seed = parts.sampler_seed;
            parts.tested = hooks.recorded.into();
            parts.only_slow_parser = hooks.only_slow_parser.into();
        }
        None => {
            let mut random = [0; 32];
            getrandom::fill(&mut random).map_err(|error| KernelError::System {
                doing: "drawing a random key",
                source: error.into(),
            })?;
            let word =
                |at: usize| u64::from_ne_bytes(random[at..at + 8].try_into().unwrap_or_default());
            parts.key = [word(0), word(8)];
            parts.host_key = frame::host_key(parts.key);
            parts.sampler_seed = xoshiro_state(word(16));
            parts.coin_seed = xoshiro_state(word(24));
        }
    }
    Ok(parts)
}

/// The state that the discipline's own generator starts with (SplitMix64, Steele et al. 2014).
fn xoshiro_state(mut seed: u64) -> [u64; 4] {
    std::array::from_fn(|_| {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

fn out_of_memory(composition: &Composition, instances: u32) -> KernelError {
    KernelError::Memory { packets: composition.slots(), flows: composition.flows(), instances }
}

fn why_not_loaded(
    error: &libbpf_rs::Error,
    composition: &Composition,
    instances: u32,
) -> KernelError {
    match (verifier::keep_log(), error.kind()) {
        (Some(Ok(log)), _) => KernelError::Refused { log },
        (Some(Err(source)), _) => {
            KernelError::System { doing: "keeping the verifier's log", source }
        }
        (None, ErrorKind::OutOfMemory) => out_of_memory(composition, instances),
        (None, _) => KernelError::bpf(LOADING, CAPABILITY, error),
    }
}

/// Looks for what a kernel must have, rather than at its version.
pub(super) fn check_kernel() -> Result<(), KernelError> {
    let release = || {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        release.trim().to_owned()
    };
    let missing = |missing| KernelError::Kernel { release: release(), missing };
    const BTF: &str = "/sys/kernel/btf/vmlinux";
    if !Path::new(BTF).exists() {
        return Err(missing("it has no type information (/sys/kernel/btf/vmlinux)"));
    }
    let btf = libbpf_rs::btf::Btf::from_vmlinux()
        .map_err(|error| KernelError::bpf("reading the kernel's types", "CAP_SYS_ADMIN", &error))?;
    let registrable: Option<libbpf_rs::btf::types::Struct<'_>> =
        btf.type_by_name("bpf_struct_ops_Qdisc_ops");
    registrable.map(|_| ()).ok_or_else(|| missing("Qdisc_ops is no BPF struct_ops there"))
}
