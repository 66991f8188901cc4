//! Changing what is attached while packets are queued.

use netdev::device::Device;
use netdev::tc::handle_text;

use super::RATES;
use super::program::Placed;

use crate::kernel::error::KernelError;
use crate::kernel::ingress::ifb_of;
use crate::kernel::journal::Journal;
use crate::kernel::privileges::{FIND, NET_ADMIN, require};
use crate::kernel::work::{Work, find_device, journal, not_attached};
use crate::settings::link::LinkChanges;

/// Changes what is attached to a device, and to the ifb of what it receives, while packets are
/// queued: the first changes are for what it sends, the others for what it receives.
///
/// # Errors
/// If a direction that is to change is not attached, or the kernel refuses.
pub fn change(name: &str, sent: LinkChanges, received: LinkChanges) -> Result<(), KernelError> {
    require("changing marks", &[NET_ADMIN, FIND])?;
    let mut work = Work::begin()?;
    let device = find_device(&work.devices, name)?.clone();
    let ifb = ifb_of(&work.devices, &device).cloned();
    let mut all = Vec::new();
    for (device, changes) in [(Some(&device), sent), (ifb.as_ref(), received)] {
        let found = match device {
            Some(device) => work.journal(device.index)?.zip(Some(device.clone())),
            None => None,
        };
        match found {
            Some((journal, device)) if journal.marks.is_some() => {
                all.push(checked(device, journal, changes)?);
            }
            _ if changes.rate.is_some() => {
                return match device {
                    Some(device) => Err(not_attached(&mut work.tc, device)),
                    None => Err(KernelError::Marks(format!(
                        "{name}: what it receives is not attached; `shortlane attach {name} \
                         --ingress RATE` attaches it"
                    ))),
                };
            }
            _ => {}
        }
    }
    for (device, journal) in &all {
        let Some(marks) = &journal.marks else { continue };
        if let Some(queues) = marks.queues {
            let at = (device.index, device.name.as_str());
            queues.change(&mut work.tc, at, marks.handle, &marks.link())?;
        }
        if let Some(placed) = Placed::find(device.index)? {
            placed.configure(marks.config())?;
        }
        work.journals.write(journal).map_err(self::journal)?;
    }
    Ok(())
}

/// A device with the journal that it has after a change, as far as that can be checked before.
fn checked(
    device: Device,
    mut journal: Journal,
    changes: LinkChanges,
) -> Result<(Device, Journal), KernelError> {
    if let Some(marks) = &mut journal.marks {
        if marks.joined && (changes.overhead.is_some() || changes.burst_time.is_some()) {
            return Err(KernelError::Marks(format!(
                "{}: the queues are somebody's, {} {}; tc changes their overhead and burst",
                device.name,
                marks.kind,
                handle_text(marks.handle)
            )));
        }
        marks.link = marks.link.with(changes);
        if !RATES.contains(&marks.link.rate) {
            let text = format!("{}: marks are for rates of 8kbit to 1tbit", device.name);
            return Err(KernelError::Marks(text));
        }
        if let Some(queues) = marks.queues {
            queues.check(&marks.link())?;
        }
    }
    Ok((device, journal))
}
