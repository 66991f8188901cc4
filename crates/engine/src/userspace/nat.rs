//! Clients behind NAT on this machine: conntrack knows them, and programs on the device write down
//! what it says of every packet.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use frame::{Endpoints, FlowKey, Selector};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use netdev::clsact::Point;
use netdev::tcx;

use super::hook::{Words, system};
use super::skeleton::nat::NatSkelBuilder;
use super::skeleton::nat::types::sl_clients;

/// Connections that are written down; a power of two.
const SLOTS: usize = size_of::<sl_clients>() / size_of::<u64>();
const TCP: u16 = 6;
const UDP: u16 = 17;

/// What the program at one point of a device has written down.
pub(super) struct Clients {
    slots: Words,
    secret: u64,
    at: Point,
    /// The program goes with it.
    _link: OwnedFd,
}

impl Clients {
    /// Puts the program in front of all that are on a device. Fails on a kernel without TCX or
    /// conntrack.
    pub(super) fn on(device: u32, at: Point) -> io::Result<Self> {
        let mut secret = [0; 8];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        let secret = u64::from_ne_bytes(secret);
        // That it may fail is no news.
        libbpf_rs::set_print(None);
        let mut storage = MaybeUninit::uninit();
        let mut open = NatSkelBuilder::default().open(&mut storage).map_err(system)?;
        if let Some(rodata) = &mut open.maps.rodata_data {
            rodata.secret = secret;
        }
        let loaded = open.load().map_err(system)?;
        let program = match at {
            Point::Egress => loaded.progs.shortlane_nat_o.as_fd(),
            Point::Ingress => loaded.progs.shortlane_nat_i.as_fd(),
        };
        let link = tcx::link(device, &program.try_clone_to_owned()?, at)?;
        let slots = Words::open(loaded.maps.sl_clients.as_fd(), SLOTS)?;
        Ok(Self { slots, secret, at, _link: link })
    }

    /// The key of a packet with the client's address in place of this machine's, if that is known.
    pub(super) fn reveal(&self, key: &FlowKey) -> Option<FlowKey> {
        let (Endpoints::V4(source, destination), Selector::Ports(from, to), TCP | UDP) =
            (key.endpoints, key.selector, key.protocol)
        else {
            return None;
        };
        let hash = match self.at {
            Point::Egress => connection_hash((destination, to), (source, from), key, self.secret),
            Point::Ingress => connection_hash((source, from), (destination, to), key, self.secret),
        };
        let slot = self.slots.at(hash as usize % SLOTS).load(Ordering::Relaxed);
        if slot >> 32 != hash >> 32 {
            return None;
        }
        let client = (slot as u32).to_ne_bytes();
        let endpoints = match self.at {
            Point::Egress => Endpoints::V4(client, destination),
            Point::Ingress => Endpoints::V4(source, client),
        };
        Some(FlowKey { endpoints, ..*key })
    }
}

type End = ([u8; 4], u16);

/// Where a connection is written down, and what tells it from others there: as in nat.bpf.c.
fn connection_hash(far: End, near: End, key: &FlowKey, secret: u64) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let address = |(address, _): End| u64::from(u32::from_ne_bytes(address));
    let port = |(_, port): End| u64::from(port.to_be());
    let mut hash = address(far) << 32 | port(far) << 16 | port(near);
    hash = (hash ^ secret).wrapping_mul(MULTIPLIER);
    hash ^= hash >> 32;
    hash = (hash ^ (address(near) << 8 | u64::from(key.protocol))).wrapping_mul(MULTIPLIER);
    hash ^ hash >> 32
}
