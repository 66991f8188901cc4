//! Programs that lead the packets of a device through the engine, and past it when it stalls.

use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use netdev::clsact::{Clsact, Filter, Point};
use netdev::tcx;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use sched::Nanos;

use super::skeleton::HookSkelBuilder;
use super::skeleton::types::{sl_pulse, sl_pulses};
use crate::datapath::report::Tally;

/// A heartbeat that is older than this counts for nothing.
pub(super) const PATIENCE: Nanos = Nanos::from_millis(50);

/// How programs are put on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookKind {
    /// By a TCX link where the kernel has it (Linux 6.6), else by clsact.
    #[default]
    Auto,
    /// By a TCX link, which goes with the process.
    Tcx,
    /// By a filter of a clsact qdisc, which stays if the process is killed, but lets every packet
    /// pass; the next engine on the device removes it.
    Clsact,
}

/// What the programs need to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Of the socket that sends what leaves.
    pub(super) cookie: u64,
    /// A number that nobody can guess.
    pub(super) token: u32,
    pub(super) device: u32,
    /// The TAPs, 0 where there is none.
    pub(super) egress_tap: u32,
    pub(super) ingress_tap: u32,
    pub(super) only_ip: bool,
}

/// The programs, loaded.
pub(super) struct Programs {
    /// For the device's egress.
    pub(super) out: OwnedFd,
    /// For the device's ingress.
    pub(super) arrive: OwnedFd,
    /// For the ingress of the TAP of arriving packets.
    pub(super) back: OwnedFd,
    /// For TAPs: which packets they take.
    pub(super) only: OwnedFd,
    pulses: Arc<Words>,
}

impl Programs {
    pub(super) fn load(facts: &Facts) -> io::Result<Self> {
        // What it cannot do is told by its errors.
        libbpf_rs::set_print(None);
        let mut storage = MaybeUninit::uninit();
        let mut open = HookSkelBuilder::default().open(&mut storage).map_err(system)?;
        if let Some(rodata) = &mut open.maps.rodata_data {
            let hook = &mut rodata.hook;
            hook.cookie = facts.cookie;
            hook.patience = PATIENCE.0;
            hook.token = facts.token;
            hook.device = facts.device;
            hook.egress_tap = facts.egress_tap;
            hook.ingress_tap = facts.ingress_tap;
            hook.only_ip = facts.only_ip.into();
        }
        let loaded = open.load().map_err(system)?;
        let own = |program: BorrowedFd<'_>| program.try_clone_to_owned();
        let programs = &loaded.progs;
        Ok(Self {
            out: own(programs.shortlane_out.as_fd())?,
            arrive: own(programs.shortlane_in.as_fd())?,
            back: own(programs.shortlane_back.as_fd())?,
            only: own(programs.shortlane_only.as_fd())?,
            pulses: Arc::new(Words::open(loaded.maps.sl_pulses.as_fd(), PULSE_WORDS)?),
        })
    }

    pub(super) fn pulse(&self, of: Point) -> Pulse {
        Pulse { pulses: Arc::clone(&self.pulses), of }
    }
}

/// What libbpf could not do, by the kernel's error number if there is one.
pub(super) fn system(error: libbpf_rs::Error) -> io::Error {
    io::Error::new(error.kind().into_io(), format!("{error:#}"))
}

/// The kind of an error, for the standard library.
trait IntoIo {
    fn into_io(self) -> io::ErrorKind;
}

impl IntoIo for libbpf_rs::ErrorKind {
    fn into_io(self) -> io::ErrorKind {
        match self {
            Self::PermissionDenied => io::ErrorKind::PermissionDenied,
            Self::OutOfMemory => io::ErrorKind::OutOfMemory,
            _ => io::ErrorKind::Other,
        }
    }
}

/// A program on a device, until this is dropped.
pub(super) enum Attached {
    /// Closing it takes the program off, and no packet is in it any more after that.
    Link(#[expect(dead_code, reason = "held")] OwnedFd),
    Filter(#[expect(dead_code, reason = "held")] Filter),
}

/// Puts programs on a device, in front of those that are there.
pub(super) struct Placer {
    device: u32,
    kind: HookKind,
    clsact: Option<Arc<Clsact>>,
}

impl Placer {
    pub(super) fn new(device: u32, kind: HookKind) -> Self {
        Self { device, kind, clsact: None }
    }

    pub(super) fn place(&mut self, program: &OwnedFd, at: Point) -> io::Result<Attached> {
        if self.kind != HookKind::Clsact && self.clsact.is_none() {
            match tcx::link(self.device, program, at) {
                Ok(link) => return Ok(Attached::Link(link)),
                // A kernel that knows no TCX links.
                Err(error)
                    if self.kind == HookKind::Auto
                        && error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(error) => return Err(error),
            }
        }
        let clsact = match &self.clsact {
            Some(clsact) => clsact,
            None => self.clsact.insert(Arc::new(Clsact::on(self.device)?)),
        };
        Filter::place(clsact, program, at).map(Attached::Filter)
    }
}

/// What both directions tell the programs.
const PULSE_WORDS: usize = size_of::<sl_pulses>() / size_of::<u64>();

/// Memory that programs and the engine share: the value of an array of one.
pub(super) struct Words {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: only atomic operations reach it.
unsafe impl Send for Words {}
// SAFETY: threads that share it meet only in atomic operations.
unsafe impl Sync for Words {}

impl Words {
    pub(super) fn open(map: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        let length =
            NonZeroUsize::new(count * size_of::<u64>()).ok_or(io::ErrorKind::InvalidData)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, of which nobody else in the process knows.
        let start = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, map, 0)? };
        Ok(Self { start: start.cast(), count })
    }

    #[inline]
    pub(super) fn at(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.count, "word {index} of {}", self.count);
        // SAFETY: within the mapping, which lives as long as `self`, and aligned.
        unsafe { self.start.add(index).as_ref() }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: what `open` mapped, and nothing points into it any more.
        let _ = unsafe { munmap(self.start.cast(), self.count * size_of::<u64>()) };
    }
}

/// The heartbeat of a direction.
pub(super) struct Pulse {
    pulses: Arc<Words>,
    of: Point,
}

impl Pulse {
    /// The direction is alive. Before the first beat every packet passes.
    #[inline]
    pub(super) fn beat(&self, now: Nanos) {
        self.word(offset_of!(sl_pulse, heartbeat)).store(now.0, Ordering::Relaxed);
    }

    /// From now on every packet passes, as before the first beat.
    pub(super) fn rest(&self) {
        self.beat(Nanos::ZERO);
    }

    /// Packets that have passed since the heartbeat was too old.
    pub(super) fn passed(&self) -> Tally {
        let word = |field| self.word(field).load(Ordering::Relaxed);
        Tally {
            packets: word(offset_of!(sl_pulse, passed)),
            bytes: word(offset_of!(sl_pulse, passed_bytes)),
        }
    }

    fn word(&self, field: usize) -> &AtomicU64 {
        let pulse = match self.of {
            Point::Egress => offset_of!(sl_pulses, egress),
            Point::Ingress => offset_of!(sl_pulses, ingress),
        };
        self.pulses.at((pulse + field) / size_of::<u64>())
    }
}
