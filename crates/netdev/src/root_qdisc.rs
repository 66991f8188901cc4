//! The root qdisc that was there before, and putting it back.

use netlink_packet_core::{DefaultNla, Emitable};
use serde::{Deserialize, Serialize};

use crate::netlink::{Refusal, attributes};
use crate::netns::Namespace;

use crate::tc::{Class, Qdisc, TrafficControl, handle_text};

/// A root qdisc that somebody configured, as far as it can be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    kind: String,
    handle: u32,
    options: Option<Vec<u8>>,
    /// What putting it back would not bring back; then the kernel's default takes its place.
    pub lost: Option<String>,
}

impl Former {
    /// What is at the root of a device now; `None` if that is the kernel's own choice.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn of(tc: &mut TrafficControl, ifindex: u32) -> Result<Option<Self>, Refusal> {
        let qdiscs = tc.qdiscs(ifindex)?;
        let Some(root) = qdiscs.iter().find(|qdisc| qdisc.is_root() && qdisc.is_configured())
        else {
            return Ok(None);
        };
        let way_back = way_back(tc, ifindex, root, &qdiscs)?;
        let (options, lost) = match way_back {
            Ok(options) => (options, None),
            Err(lost) => (root.options.clone(), Some(lost)),
        };
        Ok(Some(Self { kind: root.kind.clone(), handle: root.handle, options, lost }))
    }

    /// Puts it back at the root, in the place of whatever is there.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn restore(&self, tc: &mut TrafficControl, ifindex: u32) -> Result<(), Refusal> {
        tc.replace_root(ifindex, &self.kind, self.handle, self.options.as_deref())
    }

    /// By kind and handle.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.kind, handle_text(self.handle))
    }
}

/// The options that make a root qdisc what it is, or what they would not bring back.
fn way_back(
    tc: &mut TrafficControl,
    ifindex: u32,
    root: &Qdisc,
    qdiscs: &[Qdisc],
) -> Result<Result<Option<Vec<u8>>, String>, Refusal> {
    let below = |qdisc: &&Qdisc| qdisc.is_configured() && qdisc.parent >> 16 == root.handle >> 16;
    if let Some(child) = qdiscs.iter().filter(|qdisc| !qdisc.is_root()).find(below) {
        return Ok(Err(format!("its child {} {}", child.kind, handle_text(child.handle))));
    }
    if tc.has_filters(ifindex, root.handle)? {
        return Ok(Err("its filters".into()));
    }
    if root.size_table {
        return Ok(Err("its size table".into()));
    }
    let classes = tc.classes(ifindex)?;
    // Such as `mq`, which no loopback takes.
    let Some(told) = &root.options else { return Ok(Ok(None)) };
    let mut offer = told.clone();
    let mut made = rehearse(root, &offer);
    if let Some(other) = made.as_ref().and_then(|made| nudge(told, &made.options)) {
        offer = other;
        made = rehearse(root, &offer);
    }
    Ok(match made {
        Some(made) if made.classes != classes => Err("its classes".into()),
        Some(made) if made.options == *told => Ok(Some(offer)),
        None if !classes.is_empty() => Err("its classes".into()),
        _ => Err("its options".into()),
    })
}

struct Rehearsed {
    options: Vec<u8>,
    classes: Vec<Class>,
}

/// What comes of options that are given to the kernel: tried out on the loopback of a fresh
/// network namespace. `None` if it does not take them.
fn rehearse(root: &Qdisc, options: &[u8]) -> Option<Rehearsed> {
    const LOOPBACK: u32 = 1;
    let stage = Namespace::new().ok()?;
    let play = || {
        let mut tc = TrafficControl::open().ok()?;
        tc.replace_root(LOOPBACK, &root.kind, root.handle, Some(options)).ok()?;
        let options = tc.root(LOOPBACK).ok()??.options?;
        Some(Rehearsed { options, classes: tc.classes(LOOPBACK).ok()? })
    };
    stage.run(play).ok()?
}

/// Other options to offer, where numbers came back one too small: the kernel keeps times in units
/// of its own (such as 1024 ns for CoDel's), and rounds down on both ways. `None` if something
/// else came back.
fn nudge(told: &[u8], made: &[u8]) -> Option<Vec<u8>> {
    let (told, made) = (attributes(told).ok()?, attributes(made).ok()?);
    if told == made || told.len() != made.len() {
        return None;
    }
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_ne_bytes);
    let mut offer = Vec::new();
    for ((kind, told), (made_kind, made)) in told.into_iter().zip(made) {
        let offered = match (number(&told), number(&made)) {
            _ if kind != made_kind => return None,
            (Some(told), Some(made)) if told == made + 1 => (told + 1).to_ne_bytes().to_vec(),
            _ if told == made => told,
            _ => return None,
        };
        offer.push(DefaultNla::new(kind, offered));
    }
    let mut bytes = vec![0; offer.as_slice().buffer_len()];
    offer.as_slice().emit(&mut bytes);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(numbers: &[u32]) -> Vec<u8> {
        let nla = |(at, n): (usize, &u32)| DefaultNla::new(at as u16 + 1, n.to_ne_bytes().into());
        let nlas: Vec<DefaultNla> = numbers.iter().enumerate().map(nla).collect();
        let mut bytes = vec![0; nlas.as_slice().buffer_len()];
        nlas.as_slice().emit(&mut bytes);
        bytes
    }

    #[test]
    fn numbers_that_were_rounded_down_are_offered_one_larger() {
        let told = options(&[1999, 10_240, 99_999]);
        assert_eq!(
            nudge(&told, &options(&[1998, 10_240, 99_998])),
            Some(options(&[2000, 10_240, 100_000]))
        );
        assert_eq!(nudge(&told, &told), None);
        assert_eq!(nudge(&told, &options(&[1990, 10_240, 99_999])), None);
        assert_eq!(nudge(&told, &options(&[1999, 10_240])), None);
        assert_eq!(nudge(b"abc", b"abd"), None);
    }
}
