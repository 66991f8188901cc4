//! The program that marks for a qdisc, and looks up clients behind NAT: at the egress of its device,
//! just in front of it.
//!
//! It is of the same load as the qdisc, with which it shares what flows are owed. It is a filter of
//! a `clsact`, which outlives the command; where it is gone the qdisc drops instead of marking.

use std::io;

use netdev::clsact::{self, Clsact, Owner, Point};

use super::error::KernelError;
use super::journal::Journal;
use super::load::Registered;
use super::work::{all_devices, filters, find_device};

impl Registered {
    /// Puts the program that the qdisc needs in front of it on its device, if it needs one.
    ///
    /// # Errors
    /// If there is no such device, or the kernel refuses.
    pub fn mark_on(&self, device: &str) -> Result<(), KernelError> {
        let Some(program) = &self.marker else { return Ok(()) };
        let devices = all_devices()?;
        Clsact::on(find_device(&devices, device)?.index)
            .and_then(|clsact| clsact.add(Owner::Ecn, program, Point::Egress))
            .map_err(filters)
    }
}

/// Whether a device has it.
pub(super) fn is_placed(ifindex: u32) -> io::Result<bool> {
    clsact::is_placed(Owner::Ecn, ifindex, Point::Egress)
}

/// Takes it from a device, with the clsact that was made for it.
pub(super) fn remove(journal: &Journal) -> Result<(), KernelError> {
    clsact::tidy_up(Owner::Ecn, journal.ifindex).map_err(filters)?;
    if journal.marker_had_clsact == Some(false) {
        // Also if somebody has removed the filter.
        clsact::remove_unused(journal.ifindex).map_err(filters)?;
    }
    Ok(())
}
