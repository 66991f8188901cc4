//! TCP segments, well-formed and not, in both directions of a link: what is read is what was
//! written, also of a frame that is cut off; and a round trip that `--rate auto` times begins with a
//! segment that left, ends with the answer to it, and takes no longer than a second.
//!
//! The first byte is the link type, then come operations ([`Operation`]).

#![forbid(unsafe_code)]
#![no_main]

mod model;
mod packet;

use engine::harness::RoundTrips;
use frame::{LinkType, TcpSegment, tcp_segment};
use libfuzzer_sys::fuzz_target;
use sched::Nanos;

use self::model::Model;
use self::packet::Packet;

/// What the engine in the kernel sees of a frame.
const SEEN: usize = 128;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, mut rest)) = bytes.split_first() else { return };
    let link = [LinkType::Ethernet, LinkType::RawIp][usize::from(choice % 2)];
    let (trips, mut model) = (RoundTrips::new(link), Model::default());
    let mut now = Nanos::from_secs(1_000);
    let mut sent = 0;
    while let Some(operation) = Operation::read(link, &mut rest) {
        match operation {
            Operation::Leave(frame) => {
                model.leaves(tcp_segment(link, &frame), sent, now);
                trips.leaves(&frame, sent, now);
                sent += frame.len() as u64;
            }
            Operation::Come(frame) => {
                model.comes(tcp_segment(link, &frame), now);
                trips.comes(&frame, now);
            }
            Operation::Pass(time) => now += time,
            Operation::Back(time) => now = now - time,
        }
        while let Some(trip) = trips.take() {
            model.check(&trip);
        }
    }
});

/// What happens, by the low three bits of a byte.
enum Operation {
    /// 0: a segment leaves ([`Packet`]); 2: bytes do (1 byte: how many).
    Leave(Vec<u8>),
    /// 1: a segment comes; 3: bytes do.
    Come(Vec<u8>),
    /// 4 to 6: time passes, 16 bits of us shifted by bits 3 to 5.
    Pass(Nanos),
    /// 7: the clock goes back by that.
    Back(Nanos),
}

impl Operation {
    fn read(link: LinkType, rest: &mut &[u8]) -> Option<Self> {
        let [kind] = *take::<1>(rest)?;
        let time = |rest: &mut &[u8]| {
            let time = u64::from(u16::from_le_bytes(*take(rest)?)) << (kind >> 3 & 7);
            Some(Nanos(time * 1_000))
        };
        Some(match kind & 7 {
            0 => Self::Leave(segment(link, rest)?),
            1 => Self::Come(segment(link, rest)?),
            2 => Self::Leave(bytes(rest)?),
            3 => Self::Come(bytes(rest)?),
            7 => Self::Back(time(rest)?),
            _ => Self::Pass(time(rest)?),
        })
    }
}

fn bytes(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::from(take::<1>(rest)?[0]);
    let (bytes, remaining) = rest.split_at(length.min(rest.len()));
    *rest = remaining;
    Some(bytes.to_vec())
}

/// A frame with a segment, which is read as it was written.
fn segment(link: LinkType, rest: &mut &[u8]) -> Option<Vec<u8>> {
    let packet = Packet::read(rest)?;
    let frame = packet.frame(link);
    let said = tcp_segment(link, &frame);
    assert_eq!(said, packet.says(link), "{packet:?}");
    // Cut off behind its headers it says the same, and before that nothing.
    for seen in [SEEN, usize::from(packet.cut)] {
        let cut = tcp_segment(link, &frame[..seen.min(frame.len())]);
        let expected: Option<TcpSegment> = said.filter(|_| seen >= packet.headers(link));
        assert_eq!(cut, expected, "{seen} bytes of {packet:?}");
    }
    Some(if packet.is_cut() { frame[..SEEN.min(frame.len())].to_vec() } else { frame })
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, remaining) = rest.split_first_chunk()?;
    *rest = remaining;
    Some(taken)
}
