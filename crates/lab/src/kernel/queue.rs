//! A qdisc on a device, with the rate of the link.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

#[cfg(feature = "kernel")]
use engine::kernel::{self, Shaping, compose, load};
#[cfg(feature = "kernel")]
use engine::{LinkChanges, LinkSettings};
#[cfg(feature = "kernel")]
use sched::{Nanos, Spec};

use sched::Rate;

use crate::config::Bottleneck;
use crate::scheduler::{Own, Scheduler};

use super::{tc, time_of};

/// How far a late shaper may catch up, beside one packet: a millisecond, as our engines.
const BURST_PER_SECOND: u64 = 1000;
/// What a shaper has to be able to send at once.
const FULL_FRAME: u64 = 1514;

/// A qdisc at work. It goes with its device.
pub(super) struct Queue {
    device: String,
    scheduler: Scheduler,
    rate_bps: u64,
}

impl Queue {
    /// Puts a discipline at the root of a device of the calling thread's namespace, in the place of
    /// what may be there.
    pub(super) fn put_on(
        device: &str,
        scheduler: &Scheduler,
        rate_bps: u64,
        link: &Bottleneck,
    ) -> io::Result<Self> {
        let _ = tc(&format!("qdisc del dev {device} root"));
        match scheduler {
            Scheduler::Own(own) => own_lines("add", device, own, rate_bps, link.ecn)?,
            Scheduler::Ours(spec) => put_ours(device, spec, rate_bps)?,
        }
        Ok(Self { device: device.to_owned(), scheduler: scheduler.clone(), rate_bps })
    }

    /// Gives it another rate while packets are queued.
    pub(super) fn change_rate(&self, rate: Rate) -> io::Result<()> {
        match &self.scheduler {
            // What is said of ECN when it is made stays.
            Scheduler::Own(own) => own_lines("change", &self.device, own, rate.0, false),
            Scheduler::Ours(_) => change_ours(&self.device, rate),
        }
    }

    /// Uses every queue of CAKE once: one that was never used drops a packet the first time that it
    /// is over target, a fault of the kernel that no link shows which has run for an hour. Tells
    /// how long the packets take to leave.
    pub(super) fn warm_up(&self, to: IpAddr) -> io::Result<Duration> {
        /// Nine of ten of 1,024 queues get one.
        const FLOWS: u32 = 2_500;
        /// One enters CoDel's dropping state, one is dropped.
        const PACKETS: u32 = 4;
        const DATA: [u8; 20] = [0; 20];
        const FRAME: u64 = 14 + 28 + DATA.len() as u64;
        if !matches!(&self.scheduler, Scheduler::Own(own) if own.qdisc.shapes()) {
            return Ok(Duration::ZERO);
        }
        for _ in 0..FLOWS {
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            for _ in 0..PACKETS {
                // The other end has nobody there and may say so.
                let _ = socket.send_to(&DATA, (to, 9));
            }
        }
        Ok(time_of(u64::from(FLOWS * PACKETS) * FRAME, self.rate_bps))
    }
}

/// Adds or changes one of the kernel's own.
fn own_lines(verb: &str, device: &str, own: &Own, rate_bps: u64, ecn: bool) -> io::Result<()> {
    let words = own.words(ecn);
    if own.qdisc.shapes() {
        return tc(&format!("qdisc {verb} dev {device} root {words} bandwidth {rate_bps}bit"));
    }
    let burst = FULL_FRAME + rate_bps / 8 / BURST_PER_SECOND;
    // The limit is that of the queue which tbf makes until it gets its child. A change gives it to
    // a child that is a FIFO, which therefore gets its own again.
    let tbf = format!("tbf rate {rate_bps}bit burst {burst} limit 1mb");
    tc(&format!("qdisc {verb} dev {device} root handle 1: {tbf}"))?;
    if verb == "change" && own.qdisc.kind != "pfifo" {
        return Ok(());
    }
    tc(&format!("qdisc {verb} dev {device} parent 1:1 handle 10: {words}"))
}

#[cfg(feature = "kernel")]
fn link(rate_bps: u64) -> LinkSettings {
    let burst_time = Nanos(1_000_000_000 / BURST_PER_SECOND);
    LinkSettings { rate: Rate(rate_bps), burst_time, ..LinkSettings::default() }
}

#[cfg(feature = "kernel")]
fn put_ours(device: &str, spec: &Spec, rate_bps: u64) -> io::Result<()> {
    use std::sync::atomic::{AtomicU32, Ordering};
    // The kernel has one list of names for all namespaces, and takes 15 bytes.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed) % 100_000;
    let name = format!("sl{:x}_{number}", std::process::id());
    let failed = |error: kernel::KernelError| io::Error::other(error.to_string());
    let composition =
        compose(spec, &Shaping { link: link(rate_bps), link_header: 14 }).map_err(failed)?;
    // The qdisc itself keeps its programs; their name is free again when this goes.
    let _registered = load(&name, &composition, 1, None).map_err(failed)?;
    tc(&format!("qdisc add dev {device} root {name}"))
}

#[cfg(feature = "kernel")]
fn change_ours(device: &str, rate: Rate) -> io::Result<()> {
    let changes = LinkChanges { rate: Some(rate), ..LinkChanges::default() };
    let changed = kernel::change(device, changes, None);
    changed.map(drop).map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(not(feature = "kernel"))]
fn put_ours(_: &str, _: &sched::Spec, _: u64) -> io::Result<()> {
    Err(io::Error::other("this program was built without the kernel engine"))
}

#[cfg(not(feature = "kernel"))]
fn change_ours(_: &str, _: Rate) -> io::Result<()> {
    Err(io::Error::other("this program was built without the kernel engine"))
}

/// Whether this kernel takes this discipline of ours.
#[cfg(feature = "kernel")]
pub(crate) fn can(spec: &Spec) -> Result<(), String> {
    kernel::can(spec, link(1_000_000)).map_err(|error| error.to_string())
}
