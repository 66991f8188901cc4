//! The bytes the two roles exchange.

use std::net::IpAddr;

use units::Nanos;

use super::plan::Tcp;
use super::report::ConnectionKind;

/// Bytes of a [`Request`].
pub(crate) const REQUEST: usize = 16;

const MAGIC: u16 = 0x534c;

/// The first 16 bytes of every connection, and of every request of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) kind: ConnectionKind,
    pub(crate) tcp: Tcp,
    pub(crate) id: u32,
    pub(crate) size: u64,
}

const KINDS: [ConnectionKind; 5] = [
    ConnectionKind::Control,
    ConnectionKind::Transfer,
    ConnectionKind::Download,
    ConnectionKind::Upload,
    ConnectionKind::Session,
];

impl Request {
    pub(crate) fn encode(&self) -> [u8; REQUEST] {
        let place = |found: Option<usize>| found.map_or(u8::MAX, |index| index as u8);
        let mut bytes = [0; REQUEST];
        bytes[0..2].copy_from_slice(&MAGIC.to_be_bytes());
        bytes[2] = place(KINDS.iter().position(|kind| *kind == self.kind));
        bytes[3] = place(Tcp::ALL.iter().position(|tcp| *tcp == self.tcp));
        bytes[4..8].copy_from_slice(&self.id.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.size.to_be_bytes());
        bytes
    }

    /// `None` if the bytes come from somebody else.
    pub(crate) fn decode(bytes: &[u8; REQUEST]) -> Option<Self> {
        let [m0, m1, kind, tcp, rest @ ..] = *bytes;
        let [i0, i1, i2, i3, size @ ..] = rest;
        Some(Self {
            kind: *KINDS.get(usize::from(kind))?,
            tcp: *Tcp::ALL.get(usize::from(tcp))?,
            id: u32::from_be_bytes([i0, i1, i2, i3]),
            size: u64::from_be_bytes(size),
        })
        .filter(|_| u16::from_be_bytes([m0, m1]) == MAGIC)
    }
}

/// Bytes of a [`Datagram`]; the rest of the packet is zeros.
pub(crate) const DATAGRAM: usize = 28;

/// What every UDP packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// A CBR stream's place in the plan, or a ping's id.
    pub(crate) stream: u32,
    pub(crate) seq: u32,
    /// When it was sent by who sent it first.
    pub(crate) sent: Nanos,
    /// When the server saw it (pings).
    pub(crate) echoed: Nanos,
}

impl Datagram {
    /// Writes itself to the start of `bytes`, which hold at least [`DATAGRAM`].
    pub(crate) fn write(&self, bytes: &mut [u8]) {
        bytes[0..2].copy_from_slice(&MAGIC.to_be_bytes());
        bytes[2..4].fill(0);
        bytes[4..8].copy_from_slice(&self.stream.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.seq.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.sent.0.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.echoed.0.to_be_bytes());
    }

    /// `None` if the bytes come from somebody else.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, _) = bytes.split_first_chunk::<DATAGRAM>()?;
        let word = |at: usize| -> [u8; 4] { std::array::from_fn(|i| head[at + i]) };
        let long = |at: usize| Nanos(u64::from_be_bytes(std::array::from_fn(|i| head[at + i])));
        (head[..2] == MAGIC.to_be_bytes()).then(|| Self {
            stream: u32::from_be_bytes(word(4)),
            seq: u32::from_be_bytes(word(8)),
            sent: long(12),
            echoed: long(20),
        })
    }
}

/// Bytes of IP and UDP headers in front of a datagram.
pub(crate) fn headers(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => 28,
        IpAddr::V6(_) => 48,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_as_they_went() {
        for kind in KINDS {
            for tcp in Tcp::ALL {
                let request = Request { kind, tcp, id: 0xfeed_1234, size: u64::MAX - 7 };
                assert_eq!(Request::decode(&request.encode()), Some(request));
            }
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let request =
            Request { kind: ConnectionKind::Upload, tcp: Tcp::Reno, id: 1, size: 2 }.encode();
        for (at, value) in [(0, 0), (1, 0), (2, 5), (2, 255), (3, 3), (3, 255)] {
            let mut bytes = request;
            bytes[at] = value;
            assert_eq!(Request::decode(&bytes), None, "byte {at} = {value}");
        }
    }

    #[test]
    fn datagrams_come_back_as_they_went() {
        let datagram =
            Datagram { stream: 3, seq: 70_000, sent: Nanos(1 << 40), echoed: Nanos(1 << 41) };
        let mut bytes = [0xaa; 40];
        datagram.write(&mut bytes);
        assert_eq!(Datagram::read(&bytes), Some(datagram));
        assert_eq!(Datagram::read(&bytes[..DATAGRAM]), Some(datagram));
        assert_eq!(Datagram::read(&bytes[..DATAGRAM - 1]), None);
        bytes[0] = 0;
        assert_eq!(Datagram::read(&bytes), None);
    }
}
