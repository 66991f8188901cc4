//! Giving interfaces addresses, and prefixes routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{LinkError, Links};

impl Links {
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
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
