//! Looking at interfaces.

use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage};
use nix::net::if_::{Interface, if_indextoname, if_nameindex, if_nametoindex};

use super::{LinkError, Links};

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

impl Links {
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
