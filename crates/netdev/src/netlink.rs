//! A conversation with the kernel about the network namespace in which it was opened.

use std::fmt;
use std::io;

use netlink_packet_core::{
    NLM_F_ACK_TLVS, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable, NlasIterator,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// What the kernel answers to a request that it does not grant.
#[derive(Debug)]
pub struct Refusal {
    source: io::Error,
    /// The kernel's own words, where it has any.
    text: Option<String>,
}

impl Refusal {
    /// The error number alone.
    #[must_use]
    pub fn into_system(self) -> io::Error {
        self.source
    }

    /// The error number.
    #[must_use]
    pub fn number(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        match &self.text {
            Some(text) => write!(f, ": {}", text.trim_end_matches('.')),
            None => Ok(()),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(source: io::Error) -> Self {
        Self { source, text: None }
    }
}

/// A socket to speak with the kernel about links, addresses, routes and qdiscs.
pub struct Connection {
    socket: Socket,
    sequence: u32,
}

impl Connection {
    /// Opens the socket.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Refusals come with words, and without the request that they answer.
        socket.set_ext_ack(true)?;
        socket.set_cap_ack(true)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends a request with these flags and reads what comes up to the acknowledgement, or up to
    /// the end of a dump.
    ///
    /// # Errors
    /// What the kernel refuses, or that it cannot be asked.
    pub fn request<M>(&mut self, message: M, flags: u16) -> Result<Vec<M>, Refusal>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        self.sequence += 1;
        let mut request =
            NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        self.replies()
    }

    /// Everything of one kind that there is in the namespace.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn dump<M>(&mut self, message: M) -> Result<Vec<M>, Refusal>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        self.request(message, NLM_F_DUMP)
    }

    fn replies<M: NetlinkDeserializable>(&self) -> Result<Vec<M>, Refusal> {
        let mut found = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<M>::deserialize(rest)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                let length = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(length.max(1)..).unwrap_or_default();
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(found),
                    NetlinkPayload::Error(error) => {
                        let text = words(&message.header, &error.header);
                        return Err(Refusal { source: error.to_io(), text });
                    }
                    NetlinkPayload::Done(done) if done.code == 0 => return Ok(found),
                    NetlinkPayload::Done(done) => {
                        return Err(io::Error::from_raw_os_error(done.code.abs()).into());
                    }
                    NetlinkPayload::InnerMessage(inner) => found.push(inner),
                    _ => {}
                }
            }
        }
    }
}

/// What a refusal says beside its number (`NLMSGERR_ATTR_MSG`, behind the header of the request).
fn words(header: &NetlinkHeader, payload: &[u8]) -> Option<String> {
    const MESSAGE: u16 = 1;
    const REQUEST_HEADER: usize = 16;
    if header.flags & NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let attributes = attributes(payload.get(REQUEST_HEADER..)?).ok()?;
    let (_, text) = attributes.into_iter().find(|(kind, _)| *kind == MESSAGE)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    Some(String::from_utf8_lossy(&text[..end]).into_owned())
}

/// The attributes that these bytes are: kind, and value.
///
/// # Errors
/// If one is cut off.
pub fn attributes(bytes: &[u8]) -> io::Result<Vec<(u16, Vec<u8>)>> {
    let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    NlasIterator::new(bytes)
        .map(|nla| nla.map(|nla| (nla.kind(), nla.value().to_vec())).map_err(bad))
        .collect()
}
