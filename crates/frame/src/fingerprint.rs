//! Fingerprints: keyed hashes of flow keys and addresses.

use sched::{FlowId, HostId, Needs, Packet};
use siphasher::sip::SipHasher13;

use crate::key::{Endpoints, FlowKey, Selector, TcpSequence, read};
use crate::link::LinkType;

/// Turns frames into packets. Whoever does not know its 128-bit key cannot choose frames whose
/// flows collide.
///
/// The hash is SipHash-1-3: as strong as a hash-flooding attack requires; it is the default of
/// several languages' hash tables for that reason.
#[derive(Clone)]
pub struct Fingerprinter {
    flows: SipHasher13,
    hosts: SipHasher13,
}

/// A frame as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The packet; its `id` is left for the caller to set.
    pub packet: Packet,
    /// What its flow fingerprint is a hash of.
    pub key: FlowKey,
    /// Where it stands in its TCP connection: what offsets are made of, read if they are needed.
    pub sequence: Option<TcpSequence>,
}

impl Fingerprinter {
    /// With a key drawn from the operating system: for live links.
    ///
    /// # Errors
    /// If the operating system has no randomness to give.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut key = [0; 16];
        getrandom::fill(&mut key)?;
        Ok(Self::with_key(key))
    }

    /// With a key that follows from a seed: for simulators and tests, whose runs must repeat.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self::with_key(key)
    }

    fn with_key(key: [u8; 16]) -> Self {
        let words = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| key[at + byte])));
        let [a, b] = host_key(words);
        let flows = SipHasher13::new_with_key(&key);
        Self { flows, hosts: SipHasher13::new_with_keys(a, b) }
    }

    /// Reads a frame, of which the link carried `wire_len` bytes, though a capture may hold
    /// fewer. The fingerprints of its hosts are computed only if they are needed.
    #[inline]
    #[must_use]
    pub fn packet(&self, link: LinkType, frame: &[u8], wire_len: u32, needs: Needs) -> Parsed {
        let read = read(link, frame);
        let mut packet = Packet::new(self.flow(&read.key), wire_len).with_ecn(read.ecn());
        packet.dscp = read.dscp();
        if needs.hosts {
            let (source, destination) = self.hosts(&read.key);
            packet = packet.with_hosts(source, destination);
        }
        let sequence = if needs.offset { read.tcp_sequence() } else { None };
        Parsed { packet, key: read.key, sequence }
    }

    /// The fingerprint of a flow.
    #[inline]
    #[must_use]
    pub fn flow(&self, key: &FlowKey) -> FlowId {
        let head = encode_head(key);
        let hash = match &key.endpoints {
            Endpoints::V4(from, to) => self.flows.hash(&join::<4, 20>(head, from, to)),
            Endpoints::V6(from, to) => self.flows.hash(&join::<16, 44>(head, from, to)),
            Endpoints::Mac(from, to) => self.flows.hash(&join::<6, 24>(head, from, to)),
        };
        FlowId::new(hash)
    }

    /// The fingerprints of a flow's two hosts, the sender's first.
    #[must_use]
    pub fn hosts(&self, key: &FlowKey) -> (HostId, HostId) {
        let host = |address: &[u8]| HostId(self.hosts.hash(address) as u32);
        match &key.endpoints {
            Endpoints::V4(source, destination) => (host(source), host(destination)),
            Endpoints::V6(source, destination) => (host(source), host(destination)),
            Endpoints::Mac(source, destination) => (host(source), host(destination)),
        }
    }
}

/// The key of hosts' fingerprints that goes with one of flows'. It is one of its own, since a flow's
/// fingerprint must tell nothing about its hosts'.
#[must_use]
pub fn host_key(key: [u64; 2]) -> [u64; 2] {
    let flows = SipHasher13::new_with_keys(key[0], key[1]);
    [flows.hash(b"host key 0"), flows.hash(b"host key 1")]
}

/// All of a key but its endpoints, such that two of them are equal iff their bytes are.
#[inline]
fn encode_head(key: &FlowKey) -> [u8; 12] {
    let (tag, selector) = match key.selector {
        Selector::None => (0, 0),
        Selector::Ports(source, destination) => {
            (1, u32::from(source) << 16 | u32::from(destination))
        }
        Selector::Id(id) => (2, id),
        Selector::Fragment => (3, 0),
    };
    let protocol = u32::from(key.protocol) | tag << 16;
    let mut head = [0; 12];
    head[..4].copy_from_slice(&selector.to_le_bytes());
    head[4..8].copy_from_slice(&protocol.to_le_bytes());
    head[8..].copy_from_slice(&key.vlans.to_le_bytes());
    head
}

/// A whole key. The kind of its endpoints shows in the length.
#[inline]
fn join<const N: usize, const ALL: usize>(
    head: [u8; 12],
    source: &[u8; N],
    destination: &[u8; N],
) -> [u8; ALL] {
    let mut bytes = [0; ALL];
    bytes[..12].copy_from_slice(&head);
    bytes[12..12 + N].copy_from_slice(source);
    bytes[12 + N..].copy_from_slice(destination);
    bytes
}
