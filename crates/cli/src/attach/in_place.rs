//! What the engines do alike when they attach.

use engine::kernel;
use engine::status::{EngineKind, Heading};
use sched::Rate;

use super::engines::by_lookup;
use super::order::Order;
use super::{daemon, detach_from};
use crate::{Failure, say};

/// What to do once something is attached.
pub(super) const NEXT: &str =
    "`shortlane show` tells how it goes, `shortlane test HOST` how long packets wait under load";

/// How fast a link is, in words.
pub(super) fn pace(rate: Rate) -> String {
    rate.limit().map_or_else(|| "the device's pace".into(), |_| rate.to_string())
}

/// What the device does in a direction, in words.
pub(super) const fn does(heading: Heading) -> &'static str {
    match heading {
        Heading::Egress => "sends",
        Heading::Ingress => "receives",
    }
}

/// Refuses a device to which something of ours is attached, and names what; with `--replace` that
/// is detached. The kernel engine replaces what is its own by itself, one direction at a time.
pub(super) fn make_way_for(order: &Order, kind: EngineKind) -> Result<(), Failure> {
    let device = &order.device;
    for (found, engine) in by_lookup() {
        if found == EngineKind::Kernel && kind == EngineKind::Kernel {
            continue;
        }
        match engine.holder(order)? {
            Some(held) if !order.replace => {
                return Err(Failure::Failed(format!(
                    "{device} has {held}; `shortlane change {device}` changes it as it runs, \
                     --replace puts a new one in its place"
                )));
            }
            Some(_) => return detach_from(device),
            None => {}
        }
    }
    Ok(())
}

/// Attaches what works inside the kernel, in both directions or in none, and stays if asked to
/// until a signal. `attach` puts a direction in place, if it is wanted, and gives what else there
/// is to know and what is there now.
pub(super) fn attach_both(
    order: &Order,
    attach: impl Fn(Heading) -> Result<Option<(Vec<String>, String)>, Failure>,
) -> Result<(), Failure> {
    let device = &order.device;
    let mut has_begun = false;
    for heading in [Heading::Egress, Heading::Ingress] {
        match attach(heading) {
            Ok(None) => {}
            Ok(Some((notes, there))) => {
                tell(&notes);
                say(&format!("{device}: {there}; {NEXT}"));
                has_begun = true;
            }
            Err(failure) => {
                if has_begun {
                    tell(&kernel::detach(device).unwrap_or_default());
                }
                return Err(failure);
            }
        }
    }
    if order.foreground {
        daemon::wait()?;
        tell(&kernel::detach(device)?);
    }
    Ok(())
}

/// What else was changed, and what could not be put back.
pub(super) fn tell(notes: &[String]) {
    notes.iter().for_each(|note| say(note));
}
