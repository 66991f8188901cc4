//! The packets of a script: `S. 0:0(0) ack 1 win 257 <mss 1000,sackOK>`.

use std::fmt;

use crate::script::integer;

/// A packet, as a script writes it. Sequence numbers count from the SYN's 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// As it is written, for messages.
    pub text: String,
    /// The letters of the TCP header.
    pub flags: Letters,
    /// What the IP header says of ECN.
    pub ecn: Option<Ecn>,
    /// First sequence number.
    pub seq: u64,
    /// Bytes of data.
    pub len: u32,
    /// The acknowledgment.
    pub ack: Option<u64>,
    /// The window as the header has it, not scaled.
    pub window: Option<u32>,
    /// TCP options; `None` for `<...>`, which stands for any.
    pub options: Option<Vec<Opt>>,
}

/// TCP's flags, without PSH, which the model does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Letters {
    /// `S`
    pub syn: bool,
    /// `F`
    pub fin: bool,
    /// `R`
    pub rst: bool,
    /// `.`
    pub ack: bool,
    /// `E`
    pub ece: bool,
    /// `W`
    pub cwr: bool,
}

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.syn, 'S'),
            (self.fin, 'F'),
            (self.rst, 'R'),
            (self.ece, 'E'),
            (self.cwr, 'W'),
            (self.ack, '.'),
        ];
        let letters: String = all.iter().filter(|(set, _)| *set).map(|(_, c)| *c).collect();
        f.write_str(if letters.is_empty() { "-" } else { &letters })
    }
}

/// ECN in the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ecn {
    /// Not capable.
    None,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Either ECT.
    Ect,
    /// Congestion experienced.
    Ce,
}

/// A TCP option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opt {
    /// Most data in a segment.
    Mss(u32),
    /// SACK is understood.
    SackOk,
    /// Blocks received out of order.
    Sack(Vec<(u64, u64)>),
    /// Scale of windows.
    WindowScale(u32),
    /// Timestamps.
    Timestamps {
        /// Of this packet.
        value: u64,
        /// That it answers.
        echo: u64,
    },
    /// No operation, end of list.
    Padding,
}

impl Packet {
    /// Reads what follows `<` or `>`. The error says what the harness has no words for.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut packet = Self { text: text.trim().to_owned(), ..Self::default() };
        let (head, options) = match text.find('<') {
            Some(at) => (&text[..at], Some(text[at + 1..].trim_end())),
            None => (text, None),
        };
        packet.options = match options {
            None => Some(Vec::new()),
            Some(rest) => {
                let inner = rest.strip_suffix('>').ok_or("options without an end")?;
                if inner.trim() == "..." { None } else { Some(read_options(inner)?) }
            }
        };
        let mut words = head.split_whitespace().peekable();
        if let Some(word) = words.next_if(|word| word.starts_with('[')) {
            packet.ecn = Some(read_ecn(word)?);
        }
        let flags = words.next().ok_or("a packet without flags")?;
        packet.flags = read_flags(flags)?;
        let range = words.next().ok_or("a packet without sequence numbers")?;
        (packet.seq, packet.len) = read_range(range)?;
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(integer).and_then(|n| u64::try_from(n).ok());
            match word {
                "ack" => packet.ack = Some(number().ok_or("ack without a number")?),
                "win" => {
                    let window = number().and_then(|n| u32::try_from(n).ok());
                    packet.window = Some(window.ok_or("win without a number")?);
                }
                "urg" => return Err("urgent data".into()),
                word => return Err(format!("`{word}` of a packet")),
            }
        }
        Ok(packet)
    }

    /// The options, none if any would do.
    pub fn options(&self) -> impl Iterator<Item = &Opt> {
        self.options.iter().flatten()
    }

    /// SACK blocks, in their order.
    #[must_use]
    pub fn sack(&self) -> &[(u64, u64)] {
        let found = self.options().find_map(|option| match option {
            Opt::Sack(blocks) => Some(blocks.as_slice()),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// Timestamp and echo.
    #[must_use]
    pub fn timestamps(&self) -> Option<(u64, u64)> {
        self.options().find_map(|option| match *option {
            Opt::Timestamps { value, echo } => Some((value, echo)),
            _ => None,
        })
    }

    /// SYN with or without an acknowledgment.
    #[must_use]
    pub fn is_syn(&self) -> bool {
        self.flags.syn
    }
}

fn read_ecn(word: &str) -> Result<Ecn, String> {
    Ok(match word {
        "[noecn]" => Ecn::None,
        "[ect0]" => Ecn::Ect0,
        "[ect1]" => Ecn::Ect1,
        "[ect01]" => Ecn::Ect,
        "[ce]" => Ecn::Ce,
        _ => return Err(format!("`{word}` of an IP header")),
    })
}

fn read_flags(word: &str) -> Result<Letters, String> {
    let mut letters = Letters::default();
    for letter in word.chars() {
        match letter {
            'S' => letters.syn = true,
            'F' => letters.fin = true,
            'R' => letters.rst = true,
            '.' => letters.ack = true,
            'E' => letters.ece = true,
            'W' => letters.cwr = true,
            'P' | '-' => {}
            _ if word.parse::<u16>().is_ok() => return Err("ports".into()),
            _ if word.chars().all(|c| "SFRP.EWAU-0123456789".contains(c)) => {
                return Err("flags of AccECN or urgent data".into());
            }
            _ => return Err(format!("packets of `{word}`")),
        }
    }
    Ok(letters)
}

/// `1:1001(1000)`
fn read_range(word: &str) -> Result<(u64, u32), String> {
    let read = || {
        let (start, rest) = word.split_once(':')?;
        let (end, rest) = rest.split_once('(')?;
        let start: u64 = start.parse().ok()?;
        let end: u64 = end.parse().ok()?;
        let len: u32 = rest.strip_suffix(')')?.parse().ok()?;
        (end == start + u64::from(len)).then_some((start, len))
    };
    read().ok_or_else(|| format!("`{word}` for sequence numbers"))
}

fn read_options(text: &str) -> Result<Vec<Opt>, String> {
    text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(read_option).collect()
}

fn read_option(text: &str) -> Result<Opt, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let other = || format!("TCP option `{text}`");
    let number = |word: &str| word.parse::<u64>().map_err(|_| other());
    Ok(match words[..] {
        ["nop" | "eol"] => Opt::Padding,
        ["sackOK"] => Opt::SackOk,
        ["mss", n] => Opt::Mss(n.parse().map_err(|_| other())?),
        ["wscale", n] => Opt::WindowScale(n.parse().ok().filter(|n| *n <= 14).ok_or_else(other)?),
        ["TS", "val", value, "ecr", echo] => {
            Opt::Timestamps { value: number(value)?, echo: number(echo)? }
        }
        ["sack", ref blocks @ ..] => {
            let block = |text: &&str| {
                let (start, end) = text.split_once(':').ok_or_else(other)?;
                Ok((number(start)?, number(end)?))
            };
            Opt::Sack(blocks.iter().map(block).collect::<Result<_, String>>()?)
        }
        _ => return Err(other()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read() {
        let packet = Packet::read(" [ce] PE. 1:1001(1000) ack 7 win 257 <sack 3:4 6:9,nop,nop>");
        let packet = packet.unwrap();
        assert_eq!((packet.seq, packet.len, packet.ack), (1, 1000, Some(7)));
        assert_eq!((packet.window, packet.ecn), (Some(257), Some(Ecn::Ce)));
        assert_eq!(packet.sack(), [(3, 4), (6, 9)]);
        assert_eq!(packet.flags.to_string(), "E.");
        let syn = Packet::read("S 0:0(0) win 9 <mss 1000,sackOK,TS val 5 ecr 0,wscale 7>").unwrap();
        assert_eq!(syn.timestamps(), Some((5, 0)));
        assert_eq!(syn.options().count(), 4);
        assert_eq!(Packet::read("S 0:0(0) <...>").unwrap().options, None);
    }

    #[test]
    fn what_there_are_no_words_for_is_named() {
        for (text, expected) in [
            ("icmp unreachable", "packets of `icmp`"),
            ("S 0:0(0) <FO abcd,nop>", "TCP option `FO abcd`"),
            ("SAEW 0:0(0)", "flags of AccECN or urgent data"),
            ("52340 > 8080 S 0:0(0)", "ports"),
            (". 1:1001(999) ack 1", "`1:1001(999)` for sequence numbers"),
            ("[tos 0x4] . 1:1(0)", "`[tos` of an IP header"),
        ] {
            assert_eq!(Packet::read(text).unwrap_err(), expected);
        }
    }
}
