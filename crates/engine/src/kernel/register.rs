//! Kinds of qdisc that stay registered, for those who work with `tc`.
//!
//! A kind is kept by files in a BPF file system, in a directory of its name: `link`, which is
//! the registration, and `state`, which tells what was registered and how much of it is in use.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use libbpf_rs::MapHandle;
use nix::fcntl::Flock;
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use sched::Spec;
use serde::Serialize;

use super::compose::{compose, refused};
use super::error::KernelError;
use super::instance::text;
use super::journal;
use super::load::{Registered, load};
use super::memory::{INSTANCES, Shared};
use super::privileges::{BPF, NET_ADMIN, PERFMON, require};
use crate::settings::burst_time;
use crate::settings::link::LinkSettings;

/// Where BPF file systems are mounted.
const BPF_FILES: &str = "/sys/fs/bpf";
const DIRECTORY: &str = "/sys/fs/bpf/shortlane";
const LINK: &str = "link";
const STATE: &str = "state";
const PREFIX: &str = "shortlane_";
const CAPABILITY: &str = "CAP_BPF";

/// A kind of qdisc that `tc` can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// Its name for `tc`.
    pub name: String,
    /// The discipline and the parameters that were given.
    pub scheduler: String,
    /// Qdiscs of it that there can be at once.
    pub instances: u64,
    /// Qdiscs of it that there are.
    pub in_use: usize,
}

/// Nobody else registers or unregisters meanwhile. The directory goes with the last kind.
struct Lock {
    _directory: Flock<File>,
}

impl Lock {
    /// Waits until no other command is at work.
    fn take() -> Result<Self, KernelError> {
        let locked = journal::lock(Path::new(DIRECTORY), 0o777);
        let failed = |error| system("locking /sys/fs/bpf/shortlane", error);
        Ok(Self { _directory: locked.map_err(failed)? })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It is not empty while a kind is registered.
        let _ = fs::remove_dir(DIRECTORY);
    }
}

/// What `tc` calls a discipline: at most 15 bytes, and a part of a C identifier.
#[must_use]
pub fn kind_name(discipline: &str) -> String {
    match discipline {
        "x-protect" => format!("{PREFIX}xprot"),
        "fq-lanes" => format!("{PREFIX}fql"),
        _ => format!("{PREFIX}{}", discipline.replace('-', "_")),
    }
}

/// Registers a discipline as a kind of qdisc that stays until [`unregister`]; gives its name.
///
/// # Errors
/// If there is no BPF file system, the name is registered already, or [`load`] fails.
pub fn register(spec: &Spec, instances: u32) -> Result<String, KernelError> {
    require("registering", &[NET_ADMIN, BPF, PERFMON])?;
    check_file_system()?;
    let _lock = Lock::take()?;
    let name = kind_name(spec.info().name);
    let directory = Path::new(DIRECTORY).join(&name);
    if directory.join(LINK).exists() {
        return Err(KernelError::Registered { name });
    }
    let params = spec.params();
    if params.has("ecn") && params.is_given("ecn") && params.flag("ecn") {
        let reason = "a qdisc that tc makes has no program beside it that marks; it takes no";
        return Err(refused(params, "ecn", reason));
    }
    let unpaced = LinkSettings { burst_time: burst_time::TC, ..LinkSettings::default() };
    let mut registered = load(&name, &compose(spec, &unpaced.into())?, instances, None)?;
    // Left by a process that was killed before it came to the link.
    remove(&directory)?;
    pin(&mut registered, &directory).inspect_err(|_| drop(remove(&directory)))?;
    Ok(name)
}

fn pin(registered: &mut Registered, directory: &Path) -> Result<(), KernelError> {
    fs::create_dir(directory).map_err(|error| system("making a directory for it", error))?;
    registered
        .state
        .pin(directory.join(STATE))
        .map_err(|error| KernelError::bpf("pinning a map", CAPABILITY, &error))?;
    registered.pin(&directory.join(LINK))
}

/// Takes a kind away. Qdiscs of it stay, and work, until they are removed.
///
/// # Errors
/// If it is not registered, or its files cannot be removed.
pub fn unregister(name: &str) -> Result<(), KernelError> {
    check_file_system()?;
    // What there is to be locked may be all that a process has left that was killed.
    let _lock = Path::new(DIRECTORY).exists().then(Lock::take).transpose()?;
    let names = names()?;
    if !names.iter().any(|known| known == name) {
        return Err(KernelError::NotRegistered { name: name.to_owned(), known: names });
    }
    remove(&Path::new(DIRECTORY).join(name))
}

/// The kinds that are registered.
///
/// # Errors
/// If there is no BPF file system, or the kernel does not let the process look at maps.
pub fn registered() -> Result<Vec<Kind>, KernelError> {
    check_file_system()?;
    let directory = Path::new(DIRECTORY);
    let whole = |name: &String| directory.join(name).join(LINK).exists();
    names()?.into_iter().filter(whole).map(|name| kind(&directory.join(&name), name)).collect()
}

fn kind(directory: &Path, name: String) -> Result<Kind, KernelError> {
    let state = MapHandle::from_pinned_path(directory.join(STATE))
        .map_err(|error| KernelError::bpf("opening the state of a kind", CAPABILITY, &error))?;
    let shared = Shared::open(state.as_fd())
        .map_err(|error| system("looking into the state of a kind", error))?;
    let (template, instances) = shared.template();
    let in_use = (0..INSTANCES).filter(|index| shared.qdisc(*index).instance.used != 0).count();
    Ok(Kind { name, scheduler: text(&template), instances, in_use })
}

fn names() -> Result<Vec<String>, KernelError> {
    let failed = |error| system("reading /sys/fs/bpf/shortlane", error);
    let entries = match fs::read_dir(DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Removes the registration first, then what tells about it.
fn remove(directory: &Path) -> Result<(), KernelError> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(system("removing the files of a kind", error))
        }
        _ => Ok(()),
    };
    for file in [LINK, STATE] {
        gone(fs::remove_file(directory.join(file)))?;
    }
    gone(fs::remove_dir(directory))
}

fn check_file_system() -> Result<(), KernelError> {
    let found = statfs(BPF_FILES).map(|found| found.filesystem_type());
    if found == Ok(BPF_FS_MAGIC) {
        return Ok(());
    }
    Err(KernelError::NoBpfFiles { path: PathBuf::from(BPF_FILES) })
}

fn system(doing: &'static str, source: io::Error) -> KernelError {
    KernelError::system(doing, "CAP_SYS_ADMIN", source)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kernel::DISCIPLINES;

    #[test]
    fn every_discipline_has_a_name_of_its_own_that_the_kernel_and_tc_take() {
        let names: BTreeSet<String> = DISCIPLINES.iter().map(|name| kind_name(name)).collect();
        assert_eq!(names.len(), DISCIPLINES.len());
        for name in &names {
            assert!(name.len() <= 15, "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{name}");
        }
    }
}
