//! What the engine may change in a frame: the traffic class and, in IPv4, the checksum with it.

/// Checks that a frame leaves as it came; returns whether it has been marked "congestion
/// experienced".
pub(crate) fn is_same(came: &[u8], leaves: &[u8]) -> bool {
    if came == leaves {
        return false;
    }
    assert_eq!(came.len(), leaves.len(), "a frame of another length");
    let network = network_header(came);
    let (before, after) = (&came[network..], &leaves[network..]);
    assert_eq!(came[..network], leaves[..network], "what is in front of the network header");
    let (old, new) = match before[0] >> 4 {
        4 => {
            assert_eq!(sum(&before[..20]), sum(&after[..20]), "the checksum of the header");
            let unchanged = |packet: &[u8]| [&packet[..1], &packet[2..10], &packet[12..]].concat();
            assert_eq!(unchanged(before), unchanged(after), "beside class and checksum");
            (before[1], after[1])
        }
        _ => {
            let class = |packet: &[u8]| packet[0] << 4 | packet[1] >> 4;
            let unchanged = |packet: &[u8]| {
                let label = [packet[0] >> 4, packet[1] & 0x0f];
                [&label, &packet[2..]].concat()
            };
            assert_eq!(unchanged(before), unchanged(after), "beside the class");
            (class(before), class(after))
        }
    };
    let marked = old & 3 != new & 3;
    assert!(!marked || (new & 3 == 3 && old & 3 != 0), "a mark on what cannot be marked");
    marked
}

/// Where the network header begins, behind any VLAN tags and PPPoE. (A frame that has changed has
/// one.)
fn network_header(frame: &[u8]) -> usize {
    let mut at = 12;
    while matches!(frame[at..at + 2], [0x81 | 0x91 | 0x92, 0x00] | [0x88, 0xa8]) {
        at += 4;
    }
    let pppoe = frame[at..at + 2] == [0x88, 0x64];
    at + 2 + if pppoe { 8 } else { 0 }
}

/// The sum of the words, as Internet checksums are made; 0 and 0xffff are one value in it.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.fold(0, |sum: u32, word| sum + word);
    let folded = (sum & 0xffff) + (sum >> 16);
    (((folded & 0xffff) + (folded >> 16)) % 0xffff) as u16
}
