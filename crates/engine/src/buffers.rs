//! The buffers that frames lie in from reception to transmission.
//!
//! Frames are never copied between; a packet's `id` is the number of its buffer. Memory grows
//! with the number of frames held at once, in chunks, up to a bound; nothing is given back before
//! the end, and nothing is allocated per frame.

/// Room in front of a frame, for VLAN tags that are put back.
const HEADROOM: usize = 16;
/// Buffers per allocation.
const CHUNK: usize = 256;

/// What the kernel has left undone in a frame (`struct virtio_net_hdr`): a checksum to complete,
/// a super-packet to split. It is handed on with the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload(pub [u8; Offload::LEN]);

impl Offload {
    /// Bytes of the header.
    pub const LEN: usize = 10;
    const NEEDS_CHECKSUM: u8 = 1;

    /// Whether the frame is a super-packet of several segments.
    #[must_use]
    pub fn is_super_packet(&self) -> bool {
        self.0[1] != 0
    }

    /// The checksum to complete lies `bytes` further back.
    fn shift_checksum(&mut self, bytes: u16) {
        if self.0[0] & Self::NEEDS_CHECKSUM != 0 {
            let start = u16::from_ne_bytes([self.0[6], self.0[7]]);
            self.0[6..8].copy_from_slice(&start.wrapping_add(bytes).to_ne_bytes());
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Meta {
    start: u16,
    /// Bytes that lie in the buffer.
    len: u32,
    /// Bytes that the frame has; more than `len` if it did not fit.
    wire_len: u32,
    offload: Offload,
}

/// A slab of buffers of one size.
pub struct Buffers {
    capacity: usize,
    bound: usize,
    chunks: Vec<Box<[u8]>>,
    meta: Vec<Meta>,
    free: Vec<u32>,
}

impl Buffers {
    /// At most `bound` buffers for frames of up to `capacity` bytes.
    #[must_use]
    pub fn new(capacity: usize, bound: usize) -> Self {
        Self { capacity, bound, chunks: Vec::new(), meta: Vec::new(), free: Vec::new() }
    }

    /// An unused buffer; `None` if `bound` of them are in use.
    pub fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.grow();
        }
        self.free.pop()
    }

    /// Gives a buffer back.
    pub fn give(&mut self, id: u32) {
        self.free.push(id);
    }

    /// The frame in a buffer.
    #[must_use]
    pub fn frame(&self, id: u32) -> &[u8] {
        let meta = self.meta[id as usize];
        &self.whole(id)[meta.start as usize..][..meta.len as usize]
    }

    /// The frame in a buffer, to change.
    pub fn frame_mut(&mut self, id: u32) -> &mut [u8] {
        let meta = self.meta[id as usize];
        &mut self.whole_mut(id)[meta.start as usize..][..meta.len as usize]
    }

    /// Bytes that the frame had on the link; more than lie here if it did not fit.
    #[must_use]
    pub fn wire_len(&self, id: u32) -> u32 {
        self.meta[id as usize].wire_len
    }

    /// What the kernel left undone in the frame.
    #[must_use]
    pub fn offload(&self, id: u32) -> Offload {
        self.meta[id as usize].offload
    }

    /// Where a frame is to be received; [`received`](Self::received) tells what came.
    pub fn space(&mut self, id: u32) -> &mut [u8] {
        &mut self.whole_mut(id)[HEADROOM..]
    }

    /// A frame of `wire_len` bytes has been written to the buffer's space, as far as it fits.
    pub fn received(&mut self, id: u32, wire_len: u32, offload: Offload) {
        let len = wire_len.min(self.capacity as u32);
        self.meta[id as usize] = Meta { start: HEADROOM as u16, len, wire_len, offload };
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

    /// Bytes between one buffer and the next: whole cache lines.
    fn stride(&self) -> usize {
        (HEADROOM + self.capacity).next_multiple_of(64)
    }

    fn whole(&self, id: u32) -> &[u8] {
        let at = (id as usize % CHUNK) * self.stride();
        &self.chunks[id as usize / CHUNK][at..][..HEADROOM + self.capacity]
    }

    fn whole_mut(&mut self, id: u32) -> &mut [u8] {
        let at = (id as usize % CHUNK) * self.stride();
        &mut self.chunks[id as usize / CHUNK][at..][..HEADROOM + self.capacity]
    }

    #[cold]
    fn grow(&mut self) {
        let old = self.meta.len();
        let more = CHUNK.min(self.bound - old);
        if more == 0 {
            return;
        }
        self.chunks.push(vec![0; self.stride() * CHUNK].into_boxed_slice());
        self.meta.resize(old + more, Meta::default());
        self.free.extend((old..old + more).rev().map(|id| id as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_kept_and_buffers_come_back() {
        let mut buffers = Buffers::new(100, 300);
        let mut taken: Vec<u32> = std::iter::from_fn(|| buffers.take()).collect();
        assert_eq!(taken.len(), 300);
        buffers.give(17);
        assert_eq!(buffers.take(), Some(17));
        assert_eq!(buffers.take(), None);
        taken.sort_unstable();
        assert_eq!(taken, (0..300).collect::<Vec<_>>());
    }

    #[test]
    fn buffers_do_not_overlap() {
        let mut buffers = Buffers::new(100, 300);
        for id in 0..300 {
            assert!(buffers.take().is_some());
            buffers.space(id).fill(id as u8);
            buffers.received(id, 100, Offload::default());
        }
        assert!((0..300).all(|id| buffers.frame(id) == [id as u8; 100]));
    }

    #[test]
    fn a_tag_is_put_back_where_it_was_and_the_checksum_moves_along() {
        let mut buffers = Buffers::new(100, 1);
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
        let mut buffers = Buffers::new(100, 1);
        let id = buffers.take().unwrap();
        buffers.received(id, 9000, Offload::default());
        assert_eq!((buffers.frame(id).len(), buffers.wire_len(id)), (100, 9000));
    }
}
