//! A link's framing as an operator writes it: a number of bytes, or what the link is.
//!
//! The keywords are those of `tc-cake(8)`. They say what comes on top of the IP packet, while
//! `tc` counts frames with their Ethernet header; a plain number is on top of what `tc` counts. So
//! what a keyword amounts to depends on the device.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::settings::framing::{Cells, Framing};

/// Bytes that can be added to a packet.
pub const BYTES: RangeInclusive<i32> = -64..=1024;
/// Least sizes that can be asked for.
pub const MPU: RangeInclusive<u32> = 0..=1024;

/// Bytes of the header that an Ethernet device's packets have before the IP header.
pub const ETHERNET_HEADER: u32 = netdev::device::ETHERNET_HEADER as u32;

/// What a packet takes on the link beside its own bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    from: Above,
    bytes: i32,
    mpu: u32,
    cells: Cells,
    /// The keyword that says all of this.
    keyword: Option<&'static str>,
}

/// What the bytes come on top of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Above {
    /// The frame, as `tc` counts it.
    #[default]
    Frame,
    /// The IP packet.
    Network,
}

/// A way of framing that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// Its name.
    pub name: &'static str,
    /// Bytes on top of the IP packet.
    pub bytes: i32,
    /// What it sets the least size to.
    pub mpu: Option<u32>,
    /// What it says about cells.
    pub cells: Option<Cells>,
    /// What it is for, in a few words.
    pub about: &'static str,
}

const fn adsl(name: &'static str, bytes: i32, about: &'static str) -> Keyword {
    Keyword { name, bytes, mpu: None, cells: Some(Cells::Atm), about }
}

const fn vdsl(name: &'static str, bytes: i32, about: &'static str) -> Keyword {
    Keyword { name, bytes, mpu: None, cells: Some(Cells::Ptm), about }
}

/// Keywords that say how much a packet takes; of these one is given at most.
pub const KEYWORDS: [Keyword; 13] = [
    Keyword {
        name: "ethernet",
        bytes: 38,
        mpu: Some(84),
        cells: None,
        about: "an Ethernet cable: header, checksum, preamble, gap",
    },
    Keyword {
        name: "docsis",
        bytes: 18,
        mpu: Some(64),
        cells: Some(Cells::None),
        about: "cable: what the head end counts",
    },
    vdsl("pppoe-ptm", 30, "VDSL2 with PPPoE"),
    vdsl("bridged-ptm", 22, "VDSL2"),
    adsl("pppoe-vcmux", 32, "ADSL with PPPoE"),
    adsl("pppoe-llcsnap", 40, "ADSL with PPPoE"),
    adsl("pppoa-vcmux", 10, "ADSL with PPPoA"),
    adsl("pppoa-llc", 14, "ADSL with PPPoA"),
    adsl("ipoa-vcmux", 8, "ADSL with IPoA"),
    adsl("ipoa-llcsnap", 16, "ADSL with IPoA"),
    adsl("bridged-vcmux", 24, "ADSL, bridged"),
    adsl("bridged-llcsnap", 32, "ADSL, bridged"),
    adsl("conservative", 48, "more than any of them takes"),
];

/// A VLAN tag; may be repeated, beside others.
const VLAN: (&str, i32) = ("ether-vlan", 4);

impl Overhead {
    /// A frame counts with the bytes that it has.
    pub const NONE: Self =
        Self { from: Above::Frame, bytes: 0, mpu: 0, cells: Cells::None, keyword: None };

    /// What is on top of frames as `tc` counts them.
    #[must_use]
    pub const fn on_frames(framing: Framing) -> Self {
        let Framing { overhead, mpu, cells } = framing;
        Self { from: Above::Frame, bytes: overhead, mpu, cells, keyword: None }
    }

    /// What it amounts to on a device whose packets have a header of this many bytes
    /// ([`ETHERNET_HEADER`] or none) before the IP header.
    #[must_use]
    pub fn framing(&self, link_header: u32) -> Framing {
        let counted = match self.from {
            Above::Frame => 0,
            Above::Network => link_header as i32,
        };
        Framing { overhead: self.bytes.saturating_sub(counted), mpu: self.mpu, cells: self.cells }
    }

    /// Without the keyword's name, to compare.
    fn unnamed(self) -> Self {
        Self { keyword: None, ..self }
    }
}

impl Keyword {
    fn overhead(&self) -> Overhead {
        Overhead {
            from: Above::Network,
            bytes: self.bytes,
            mpu: self.mpu.unwrap_or(0),
            cells: self.cells.unwrap_or_default(),
            keyword: Some(self.name),
        }
    }
}

/// What is wrong with a text, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverheadError {
    /// No word of this kind.
    #[error("'{found}' is none of {}", accepted())]
    Unknown {
        /// The word.
        found: String,
    },
    /// Two words that each say how much.
    #[error(
        "'{first}' and '{second}' both say how much; it takes one of them, with ether-vlan, atm, \
         ptm, noatm and mpu=N beside it"
    )]
    Twice {
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// A number out of range.
    #[error("'{found}' is out of range; it takes a number from {least} to {most}")]
    Range {
        /// The word.
        found: String,
        /// The smallest number.
        least: i64,
        /// The largest number.
        most: i64,
    },
}

fn accepted() -> String {
    let names: Vec<&str> = KEYWORDS.iter().map(|keyword| keyword.name).collect();
    format!(
        "a number of bytes ({} to {}) on top of the frame, ip+N on top of the IP packet, \
         mpu=N, atm, ptm, noatm, raw, ether-vlan, {}",
        BYTES.start(),
        BYTES.end(),
        names.join(", ")
    )
}

/// What a word says about the size.
enum Size {
    Bytes(Above, i32),
    Named(Keyword),
}

impl FromStr for Overhead {
    type Err = OverheadError;

    fn from_str(text: &str) -> Result<Self, OverheadError> {
        let (mut size, mut tags, mut raw) = (None, 0, false);
        let (mut mpu, mut cells) = (None, None);
        for word in text.split(',').map(str::trim) {
            match word {
                "atm" => cells = Some(Cells::Atm),
                "ptm" => cells = Some(Cells::Ptm),
                "noatm" => cells = Some(Cells::None),
                // CAKE counts what is sent by Ethernet devices correctly by itself, and so do we.
                "via-ethernet" => {}
                "raw" => raw = true,
                _ if word == VLAN.0 => tags += 1,
                _ => {
                    if let Some(number) = word.strip_prefix("mpu=") {
                        mpu = Some(in_range(word, number, &MPU)?);
                        continue;
                    }
                    let said = (size_of(word)?, word);
                    if let Some((_, first)) = size.replace(said) {
                        let (first, second) = (first.to_owned(), word.to_owned());
                        return Err(OverheadError::Twice { first, second });
                    }
                }
            }
        }
        let size = size.map(|(size, _)| size);
        let (from, bytes) = match &size {
            Some(Size::Bytes(from, bytes)) => (*from, *bytes),
            Some(Size::Named(keyword)) => (Above::Network, keyword.bytes),
            None if tags > 0 => (Above::Network, 0),
            None => (Above::Frame, 0),
        };
        let named = match &size {
            Some(Size::Named(keyword)) => Some(*keyword),
            _ => None,
        };
        let bytes = bytes + VLAN.1 * tags;
        if !BYTES.contains(&bytes) {
            return Err(out_of_range(text, &BYTES));
        }
        let found = Self {
            from: if raw { Above::Frame } else { from },
            bytes,
            mpu: mpu.or(named.and_then(|keyword| keyword.mpu)).unwrap_or(0),
            cells: cells.or(named.and_then(|keyword| keyword.cells)).unwrap_or_default(),
            keyword: None,
        };
        let same = named.map(|keyword| keyword.overhead());
        Ok(same.filter(|same| same.unnamed() == found).unwrap_or(found))
    }
}

fn size_of(word: &str) -> Result<Size, OverheadError> {
    if let Some(keyword) = KEYWORDS.iter().find(|keyword| keyword.name == word) {
        return Ok(Size::Named(*keyword));
    }
    match word.strip_prefix("ip").filter(|rest| rest.starts_with(['+', '-'])) {
        Some(number) => in_range(word, number, &BYTES).map(|n| Size::Bytes(Above::Network, n)),
        None => in_range(word, word, &BYTES).map(|n| Size::Bytes(Above::Frame, n)),
    }
}

fn in_range<T>(word: &str, number: &str, range: &RangeInclusive<T>) -> Result<T, OverheadError>
where
    T: TryFrom<i64> + PartialOrd + Copy + Into<i64>,
{
    let Ok(number) = number.parse::<i64>() else {
        return Err(OverheadError::Unknown { found: word.to_owned() });
    };
    let found = T::try_from(number).ok().filter(|number| range.contains(number));
    found.ok_or_else(|| out_of_range(word, range))
}

fn out_of_range<T: Copy + Into<i64>>(word: &str, range: &RangeInclusive<T>) -> OverheadError {
    let (least, most) = ((*range.start()).into(), (*range.end()).into());
    OverheadError::Range { found: word.to_owned(), least, most }
}

/// The keyword, or the numbers; either can be read again.
impl Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(keyword) = self.keyword {
            return f.write_str(keyword);
        }
        match self.from {
            Above::Frame => write!(f, "{}", self.bytes)?,
            Above::Network => write!(f, "ip{:+}", self.bytes)?,
        }
        match self.cells {
            Cells::None => {}
            Cells::Atm => f.write_str(",atm")?,
            Cells::Ptm => f.write_str(",ptm")?,
        }
        if self.mpu > 0 {
            write!(f, ",mpu={}", self.mpu)?;
        }
        Ok(())
    }
}

impl Serialize for Overhead {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Overhead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
