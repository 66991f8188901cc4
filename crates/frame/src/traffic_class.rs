//! Changing the traffic class of a frame: the byte of DSCP and ECN in the IP header.

use crate::link::{LinkType, ethertype};

/// Replaces the traffic class of the IP packet in a frame by what `change` makes of
/// it, and corrects the IPv4 header checksum. Returns false, with the frame untouched, if it is
/// no IP packet, or `change` wants none.
pub(crate) fn rewrite(
    link: LinkType,
    frame: &mut [u8],
    change: impl FnOnce(u8) -> Option<u8>,
) -> bool {
    let located = link.locate(frame);
    let packet = &mut frame[located.offset..];
    let changed = match (located.ethertype, packet.first().map(|byte| byte >> 4)) {
        (ethertype::IPV4, Some(4)) => rewrite_ipv4(packet, change),
        (ethertype::IPV6, Some(6)) => rewrite_ipv6(packet, change),
        _ => None,
    };
    changed.is_some()
}

fn rewrite_ipv4(packet: &mut [u8], change: impl FnOnce(u8) -> Option<u8>) -> Option<()> {
    // As the key reads it: a header that claims less than 20 bytes, or more than there are, is none.
    let header = usize::from(packet[0] & 0x0f) * 4;
    if header < 20 || packet.len() < header {
        return None;
    }
    let class = change(packet[1])?;
    let old = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] = class;
    let new = u16::from_be_bytes([packet[0], packet[1]]);
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    packet[10..12].copy_from_slice(&updated(checksum, old, new).to_be_bytes());
    Some(())
}

fn rewrite_ipv6(packet: &mut [u8], change: impl FnOnce(u8) -> Option<u8>) -> Option<()> {
    if packet.len() < 40 {
        return None;
    }
    // Four bits after the version and before the flow label.
    let class = change(packet[0] << 4 | packet[1] >> 4)?;
    packet[0] = packet[0] & 0xf0 | class >> 4;
    packet[1] = class << 4 | packet[1] & 0x0f;
    Some(())
}

/// The checksum after one word of the header has changed (RFC 1624, equation 3).
fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !(folded as u16)
}
