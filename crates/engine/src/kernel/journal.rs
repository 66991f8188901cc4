//! What an attached device was like before, on disk before anything is changed.
//!
//! So that whatever kills the command, at any step, the next one can put everything back. One
//! file for each device, and one lock for all of them, since devices share what is changed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use netdev::clsact::{self, Owner, Point};
use netdev::netns;
use netdev::root_qdisc::Former;
use netdev::tc::Qdisc;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::is_ours;
use super::marks::Marked;
use super::offloads::Switched;
use super::queues::PerQueue;

/// Where journals are, in a file system that does not outlive the boot.
pub const DIRECTORY: &str = "/run/shortlane";

/// What a device was like before it was attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The namespace, beyond the reuse of its inode number; and the boot, beyond its cookie's.
    namespace: u64,
    boot: String,
    pub(super) ifindex: u32,
    pub(super) device: String,
    /// The root qdisc that somebody had configured.
    pub(super) former: Option<Former>,
    /// What was put there for each transmit queue, if it was.
    #[serde(default)]
    pub(super) per_queue: Option<PerQueue>,
    /// Whether offloads are left alone.
    pub(super) keep_offloads: bool,
    pub(super) offloads: Switched,
    /// What marks are for, if it is attached by marks.
    #[serde(default)]
    pub(super) marks: Option<Marked>,
    /// Whether a clsact was there before the program that marks for a qdisc, if there is to be one.
    #[serde(default)]
    pub(super) marker_had_clsact: Option<bool>,
    /// The rate that was asked for, if it is to follow the link.
    #[serde(default)]
    pub(super) follows: Option<String>,
}

impl Journal {
    /// Whether a root qdisc is one that was put there when the device was attached.
    pub(super) fn has_put(&self, root: &Qdisc) -> bool {
        match &self.marks {
            Some(marks) => !marks.joined && marks.is_in_front_of(root),
            None => is_ours(root) || self.per_queue.is_some_and(|queues| queues.is_root(root)),
        }
    }

    /// Whether the device still is attached, with these qdiscs.
    pub(super) fn is_attached(&self, qdiscs: &[Qdisc]) -> io::Result<bool> {
        let root = qdiscs.iter().find(|qdisc| qdisc.is_root());
        let is_put = root.is_some_and(|root| self.has_put(root));
        match &self.marks {
            Some(marks) if marks.joined => {
                clsact::is_placed(Owner::Marks, self.ifindex, Point::Egress)
            }
            _ => Ok(match self.per_queue.filter(|_| !root.is_some_and(is_ours)) {
                Some(queues) => is_put && queues.is_whole(qdiscs),
                None => is_put,
            }),
        }
    }
}

/// The journals of the current network namespace, and nobody else working with them.
pub(super) struct Journals {
    directory: PathBuf,
    inode: u64,
    cookie: u64,
    boot: String,
    _lock: Flock<File>,
}

impl Journals {
    /// Waits until no other command is at work.
    pub(super) fn lock() -> io::Result<Self> {
        Self::lock_in(Path::new(DIRECTORY))
    }

    fn lock_in(directory: &Path) -> io::Result<Self> {
        let journals = Self {
            directory: directory.to_owned(),
            inode: fs::metadata("/proc/thread-self/ns/net")?.ino(),
            cookie: netns::cookie()?,
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
            _lock: lock(directory, 0o700)?,
        };
        journals.clear_out()?;
        Ok(journals)
    }

    /// A journal of a device of this namespace that nothing has been done to.
    pub(super) fn begin(&self, ifindex: u32, device: &str) -> Journal {
        Journal {
            namespace: self.cookie,
            boot: self.boot.clone(),
            ifindex,
            device: device.to_owned(),
            former: None,
            per_queue: None,
            keep_offloads: false,
            offloads: Switched::default(),
            marks: None,
            marker_had_clsact: None,
            follows: None,
        }
    }

    /// All journals of this namespace.
    pub(super) fn all(&self) -> io::Result<Vec<Journal>> {
        let mut found = Vec::new();
        for (path, inode) in files(&self.directory)? {
            if inode == self.inode {
                found.extend(self.read(&path)?);
            }
        }
        found.sort_by_key(|journal| journal.ifindex);
        Ok(found)
    }

    /// Puts a journal on disk, in one piece or not at all.
    pub(super) fn write(&self, journal: &Journal) -> io::Result<()> {
        let path = self.path(journal.ifindex);
        let new = path.with_extension("new");
        let options =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
        let mut file = options.open(&new)?;
        file.write_all(serde_json::to_string(journal)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(new, path)
    }

    /// Forgets a device.
    pub(super) fn remove(&self, ifindex: u32) -> io::Result<()> {
        remove(&self.path(ifindex))
    }

    fn path(&self, ifindex: u32) -> PathBuf {
        self.directory.join(format!("{}-{ifindex}.json", self.inode))
    }

    /// `None` if it is of another namespace that had this one's number, or of another boot.
    fn read(&self, path: &Path) -> io::Result<Option<Journal>> {
        let bad = |error| {
            let text = format!("{}: {error}; remove it, and look after the device", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let journal: Journal = serde_json::from_slice(&fs::read(path)?).map_err(bad)?;
        let ours = journal.namespace == self.cookie && journal.boot == self.boot;
        Ok(ours.then_some(journal))
    }

    /// Removes what was not finished, and journals of namespaces that are no more.
    fn clear_out(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "new") {
                remove(&path)?;
            }
        }
        for (path, inode) in files(&self.directory)? {
            let stale = match inode == self.inode {
                true => self.read(&path)?.is_none(),
                false => !is_in_use(inode),
            };
            if stale {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// The directory goes with the last journal.
impl Drop for Journals {
    fn drop(&mut self) {
        // It is not empty while a device is attached.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Locks the directory, making it with this mode if there is none.
pub(super) fn lock(directory: &Path, mode: u32) -> io::Result<Flock<File>> {
    loop {
        match DirBuilder::new().mode(mode).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let opened = match File::open(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        let inode = opened.metadata()?.ino();
        let locked = Flock::lock(opened, FlockArg::LockExclusive).map_err(|(_, error)| error)?;
        // Whoever had it may have removed it.
        if fs::metadata(directory).is_ok_and(|found| found.ino() == inode) {
            return Ok(locked);
        }
    }
}

/// The journals, and the inode numbers of their namespaces.
fn files(directory: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let numbers = name.strip_suffix(".json").and_then(|name| name.split_once('-'));
        let inode = numbers.and_then(|(inode, _)| inode.parse().ok());
        found.extend(inode.map(|inode| (path, inode)));
    }
    Ok(found)
}

/// Whether a process is in this network namespace, or a mount keeps it.
fn is_in_use(inode: u64) -> bool {
    let name = format!("net:[{inode}]");
    let mounted = fs::read_to_string("/proc/self/mountinfo").is_ok_and(|all| all.contains(&name));
    let is_there = |process: fs::DirEntry| {
        fs::read_link(process.path().join("ns/net")).is_ok_and(|link| link == Path::new(&name))
    };
    mounted || fs::read_dir("/proc").is_ok_and(|all| all.flatten().any(is_there))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
