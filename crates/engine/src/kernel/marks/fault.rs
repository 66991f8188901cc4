//! What keeps marks from working.

use netdev::clsact::{self, Owner, Point};
use netdev::tc::handle_text;

use super::queues::{Classes, join};
use crate::kernel::error::KernelError;
use crate::kernel::work::{Work, filters};

/// What keeps marks from working on a device, for `doctor`; none if nothing does, or there are
/// none.
///
/// # Errors
/// If the kernel does not tell.
pub fn fault(ifindex: u32) -> Result<Option<String>, KernelError> {
    let mut work = Work::begin()?;
    let Some(marks) = work.journal(ifindex)?.and_then(|journal| journal.marks) else {
        return Ok(None);
    };
    let Some(device) = work.devices.iter().find(|device| device.index == ifindex).cloned() else {
        return Ok(None);
    };
    let root = work.root(&device)?;
    let is_placed = clsact::is_placed(Owner::Marks, ifindex, Point::Egress);
    if !is_placed.map_err(filters)? {
        return Ok(Some("the program is gone: somebody removed its filter".into()));
    }
    let wanted = format!("{} {}", marks.kind, handle_text(marks.handle));
    let Some(root) = root.filter(|root| marks.is_in_front_of(root)) else {
        return Ok(Some(format!(
            "the root qdisc is no longer {wanted}, which the marks are for: they count for nothing"
        )));
    };
    if marks.kind == "cake" {
        let at = (device.index, device.name.as_str());
        let found = join(&mut work.tc, at, &root, None);
        let wanted = Classes { short: marks.short, long: marks.long };
        match found {
            Ok(found) if found.classes == wanted => {}
            Ok(_) => return Ok(Some("its tins have other numbers by now".into())),
            Err(error) => return Ok(Some(error.to_string())),
        }
    }
    Ok(None)
}
