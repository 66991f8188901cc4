//! Interfaces of the current network namespace: make, configure and look at them.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::net::if_::{Interface, if_indextoname, if_nameindex, if_nametoindex};

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

/// What the kernel says about an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its index.
    pub index: u32,
    /// Largest IP packet it carries.
    pub mtu: u32,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it can carry frames: for a veth, whether its peer is up as well.
    pub running: bool,
    /// Whether it carries Ethernet frames.
    pub ethernet: bool,
    /// Whether it carries IP packets without any header in front.
    pub ip_only: bool,
    /// Whether it leads back to the machine itself.
    pub loopback: bool,
    /// Whether it is made by software (a veth, a TAP device, a bridge, ...), no device.
    pub software: bool,
    /// Whether it is a port of a bridge or part of a bond: the index of that.
    pub controller: Option<u32>,
    /// Its MAC address.
    pub mac: [u8; 6],
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

    /// What an interface is.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn get(&mut self, name: &str) -> Result<Link, LinkError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.look_up(message, || format!("look up interface {name}"))
    }

    /// What the interface with this index is.
    ///
    /// # Errors
    /// If there is none.
    pub fn at(&mut self, index: u32) -> Result<Link, LinkError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.look_up(message, || format!("look up interface {index}"))
    }

    fn look_up(
        &mut self,
        message: LinkMessage,
        doing: impl Fn() -> String,
    ) -> Result<Link, LinkError> {
        let reply = self.request(RouteNetlinkMessage::GetLink(message), 0, &doing)?;
        let Some(RouteNetlinkMessage::NewLink(link)) = reply else {
            let source = io::Error::from(io::ErrorKind::InvalidData);
            return Err(LinkError { doing: doing(), source });
        };
        Ok(describe(&link))
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

    /// Gives an interface an address, usable at once: IPv6 does not look for duplicates.
    ///
    /// # Errors
    /// If the interface has it already, or permission is lacking.
    pub fn add_address(
        &mut self,
        name: &str,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), LinkError> {
        let mut message = AddressMessage::default();
        message.header.index = self.get(name)?.index;
        message.header.prefix_len = prefix;
        message.header.family = family(address);
        message.attributes.push(AddressAttribute::Address(address));
        match address {
            IpAddr::V4(_) => message.attributes.push(AddressAttribute::Local(address)),
            IpAddr::V6(_) => message.header.flags = AddressHeaderFlags::Nodad,
        }
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewAddress(message), flags, || {
            format!("give {name} the address {address}/{prefix}")
        })
    }

    /// Sends what has no better route to `gateway`.
    ///
    /// # Errors
    /// If the gateway cannot be reached, or there is a default route already.
    pub fn add_default_route(&mut self, gateway: IpAddr) -> Result<(), LinkError> {
        let unspecified = match gateway {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        self.add_route(unspecified, 0, gateway)
    }

    /// Sends what goes to a prefix to `gateway`.
    ///
    /// # Errors
    /// If the gateway cannot be reached, or there is such a route already.
    pub fn add_route(
        &mut self,
        destination: IpAddr,
        prefix: u8,
        gateway: IpAddr,
    ) -> Result<(), LinkError> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(gateway);
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.header.destination_prefix_length = prefix;
        if prefix > 0 {
            message.attributes.push(RouteAttribute::Destination(destination.into()));
        }
        message.attributes.push(RouteAttribute::Gateway(gateway.into()));
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewRoute(message), flags, || {
            format!("route {destination}/{prefix} by way of {gateway}")
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

fn describe(link: &LinkMessage) -> Link {
    let mut described = Link {
        index: link.header.index,
        mtu: 0,
        up: link.header.flags.contains(LinkFlags::Up),
        running: link.header.flags.contains(LinkFlags::Running),
        ethernet: link.header.link_layer_type == LinkLayerType::Ether,
        ip_only: matches!(
            link.header.link_layer_type,
            LinkLayerType::None | LinkLayerType::Ppp | LinkLayerType::Rawip
        ),
        loopback: link.header.flags.contains(LinkFlags::Loopback),
        software: false,
        controller: None,
        mac: [0; 6],
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::Mtu(mtu) => described.mtu = *mtu,
            LinkAttribute::Controller(index) => described.controller = Some(*index),
            LinkAttribute::LinkInfo(infos) => {
                described.software = infos.iter().any(|info| matches!(info, LinkInfo::Kind(_)));
            }
            LinkAttribute::Address(mac) => {
                described.mac = mac.as_slice().try_into().unwrap_or_default();
            }
            _ => {}
        }
    }
    described
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Index and name of every interface of the calling thread's network namespace, by index.
///
/// # Errors
/// If the system does not tell.
pub fn all() -> io::Result<Vec<(u32, String)>> {
    let found = if_nameindex()?;
    let name = |interface: &Interface| interface.name().to_string_lossy().into_owned();
    let mut all: Vec<_> = found.iter().map(|found| (found.index(), name(found))).collect();
    all.sort();
    Ok(all)
}

/// The index of an interface of the calling thread's network namespace.
///
/// # Errors
/// If there is none of this name.
pub fn index_of(name: &str) -> io::Result<u32> {
    Ok(if_nametoindex(name)?)
}

/// What an interface is called now; `None` if it is gone.
#[must_use]
pub fn name_of(index: u32) -> Option<String> {
    if_indextoname(index).ok()?.into_string().ok()
}
