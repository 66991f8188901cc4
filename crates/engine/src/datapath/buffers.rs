//! The buffers that frames lie in from reception to transmission.
//!
//! Frames are never copied between; a packet's `id` is the number of its buffer. A frame that is
//! larger than a buffer, a super-packet, goes on in a *tail*; its headers never do. Memory is
//! reserved once and taken from the system as frames first lie in it, buffers that were used last
//! first; nothing is given back before the end, and nothing is allocated per frame.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::slab::{Region, Slab};

/// Room in front of a frame, for VLAN tags that are put back.
const HEADROOM: usize = 16;
/// Room for the rest of a super-packet of 64 KiB.
pub const TAIL: usize = 1 << 16;
/// No tail.
const NONE: u32 = u32::MAX;

/// What the kernel has left undone in a frame (`struct virtio_net_hdr`): a checksum to complete,
/// a super-packet to split. It is handed on with the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload(pub [u8; Offload::LEN]);

impl Offload {
    /// Bytes of the header.
    pub const LEN: usize = 10;
    const NEEDS_CHECKSUM: u8 = 1;
    const TCP: [u8; 2] = [1, 4]; // over IPv4, IPv6
    const ECN: u8 = 0x80;

    /// Whether the frame is a super-packet of several segments.
    #[must_use]
    pub fn is_super_packet(&self) -> bool {
        self.0[1] != 0
    }

    /// Whether its segments are TCP's, rather than UDP's.
    pub(crate) fn is_tcp(&self) -> bool {
        Self::TCP.contains(&(self.0[1] & !Self::ECN))
    }

    /// Bytes of payload of a segment.
    pub(crate) fn segment(&self) -> u32 {
        self.word(4).into()
    }

    /// Where the transport header begins, if a checksum is to be completed.
    pub(crate) fn transport(&self) -> Option<usize> {
        (self.0[0] & Self::NEEDS_CHECKSUM != 0).then(|| self.word(6).into())
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]])
    }

    /// The checksum to complete lies `bytes` further back.
    fn shift_checksum(&mut self, bytes: u16) {
        if self.0[0] & Self::NEEDS_CHECKSUM != 0 {
            let start = self.word(6).wrapping_add(bytes);
            self.0[6..8].copy_from_slice(&start.to_ne_bytes());
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Meta {
    start: u16,
    /// Bytes that lie in the buffer itself.
    len: u32,
    /// Bytes that lie in its tail.
    tail_len: u32,
    /// Bytes that the frame has; more than lie here if it did not fit.
    wire_len: u32,
    tail: u32,
    offload: Offload,
}

impl Meta {
    const EMPTY: Self =
        Self { start: 0, len: 0, tail_len: 0, wire_len: 0, tail: NONE, offload: Offload([0; 10]) };
}

/// A slab of buffers of one size, and one of tails.
pub struct Buffers {
    capacity: usize,
    heads: Slab,
    tails: Slab,
    meta: Vec<Meta>,
}

impl Buffers {
    /// At most `bound` buffers for frames of up to `capacity` bytes.
    ///
    /// # Errors
    /// If the system does not grant as much address space.
    pub fn new(capacity: usize, bound: usize) -> io::Result<Self> {
        Self::with_tails(capacity, bound, 0)
    }

    /// The same, and up to `tails` super-packets at once.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_tails(capacity: usize, bound: usize, tails: usize) -> io::Result<Self> {
        // Whole cache lines.
        let stride = (HEADROOM + capacity).next_multiple_of(64);
        Ok(Self {
            capacity,
            heads: Slab::new(stride, bound)?,
            tails: Slab::new(TAIL, tails)?,
            meta: vec![Meta::EMPTY; bound],
        })
    }

    /// Two sets of `bound` buffers of `chunk` bytes each, one behind the other in one piece of
    /// memory that the kernel is to know as well. It leaves `headroom` bytes of each free.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn pair(chunk: usize, headroom: usize, bound: usize) -> io::Result<[Self; 2]> {
        let region = Arc::new(Region::new(chunk * bound * 2)?);
        let set = |number: usize| -> io::Result<Self> {
            Ok(Self {
                capacity: chunk - headroom.max(HEADROOM),
                heads: Slab::in_region(&region, number * chunk * bound, chunk, bound),
                tails: Slab::new(TAIL, 0)?,
                meta: vec![Meta::EMPTY; bound],
            })
        };
        Ok([set(0)?, set(1)?])
    }

    /// The memory that all heads lie in, and those of the other set of a [`pair`](Self::pair).
    pub(crate) fn region(&self) -> (NonNull<u8>, usize) {
        (self.heads.region.start, self.heads.region.length)
    }

    /// Where in the region a buffer begins.
    pub(crate) fn offset(&self, id: u32) -> u64 {
        (self.heads.offset + id as usize * self.heads.size) as u64
    }

    /// Where in the region a frame begins.
    pub(crate) fn frame_offset(&self, id: u32) -> u64 {
        self.offset(id) + u64::from(self.meta[id as usize].start)
    }

    /// The buffer that a place in the region belongs to; `None` if it is none of this set's.
    pub(crate) fn at_offset(&self, offset: u64) -> Option<u32> {
        let within = (offset as usize).checked_sub(self.heads.offset)?;
        let id = within / self.heads.size;
        (id < self.heads.bound).then_some(id as u32)
    }

    /// A frame of `len` bytes has been written at this place of the region; `None` if that is not
    /// inside one of the buffers of this set.
    pub(crate) fn received_at(&mut self, offset: u64, len: u32) -> Option<u32> {
        let id = self.at_offset(offset)?;
        let start = offset - self.offset(id);
        if start + u64::from(len) > self.heads.size as u64 {
            return None;
        }
        let start = start as u16;
        self.meta[id as usize] = Meta { start, len, wire_len: len, ..Meta::EMPTY };
        Some(id)
    }

    /// An unused buffer; `None` if all are in use.
    pub fn take(&mut self) -> Option<u32> {
        self.heads.take()
    }

    /// Whether all buffers are in use, or all tails.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.heads.is_exhausted() || self.tails.bound > 0 && self.tails.is_exhausted()
    }

    /// Gives a buffer back.
    pub fn give(&mut self, id: u32) {
        self.give_tail(id);
        self.heads.give(id);
    }

    /// The frame in a buffer, up to where its tail begins: all of it but for super-packets, whose
    /// headers it has.
    #[must_use]
    pub fn frame(&self, id: u32) -> &[u8] {
        let meta = self.meta[id as usize];
        &self.heads.get(id)[meta.start as usize..][..meta.len as usize]
    }

    /// The same, to change.
    pub fn frame_mut(&mut self, id: u32) -> &mut [u8] {
        let meta = self.meta[id as usize];
        &mut self.heads.get_mut(id)[meta.start as usize..][..meta.len as usize]
    }

    /// All of a frame: [`frame`](Self::frame), and the rest that lies in its tail.
    #[must_use]
    pub fn pieces(&self, id: u32) -> [&[u8]; 2] {
        let meta = self.meta[id as usize];
        let rest = match meta.tail {
            NONE => &[][..],
            tail => &self.tails.get(tail)[..meta.tail_len as usize],
        };
        [self.frame(id), rest]
    }

    /// Bytes that the frame had when it was received, more than lie here if it did not fit, or
    /// what was set since.
    #[must_use]
    pub fn wire_len(&self, id: u32) -> u32 {
        self.meta[id as usize].wire_len
    }

    /// Notes what all segments of a super-packet have together.
    pub(crate) fn set_wire_len(&mut self, id: u32, bytes: u32) {
        self.meta[id as usize].wire_len = bytes;
    }

    /// Bytes of the frame that lie here.
    pub(crate) fn len(&self, id: u32) -> u32 {
        let meta = self.meta[id as usize];
        meta.len + meta.tail_len
    }

    /// What the kernel left undone in the frame.
    #[must_use]
    pub fn offload(&self, id: u32) -> Offload {
        self.meta[id as usize].offload
    }

    /// Where a frame is to be received; [`received`](Self::received) tells what came.
    pub fn space(&mut self, id: u32) -> &mut [u8] {
        &mut self.heads.get_mut(id)[HEADROOM..][..self.capacity]
    }

    /// The same for what may be a super-packet: the buffer, and a tail if one is free.
    pub fn spaces(&mut self, id: u32) -> [&mut [u8]; 2] {
        let meta = &mut self.meta[id as usize];
        if meta.tail == NONE {
            meta.tail = self.tails.take().unwrap_or(NONE);
        }
        let rest = match meta.tail {
            NONE => &mut [][..],
            tail => self.tails.get_mut(tail),
        };
        [&mut self.heads.get_mut(id)[HEADROOM..][..self.capacity], rest]
    }

    /// A frame of `wire_len` bytes has been written to the buffer's spaces, as far as it fits.
    pub fn received(&mut self, id: u32, wire_len: u32, offload: Offload) {
        let len = wire_len.min(self.capacity as u32);
        if len == wire_len {
            self.give_tail(id);
        }
        let tail = self.meta[id as usize].tail;
        let tail_len = if tail == NONE { 0 } else { (wire_len - len).min(TAIL as u32) };
        let start = HEADROOM as u16;
        self.meta[id as usize] = Meta { start, len, tail_len, wire_len, tail, offload };
    }

    fn give_tail(&mut self, id: u32) {
        let tail = std::mem::replace(&mut self.meta[id as usize].tail, NONE);
        if tail != NONE {
            self.tails.give(tail);
        }
    }

    /// Puts a VLAN tag back between the MAC addresses and the rest.
    pub fn insert_tag(&mut self, id: u32, tag_type: u16, tag: u16) {
        const TAG: usize = 4;
        const ADDRESSES: usize = 12;
        let meta = &mut self.meta[id as usize];
        if (meta.len as usize) < ADDRESSES || (meta.start as usize) < TAG {
            return;
        }
        meta.start -= TAG as u16;
        meta.len += TAG as u32;
        meta.wire_len += TAG as u32;
        meta.offload.shift_checksum(TAG as u16);
        let frame = self.frame_mut(id);
        frame.copy_within(TAG..TAG + ADDRESSES, 0);
        frame[ADDRESSES..][..2].copy_from_slice(&tag_type.to_be_bytes());
        frame[ADDRESSES + 2..][..2].copy_from_slice(&tag.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_kept_and_buffers_come_back() {
        let mut buffers = Buffers::new(100, 300).unwrap();
        let mut taken: Vec<u32> = std::iter::from_fn(|| buffers.take()).collect();
        assert_eq!(taken.len(), 300);
        assert!(buffers.is_exhausted());
        buffers.give(17);
        assert!(!buffers.is_exhausted());
        assert_eq!(buffers.take(), Some(17));
        assert_eq!(buffers.take(), None);
        taken.sort_unstable();
        assert_eq!(taken, (0..300).collect::<Vec<_>>());
    }

    #[test]
    fn buffers_do_not_overlap() {
        let mut buffers = Buffers::new(100, 300).unwrap();
        for id in 0..300 {
            assert!(buffers.take().is_some());
            buffers.space(id).fill(id as u8);
            buffers.received(id, 100, Offload::default());
        }
        assert!((0..300).all(|id| buffers.frame(id) == [id as u8; 100]));
    }

    #[test]
    fn a_tag_is_put_back_where_it_was_and_the_checksum_moves_along() {
        let mut buffers = Buffers::new(100, 1).unwrap();
        let id = buffers.take().unwrap();
        let frame: Vec<u8> = (0..40).collect();
        buffers.space(id)[..40].copy_from_slice(&frame);
        let mut offload = Offload::default();
        offload.0[0] = Offload::NEEDS_CHECKSUM;
        offload.0[6..8].copy_from_slice(&34u16.to_ne_bytes());
        buffers.received(id, 40, offload);
        buffers.insert_tag(id, 0x8100, 0x200a);
        let expected = [&frame[..12], &[0x81, 0x00, 0x20, 0x0a], &frame[12..]].concat();
        assert_eq!(buffers.frame(id), expected);
        assert_eq!(buffers.wire_len(id), 44);
        assert_eq!(buffers.offload(id).0[6..8], 38u16.to_ne_bytes());
    }

    #[test]
    fn a_frame_that_does_not_fit_shows_its_length() {
        let mut buffers = Buffers::new(100, 1).unwrap();
        let id = buffers.take().unwrap();
        buffers.received(id, 9000, Offload::default());
        assert_eq!((buffers.frame(id).len(), buffers.wire_len(id)), (100, 9000));
    }

    #[test]
    fn a_super_packet_goes_on_in_a_tail_that_comes_back() {
        let mut buffers = Buffers::with_tails(100, 10, 1).unwrap();
        let long: Vec<u8> = (0..1000u32).map(|n| n as u8).collect();
        let first = buffers.take().unwrap();
        let [head, tail] = buffers.spaces(first);
        assert_eq!((head.len(), tail.len()), (100, TAIL));
        head.copy_from_slice(&long[..100]);
        tail[..900].copy_from_slice(&long[100..]);
        buffers.received(first, 1000, Offload::default());
        assert_eq!(buffers.pieces(first).concat(), long);
        assert_eq!(buffers.frame(first), &long[..100]);

        // The only tail is in use.
        let second = buffers.take().unwrap();
        assert!(buffers.spaces(second)[1].is_empty());
        buffers.received(second, 1000, Offload::default());
        assert_eq!((buffers.pieces(second).concat().len(), buffers.wire_len(second)), (100, 1000));

        buffers.give(first);
        assert_eq!(buffers.spaces(second)[1].len(), TAIL);
        // A frame without need for it leaves it to others.
        buffers.received(second, 60, Offload::default());
        let third = buffers.take().unwrap();
        assert_eq!(buffers.spaces(third)[1].len(), TAIL);
    }
}
