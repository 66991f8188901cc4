//! Interfaces of the current network namespace: make, configure and look at them.

mod address;
mod look;

use std::fmt;
use std::io;
use std::os::fd::AsRawFd;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};

pub use self::look::{Link, all, index_of, name_of};
use crate::netlink::Connection;
use crate::netns::Namespace;
use crate::offload;

/// What could not be done to which interface, and what the system said.
#[derive(Debug)]
pub struct LinkError {
    doing: String,
    source: io::Error,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.doing, self.source)
    }
}

impl std::error::Error for LinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl LinkError {
    /// What the system said.
    #[must_use]
    pub fn into_system(self) -> io::Error {
        self.source
    }

    /// Whether there is no such interface.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.source.raw_os_error() == Some(libc::ENODEV)
    }
}

/// Where an interface is to live.
#[derive(Clone, Copy)]
pub enum Home<'a> {
    /// In the namespace of the caller.
    Here,
    /// In the namespace of the process with this id.
    Process(u32),
    /// In this namespace.
    Namespace(&'a Namespace),
}

/// A connection to the kernel about the interfaces of the network namespace in which it was
/// opened.
pub struct Links {
    connection: Connection,
}

impl Links {
    /// Opens the connection.
    ///
    /// # Errors
    /// If the system refuses a netlink socket.
    pub fn open() -> Result<Self, LinkError> {
        let connection = Connection::open()
            .map_err(|source| LinkError { doing: "open a netlink socket".to_owned(), source })?;
        Ok(Self { connection })
    }

    /// Makes a veth pair, `name` here and `peer` (of which `name` may be a namesake) in `home`.
    ///
    /// # Errors
    /// If a name is taken, or permission is lacking.
    pub fn add_veth(&mut self, name: &str, peer: &str, home: Home<'_>) -> Result<(), LinkError> {
        let mut far = LinkMessage::default();
        far.attributes.push(LinkAttribute::IfName(peer.to_owned()));
        match home {
            Home::Here => {}
            Home::Process(pid) => far.attributes.push(LinkAttribute::NetNsPid(pid)),
            Home::Namespace(namespace) => {
                far.attributes.push(LinkAttribute::NetNsFd(namespace.fd().as_raw_fd()));
            }
        }
        let mut near = LinkMessage::default();
        near.attributes.push(LinkAttribute::IfName(name.to_owned()));
        near.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ]));
        self.change(RouteNetlinkMessage::NewLink(near), NLM_F_CREATE | NLM_F_EXCL, || {
            format!("make the veth pair {name}, {peer}")
        })
    }

    /// Switches an interface on.
    ///
    /// # Errors
    /// If there is none of this name, or permission is lacking.
    pub fn set_up(&mut self, name: &str) -> Result<(), LinkError> {
        self.set_flag(name, LinkFlags::Up, "up")
    }

    /// Switches an interface off.
    ///
    /// # Errors
    /// If there is none of this name, or permission is lacking.
    pub fn set_down(&mut self, name: &str) -> Result<(), LinkError> {
        self.set_flag(name, LinkFlags::empty(), "down")
    }

    /// Removes an interface, and with a veth its peer.
    ///
    /// # Errors
    /// If there is none of this name, or permission is lacking.
    pub fn remove(&mut self, name: &str) -> Result<(), LinkError> {
        let mut message = LinkMessage::default();
        message.header.index = self.get(name)?.index;
        self.change(RouteNetlinkMessage::DelLink(message), 0, || format!("remove {name}"))
    }

    /// Sets the largest IP packet of an interface.
    ///
    /// # Errors
    /// If the interface does not support it.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), LinkError> {
        let mut message = LinkMessage::default();
        message.header.index = self.get(name)?.index;
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.change(RouteNetlinkMessage::SetLink(message), 0, || {
            format!("set the MTU of {name} to {mtu}")
        })
    }

    /// Switches what makes an interface carry anything but the packets that a wire would:
    /// segmentation, coalescing and checksum offloads. What an interface cannot switch stays.
    ///
    /// # Errors
    /// If there is none of this name, or permission is lacking.
    pub fn offloads(&mut self, name: &str, on: bool) -> Result<(), LinkError> {
        offload::switch_all(name, on).map_err(|source| LinkError {
            doing: format!("turn the offloads of {name} {}", if on { "on" } else { "off" }),
            source,
        })
    }

    /// As [`offloads`](Self::offloads) with `false`.
    ///
    /// # Errors
    /// As [`offloads`](Self::offloads).
    pub fn offloads_off(&mut self, name: &str) -> Result<(), LinkError> {
        self.offloads(name, false)
    }

    /// Switches the offload of checksums on transmission.
    ///
    /// # Errors
    /// As [`offloads`](Self::offloads).
    pub fn set_transmit_checksums(&mut self, name: &str, on: bool) -> Result<(), LinkError> {
        offload::switch_transmit_checksums(name, on).map_err(|source| LinkError {
            doing: format!("switch the checksum offload of {name}"),
            source,
        })
    }

    /// Puts a qdisc of a kind, which is given no options, at the root of an interface.
    ///
    /// # Errors
    /// If the kernel knows no such kind, something else than its default is there, or permission
    /// is lacking.
    pub fn add_qdisc(&mut self, name: &str, kind: &str) -> Result<(), LinkError> {
        let mut message = self.root_of(name)?;
        message.attributes.push(TcAttribute::Kind(kind.to_owned()));
        let message = RouteNetlinkMessage::NewQueueDiscipline(message);
        self.change(message, NLM_F_CREATE | NLM_F_EXCL, || format!("put {kind} on {name}"))
    }

    /// Removes the qdisc at the root of an interface, so that it goes back to its default.
    ///
    /// # Errors
    /// If the default is there, or permission is lacking.
    pub fn remove_qdisc(&mut self, name: &str) -> Result<(), LinkError> {
        let message = RouteNetlinkMessage::DelQueueDiscipline(self.root_of(name)?);
        self.change(message, 0, || format!("remove the qdisc of {name}"))
    }

    fn root_of(&mut self, name: &str) -> Result<TcMessage, LinkError> {
        let mut message = TcMessage::with_index(self.get(name)?.index as i32);
        message.header.parent = TcHandle::ROOT;
        Ok(message)
    }

    fn set_flag(&mut self, name: &str, flag: LinkFlags, state: &str) -> Result<(), LinkError> {
        let mut message = LinkMessage::default();
        message.header.index = self.get(name)?.index;
        message.header.flags = flag;
        message.header.change_mask = LinkFlags::Up;
        self.change(RouteNetlinkMessage::SetLink(message), 0, || format!("set {name} {state}"))
    }

    fn change(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        doing: impl Fn() -> String,
    ) -> Result<(), LinkError> {
        self.request(message, flags, doing).map(|_| ())
    }

    fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        doing: impl Fn() -> String,
    ) -> Result<Option<RouteNetlinkMessage>, LinkError> {
        match self.connection.request(message, NLM_F_ACK | flags) {
            Ok(replies) => Ok(replies.into_iter().next_back()),
            Err(refusal) => Err(LinkError { doing: doing(), source: refusal.into_system() }),
        }
    }
}
