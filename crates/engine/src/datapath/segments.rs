//! Super-packets: frames that leave as several segments, each with a copy of the headers.
//!
//! One may pass whole if all of it takes no longer on the link than [`LONGEST`], since whatever
//! arrives meanwhile waits for all of it.

use sched::{Nanos, Rate};

use crate::datapath::buffers::{Buffers, Offload};
pub use crate::settings::framing::Segments;

/// What a super-packet may take on the link.
pub const LONGEST: Nanos = Nanos::from_millis(1);

/// Bytes that take [`LONGEST`] at this rate.
pub(crate) fn bytes_in_time(rate: Rate) -> u64 {
    let bits = u128::from(rate.0) * u128::from(LONGEST.0) / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// Whether this many bytes take no longer than [`LONGEST`].
pub(crate) fn fits(bytes: u64, rate: Rate) -> bool {
    bytes <= bytes_in_time(rate)
}

impl Segments {
    /// What becomes of the frame in a buffer.
    pub(crate) fn of(buffers: &Buffers, id: u32) -> Self {
        let size = buffers.len(id);
        let offload = buffers.offload(id);
        if !offload.is_super_packet() {
            return size.into();
        }
        Self::split(size, offload.segment(), headers(buffers.frame(id), &offload))
    }

    /// A frame of `size` bytes, of which `headers` are copied into every segment of `payload`
    /// bytes.
    fn split(size: u32, payload: u32, headers: u32) -> Self {
        let all = size.saturating_sub(headers);
        if payload == 0 || all <= payload {
            return size.into();
        }
        let count = u16::try_from(all.div_ceil(payload)).unwrap_or(u16::MAX);
        let last = all - (u32::from(count) - 1) * payload;
        Self { count, each: headers + payload, last: headers + last }
    }

    /// Bytes of all of them.
    pub(crate) fn bytes(&self) -> u32 {
        (u32::from(self.count) - 1) * self.each + self.last
    }
}

/// Bytes of all headers of a super-packet. What the kernel calls their length is how much of the
/// frame is in one piece, so they are read.
fn headers(frame: &[u8], offload: &Offload) -> u32 {
    const TCP_OFFSET: usize = 12;
    // Only receive coalescing by hardware leaves no checksum to complete: then as IPv4 has it.
    let transport = offload.transport().unwrap_or(34);
    let length = match frame.get(transport + TCP_OFFSET) {
        Some(byte) if offload.is_tcp() => usize::from(byte >> 4) * 4,
        _ => 8,
    };
    (transport + length) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_segment_carries_the_headers() {
        // 66 bytes of headers, 3 segments of 1448 bytes and one of 100.
        let segments = Segments::split(66 + 3 * 1448 + 100, 1448, 66);
        assert_eq!(segments, Segments { count: 4, each: 1514, last: 166 });
        assert_eq!(segments.bytes(), 3 * 1514 + 166);
        let exactly = Segments::split(66 + 2 * 1448, 1448, 66);
        assert_eq!(exactly, Segments { count: 2, each: 1514, last: 1514 });
        assert_eq!(Segments::split(1514, 1448, 66), 1514.into());
    }

    #[test]
    fn what_the_kernel_would_never_say_is_one_packet() {
        assert_eq!(Segments::split(1000, 0, 66), 1000.into());
        assert_eq!(Segments::split(60, 10, 66), 60.into());
        assert_eq!(Segments::split(u32::MAX, 1, 0).count, u16::MAX);
    }

    #[test]
    fn a_super_packet_of_64_kb_takes_a_millisecond_at_524_mbit() {
        assert!(!fits(65_536, Rate(524_287_999)));
        assert!(fits(65_536, Rate(524_288_000)));
        assert!(fits(65_536, Rate::UNLIMITED));
    }
}
