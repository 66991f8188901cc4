//! Which way packets take out of the network, and whether the machine passes on those of others.

use std::fs;
use std::net::IpAddr;

use netlink_packet_core::NLM_F_ACK;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::net::if_::if_nametoindex;

use crate::netlink::{Connection, Refusal};

/// Whether packets to an address leave by a device, and not for a neighbour: a router takes them,
/// or the other end of a line.
#[must_use]
pub fn leads_beyond(address: IpAddr, device: u32) -> bool {
    route_to(address).ok().flatten().is_some_and(|route| {
        let leaves = route.attributes.contains(&RouteAttribute::Oif(device));
        let routed = via(&route).is_some() || route.header.destination_prefix_length == 0;
        leaves && routed && route.header.kind == RouteType::Unicast
    })
}

/// The route of the kernel's tables that packets to an address take.
fn route_to(address: IpAddr) -> Result<Option<RouteMessage>, Refusal> {
    let (family, bits) = match address {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.destination_prefix_length = bits;
    message.header.flags = RouteFlags::FibMatch;
    message.attributes.push(RouteAttribute::Destination(address.into()));
    let found = Connection::open()?.request(RouteNetlinkMessage::GetRoute(message), NLM_F_ACK)?;
    Ok(found.into_iter().find_map(|message| match message {
        RouteNetlinkMessage::NewRoute(route) => Some(route),
        _ => None,
    }))
}

/// The default gateway of a device: of IPv4, or else of IPv6; of several the one that is preferred.
#[must_use]
pub fn gateway(device: &str) -> Option<IpAddr> {
    let index = if_nametoindex(device).ok()?;
    let of = |family| {
        let mut message = RouteMessage::default();
        message.header.address_family = family;
        let found = Connection::open().ok()?.dump(RouteNetlinkMessage::GetRoute(message)).ok()?;
        let routes = found.into_iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewRoute(route) => Some(route),
            _ => None,
        });
        let default = routes.filter(|route| {
            route.header.destination_prefix_length == 0
                && route.header.kind == RouteType::Unicast
                && route.attributes.contains(&RouteAttribute::Oif(index))
        });
        let gateways = default.filter_map(|route| Some((metric(&route), via(&route)?)));
        gateways.min_by_key(|(metric, _)| *metric).map(|(_, gateway)| gateway)
    };
    of(AddressFamily::Inet).or_else(|| of(AddressFamily::Inet6))
}

/// The router of a route.
fn via(route: &RouteMessage) -> Option<IpAddr> {
    route.attributes.iter().find_map(|part| match part {
        RouteAttribute::Gateway(RouteAddress::Inet(address)) => Some((*address).into()),
        RouteAttribute::Gateway(RouteAddress::Inet6(address)) => Some((*address).into()),
        _ => None,
    })
}

fn metric(route: &RouteMessage) -> u32 {
    let metric = route.attributes.iter().find_map(|part| match part {
        RouteAttribute::Priority(metric) => Some(*metric),
        _ => None,
    });
    metric.unwrap_or(0)
}

/// Whether a default route leaves by a device: it leads to everybody who is not a neighbour.
#[must_use]
pub fn lead_out_by(device: &str) -> bool {
    let is_in = |file, default: fn(&str) -> Option<&str>| {
        fs::read_to_string(file)
            .is_ok_and(|table| table.lines().any(|l| default(l) == Some(device)))
    };
    is_in("/proc/net/route", default_v4) || is_in("/proc/net/ipv6_route", default_v6)
}

/// The device of a line of `/proc/net/route`, if that is a default route.
fn default_v4(line: &str) -> Option<&str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [device, "00000000", _, flags, _, _, _, "00000000", ..] = fields[..] else { return None };
    is_up(flags).then_some(device)
}

/// The same of `/proc/net/ipv6_route`, in which the kernel has a route to nowhere by `lo` as well.
fn default_v6(line: &str) -> Option<&str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [to, "00", _, "00", _, _, _, _, flags, device] = fields[..] else { return None };
    (to.bytes().all(|digit| digit == b'0') && is_up(flags) && device != "lo").then_some(device)
}

/// `RTF_UP`, and not `RTF_REJECT`.
fn is_up(flags: &str) -> bool {
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & 0x201 == 1)
}

/// Whether a device is a router's way out: behind it are the clients that send there.
#[must_use]
pub fn clients_send_by(device: &str) -> bool {
    forwarding() && lead_out_by(device)
}

/// Whether packets of others pass through this machine: a device of the namespace is a router's.
#[must_use]
pub fn forwarding() -> bool {
    forwarding_of("ipv4") || forwarding_of("ipv6")
}

fn forwarding_of(family: &str) -> bool {
    let devices = fs::read_dir(format!("/proc/sys/net/{family}/conf"));
    let is_on = |device: fs::DirEntry| {
        fs::read(device.path().join("forwarding")).is_ok_and(|value| value != b"0\n")
    };
    devices.is_ok_and(|devices| devices.flatten().any(is_on))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_of_ipv4() {
        let of = |line| default_v4(line);
        assert_eq!(
            of("eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0"),
            Some("eth0")
        );
        assert_eq!(of("eth0\t0002A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0"), None);
        assert_eq!(of("eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000080\t0\t0\t0"), None);
        assert_eq!(of("Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU"), None);
    }

    #[test]
    fn default_routes_of_ipv6() {
        let any = "0".repeat(32);
        let line = |to: &str, length: &str, flags: &str, device: &str| {
            let fields = [to, length, &any, "00", &any, "00000400", "00000001", "00000000", flags];
            format!("{} {device:>8}", fields.join(" "))
        };
        let found = |line: &str| default_v6(line).map(str::to_owned);
        assert_eq!(found(&line(&any, "00", "00450003", "eth0")), Some("eth0".into()));
        assert_eq!(found(&line(&any, "00", "00200200", "lo")), None);
        assert_eq!(found(&line(&any, "00", "00200203", "eth0")), None, "a route that rejects");
        assert_eq!(found(&line(&any, "40", "00450003", "eth0")), None);
    }
}
