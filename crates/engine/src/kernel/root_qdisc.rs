//! The root qdisc that was there before, and putting it back.

use serde::{Deserialize, Serialize};

use crate::netlink::Refusal;
use crate::netns::Namespace;

use super::traffic_control::{Class, Qdisc, TrafficControl, handle_text};

/// A root qdisc that somebody configured, as far as it can be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Former {
    kind: String,
    handle: u32,
    options: Option<Vec<u8>>,
    /// What putting it back would not bring back; then the kernel's default takes its place.
    pub(super) lost: Option<String>,
}

impl Former {
    /// What is at the root of a device now; `None` if that is the kernel's own choice.
    pub(super) fn of(tc: &mut TrafficControl, ifindex: u32) -> Result<Option<Self>, Refusal> {
        let qdiscs = tc.qdiscs(ifindex)?;
        let Some(root) = qdiscs.iter().find(|qdisc| qdisc.is_root() && qdisc.is_configured())
        else {
            return Ok(None);
        };
        let lost = what_would_be_lost(tc, ifindex, root, &qdiscs)?;
        Ok(Some(Self {
            kind: root.kind.clone(),
            handle: root.handle,
            options: root.options.clone(),
            lost,
        }))
    }

    /// Puts it back at the root, in the place of whatever is there.
    pub(super) fn restore(&self, tc: &mut TrafficControl, ifindex: u32) -> Result<(), Refusal> {
        tc.replace_root(ifindex, &self.kind, self.handle, self.options.as_deref())
    }

    /// By kind and handle.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.kind, handle_text(self.handle))
    }
}

/// What of a root qdisc its kind and its options do not bring back.
fn what_would_be_lost(
    tc: &mut TrafficControl,
    ifindex: u32,
    root: &Qdisc,
    qdiscs: &[Qdisc],
) -> Result<Option<String>, Refusal> {
    let below = |qdisc: &&Qdisc| qdisc.is_configured() && qdisc.parent >> 16 == root.handle >> 16;
    if let Some(child) = qdiscs.iter().filter(|qdisc| !qdisc.is_root()).find(below) {
        return Ok(Some(format!("its child {} {}", child.kind, handle_text(child.handle))));
    }
    if tc.has_filters(ifindex, root.handle)? {
        return Ok(Some("its filters".into()));
    }
    if root.size_table {
        return Ok(Some("its size table".into()));
    }
    let classes = tc.classes(ifindex)?;
    let rehearsed = rehearse(root);
    let made = rehearsed.as_ref().map_or(&[][..], |rehearsed| &rehearsed.classes);
    if made != classes {
        return Ok(Some("its classes".into()));
    }
    let options = rehearsed.map(|rehearsed| rehearsed.options);
    Ok((options.as_ref() != Some(&root.options)).then(|| "its options".into()))
}

struct Rehearsed {
    options: Option<Vec<u8>>,
    classes: Vec<Class>,
}

/// What comes of the options that the kernel tells when they are given back to it: tried out on
/// the loopback of a fresh network namespace. `None` if it does not take them.
fn rehearse(root: &Qdisc) -> Option<Rehearsed> {
    if root.options.is_none() {
        // Such as `mq`, which a loopback does not take.
        return Some(Rehearsed { options: None, classes: Vec::new() });
    }
    const LOOPBACK: u32 = 1;
    let stage = Namespace::new().ok()?;
    let play = || {
        let mut tc = TrafficControl::open().ok()?;
        tc.replace_root(LOOPBACK, &root.kind, root.handle, root.options.as_deref()).ok()?;
        let options = tc.root(LOOPBACK).ok()??.options;
        Some(Rehearsed { options, classes: tc.classes(LOOPBACK).ok()? })
    };
    stage.run(play).ok()?
}
