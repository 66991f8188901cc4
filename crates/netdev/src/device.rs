//! The devices of the current network namespace, as far as attaching is concerned.

use std::path::Path;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};

use crate::netlink::{Connection, Refusal};
use crate::routes;

/// What a device is.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Largest IP packet that it carries.
    pub mtu: u32,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it leads back to the machine itself.
    pub loopback: bool,
    /// Bytes that its packets have before the IP header.
    pub link_header: u8,
    /// Whether packets get here from the input of other devices by redirection.
    pub ifb: bool,
    /// Segments of a super-packet that the device takes.
    pub gso_max_segs: u32,
    /// Bytes of a super-packet that it makes of what it receives.
    pub gro_max_size: u32,
}

/// Bytes of an Ethernet header.
pub const ETHERNET_HEADER: u8 = 14;
/// `GRO_LEGACY_MAX_SIZE`, for kernels that do not tell.
const GRO_MAX_SIZE: u32 = 65_536;
/// `GSO_MAX_SEGS` of the kernel, for the same.
const GSO_MAX_SEGS: u32 = 65_535;

impl Device {
    /// All devices, by index.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn all() -> Result<Vec<Self>, Refusal> {
        let mut connection = Connection::open()?;
        let found = connection.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
        let device = |message| match message {
            RouteNetlinkMessage::NewLink(link) => Some(describe(&link)),
            _ => None,
        };
        let mut devices: Vec<Self> = found.into_iter().filter_map(device).collect();
        devices.sort_by_key(|device| device.index);
        Ok(devices)
    }

    /// Whether what arrives at other devices can leave by this one as it arrived.
    #[must_use]
    pub fn forwards(&self) -> bool {
        let bridge_port = Path::new("/sys/class/net").join(&self.name).join("brport");
        self.ifb || bridge_port.exists() || routes::forwarding()
    }
}

/// Sets how many segments a super-packet of a device may have.
///
/// # Errors
/// If the device does not take it, or permission is lacking.
pub fn set_gso_max_segs(index: u32, segments: u32) -> Result<(), Refusal> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes.push(LinkAttribute::GsoMaxSegs(segments));
    let message = RouteNetlinkMessage::SetLink(message);
    Connection::open()?.request(message, NLM_F_ACK).map(|_| ())
}

/// Makes an ifb device.
///
/// # Errors
/// If the name is taken, the kernel has no ifb devices, or permission is lacking.
pub fn add_ifb(name: &str) -> Result<(), Refusal> {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Ifb)]));
    let message = RouteNetlinkMessage::NewLink(message);
    let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    Connection::open()?.request(message, flags).map(|_| ())
}

/// Switches a device on.
///
/// # Errors
/// If there is no such device, or permission is lacking.
pub fn set_device_up(name: &str) -> Result<(), Refusal> {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    let message = RouteNetlinkMessage::SetLink(message);
    Connection::open()?.request(message, NLM_F_ACK).map(|_| ())
}

/// Removes a device.
///
/// # Errors
/// If there is no such device, or permission is lacking.
pub fn remove_device(index: u32) -> Result<(), Refusal> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    let message = RouteNetlinkMessage::DelLink(message);
    Connection::open()?.request(message, NLM_F_ACK).map(|_| ())
}

fn describe(link: &LinkMessage) -> Device {
    let mut device = Device {
        index: link.header.index,
        name: String::new(),
        mtu: 0,
        up: link.header.flags.contains(LinkFlags::Up),
        loopback: link.header.flags.contains(LinkFlags::Loopback),
        link_header: match link.header.link_layer_type {
            LinkLayerType::Ether => ETHERNET_HEADER,
            _ => 0,
        },
        ifb: false,
        gso_max_segs: GSO_MAX_SEGS,
        gro_max_size: GRO_MAX_SIZE,
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => device.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => device.mtu = *mtu,
            LinkAttribute::GsoMaxSegs(segments) => device.gso_max_segs = *segments,
            LinkAttribute::GroMaxSize(size) => device.gro_max_size = *size,
            LinkAttribute::LinkInfo(info) => {
                device.ifb = info.contains(&LinkInfo::Kind(InfoKind::Ifb));
            }
            _ => {}
        }
    }
    device
}
