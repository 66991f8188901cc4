//! Qdiscs and classes of a device, as the kernel's traffic control tells and takes them.

use std::io;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE,
    NetlinkDeserializable, NetlinkHeader, NetlinkSerializable,
};

use serde::{Deserialize, Serialize};

use crate::netlink::{Connection, Refusal, attributes};

pub(crate) const RTM_NEWQDISC: u16 = 36;
pub(crate) const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTCLASS: u16 = 40;
const RTM_GETTCLASS: u16 = 42;
pub(crate) const RTM_NEWTFILTER: u16 = 44;
pub(crate) const RTM_DELTFILTER: u16 = 45;
pub(crate) const RTM_GETTFILTER: u16 = 46;

pub(crate) const TCA_KIND: u16 = 1;
pub(crate) const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STAB: u16 = 8;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;

pub(crate) const TCA_BPF_ACT: u16 = 1;
pub(crate) const TCA_BPF_FD: u16 = 6;
pub(crate) const TCA_BPF_NAME: u16 = 7;
pub(crate) const TCA_BPF_FLAGS: u16 = 8;
pub(crate) const TCA_BPF_ID: u16 = 11;
/// The program's answer says what becomes of the packet.
pub(crate) const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;
// Of an action.
pub(crate) const TCA_ACT_KIND: u16 = 1;
pub(crate) const TCA_ACT_OPTIONS: u16 = 2;
pub(crate) const TCA_MIRRED_PARMS: u16 = 2;
pub(crate) const TCA_EGRESS_REDIR: u32 = 1;
pub(crate) const TC_ACT_STOLEN: u32 = 4;

/// The parent of a root qdisc (`TC_H_ROOT`).
const ROOT: u32 = u32::MAX;
/// The parent of `clsact` and of `ingress` (`TC_H_CLSACT`).
pub(crate) const CLSACT: u32 = 0xffff_fff1;
/// The handle of either.
pub(crate) const CLSACT_HANDLE: u32 = 0xffff_0000;
/// Where filters of what is received, and of what is sent, are (`TC_H_MIN_INGRESS`, `_EGRESS`).
pub(crate) const INGRESS: u32 = 0xffff_fff2;
pub(crate) const EGRESS: u32 = 0xffff_fff3;
const HEADER: usize = 20;

/// A message about a qdisc, a class or a filter: `struct tcmsg`, and attributes as they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    pub(crate) kind: u16,
    pub(crate) ifindex: u32,
    pub(crate) handle: u32,
    pub(crate) parent: u32,
    /// Of a filter: its priority, and the protocol that it is for.
    pub(crate) info: u32,
    pub(crate) attributes: Vec<(u16, Vec<u8>)>,
}

impl Message {
    fn nlas(&self) -> Vec<DefaultNla> {
        let nla = |(kind, value): &(u16, Vec<u8>)| DefaultNla::new(*kind, value.clone());
        self.attributes.iter().map(nla).collect()
    }

    pub(crate) fn attribute(&self, kind: u16) -> Option<&[u8]> {
        self.attributes.iter().find(|(found, _)| *found == kind).map(|(_, value)| &value[..])
    }

    pub(crate) fn text(&self, kind: u16) -> String {
        let bytes = self.attribute(kind).unwrap_or_default();
        String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned()
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        HEADER + self.nlas().as_slice().buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer[..4].fill(0);
        let words = [self.ifindex, self.handle, self.parent, self.info];
        for (into, word) in buffer[4..HEADER].chunks_exact_mut(4).zip(words) {
            into.copy_from_slice(&word.to_ne_bytes());
        }
        self.nlas().as_slice().emit(&mut buffer[HEADER..]);
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let short = || DecodeError::buffer_too_small(payload.len(), HEADER);
        let rest = payload.get(HEADER..).ok_or_else(short)?;
        Ok(Self {
            kind: header.message_type,
            ifindex: word(payload, 4),
            handle: word(payload, 8),
            parent: word(payload, 12),
            info: word(payload, 16),
            attributes: attributes(rest).map_err(|error| error.to_string())?,
        })
    }
}

/// The 32 bits at this place; 0 if there are none.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// What `tc -s` shows of a qdisc, by its names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcStats {
    /// Bytes that were sent.
    pub bytes: u64,
    /// Packets that were sent; each segment of a super-packet is one.
    pub packets: u64,
    /// Packets that were dropped; a super-packet is one.
    pub drops: u32,
    /// Times that the rate made a packet wait.
    pub overlimits: u32,
    /// Packets that the device did not take at first.
    pub requeues: u32,
    /// Bytes that are queued.
    pub backlog: u32,
    /// Packets that are queued.
    pub qlen: u32,
}

impl TcStats {
    fn read(stats: &[u8]) -> Self {
        let mut found = Self::default();
        for (kind, value) in attributes(stats).unwrap_or_default() {
            match kind {
                TCA_STATS_BASIC => {
                    found.bytes = long(&value, 0);
                    found.packets = found.packets.max(word(&value, 8).into());
                }
                TCA_STATS_PKT64 => found.packets = long(&value, 0),
                TCA_STATS_QUEUE => {
                    found.qlen = word(&value, 0);
                    found.backlog = word(&value, 4);
                    found.drops = word(&value, 8);
                    found.requeues = word(&value, 12);
                    found.overlimits = word(&value, 16);
                }
                _ => {}
            }
        }
        found
    }
}

/// A qdisc of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qdisc {
    /// Its kind: `fq_codel` and the like.
    pub kind: String,
    /// 0 for one that the kernel put there by itself.
    pub handle: u32,
    /// The class that it is below, or what stands for the root.
    pub parent: u32,
    /// `TCA_OPTIONS`, as the kernel tells it.
    pub options: Option<Vec<u8>>,
    /// Whether sizes are reckoned by a table (`TCA_STAB`).
    pub size_table: bool,
    /// What every qdisc counts.
    pub stats: TcStats,
    /// What only this kind of qdisc counts (`TCA_STATS_APP`).
    pub own_stats: Vec<u8>,
}

impl Qdisc {
    /// Whether it is at the root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.parent == ROOT
    }

    /// Whether somebody asked for it: what the kernel chooses itself has no handle.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.handle != 0
    }
}

/// A handle as `tc` writes it.
#[must_use]
pub fn handle_text(handle: u32) -> String {
    format!("{:x}:", handle >> 16)
}

/// A class with options of its own, which the options of its qdisc do not make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    handle: u32,
    options: Vec<u8>,
}

/// Where on a device a qdisc or a class is put, and by which handle.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The device.
    pub ifindex: u32,
    /// The class that it is below.
    pub parent: u32,
    /// Its handle.
    pub handle: u32,
}

/// A conversation with the kernel's traffic control.
pub struct TrafficControl {
    connection: Connection,
}

impl TrafficControl {
    /// Opens the connection.
    ///
    /// # Errors
    /// If the system refuses a netlink socket.
    pub fn open() -> io::Result<Self> {
        Ok(Self { connection: Connection::open()? })
    }

    /// All qdiscs of a device that the kernel shows.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn qdiscs(&mut self, ifindex: u32) -> Result<Vec<Qdisc>, Refusal> {
        let found = self.dump(RTM_GETQDISC, ifindex, 0)?;
        Ok(found.iter().map(describe).collect())
    }

    /// The root qdisc; `None` if the kernel shows none.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn root(&mut self, ifindex: u32) -> Result<Option<Qdisc>, Refusal> {
        Ok(self.qdiscs(ifindex)?.into_iter().find(Qdisc::is_root))
    }

    /// The classes of a device that have options, by handle.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn classes(&mut self, ifindex: u32) -> Result<Vec<Class>, Refusal> {
        let found = self.dump(RTM_GETTCLASS, ifindex, 0)?;
        let class = |message: &Message| {
            let options = message.attribute(TCA_OPTIONS)?.to_vec();
            Some(Class { handle: message.handle, options })
        };
        let mut classes: Vec<Class> = found.iter().filter_map(class).collect();
        classes.sort_by_key(|class| class.handle);
        Ok(classes)
    }

    /// What the classes of a device have counted, by handle.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn class_stats(&mut self, ifindex: u32) -> Result<Vec<(u32, TcStats)>, Refusal> {
        let found = self.dump(RTM_GETTCLASS, ifindex, 0)?;
        let stats = |message: &Message| {
            Some((message.handle, TcStats::read(message.attribute(TCA_STATS2)?)))
        };
        Ok(found.iter().filter_map(stats).collect())
    }

    /// Whether the qdisc of this handle has filters.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn has_filters(&mut self, ifindex: u32, handle: u32) -> Result<bool, Refusal> {
        match self.dump(RTM_GETTFILTER, ifindex, handle) {
            Ok(found) => Ok(!found.is_empty()),
            // A qdisc without classes has no filters either.
            Err(refusal) if refusal.number() == Some(libc::EOPNOTSUPP) => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }

    /// Puts a qdisc in the place of the root; handle 0 leaves the choice to the kernel.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn replace_root(
        &mut self,
        ifindex: u32,
        kind: &str,
        handle: u32,
        options: Option<&[u8]>,
    ) -> Result<(), Refusal> {
        self.put_qdisc(Place { ifindex, parent: ROOT, handle }, kind, options)
    }

    /// Puts a qdisc in the place of another one.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn put_qdisc(
        &mut self,
        place: Place,
        kind: &str,
        options: Option<&[u8]>,
    ) -> Result<(), Refusal> {
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        self.request(RTM_NEWQDISC, place, kind, options, flags)
    }

    /// Gives a root qdisc other options; those that are not named stay.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn change_root(
        &mut self,
        ifindex: u32,
        kind: &str,
        handle: u32,
        options: &[u8],
    ) -> Result<(), Refusal> {
        let place = Place { ifindex, parent: ROOT, handle };
        self.request(RTM_NEWQDISC, place, kind, Some(options), NLM_F_ACK)
    }

    /// Makes a class, or gives the one of this handle other options.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn put_class(&mut self, place: Place, kind: &str, options: &[u8]) -> Result<(), Refusal> {
        self.request(RTM_NEWTCLASS, place, kind, Some(options), NLM_F_ACK | NLM_F_CREATE)
    }

    fn request(
        &mut self,
        kind: u16,
        Place { ifindex, parent, handle }: Place,
        of: &str,
        options: Option<&[u8]>,
        flags: u16,
    ) -> Result<(), Refusal> {
        let mut attributes = vec![(TCA_KIND, [of.as_bytes(), &[0]].concat())];
        attributes.extend(options.map(|options| (TCA_OPTIONS, options.to_vec())));
        let message = Message { kind, ifindex, handle, parent, info: 0, attributes };
        self.connection.request(message, flags).map(|_| ())
    }

    /// Removes the root, so that the kernel puts its default there.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn delete_root(&mut self, ifindex: u32) -> Result<(), Refusal> {
        let message = Message { kind: RTM_DELQDISC, ifindex, parent: ROOT, ..Message::default() };
        self.connection.request(message, NLM_F_ACK).map(|_| ())
    }

    fn dump(&mut self, kind: u16, ifindex: u32, parent: u32) -> Result<Vec<Message>, Refusal> {
        let message = Message { kind, ifindex, parent, ..Message::default() };
        let found = self.connection.dump(message)?;
        // A dump of qdiscs has those of all devices.
        Ok(found.into_iter().filter(|found| found.ifindex == ifindex).collect())
    }
}

fn describe(message: &Message) -> Qdisc {
    let stats = message.attribute(TCA_STATS2).unwrap_or_default();
    let own = attributes(stats).unwrap_or_default();
    let own = own.into_iter().find(|(kind, _)| *kind == TCA_STATS_APP);
    Qdisc {
        kind: message.text(TCA_KIND),
        handle: message.handle,
        parent: message.parent,
        options: message.attribute(TCA_OPTIONS).map(<[u8]>::to_vec),
        size_table: message.attribute(TCA_STAB).is_some(),
        stats: TcStats::read(stats),
        own_stats: own.map(|(_, value)| value).unwrap_or_default(),
    }
}
