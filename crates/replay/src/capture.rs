//! Reading captures: pcap and pcapng, also compressed with gzip, as streams.
//!
//! A capture is read once from front to back, in a buffer as large as its longest record. One
//! that ends within a record, or goes on with bytes that are no record, gives its packets up to
//! there, and says where and why it ended. Times and lengths are handed out as they stand.

mod input;
mod pcap;
mod pcapng;

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use frame::LinkType;

use input::Input;
use pcap::Pcap;
use pcapng::PcapNg;

/// Opens the file of a capture, or says what was found and what is accepted.
///
/// # Errors
/// If it cannot be opened, or is a directory.
pub fn open_file(path: &Path) -> Result<File, String> {
    let open = || {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            Err(io::Error::other("it is a directory"))
        } else {
            Ok(file)
        }
    };
    open().map_err(|error| {
        let found = path.display();
        format!("capture {found}: {error}; it takes a pcap or pcapng file, or - for standard input")
    })
}

/// A packet as captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'c> {
    /// Its place among the packets of the capture, from 0; packets left out are counted.
    pub index: u64,
    /// How its bytes begin.
    pub link: LinkType,
    /// Its capture time since 1970, in nanoseconds; a simple packet block of pcapng has none.
    pub time_ns: Option<i128>,
    /// Its bytes, as far as they were captured.
    pub bytes: &'c [u8],
    /// How many bytes the link carried, link header included. Never fewer than were captured.
    pub wire_length: u32,
}

/// A capture that is being read.
pub struct Capture<R> {
    input: Input<R>,
    format: Format,
    gzip: bool,
    /// Length of the record handed out last: it is still in memory.
    held: usize,
    /// Packets so far.
    packets: u64,
    skipped: Skipped,
    link_types: Vec<(u16, u64)>,
    damage: Option<Damage>,
    ended: bool,
}

enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

/// Packets that were not handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Packets of a link type that is not supported.
    pub unsupported_link_type: u64,
    /// Packet blocks that contradict themselves, or belong to no interface.
    pub malformed: u64,
}

/// Why a capture ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// Its last record is not all there.
    #[error("it ends in the middle of a record")]
    Cut,
    /// What stands there is not a record.
    #[error("what stands there is not a record")]
    Malformed,
    /// A record longer than any writer makes them: its length is not to be trusted.
    #[error("a record claims {bytes} bytes, at most {accepted} are accepted")]
    TooLong {
        /// The length it claims.
        bytes: u64,
        /// The longest accepted.
        accepted: u64,
    },
    /// Reading or decompressing failed.
    #[error("{0}")]
    Read(io::Error),
}

/// Why a capture cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There are no bytes.
    #[error("it is empty; accepted are pcap and pcapng captures, also gzipped")]
    Empty,
    /// It begins like none of the formats.
    #[error("it begins with {found}; accepted are pcap and pcapng captures, also gzipped")]
    NoCapture {
        /// Its first bytes.
        found: String,
    },
    /// Its header is cut off.
    #[error("its header is cut off after {0} bytes; accepted are pcap and pcapng captures")]
    CutHeader(usize),
    /// It has packets, and none of a link type that is supported.
    #[error("its link type is {found}; accepted are {accepted}")]
    LinkType {
        /// What it has.
        found: String,
        /// What is supported.
        accepted: String,
    },
    /// It has no packets.
    #[error("it has no packets{}", because(.0))]
    NoPackets(Option<Damage>),
    /// The replay was interrupted before a packet was read.
    #[error("interrupted before the first packet")]
    Interrupted,
    /// It cannot be read.
    #[error("{0}")]
    Read(io::Error),
}

fn because(damage: &Option<Damage>) -> String {
    damage.as_ref().map_or_else(String::new, |damage| format!(": {damage}"))
}

/// How a packet's interface frames it.
#[derive(Clone, Copy)]
struct Interface {
    linktype: u16,
    link: Option<LinkType>,
}

impl Interface {
    fn of_linktype(linktype: u16) -> Self {
        Self { linktype, link: LinkType::from_linktype(linktype) }
    }
}

/// A packet as it stands in the file.
struct Raw {
    interface: Interface,
    time_ns: Option<i128>,
    wire_length: u32,
    /// Where in the input's window its bytes are.
    bytes: Range<usize>,
    /// Length of the record it stands in.
    record: usize,
}

/// What comes next.
enum Next {
    /// A packet.
    Packet(Raw),
    /// A packet of which nothing is to be made, in a record of this length.
    Unusable(usize),
    /// Nothing.
    End,
}

/// What an input begins with that is compressed by gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

impl<'r> Capture<Box<dyn Read + 'r>> {
    /// Opens a capture, decompressing it if it is compressed.
    ///
    /// # Errors
    /// If it is none, or its link type is not supported.
    pub fn open(mut reader: impl Read + 'r) -> Result<Self, CaptureError> {
        let mut magic = Vec::with_capacity(2);
        reader.by_ref().take(2).read_to_end(&mut magic).map_err(CaptureError::Read)?;
        let gzip = magic == GZIP;
        let whole = io::Cursor::new(magic).chain(reader);
        if gzip {
            Self::of(Box::new(MultiGzDecoder::new(whole)), true)
        } else {
            Self::of(Box::new(whole), false)
        }
    }
}

impl<R: Read> Capture<R> {
    fn of(reader: R, gzip: bool) -> Result<Self, CaptureError> {
        let mut input = Input::new(reader);
        let format = match PcapNg::open(&mut input) {
            Some(format) => Some(Format::PcapNg(format)),
            None => Pcap::open(&mut input).map(Format::Pcap),
        };
        let format = format.ok_or_else(|| no_capture(&mut input))?;
        if let Format::Pcap(pcap) = &format
            && pcap.interface().link.is_none()
        {
            return Err(unsupported(&[pcap.interface().linktype]));
        }
        Ok(Self {
            input,
            format,
            gzip,
            held: 0,
            packets: 0,
            skipped: Skipped::default(),
            link_types: Vec::new(),
            damage: None,
            ended: false,
        })
    }

    /// The next packet; `None` at the end, after which [`Capture::damage`] says whether it was.
    pub fn next_record(&mut self) -> Option<Record<'_>> {
        let (raw, link) = loop {
            let raw = self.next_raw()?;
            match raw.interface.link {
                Some(link) => break (raw, link),
                None => self.skipped.unsupported_link_type += 1,
            }
        };
        let captured = raw.bytes.len() as u32;
        Some(Record {
            index: self.packets - 1,
            link,
            time_ns: raw.time_ns,
            bytes: &self.input.window()[raw.bytes],
            wire_length: raw.wire_length.max(captured),
        })
    }

    #[inline]
    fn next_raw(&mut self) -> Option<Raw> {
        loop {
            self.input.take(std::mem::take(&mut self.held));
            if self.ended {
                return None;
            }
            let next = match &mut self.format {
                Format::Pcap(pcap) => pcap.next(&mut self.input),
                Format::PcapNg(pcapng) => pcapng.next(&mut self.input),
            };
            match next {
                Ok(Next::Packet(raw)) => {
                    self.held = raw.record;
                    self.packets += 1;
                    self.count(raw.interface.linktype);
                    return Some(raw);
                }
                Ok(Next::Unusable(record)) => {
                    self.held = record;
                    self.packets += 1;
                    self.skipped.malformed += 1;
                }
                Ok(Next::End) => self.ended = true,
                Err(damage) => {
                    self.ended = true;
                    self.damage = Some(damage);
                }
            }
        }
    }

    fn count(&mut self, linktype: u16) {
        match self.link_types.iter_mut().find(|(known, _)| *known == linktype) {
            Some((_, packets)) => *packets += 1,
            None => self.link_types.push((linktype, 1)),
        }
    }

    /// Why it ended before its end, if it did.
    #[must_use]
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Bytes read so far, decompressed.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.input.taken()
    }

    /// Packets that could not be handed out.
    #[must_use]
    pub const fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// The `LINKTYPE_` values of its packets so far, and how many packets have each.
    #[must_use]
    pub fn link_types(&self) -> &[(u16, u64)] {
        &self.link_types
    }

    /// `pcap` or `pcapng`.
    #[must_use]
    pub const fn format(&self) -> &'static str {
        match self.format {
            Format::Pcap(_) => "pcap",
            Format::PcapNg(_) => "pcapng",
        }
    }

    /// Whether it is compressed.
    #[must_use]
    pub const fn is_gzip(&self) -> bool {
        self.gzip
    }

    /// What is wrong with a capture that has come to its end and gave no packet.
    #[must_use]
    pub fn without_packets(mut self) -> CaptureError {
        if self.link_types.is_empty() {
            return CaptureError::NoPackets(self.damage.take());
        }
        let types: Vec<u16> = self.link_types.iter().map(|(linktype, _)| *linktype).collect();
        unsupported(&types)
    }
}

fn unsupported(linktypes: &[u16]) -> CaptureError {
    let found: Vec<String> = linktypes.iter().map(u16::to_string).collect();
    let accepted: Vec<String> =
        LinkType::ALL.iter().map(|link| format!("{} ({})", link.linktype(), link.name())).collect();
    CaptureError::LinkType { found: found.join(", "), accepted: accepted.join(", ") }
}

fn no_capture<R: Read>(input: &mut Input<R>) -> CaptureError {
    if let Some(error) = input.error() {
        return CaptureError::Read(error);
    }
    let window = input.window();
    if window.is_empty() {
        return CaptureError::Empty;
    }
    if pcap::has_magic(window) || pcapng::has_magic(window) {
        return CaptureError::CutHeader(window.len());
    }
    let bytes: Vec<String> = window.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    CaptureError::NoCapture { found: bytes.join(" ") }
}

/// What the end of the stream is, where a record is to follow.
fn end_of<R: Read>(input: &mut Input<R>) -> Result<Next, Damage> {
    match input.error() {
        Some(error) => Err(Damage::Read(error)),
        None if input.window().is_empty() => Ok(Next::End),
        None => Err(Damage::Cut),
    }
}
