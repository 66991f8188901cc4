//! Which rates are to follow the link, as the journals have it.

use super::error::KernelError;
use super::ingress::ifb_of;
use super::work::{Work, find_device, journal};
use crate::status::Heading;

/// Notes the rate that was asked for, of a direction whose rate is to follow the link; or that it is
/// not to, any more.
///
/// # Errors
/// If there is no such device, or its journal cannot be written.
pub fn note_following(
    name: &str,
    heading: Heading,
    asked: Option<String>,
) -> Result<(), KernelError> {
    let work = Work::begin()?;
    let device = find_device(&work.devices, name)?;
    let device = match heading {
        Heading::Egress => Some(device),
        Heading::Ingress => ifb_of(&work.devices, device),
    };
    let Some(device) = device else { return Ok(()) };
    match work.journal(device.index)? {
        Some(mut known) if known.follows != asked => {
            known.follows = asked;
            work.journals.write(&known).map_err(journal)
        }
        _ => Ok(()),
    }
}
