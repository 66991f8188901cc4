//! The classic pcap format, of either byte order, with microseconds or nanoseconds.

use std::io::Read;

use pcap_parser::pcap::{
    LegacyPcapBlock, PcapHeader, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};

use super::input::Input;
use super::{Damage, Interface, Next, Raw};

/// The longest packet that libpcap writes (`MAXIMUM_SNAPLEN`), and reads.
const LONGEST: u32 = 262_144;
const HEADER: usize = 24;

/// What the file's header says.
pub(super) struct Pcap {
    header: PcapHeader,
    interface: Interface,
    nanoseconds_per_fraction: u64,
}

impl Pcap {
    /// Reads the file's header. `None` if the file has none.
    pub(super) fn open<R: Read>(input: &mut Input<R>) -> Option<Self> {
        input.ensure(HEADER);
        let (_, header) = parse_pcap_header(input.window()).ok()?;
        input.take(HEADER);
        // The upper half has the length of the frame check sequence, and reserved bits.
        let interface = Interface::of_linktype(header.network.0 as u16);
        let fraction = if header.is_nanosecond_precision() { 1 } else { 1000 };
        Some(Self { header, interface, nanoseconds_per_fraction: fraction })
    }

    pub(super) fn interface(&self) -> Interface {
        self.interface
    }

    #[inline]
    pub(super) fn next<R: Read>(&self, input: &mut Input<R>) -> Result<Next, Damage> {
        let modified = self.header.is_modified_format();
        let head = if modified { 24 } else { 16 };
        if !input.ensure(head) {
            return super::end_of(input);
        }
        let field = input.window()[8..12].try_into().expect("four bytes");
        let big_endian = self.header.is_bigendian();
        let length = if big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) };
        if length > LONGEST {
            return Err(Damage::TooLong { bytes: length.into(), accepted: LONGEST.into() });
        }
        let record = head + length as usize;
        if !input.ensure(record) {
            return super::end_of(input);
        }
        let parse = match (modified, big_endian) {
            (true, _) => parse_pcap_frame_modified,
            (_, true) => parse_pcap_frame_be,
            _ => parse_pcap_frame,
        };
        let (_, block) = parse(&input.window()[..record]).map_err(|_| Damage::Malformed)?;
        Ok(Next::Packet(Raw {
            interface: self.interface,
            time_ns: Some(self.time_ns(&block)),
            wire_length: block.origlen,
            bytes: head..record,
            record,
        }))
    }

    #[inline]
    fn time_ns(&self, block: &LegacyPcapBlock<'_>) -> i128 {
        let fraction = u64::from(block.ts_usec) * self.nanoseconds_per_fraction;
        i128::from(u64::from(block.ts_sec) * 1_000_000_000 + fraction)
    }
}

/// Whether the bytes begin as a pcap file does.
pub(super) fn has_magic(bytes: &[u8]) -> bool {
    let magics = [0xa1b2_c3d4u32, 0xa1b2_3c4d, 0xa1b2_cd34, 0xd4c3_b2a1, 0x4d3c_b2a1];
    magics.iter().any(|magic| bytes.starts_with(&magic.to_le_bytes()))
}
