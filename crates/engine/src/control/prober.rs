//! Probes: ICMP echo requests to one host, by one device.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use netdev::link;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket, sockopt,
};

use crate::datapath::follow::{PAYLOAD, Stamps};

const HEADER: usize = 8;
const REQUEST: u8 = 8;
const REQUEST_V6: u8 = 128;
const REPLY: u8 = 0;
const REPLY_V6: u8 = 129;

/// Sends echo requests and hears their answers, without waiting.
#[derive(Debug)]
pub(super) struct Prober {
    /// A raw socket that is connected: what it needs of the standard library is the same.
    socket: UdpSocket,
    address: SocketAddr,
    stamps: Arc<Stamps>,
}

impl Prober {
    /// To `address` by `device`, whatever else the routes say.
    pub(super) fn new(device: &str, address: IpAddr, stamps: Arc<Stamps>) -> io::Result<Self> {
        let (family, protocol) = match address {
            IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp),
            IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6),
        };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(family, SockType::Raw, flags, protocol)?;
        setsockopt(&socket, sockopt::BindToDevice, &OsString::from(device))?;
        let socket = UdpSocket::from(socket);
        let address = match address {
            IpAddr::V6(address) if address.is_unicast_link_local() => {
                SocketAddrV6::new(address, 0, 0, link::index_of(device)?).into()
            }
            address => (address, 0).into(),
        };
        Ok(Self { socket, address, stamps })
    }

    pub(super) fn address(&self) -> IpAddr {
        self.address.ip()
    }

    /// Sends one. That it cannot be sent is told by its never being answered.
    pub(super) fn send(&self, number: u32) {
        self.stamps.clear(number);
        let packet = request(&self.stamps, self.address.is_ipv4(), number);
        // A device that is down has no route, so it is connected anew each time.
        let _ = self.socket.connect(self.address).and_then(|()| self.socket.send(&packet));
    }

    /// The number of an answer that has come; what else comes is passed over.
    pub(super) fn receive(&self) -> Option<u32> {
        let mut packet = [0; 256];
        loop {
            let length = match self.socket.recv(&mut packet) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // "Unreachable", which is told once.
                Err(_) => self.socket.recv(&mut packet).ok()?,
            };
            let packet = packet.get(..length)?;
            let number = answered(&self.stamps, self.address.is_ipv4(), packet);
            if number.is_some() {
                return number;
            }
        }
    }
}

impl AsFd for Prober {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An echo request with this number. The kernel makes the checksum of ICMPv6.
pub(super) fn request(stamps: &Stamps, is_ipv4: bool, number: u32) -> [u8; HEADER + PAYLOAD] {
    let mut packet = [0; HEADER + PAYLOAD];
    packet[0] = if is_ipv4 { REQUEST } else { REQUEST_V6 };
    packet[6..8].copy_from_slice(&(number as u16).to_be_bytes());
    packet[HEADER..].copy_from_slice(&stamps.payload(number));
    if is_ipv4 {
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// The number of the probe that a packet says it answers; none if it is no echo reply with the
/// token. It may have its IP header in front.
pub(super) fn answered(stamps: &Stamps, is_ipv4: bool, packet: &[u8]) -> Option<u32> {
    let kind = packet.get(packet.len().checked_sub(HEADER + PAYLOAD)?)?;
    let reply = if is_ipv4 { REPLY } else { REPLY_V6 };
    if *kind == reply { stamps.number(packet) } else { None }
}

/// The Internet checksum.
fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks_exact(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_echo_reply_with_the_token_whatever_is_in_front_of_it() {
        let stamps = Stamps::new(*b"a secret");
        for (is_ipv4, reply) in [(true, REPLY), (false, REPLY_V6)] {
            let mut packet = request(&stamps, is_ipv4, 7).to_vec();
            assert_eq!(answered(&stamps, is_ipv4, &packet), None, "the request itself");
            packet[0] = reply;
            assert_eq!(answered(&stamps, is_ipv4, &packet), Some(7));
            assert_eq!(answered(&stamps, is_ipv4, &[&[0x45; 20][..], &packet].concat()), Some(7));
            for length in 0..packet.len() {
                assert_eq!(answered(&stamps, is_ipv4, &packet[..length]), None, "{length}");
            }
            assert_eq!(answered(&Stamps::new(*b"another!"), is_ipv4, &packet), None);
        }
    }

    #[test]
    fn a_checksum_makes_the_sum_all_ones() {
        let mut packet = [8, 0, 0, 0, 0, 0, 0xff, 0xfe, 0xab, 0xcd];
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&packet), 0);
    }
}
