//! What a TCP segment says of itself by which a round trip can be timed.

use crate::key::{FlowKey, read};
use crate::link::{LinkType, read_u32};

/// A TCP segment that opens, carries or acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// Between whom.
    pub key: FlowKey,
    /// The sequence number behind it, if it takes any.
    pub end: Option<u32>,
    /// The sequence number that the other side is expected to go on with.
    pub acknowledges: Option<u32>,
    /// Its timestamps (RFC 7323): its own, and that which it echoes.
    pub stamps: Option<(u32, u32)>,
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
/// Kinds of options.
const END: u8 = 0;
const NOTHING: u8 = 1;
const TIMESTAMPS: u8 = 8;

/// Reads a frame; none if it carries no whole TCP header, or a reset.
#[must_use]
pub fn tcp_segment(link: LinkType, frame: &[u8]) -> Option<TcpSegment> {
    let read = read(link, frame);
    let transport = read.tcp()?;
    let flags = *transport.get(13)?;
    if flags & RST != 0 {
        return None;
    }
    let header = usize::from(*transport.get(12)? >> 4) * 4;
    let options = transport.get(20..header)?;
    let extra = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
    // Whoever sees no more than the headers knows by the IP header how much they head.
    let bytes = (transport.len() - header) as u32 + read.missing() + extra;
    let acknowledges = (flags & ACK != 0).then(|| read_u32(transport, 8)).flatten();
    Some(TcpSegment {
        key: read.key,
        end: (bytes > 0).then_some(read_u32(transport, 4)?.wrapping_add(bytes)),
        acknowledges,
        stamps: timestamps(options),
    })
}

fn timestamps(mut options: &[u8]) -> Option<(u32, u32)> {
    loop {
        match *options.first()? {
            END => return None,
            NOTHING => options = &options[1..],
            TIMESTAMPS if options.get(1) == Some(&10) => {
                return Some((read_u32(options, 2)?, read_u32(options, 6)?));
            }
            _ => {
                let length = usize::from(*options.get(1)?);
                options = options.get(length.max(2)..)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flags: u8, options: &[u8], payload: usize) -> Vec<u8> {
        let mut tcp = vec![0x30, 0x39, 0x00, 0x50, 0, 0, 1, 0, 0, 0, 2, 0];
        let header = 20 + options.len();
        tcp.extend([(header as u8 / 4) << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(options);
        tcp.extend(vec![7; payload]);
        let length = (20 + tcp.len()) as u16;
        let mut ip = vec![0x45, 0, (length >> 8) as u8, length as u8, 0, 0, 0, 0, 64, 6, 0, 0];
        ip.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        [&[2; 12][..], &[8, 0], &ip, &tcp].concat()
    }

    #[test]
    fn a_segment_says_what_it_takes_acknowledges_and_echoes() {
        let stamped = [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 9];
        let read = |flags, options: &[u8], payload| {
            tcp_segment(LinkType::Ethernet, &frame(flags, options, payload))
        };
        let segment = read(ACK, &stamped, 100).unwrap();
        assert_eq!(segment.key.to_string(), "10.0.0.1:12345 > 10.0.0.2:80 tcp");
        assert_eq!(segment.end, Some(356));
        assert_eq!(segment.acknowledges, Some(512));
        assert_eq!(segment.stamps, Some((5, 9)));
        assert_eq!(read(ACK, &stamped, 0).unwrap().end, None);
        assert_eq!(read(SYN, &[2, 4, 5, 0xb4], 0).unwrap().end, Some(257));
        assert_eq!(read(SYN, &[], 0).unwrap().acknowledges, None);
        assert_eq!(read(ACK, &[3, 3, 7, 0], 10).unwrap().stamps, None, "another option");
        assert_eq!(read(RST | ACK, &stamped, 0), None);
    }

    #[test]
    fn a_frame_that_is_cut_off_behind_its_headers_says_the_same() {
        let whole = frame(ACK, &[1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 9], 1_000);
        let said = tcp_segment(LinkType::Ethernet, &whole);
        assert_eq!(said.unwrap().end, Some(1_256));
        for length in [14 + 20 + 32, 128, 1_000] {
            assert_eq!(tcp_segment(LinkType::Ethernet, &whole[..length]), said, "{length}");
        }
    }

    #[test]
    fn broken_headers_are_none_or_say_less() {
        let whole = frame(ACK, &[1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 9], 5);
        for length in 0..whole.len() {
            let segment = tcp_segment(LinkType::Ethernet, &whole[..length]);
            assert!(segment.is_none() || length >= 14 + 20 + 32, "{length}");
        }
        // Lengths of options that lead nowhere.
        for options in [[5, 0, 0, 0], [8, 0, 0, 0], [8, 10, 0, 0], [9, 200, 0, 0]] {
            let segment = tcp_segment(LinkType::Ethernet, &frame(ACK, &options, 0)).unwrap();
            assert_eq!(segment.stamps, None);
        }
        let mut short = frame(ACK, &[], 0);
        short[14 + 20 + 12] = 0x40;
        assert_eq!(tcp_segment(LinkType::Ethernet, &short), None);
    }
}
