//! Offloads that make packets too large for the rate.
//!
//! A BPF qdisc cannot cut a super-packet into segments, and whatever arrives while one is sent
//! waits for all of it. So that this is not longer than [`LONGEST`], super-packets of the device
//! itself get as many segments as fit into that time, and other devices of a router stop making
//! any that do not fit.

use std::io;

use netdev::device::{Device, set_gso_max_segs};
use netdev::offload::features;
use sched::Rate;
use serde::{Deserialize, Serialize};

use super::error::KernelError;
pub use crate::datapath::segments::LONGEST;
use crate::datapath::segments::bytes_in_time;

/// Features that join received packets to larger ones.
pub(super) const RECEIVE: [&str; 3] = ["rx-gro", "rx-gro-hw", "rx-lro"];
const ETHERNET_HEADER: u64 = 14;

/// What was switched, with what it was before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Switched {
    /// Segments that a super-packet of the device could have.
    pub(super) gso_max_segs: Option<u32>,
    /// Devices that no longer join what they receive.
    pub(super) receivers: Vec<Receiver>,
}

/// A device that received super-packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Receiver {
    ifindex: u32,
    pub(super) device: String,
    /// What was on.
    features: Vec<String>,
}

/// How many segments a super-packet of a device may have at this rate: one at least.
pub(super) fn segments_at(rate: Rate, mtu: u32) -> u32 {
    let fit = bytes_in_time(rate) / (u64::from(mtu) + ETHERNET_HEADER);
    u32::try_from(fit.max(1)).unwrap_or(u32::MAX)
}

impl Switched {
    /// What has to be switched for a rate, given what is switched for this device now and what
    /// has been for others. Nothing is changed yet.
    pub(super) fn for_rate(
        rate: Rate,
        device: &Device,
        devices: &[Device],
        now: &Self,
        others: &[Self],
    ) -> Result<Self, KernelError> {
        let before = now.gso_max_segs.unwrap_or(device.gso_max_segs);
        let too_many = segments_at(rate, device.mtu) < before;
        let mut wanted = Self { gso_max_segs: too_many.then_some(before), receivers: Vec::new() };
        if !device.forwards() {
            return Ok(wanted);
        }
        for other in devices.iter().filter(|other| other.index != device.index && !other.loopback) {
            if u64::from(other.gro_max_size) <= bytes_in_time(rate) {
                continue;
            }
            let mut on = features::active(&other.name, &RECEIVE).unwrap_or_default();
            let switched = others.iter().chain([now]).flat_map(|switched| &switched.receivers);
            for receiver in switched.filter(|receiver| receiver.ifindex == other.index) {
                on.extend(receiver.features.iter().cloned());
            }
            on.sort();
            on.dedup();
            if !on.is_empty() {
                let (ifindex, device) = (other.index, other.name.clone());
                wanted.receivers.push(Receiver { ifindex, device, features: on });
            }
        }
        Ok(wanted)
    }

    /// Both together: what may have been switched while one takes the place of the other.
    pub(super) fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.gso_max_segs = self.gso_max_segs.or(other.gso_max_segs);
        let known = |receiver: &&Receiver| !self.receivers.iter().any(|r| r == *receiver);
        both.receivers.extend(other.receivers.iter().filter(known).cloned());
        both
    }

    /// What of it the other one has not; receivers that both have stay in it.
    pub(super) fn without(&self, other: &Self) -> Self {
        let gso_max_segs = self.gso_max_segs.filter(|_| other.gso_max_segs.is_none());
        Self { gso_max_segs, ..self.clone() }
    }

    /// Switches them.
    pub(super) fn switch(&self, rate: Rate, device: &Device) -> Result<(), KernelError> {
        for receiver in &self.receivers {
            features::switch(&receiver.device, &receiver.features, false)
                .map_err(|source| offload(&receiver.device, source))?;
            let names: Vec<&str> = receiver.features.iter().map(String::as_str).collect();
            let still = features::active(&receiver.device, &names)
                .map_err(|source| offload(&receiver.device, source))?;
            if !still.is_empty() {
                let source = io::Error::other(format!("{} stays on", still.join(", ")));
                return Err(offload(&receiver.device, source));
            }
        }
        match self.gso_max_segs {
            Some(_) => set_gso_max_segs(device.index, segments_at(rate, device.mtu))
                .map_err(|refusal| offload(&device.name, refusal.into_system())),
            None => Ok(()),
        }
    }

    /// Puts back what was before, but for what is `kept`, and devices that are gone.
    pub(super) fn restore(
        &self,
        ifindex: u32,
        devices: &[Device],
        kept: &[&Self],
    ) -> Result<(), KernelError> {
        let there = |ifindex| devices.iter().find(|device: &&Device| device.index == ifindex);
        let is_kept =
            |ifindex| kept.iter().any(|kept| kept.receivers.iter().any(|r| r.ifindex == ifindex));
        for receiver in self.receivers.iter().filter(|receiver| !is_kept(receiver.ifindex)) {
            if let Some(device) = there(receiver.ifindex) {
                features::switch(&device.name, &receiver.features, true)
                    .map_err(|source| offload(&device.name, source))?;
            }
        }
        match (self.gso_max_segs, there(ifindex)) {
            (Some(segments), Some(device)) => set_gso_max_segs(ifindex, segments)
                .map_err(|refusal| offload(&device.name, refusal.into_system())),
            _ => Ok(()),
        }
    }

    /// What was switched, for people.
    pub(super) fn describe(&self, rate: Rate, device: &Device) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(before) = self.gso_max_segs {
            let now = segments_at(rate, device.mtu);
            said.push(format!("gso_max_segs of {} from {before} to {now}", device.name));
        }
        if !self.receivers.is_empty() {
            let names: Vec<&str> = self.receivers.iter().map(|r| r.device.as_str()).collect();
            said.push(format!("GRO off on {}", names.join(", ")));
        }
        said
    }
}

fn offload(device: &str, source: io::Error) -> KernelError {
    KernelError::Offload { device: device.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_super_packet_takes_a_millisecond_at_most_but_has_one_segment_at_least() {
        assert_eq!(segments_at(Rate(10_000_000), 1500), 1);
        assert_eq!(segments_at(Rate(100_000_000), 1500), 8);
        assert_eq!(segments_at(Rate(1), 1500), 1);
        assert_eq!(segments_at(Rate::UNLIMITED, 1500), u32::MAX);
        assert_eq!(segments_at(Rate(u64::MAX - 1), 68), u32::MAX);
        // 64 KB fit from 524.288 Mbit/s on.
        assert!(bytes_in_time(Rate(524_000_000)) < 65_536);
        assert_eq!(bytes_in_time(Rate(524_288_000)), 65_536);
    }
}
