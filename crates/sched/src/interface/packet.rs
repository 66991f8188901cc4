//! What a discipline knows about a packet.

use core::num::NonZeroU64;

/// A flow's fingerprint: 64 bits of a keyed hash of its 5-tuple, computed once at the edge.
///
/// A discipline takes the fingerprint for the flow's identity and never hashes again. With a
/// key that nobody outside knows, two of a million flows share a fingerprint with probability
/// below 3e-8. A fingerprint of 0 is read as 1, so that tables have a value for "empty".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId(NonZeroU64);

impl FlowId {
    /// The flow with this fingerprint.
    #[inline]
    #[must_use]
    pub const fn new(fingerprint: u64) -> Self {
        match NonZeroU64::new(fingerprint) {
            Some(id) => Self(id),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// The fingerprint; never 0.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// A host's fingerprint: 32 bits of a keyed hash of its address; 0 where the edge has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// The two ECN bits of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not ECN-capable: may be dropped, never marked.
    #[default]
    NotEct,
    /// ECN-capable, ECT(1).
    Ect1,
    /// ECN-capable, ECT(0).
    Ect0,
    /// Congestion experienced: already marked.
    Ce,
}

impl Ecn {
    /// From the low two bits of the traffic class.
    #[must_use]
    pub const fn from_bits(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a queue may mark this packet instead of dropping it.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// A packet as a discipline sees it: what it is, not what it carries.
///
/// The caller keeps the frame itself and finds it again by [`Packet::id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// The caller's name for the packet: an index into its buffers, or into a trace.
    pub id: u64,
    /// Its flow.
    pub flow: FlowId,
    /// Byte offset of the payload in its flow; `u64::MAX` where unknown. See [`Packet::offset`].
    pub(crate) offset: u64,
    /// Size of the whole flow in bytes; `u64::MAX` where unknown. See [`Packet::flow_size`].
    pub(crate) flow_size: u64,
    /// Fingerprint of the sending host.
    pub source: HostId,
    /// Fingerprint of the receiving host.
    pub destination: HostId,
    /// Size in bytes, as the link will carry it.
    pub size: u32,
    /// Segments: 1, or more for a GSO super-packet that will be split further down.
    pub segments: u16,
    /// The six DSCP bits.
    pub dscp: u8,
    /// The two ECN bits, and bits that belong to the discipline that holds the packet.
    pub(crate) bits: u8,
}

const ECN_BITS: u8 = 3;
const COUNTED: u8 = 4;
const MARKED: u8 = 8;
const LONG: u8 = 16;

impl Packet {
    /// A packet of one segment; everything else is unknown or zero.
    #[inline]
    #[must_use]
    pub const fn new(flow: FlowId, size: u32) -> Self {
        Self {
            id: 0,
            flow,
            offset: u64::MAX,
            flow_size: u64::MAX,
            size,
            source: HostId(0),
            destination: HostId(0),
            segments: 1,
            dscp: 0,
            bits: 0,
        }
    }

    /// The same packet with the caller's name for it.
    #[inline]
    #[must_use]
    pub const fn with_id(mut self, id: u64) -> Self {
        self.id = id;
        self
    }

    /// The same packet as a super-packet of `segments` segments.
    #[must_use]
    pub const fn with_segments(mut self, segments: u16) -> Self {
        self.segments = segments;
        self
    }

    /// The same packet with these ECN bits.
    #[must_use]
    pub const fn with_ecn(mut self, ecn: Ecn) -> Self {
        self.bits = (self.bits & !ECN_BITS)
            | match ecn {
                Ecn::NotEct => 0,
                Ecn::Ect1 => 1,
                Ecn::Ect0 => 2,
                Ecn::Ce => 3,
            };
        self
    }

    /// The same packet with these six DSCP bits.
    #[must_use]
    pub const fn with_dscp(mut self, dscp: u8) -> Self {
        self.dscp = dscp & 63;
        self
    }

    /// The same packet with the hosts it goes between.
    #[must_use]
    pub const fn with_hosts(mut self, source: HostId, destination: HostId) -> Self {
        self.source = source;
        self.destination = destination;
        self
    }

    /// The same packet at this byte offset of its flow.
    #[must_use]
    pub const fn with_offset(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// The same packet of a flow of this many bytes in all.
    #[must_use]
    pub const fn with_flow_size(mut self, bytes: u64) -> Self {
        self.flow_size = bytes;
        self
    }

    /// Its ECN bits.
    #[must_use]
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.bits)
    }

    /// Byte offset of its payload in the flow, where the edge knows it.
    #[must_use]
    pub const fn offset(&self) -> Option<u64> {
        if self.offset == u64::MAX { None } else { Some(self.offset) }
    }

    /// Bytes of the whole flow, where the edge knows them (simulators only).
    #[must_use]
    pub const fn flow_size(&self) -> Option<u64> {
        if self.flow_size == u64::MAX { None } else { Some(self.flow_size) }
    }

    /// Whether the flow table that saw the packet arrive counted it as queued.
    #[inline]
    pub(crate) const fn is_counted(&self) -> bool {
        self.bits & COUNTED != 0
    }

    /// Notes whether a flow table counts the packet as queued.
    #[inline]
    pub(crate) const fn set_counted(&mut self, counted: bool) {
        self.set(COUNTED, counted);
    }

    /// Whether it is to leave with a mark.
    #[inline]
    pub(crate) const fn is_marked(&self) -> bool {
        self.bits & MARKED != 0
    }

    /// Notes whether it is to leave with a mark.
    #[inline]
    pub(crate) const fn set_marked(&mut self, marked: bool) {
        self.set(MARKED, marked);
    }

    /// Whether the queue that it shares with short packets took it for a long one.
    #[inline]
    pub(crate) const fn is_long(&self) -> bool {
        self.bits & LONG != 0
    }

    /// Notes whether it is a long one.
    #[inline]
    pub(crate) const fn set_long(&mut self, long: bool) {
        self.set(LONG, long);
    }

    #[inline]
    const fn set(&mut self, bit: u8, value: bool) {
        if value {
            self.bits |= bit;
        } else {
            self.bits &= !bit;
        }
    }
}
