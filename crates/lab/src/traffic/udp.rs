//! UDP sockets as both roles use them.
//!
//! Each role does its UDP in a thread of its own, so that thousands of TCP connections do not
//! stand between a packet and the clock.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

use super::wire::headers;

/// The largest datagram.
pub(crate) const LARGEST: usize = 65_535;

/// Binds a socket that is ready for tokio.
pub(crate) fn bind(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A datagram's bytes, for an IP packet of this size.
pub(crate) fn payload(packet_bytes: u16, to: SocketAddr) -> Vec<u8> {
    vec![0; usize::from(packet_bytes).saturating_sub(headers(to.ip()))]
}
