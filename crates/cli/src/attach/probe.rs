//! Whom a rate that follows the link goes by: a host that is named, or one that is there anyway.

use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::str::FromStr;

use netdev::routes;

use super::index_of;
use crate::Failure;

/// Where the resolvers of a machine are named. The second file has those behind the resolver of
/// systemd on the loopback.
const RESOLVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];

/// An address that was given, with the device behind `%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) address: IpAddr,
    scope: Option<String>,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, scope) = match text.split_once('%') {
            Some((address, scope)) => (address, Some(scope.to_owned())),
            None => (text, None),
        };
        let accepted = "an IPv4 or IPv6 address, such as 192.0.2.53 or fe80::1";
        let address: IpAddr = address.parse().map_err(|_| accepted)?;
        let is_host = !address.is_unspecified() && !address.is_multicast();
        let scoped = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        if !is_host || scope.is_some() && !scoped {
            return Err(accepted.into());
        }
        Ok(Self { address, scope })
    }
}

/// Who is probed, and why that one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) address: IpAddr,
    origin: Origin,
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    Named,
    /// Of this file.
    Resolver(&'static str),
    Gateway,
}

impl Probe {
    /// Who is named; or the first resolver that the device leads to through a router; or that
    /// router. Nobody who is not configured on this machine.
    pub(super) fn choose(named: Option<Named>, device: &str) -> Result<Self, Failure> {
        if let Some(Named { address, scope }) = named {
            return match scope {
                Some(scope) if scope != device => Err(Failure::Usage(format!(
                    "--probe {address}%{scope} is not beyond {device}, by which probes leave"
                ))),
                _ => Ok(Self { address, origin: Origin::Named }),
            };
        }
        let ifindex = index_of(device)?;
        for file in RESOLVERS {
            let text = fs::read_to_string(file).unwrap_or_default();
            let beyond = |address: &IpAddr| routes::leads_beyond(*address, ifindex);
            if let Some(address) = resolvers(&text).find(beyond) {
                return Ok(Self { address, origin: Origin::Resolver(file) });
            }
        }
        match routes::gateway(device) {
            Some(address) => Ok(Self { address, origin: Origin::Gateway }),
            None => Err(Failure::Usage(format!(
                "{device} leads to no resolver of this machine and has no default gateway: a rate \
                 that follows the link takes --probe ADDRESS, a host beyond the link that answers \
                 pings"
            ))),
        }
    }
}

impl Probe {
    /// Whether it is known to be beyond the link: a gateway may be the modem.
    pub(super) fn is_beyond(&self) -> bool {
        self.origin != Origin::Gateway
    }
}

/// One line.
impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, origin } = self;
        match origin {
            Origin::Named => write!(f, "probes go to {address}"),
            Origin::Resolver(file) => write!(
                f,
                "probes go to {address}, the resolver of {file}; --probe ADDRESS names another host"
            ),
            Origin::Gateway => write!(
                f,
                "probes go to {address}, the default gateway, which shows a queue in front of it, \
                 none behind it; --probe ADDRESS names a host beyond the link"
            ),
        }
    }
}

/// The resolvers of a `resolv.conf(5)` that are not this machine itself. A link-local one is a
/// neighbour, whatever the device behind it.
fn resolvers(text: &str) -> impl Iterator<Item = IpAddr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        words.next().filter(|word| *word == "nameserver")?;
        words.next()?.parse::<IpAddr>().ok()
    };
    text.lines().filter_map(address).filter(|address| !address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_its_device() {
        for (text, address, scope) in [
            ("192.0.2.1", "192.0.2.1", None),
            ("fe80::1%wan0", "fe80::1", Some("wan0")),
            ("2001:db8::1", "2001:db8::1", None),
        ] {
            let named: Named = text.parse().unwrap();
            assert_eq!(named.address, address.parse::<IpAddr>().unwrap());
            assert_eq!(named.scope.as_deref(), scope);
        }
        for text in ["", "example.org", "192.0.2.1%wan0", "2001:db8::1%wan0", "::", "224.0.0.1"] {
            assert!(text.parse::<Named>().is_err(), "{text}");
        }
    }

    #[test]
    fn resolvers_are_those_of_resolv_conf() {
        let text = "# nameserver 192.0.2.9\nsearch example.org\nnameserver 127.0.0.53\n\
                    nameserver\t192.0.2.53 \nnameserver fe80::1%wan0\nnameserver 2001:db8::53\n\
                    nameserver nonsense\nnameservers 192.0.2.8\n";
        let found: Vec<String> = resolvers(text).map(|address| address.to_string()).collect();
        assert_eq!(found, ["192.0.2.53", "2001:db8::53"]);
    }
}
