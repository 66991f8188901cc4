//! pcapng: sections of blocks, several interfaces with clocks of their own.

use std::io::Read;

use pcap_parser::pcapng::{
    InterfaceDescriptionBlock, parse_enhancedpacketblock_be, parse_enhancedpacketblock_le,
    parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le,
    parse_sectionheaderblock, parse_simplepacketblock_be, parse_simplepacketblock_le,
};
use pcap_parser::{EPB_MAGIC, IDB_MAGIC, OptionCode, PcapNGOption, SHB_MAGIC, SPB_MAGIC};

use super::input::Input;
use super::{Damage, Interface, Next, Raw};

/// The longest block that is read, as in libpcap.
const LONGEST: u32 = 16 << 20;
/// The most interfaces of one section.
const MOST_INTERFACES: usize = 1 << 16;
/// Type, length, length again.
const FRAME: usize = 12;

/// The section that is being read.
pub(super) struct PcapNg {
    big_endian: bool,
    interfaces: Vec<Clocked>,
}

/// An interface with its clock.
#[derive(Clone, Copy)]
struct Clocked {
    interface: Interface,
    snaplen: u32,
    resolution: Resolution,
    offset_s: i64,
}

impl PcapNg {
    /// `None` if the input does not begin with a section.
    pub(super) fn open<R: Read>(input: &mut Input<R>) -> Option<Self> {
        input.ensure(FRAME);
        let window = input.window();
        let is_section = window.len() >= FRAME && has_magic(window);
        let big_endian = is_section.then(|| section_is_big_endian(window)).flatten()?;
        Some(Self { big_endian, interfaces: Vec::new() })
    }

    /// The next packet. Passes over blocks of other kinds.
    pub(super) fn next<R: Read>(&mut self, input: &mut Input<R>) -> Result<Next, Damage> {
        loop {
            if !input.ensure(FRAME) {
                return super::end_of(input);
            }
            let window = input.window();
            if has_magic(window) {
                self.big_endian = section_is_big_endian(window).ok_or(Damage::Malformed)?;
            }
            let (kind, length) = (self.u32_at(window, 0), self.u32_at(window, 4));
            if (length as usize) < FRAME || length % 4 != 0 {
                return Err(Damage::Malformed);
            }
            if length > LONGEST {
                return Err(Damage::TooLong { bytes: length.into(), accepted: LONGEST.into() });
            }
            let length = length as usize;
            if !input.ensure(length) {
                return super::end_of(input);
            }
            let block = &input.window()[..length];
            // A block whose two lengths differ is not where a block begins.
            if self.u32_at(block, length - 4) as usize != length {
                return Err(Damage::Malformed);
            }
            match kind {
                EPB_MAGIC => {
                    return Ok(self.enhanced(block).map_or(Next::Unusable(length), Next::Packet));
                }
                SPB_MAGIC => {
                    return Ok(self.simple(block).map_or(Next::Unusable(length), Next::Packet));
                }
                SHB_MAGIC => {
                    parse_sectionheaderblock(block).map_err(|_| Damage::Malformed)?;
                    self.interfaces.clear();
                }
                IDB_MAGIC => self.describe(block)?,
                _ => {}
            }
            input.take(length);
        }
    }

    fn describe(&mut self, block: &[u8]) -> Result<(), Damage> {
        let parse = if self.big_endian {
            parse_interfacedescriptionblock_be
        } else {
            parse_interfacedescriptionblock_le
        };
        let (_, description) = parse(block).map_err(|_| Damage::Malformed)?;
        if self.interfaces.len() == MOST_INTERFACES {
            return Err(Damage::Malformed);
        }
        self.interfaces.push(Clocked::new(&description, self.big_endian));
        Ok(())
    }

    #[inline]
    fn enhanced(&self, block: &[u8]) -> Option<Raw> {
        const DATA: usize = 28;
        let parse = if self.big_endian {
            parse_enhancedpacketblock_be
        } else {
            parse_enhancedpacketblock_le
        };
        let (_, packet) = parse(block).ok()?;
        let on = self.interfaces.get(packet.if_id as usize)?;
        let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
        let offset_ns = i128::from(on.offset_s) * 1_000_000_000;
        let captured = packet.data.len().min(packet.caplen as usize);
        Some(Raw {
            interface: on.interface,
            time_ns: Some(on.resolution.nanoseconds(ticks) + offset_ns),
            wire_length: packet.origlen,
            bytes: DATA..DATA + captured,
            record: block.len(),
        })
    }

    /// A packet without a time. How much of it was captured follows from its length.
    fn simple(&self, block: &[u8]) -> Option<Raw> {
        const DATA: usize = 12;
        let parse =
            if self.big_endian { parse_simplepacketblock_be } else { parse_simplepacketblock_le };
        let (_, packet) = parse(block).ok()?;
        let on = self.interfaces.first()?;
        let snaplen = if on.snaplen == 0 { u32::MAX } else { on.snaplen };
        let captured = packet.data.len().min(packet.origlen.min(snaplen) as usize);
        Some(Raw {
            interface: on.interface,
            time_ns: None,
            wire_length: packet.origlen,
            bytes: DATA..DATA + captured,
            record: block.len(),
        })
    }

    fn u32_at(&self, window: &[u8], at: usize) -> u32 {
        let bytes = window[at..at + 4].try_into().expect("four bytes");
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

/// Whether the bytes begin as a section does, in either byte order.
pub(super) fn has_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(&SHB_MAGIC.to_le_bytes())
}

fn section_is_big_endian(block: &[u8]) -> Option<bool> {
    match block[8..12] {
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(true),
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(false),
        _ => None,
    }
}

impl Clocked {
    fn new(block: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Self {
        let resolution = option(&block.options, OptionCode::IfTsresol)
            .and_then(|bytes| bytes.first().copied())
            .map_or(Resolution::MICROSECONDS, Resolution::of_option);
        // The library reads the offset as little-endian whatever the section is.
        let offset_s = option(&block.options, OptionCode::IfTsoffset)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, |bytes: [u8; 8]| match big_endian {
                true => i64::from_be_bytes(bytes),
                false => i64::from_le_bytes(bytes),
            });
        let interface = Interface::of_linktype(block.linktype.0 as u16);
        Self { interface, snaplen: block.snaplen, resolution, offset_s }
    }
}

fn option<'b>(options: &'b [PcapNGOption<'_>], code: OptionCode) -> Option<&'b [u8]> {
    options.iter().find(|option| option.code == code)?.as_bytes().ok()
}

/// What a tick of an interface's clock is worth (`if_tsresol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// So many nanoseconds.
    Nanoseconds(u64),
    /// A power of ten of them is a nanosecond.
    PerNanosecond(u128),
    /// Two to this power of them are a second.
    BinaryFraction(u32),
}

impl Resolution {
    const MICROSECONDS: Self = Self::Nanoseconds(1000);

    fn of_option(value: u8) -> Self {
        let exponent = u32::from(value & 0x7f);
        match (value & 0x80, exponent) {
            (0, 0..=9) => Self::Nanoseconds(10u64.pow(9 - exponent)),
            // From 10^-47 on all 64 bits of ticks are less than a nanosecond.
            (0, _) => Self::PerNanosecond(10u128.checked_pow(exponent - 9).unwrap_or(u128::MAX)),
            _ => Self::BinaryFraction(exponent),
        }
    }

    #[inline]
    fn nanoseconds(self, ticks: u64) -> i128 {
        let ticks = u128::from(ticks);
        let nanoseconds = match self {
            Self::Nanoseconds(each) => ticks * u128::from(each),
            Self::PerNanosecond(count) => ticks / count,
            Self::BinaryFraction(power) => (ticks * 1_000_000_000) >> power,
        };
        // Below 2^64 * 10^9.
        nanoseconds as i128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_what_the_interface_says() {
        let ns = |option, ticks| Resolution::of_option(option).nanoseconds(ticks);
        assert_eq!(ns(6, 5), 5000);
        assert_eq!(ns(9, 5), 5);
        assert_eq!(ns(0, 5), 5_000_000_000);
        assert_eq!(ns(12, 5999), 5);
        assert_eq!(ns(127, u64::MAX), 0);
        assert_eq!(ns(0x80, 5), 5_000_000_000);
        assert_eq!(ns(0x80 | 10, 512), 500_000_000);
        assert_eq!(ns(0xff, u64::MAX), 0);
        assert_eq!(ns(0, u64::MAX), i128::from(u64::MAX) * 1_000_000_000);
    }
}
