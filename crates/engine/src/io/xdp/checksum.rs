//! Checksums that the sending host has left to its interface.
//!
//! A veth or TAP device hands on what its driver was asked to complete, and to `AF_XDP` it does
//! not say so: TCP and UDP carry the sum of the pseudo-header where their checksum belongs. That
//! shows, and so the checksum is completed here, as the interface would have done.

const ADDRESSES: usize = 12;
const TAG_TYPES: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Completes the TCP or UDP checksum of an Ethernet frame if it is none yet, and says so.
pub(super) fn complete(frame: &mut [u8]) -> bool {
    let Some(segment) = Segment::find(frame) else { return false };
    let Segment { start, end, pseudo, at } = segment;
    let at = start + at;
    if read(frame, at) != fold(pseudo) {
        return false;
    }
    let sum = u64::from(fold(add(0, &frame[start..end])));
    // A checksum that happens to look like that makes a sum of all ones with the pseudo-header.
    if fold(sum + u64::from(fold(pseudo))) == 0xffff {
        return false;
    }
    // What stands there already is the pseudo-header's part.
    let checksum = match !(sum as u16) {
        // In UDP that would mean "none"; in TCP both are the same number.
        0 => 0xffff,
        checksum => checksum,
    };
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// A TCP or UDP segment in a frame.
struct Segment {
    start: usize,
    end: usize,
    /// Sum of the words of the pseudo-header.
    pseudo: u64,
    /// Where in the segment the checksum stands.
    at: usize,
}

impl Segment {
    fn find(frame: &[u8]) -> Option<Self> {
        let mut network = ADDRESSES;
        let mut ethertype = word(frame, network)?;
        while TAG_TYPES.contains(&ethertype) {
            network += 4;
            ethertype = word(frame, network)?;
        }
        network += 2;
        let (protocol, start, end, addresses) = match ethertype {
            IPV4 => ipv4(frame, network)?,
            IPV6 => ipv6(frame, network)?,
            _ => return None,
        };
        let (at, least) = match protocol {
            TCP => (16, 20),
            UDP => (6, 8),
            _ => return None,
        };
        if end > frame.len() || end < start + least {
            return None;
        }
        let pseudo = add((end - start) as u64 + u64::from(protocol), addresses);
        Some(Self { start, end, pseudo, at })
    }
}

/// Protocol, begin and end of what an unfragmented packet carries, and its addresses.
fn ipv4(frame: &[u8], at: usize) -> Option<(u8, usize, usize, &[u8])> {
    const FRAGMENT: u16 = 0x3fff;
    let header = frame.get(at..at + 20)?;
    let length = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || length < 20 || read(header, 6) & FRAGMENT != 0 {
        return None;
    }
    let end = at + usize::from(read(header, 2));
    Some((header[9], at + length, end, &header[12..20]))
}

/// The same for IPv6. With extension headers, the sender completes the checksums itself.
fn ipv6(frame: &[u8], at: usize) -> Option<(u8, usize, usize, &[u8])> {
    let header = frame.get(at..at + 40)?;
    let end = at + 40 + usize::from(read(header, 4));
    (header[0] >> 4 == 6).then_some((header[6], at + 40, end, &header[8..40]))
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|word| u16::from_be_bytes([word[0], word[1]]))
}

fn read(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Adds the words of `bytes` to a sum, four bytes at a time: the carries that this leaves in the
/// upper half are folded in at the end (RFC 1071, section 2).
fn add(mut sum: u64, bytes: &[u8]) -> u64 {
    let mut quads = bytes.chunks_exact(4);
    for quad in &mut quads {
        sum += u64::from(u32::from_be_bytes([quad[0], quad[1], quad[2], quad[3]]));
    }
    let mut last = [0; 4];
    let rest = quads.remainder();
    last[..rest.len()].copy_from_slice(rest);
    sum + u64::from(u32::from_be_bytes(last))
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame around a TCP or UDP segment with nothing but zeros and ports in it.
    fn frame(version: u8, tags: &[u8], protocol: u8, length: usize) -> Vec<u8> {
        let mut segment = vec![0; length];
        segment[..4].copy_from_slice(&[0x9c, 0x40, 0, 53]);
        for (index, byte) in segment[20..].iter_mut().enumerate() {
            *byte = index as u8;
        }
        let total = (length as u16 + 20).to_be_bytes();
        let (ethertype, header) = match version {
            4 => {
                let start = [0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, protocol, 0, 0];
                ([0x08, 0x00], [&start[..], &[10, 0, 0, 1, 10, 0, 0, 2]].concat())
            }
            _ => {
                let payload = (length as u16).to_be_bytes();
                let start = [0x60, 0, 0, 0, payload[0], payload[1], protocol, 64];
                ([0x86, 0xdd], [&start[..], &[0xfd; 16], &[0xfe; 16]].concat())
            }
        };
        [&[2; 12], tags, &ethertype, &header, &segment].concat()
    }

    /// Puts the sum of the pseudo-header where the checksum belongs, as a host does that leaves
    /// the rest to its interface.
    fn leave_undone(frame: &mut [u8]) {
        let Segment { start, pseudo, at, .. } = Segment::find(frame).unwrap();
        frame[start + at..start + at + 2].copy_from_slice(&fold(pseudo).to_be_bytes());
    }

    fn is_valid(frame: &[u8]) -> bool {
        let Segment { start, end, pseudo, .. } = Segment::find(frame).unwrap();
        fold(add(pseudo, &frame[start..end])) == 0xffff
    }

    #[test]
    fn what_was_left_undone_is_completed_once() {
        let tags: [&[u8]; 3] = [&[], &[0x81, 0, 0, 10], &[0x88, 0xa8, 0, 20, 0x81, 0, 0, 10]];
        for version in [4, 6] {
            for tags in tags {
                for protocol in [TCP, UDP] {
                    for length in [20, 21, 22, 23, 24, 1473] {
                        let mut frame = frame(version, tags, protocol, length);
                        leave_undone(&mut frame);
                        assert!(!is_valid(&frame));
                        assert!(complete(&mut frame));
                        assert!(is_valid(&frame), "IPv{version}, {protocol}, {length} bytes");
                        let completed = frame.clone();
                        assert!(!complete(&mut frame));
                        assert_eq!(frame, completed);
                    }
                }
            }
        }
    }

    #[test]
    fn padding_behind_the_packet_does_not_count() {
        let mut padded = frame(4, &[], UDP, 24);
        leave_undone(&mut padded);
        padded.extend([0xaa; 9]);
        assert!(complete(&mut padded));
        assert!(is_valid(&padded));
    }

    #[test]
    fn what_is_wrong_or_absent_stays() {
        let untouched = |mut frame: Vec<u8>| {
            let before = frame.clone();
            assert!(!complete(&mut frame));
            assert_eq!(frame, before);
        };
        untouched(frame(4, &[], UDP, 40));
        let mut wrong = frame(6, &[], TCP, 40);
        wrong[14 + 40 + 16] = 0x55;
        untouched(wrong);
        untouched(frame(4, &[], 132, 40));
        let mut fragment = frame(4, &[], UDP, 40);
        leave_undone(&mut fragment);
        fragment[20] = 0x20;
        untouched(fragment);
    }

    #[test]
    fn frames_cut_off_anywhere_are_no_fault() {
        for version in [4, 6] {
            let mut whole = frame(version, &[0x81, 0, 0, 10], TCP, 60);
            leave_undone(&mut whole);
            for length in 0..whole.len() {
                assert!(!complete(&mut whole[..length].to_vec()));
            }
        }
    }
}
