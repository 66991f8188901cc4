//! What every command works with: the devices, the journals, and how a device is left as it was.

use std::io;

use netdev::clsact::{self, Owner};
use netdev::device::Device;
use netdev::netlink::Refusal;
use netdev::root_qdisc::Former;
use netdev::tc::{Qdisc, TrafficControl, handle_text};

use super::ecn;
use super::error::KernelError;
use super::journal::{Journal, Journals};
use super::offloads::Switched;

/// What a command works with: nobody else does until it is done.
pub(super) struct Work {
    pub(super) devices: Vec<Device>,
    pub(super) journals: Journals,
    pub(super) tc: TrafficControl,
}

impl Work {
    pub(super) fn begin() -> Result<Self, KernelError> {
        let journals = Journals::lock().map_err(journal)?;
        let devices = all_devices()?;
        let tc = traffic_control()?;
        Ok(Self { devices, journals, tc })
    }

    pub(super) fn root(&mut self, device: &Device) -> Result<Option<Qdisc>, KernelError> {
        self.tc.root(device.index).map_err(on(&device.name, "reading its root qdisc"))
    }

    pub(super) fn qdiscs(&mut self, device: &Device) -> Result<Vec<Qdisc>, KernelError> {
        self.tc.qdiscs(device.index).map_err(on(&device.name, "reading its qdiscs"))
    }

    pub(super) fn journal(&self, ifindex: u32) -> Result<Option<Journal>, KernelError> {
        let all = self.journals.all().map_err(journal)?;
        Ok(all.into_iter().find(|journal| journal.ifindex == ifindex))
    }

    /// What is switched for other devices.
    pub(super) fn others(&self, ifindex: u32) -> Result<Vec<Switched>, KernelError> {
        let all = self.journals.all().map_err(journal)?;
        let others = all.into_iter().filter(|journal| journal.ifindex != ifindex);
        Ok(others.map(|journal| journal.offloads).collect())
    }

    /// Puts back what commands that were killed, or qdiscs that somebody else removed, have left
    /// changed. Tells which devices that was for, and what was done.
    pub(super) fn tidy_up(&mut self) -> Result<Vec<(String, String)>, KernelError> {
        let mut done = Vec::new();
        for journal in self.journals.all().map_err(journal)? {
            let device = self.devices.iter().find(|device| device.index == journal.ifindex);
            let attached = match device.cloned() {
                Some(device) => {
                    let qdiscs = self.qdiscs(&device)?;
                    journal.is_attached(&qdiscs).map_err(filters)?
                }
                None => false,
            };
            if !attached {
                let notes = self.restore(&journal)?;
                let what = "put back what an attachment that has ended had changed";
                done.push((journal.device.clone(), format!("{}: {what}", journal.device)));
                done.extend(notes.into_iter().map(|note| (journal.device.clone(), note)));
            }
        }
        Ok(done)
    }

    /// Leaves a device as its journal says that it was, and forgets the journal.
    pub(super) fn restore(&mut self, journal: &Journal) -> Result<Vec<String>, KernelError> {
        let device = self.devices.iter().find(|device| device.index == journal.ifindex).cloned();
        if let (Some(_), Some(marks)) = (&device, &journal.marks) {
            clsact::tidy_up(Owner::Marks, journal.ifindex).map_err(filters)?;
            if !marks.had_clsact {
                // Also if somebody has removed the filter.
                clsact::remove_unused(journal.ifindex).map_err(filters)?;
            }
        }
        if device.is_some() {
            ecn::remove(journal)?;
        }
        let notes = match &device {
            Some(device) if !journal.marks.as_ref().is_some_and(|marks| marks.joined) => {
                self.restore_root(journal, device)?
            }
            _ => Vec::new(),
        };
        let others = self.others(journal.ifindex)?;
        let kept: Vec<&Switched> = others.iter().collect();
        journal.offloads.restore(journal.ifindex, &self.devices, &kept)?;
        self.journals.remove(journal.ifindex).map_err(self::journal)?;
        Ok(notes)
    }

    fn restore_root(
        &mut self,
        journal: &Journal,
        device: &Device,
    ) -> Result<Vec<String>, KernelError> {
        let root = self.root(device)?;
        let ours = root.as_ref().is_some_and(|root| journal.has_put(root));
        if root.is_some_and(|root| root.is_configured()) && !ours {
            // Somebody has put another one there meanwhile, or it never went.
            return Ok(Vec::new());
        }
        let mut notes = Vec::new();
        let not_back = |former: &Former, why: &str| {
            format!("{}: {} is not put back: {why}", device.name, former.name())
        };
        match &journal.former {
            Some(former) if former.lost.is_none() => {
                match former.restore(&mut self.tc, device.index) {
                    Ok(()) => return Ok(notes),
                    Err(refusal) => notes.push(not_back(former, &refusal.to_string())),
                }
            }
            Some(former) => {
                let lost = former.lost.as_deref().unwrap_or_default();
                notes.push(not_back(former, &format!("{lost} would be missing")));
            }
            None => {}
        }
        if ours {
            self.tc.delete_root(device.index).map_err(on(&device.name, "removing the qdisc"))?;
        }
        Ok(notes)
    }
}

/// A handle that no qdisc of the device has, nor the `more` behind it. With a handle of its own a
/// qdisc takes the place even of another one of its kind.
pub(super) fn free_handle(work: &mut Work, device: &Device, more: u32) -> Result<u32, KernelError> {
    let taken = work.qdiscs(device)?;
    let is_free = |major: &u32| {
        let wanted = *major..=*major + more;
        taken.iter().all(|qdisc| !wanted.contains(&(qdisc.handle >> 16)))
    };
    const FIRST: u32 = 0x8001;
    Ok((FIRST..=0xfff0).find(is_free).unwrap_or_default() << 16)
}

/// Refuses to take the place of a root qdisc that somebody configured.
pub(super) fn refuse_configured(device: &str, former: Option<&Former>) -> Result<(), KernelError> {
    let Some(former) = former else { return Ok(()) };
    let (found, lost) = (former.name(), former.lost.clone());
    Err(KernelError::Configured { device: device.to_owned(), found, lost })
}

/// What else there is to know about a device that something is attached to now.
pub(super) fn caveats(device: &Device, journal: &Journal, works: &str) -> Vec<String> {
    let name = &device.name;
    let lost = journal.former.as_ref().and_then(|former| former.lost.as_ref());
    let lost = lost.map(|lost| {
        format!("{name}: detach will not put back the former root qdisc: {lost} would be missing")
    });
    let down = (!device.up).then(|| format!("{name} is down; {works} once it is up"));
    lost.into_iter().chain(down).collect()
}

/// The devices of the current network namespace.
pub(super) fn all_devices() -> Result<Vec<Device>, KernelError> {
    Device::all().map_err(on("all devices", "listing them"))
}

/// A connection to the kernel about qdiscs.
pub(super) fn traffic_control() -> Result<TrafficControl, KernelError> {
    TrafficControl::open()
        .map_err(|source| KernelError::System { doing: "opening a netlink socket", source })
}

pub(super) fn find_device<'a>(
    devices: &'a [Device],
    name: &str,
) -> Result<&'a Device, KernelError> {
    devices.iter().find(|device| device.name == name).ok_or_else(|| KernelError::NoDevice {
        found: name.to_owned(),
        there: devices.iter().map(|device| device.name.clone()).collect(),
    })
}

pub(super) fn not_attached(tc: &mut TrafficControl, device: &Device) -> KernelError {
    match tc.root(device.index) {
        Ok(root) => KernelError::NotAttached {
            device: device.name.clone(),
            found: root.map_or_else(|| "none yet".into(), |root| describe(&root)),
        },
        Err(refusal) => on(&device.name, "reading its root qdisc")(refusal),
    }
}

pub(super) fn describe(qdisc: &Qdisc) -> String {
    match qdisc.is_configured() {
        true => format!("{} {}", qdisc.kind, handle_text(qdisc.handle)),
        false => format!("{}, the kernel's default", qdisc.kind),
    }
}

/// What the kernel's refusal was about.
pub(super) fn on(device: &str, doing: &'static str) -> impl FnOnce(Refusal) -> KernelError {
    let device = device.to_owned();
    move |refusal| match refusal.number() {
        Some(libc::EPERM) => {
            KernelError::NoPermission { doing, capability: "CAP_NET_ADMIN".into() }
        }
        _ => KernelError::TrafficControl { device, doing, said: refusal.to_string() },
    }
}

pub(super) fn journal(source: io::Error) -> KernelError {
    KernelError::Journal { source }
}

pub(super) fn filters(source: io::Error) -> KernelError {
    KernelError::System { doing: "the filters of a device", source }
}
