//! What the engines do alike when they attach.

use super::engines::by_lookup;
use super::follower::Follow;
use super::goal::Goal;
use super::order::Order;
use super::probe::Probe;
use super::{daemon, detach_from};
use crate::{Call, Failure, say};
use engine::control::Changes;
use engine::kernel::{self, KernelError};
use engine::status::{EngineKind, Heading};
use netdev::capabilities::{FIND, NET_RAW, lacking};

/// What to do once something is attached.
pub(super) const NEXT: &str =
    "`shortlane show` tells how it goes, `shortlane test HOST` how long packets wait under load";

/// How fast a direction is to be, in words, if it is to be attached.
pub(super) fn at(order: &Order, heading: Heading) -> Option<String> {
    Some(match order.goal(heading)? {
        Goal::Fixed(rate) if rate.is_unlimited() => "the device's pace".into(),
        goal => goal.to_string(),
    })
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
    kind: EngineKind,
    probe: Option<&Probe>,
    call: &Call,
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
    for heading in [Heading::Egress, Heading::Ingress] {
        kernel::note_following(device, heading, order.follow(heading))?;
    }
    let follow = probe.map(|probe| Follow::of(order, kind, probe));
    tell_probe(order, probe);
    let done = match (follow, order.foreground) {
        (Some(follow), true) => follow.stay(call),
        (Some(follow), false) => follow.start(call),
        (None, true) => daemon::wait(),
        (None, false) => Ok(()),
    };
    if order.foreground || done.is_err() {
        take_off(device)?;
    }
    done
}

/// Takes queues off at the end of a process beside them. Who has ended it may do so at the same
/// time: then there is nothing left to do.
pub(super) fn take_off(device: &str) -> Result<(), Failure> {
    match kernel::detach(device) {
        Err(KernelError::NotAttached { .. }) => Ok(()),
        detached => {
            tell(&detached?);
            Ok(())
        }
    }
}

/// What a process beside queues in the kernel lacks to have their rates follow the link, if they are to.
pub(super) fn follower_lacks(order: &Order) -> Option<String> {
    let lacking = order.follows().then(|| lacking(&[NET_RAW, FIND])).flatten()?;
    Some(format!("following the link beside a queue in the kernel takes {lacking}"))
}

/// Whom rates go by that follow the link beside queues in the kernel.
pub(super) fn follower_probe(order: &Order) -> Result<Option<Probe>, Failure> {
    match follower_lacks(order) {
        Some(text) => Err(Failure::Failed(format!("{}: {text}", order.device))),
        None => order.chosen_probe(),
    }
}

/// Says whom rates that follow the link go by.
pub(super) fn tell_probe(order: &Order, probe: Option<&Probe>) {
    if let Some(probe) = probe {
        let dry = if order.dry_run { "a dry run, the rate stays at its base; " } else { "" };
        say(&format!("{}: {dry}{probe}", order.device));
    }
}

/// A rate that was set by hand does not follow the link any more.
pub(super) fn note_fixed(device: &str, changes: &Changes) -> Result<(), Failure> {
    for heading in [Heading::Egress, Heading::Ingress] {
        if changes.link(heading).rate.is_some() {
            kernel::note_following(device, heading, None)?;
        }
    }
    Ok(())
}

/// What else was changed, and what could not be put back.
pub(super) fn tell(notes: &[String]) {
    notes.iter().for_each(|note| say(note));
}
