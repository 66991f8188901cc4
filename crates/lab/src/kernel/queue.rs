//! A qdisc on a device, with the rate of the link.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sched::Rate;
use socket2::SockRef;

use crate::config::Bottleneck;
use crate::scheduler::{Own, Scheduler};

use super::{ours, run, tc, time_of};

/// How far a late shaper may catch up, beside one packet: a millisecond, as our engines.
pub(super) const BURST_PER_SECOND: u64 = 1000;
/// What a shaper has to be able to send at once.
const FULL_FRAME: u64 = 1514;

/// A qdisc at work. It goes with its device.
pub(super) struct Queue {
    device: String,
    scheduler: Scheduler,
    rate: Rate,
}

impl Queue {
    /// Puts a discipline at the root of a device of the calling thread's namespace, in the place of
    /// what may be there.
    pub(super) fn put_on(
        device: &str,
        scheduler: &Scheduler,
        rate: Rate,
        link: &Bottleneck,
    ) -> io::Result<Self> {
        let _ = tc(&format!("qdisc del dev {device} root"));
        match scheduler {
            Scheduler::Own(own) => own_lines("add", device, own, rate, link.ecn)?,
            Scheduler::Ours(spec) => ours::put(device, spec, rate)?,
            Scheduler::Marks(queues) => ours::put_marks(device, queues, rate)?,
            Scheduler::Script(path) => script(path, "add", device, rate)?,
        }
        Ok(Self { device: device.to_owned(), scheduler: scheduler.clone(), rate })
    }

    /// Gives it another rate while packets are queued.
    pub(super) fn change_rate(&self, rate: Rate) -> io::Result<()> {
        match &self.scheduler {
            // What is said of ECN when it is made stays.
            Scheduler::Own(own) => own_lines("change", &self.device, own, rate, false),
            Scheduler::Ours(_) => ours::change(&self.device, rate),
            Scheduler::Marks(_) => ours::change_marks(&self.device, rate),
            Scheduler::Script(path) => script(path, "change", &self.device, rate),
        }
    }

    /// Refuses what this kernel has not, in a namespace that nobody else has.
    pub(super) fn try_out(scheduler: &Scheduler, link: &Bottleneck) -> io::Result<()> {
        match scheduler {
            // They are for no loopback.
            Scheduler::Marks(queues) => ours::can_mark(queues),
            _ => Self::put_on("lo", scheduler, link.rate, link).map(drop),
        }
    }

    /// Takes off what would leave something behind.
    pub(super) fn take_off(&self) -> io::Result<()> {
        match self.scheduler {
            Scheduler::Marks(_) => ours::take_marks_off(&self.device),
            _ => Ok(()),
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
        /// What goes to Bulk, where marks have their long flows, to Video and to Voice.
        const CS1: u32 = 0x20;
        const AF41: u32 = 0x88;
        const EF: u32 = 0xb8;
        let classes: &[u32] = match &self.scheduler {
            Scheduler::Own(own) if own.has_tins() => &[0, CS1, AF41, EF],
            Scheduler::Own(own) if own.qdisc.shapes() => &[0],
            Scheduler::Marks("cake") => &[0, CS1],
            // It may have a CAKE in it.
            Scheduler::Script(_) => &[0, CS1, AF41, EF],
            _ => &[],
        };
        for class in classes {
            for _ in 0..FLOWS {
                let socket = UdpSocket::bind(("0.0.0.0", 0))?;
                SockRef::from(&socket).set_tos_v4(*class)?;
                for _ in 0..PACKETS {
                    // The other end has nobody there and may say so.
                    let _ = socket.send_to(&DATA, (to, 9));
                }
            }
        }
        let bytes = classes.len() as u64 * u64::from(FLOWS * PACKETS) * FRAME;
        Ok(time_of(bytes, self.rate))
    }
}

/// Has somebody's program add or change what it has.
fn script(path: &Path, verb: &str, device: &str, Rate(rate): Rate) -> io::Result<()> {
    run(Command::new(path).args([verb, device]).arg(rate.to_string()))
}

/// Adds or changes one of the kernel's own.
fn own_lines(verb: &str, device: &str, own: &Own, Rate(rate): Rate, ecn: bool) -> io::Result<()> {
    let words = own.words(ecn);
    if own.qdisc.shapes() {
        return tc(&format!("qdisc {verb} dev {device} root {words} bandwidth {rate}bit"));
    }
    let burst = FULL_FRAME + rate / 8 / BURST_PER_SECOND;
    // The limit is that of the queue which tbf makes until it gets its child. A change gives it to
    // a child that is a FIFO, which therefore gets its own again.
    let tbf = format!("tbf rate {rate}bit burst {burst} limit 1mb");
    tc(&format!("qdisc {verb} dev {device} root handle 1: {tbf}"))?;
    if verb == "change" && own.qdisc.kind != "pfifo" {
        return Ok(());
    }
    tc(&format!("qdisc {verb} dev {device} parent 1:1 handle 10: {words}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_script_is_told_what_to_do_and_says_why_it_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("queue.sh");
        let text =
            "#!/bin/sh\n[ $1 = add ] && exit\necho \"Error: no $*\" >&2\necho more >&2\nexit 3\n";
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        script(&path, "add", "clients", Rate(8_000)).unwrap();
        let refused = script(&path, "change", "clients", Rate(8_000)).unwrap_err();
        assert_eq!(refused.to_string(), "no change clients 8000");
    }
}
