//! Segments, which two endpoints exchange.

use units::Nanos;

/// Flags of a segment: those of the TCP header, which options it carries, and two notes for
/// whoever carries it (`ECT`, `RETRANSMISSION`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags(pub u16);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Takes sequence number 0; `seq` is 0.
    pub const SYN: Self = Self(1);
    /// `ack` means something.
    pub const ACK: Self = Self(1 << 1);
    /// Takes the sequence number after the data.
    pub const FIN: Self = Self(1 << 2);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(1 << 3);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(1 << 4);
    /// Option of a SYN: selective acknowledgments are understood (RFC 2018).
    pub const SACK_PERMITTED: Self = Self(1 << 5);
    /// `timestamp`, and with ACK `echo`, mean something (RFC 7323).
    pub const TIMESTAMPS: Self = Self(1 << 6);
    /// The IP packet is ECN-capable, ECT(0).
    pub const ECT: Self = Self(1 << 7);
    /// Data, SYN or FIN that was sent before. No flag of a real header: a note for statistics.
    pub const RETRANSMISSION: Self = Self(1 << 8);
    /// The sender had no more to write, or no room for more (RFC 9293, section 3.9.1.2).
    pub const PSH: Self = Self(1 << 9);

    /// Whether all of `flags` are set.
    #[inline]
    #[must_use]
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and those.
    #[inline]
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// These, and those if `condition`.
    #[inline]
    #[must_use]
    pub const fn with_if(self, condition: bool, flags: Self) -> Self {
        if condition { self.with(flags) } else { self }
    }
}

/// Up to three blocks of sequence numbers received out of order, the newest first (RFC 2018).
/// They are offsets from the `ack` of their segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlocks {
    blocks: [(u32, u32); 3],
    count: u8,
}

impl SackBlocks {
    /// Whether there is none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// The blocks, `start..end`, as offsets from `ack`.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..self.len().min(3)]
    }

    /// Adds a block; `false` if there are three already.
    pub fn push(&mut self, start: u32, end: u32) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *slot = (start, end);
        self.count += 1;
        true
    }
}

impl FromIterator<(u32, u32)> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = (u32, u32)>>(blocks: I) -> Self {
        let mut all = Self::default();
        for (start, end) in blocks {
            if !all.push(start, end) {
                break;
            }
        }
        all
    }
}

/// A segment. Sequence numbers have 64 bits and never wrap, the first is 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Segment {
    /// Number of the first byte (or of SYN or FIN).
    pub seq: u64,
    /// Next number expected, if the flag says so.
    pub ack: u64,
    /// When it was sent, if the flag says so.
    pub timestamp: Nanos,
    /// The timestamp this one answers, if both flags say so.
    pub echo: Nanos,
    /// Bytes of data.
    pub len: u32,
    /// Bytes beyond `ack` that may be sent; not scaled.
    pub window: u32,
    /// What was received out of order.
    pub sack: SackBlocks,
    /// Flags.
    pub flags: Flags,
}

impl Segment {
    /// Whether the IP packet is ECN-capable: new data of a connection that negotiated ECN.
    #[inline]
    #[must_use]
    pub fn is_ect(&self) -> bool {
        self.flags.has(Flags::ECT)
    }

    /// Whether it was sent before.
    #[must_use]
    pub fn is_retransmission(&self) -> bool {
        self.flags.has(Flags::RETRANSMISSION)
    }

    /// The sequence number after the last one it takes.
    #[must_use]
    pub fn end(&self) -> u64 {
        let phantom = u64::from(self.flags.has(Flags::SYN)) + u64::from(self.flags.has(Flags::FIN));
        self.seq.saturating_add(u64::from(self.len)).saturating_add(phantom)
    }

    /// What a host answers that has closed this connection in good order and forgotten it: a
    /// FIN that is seen again is acknowledged again, all else is ignored. It stands for
    /// TIME-WAIT, without its state.
    #[must_use]
    pub fn reply_after_close(&self) -> Option<Segment> {
        self.flags.has(Flags::FIN.with(Flags::ACK)).then(|| Segment {
            seq: self.ack,
            ack: self.end(),
            timestamp: self.timestamp,
            echo: self.timestamp,
            flags: Flags(self.flags.0 & Flags::TIMESTAMPS.0).with(Flags::ACK),
            ..Segment::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_small() {
        assert_eq!(size_of::<Segment>(), 72);
    }

    #[test]
    fn a_late_fin_is_acknowledged_without_state() {
        let flags = Flags::FIN.with(Flags::ACK);
        let fin = Segment { seq: 1001, ack: 501, len: 20, flags, ..Segment::default() };
        let reply = fin.reply_after_close().unwrap();
        assert_eq!((reply.seq, reply.ack, reply.flags), (501, 1022, Flags::ACK));
        assert_eq!(Segment { flags: Flags::ACK, ..fin }.reply_after_close(), None);
    }
}
