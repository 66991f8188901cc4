//! The two interfaces of a bridge, and how frames come from them and go to them.

use std::fmt;
use std::io;

use netdev::link::Link;
use sched::Amount;

use crate::control::Lock;
use crate::datapath::direction::MOST_FRAMES;
use crate::datapath::medium::Medium;
use crate::error::EngineError;
use crate::forwarder::interface::{hold, look_up};
use crate::io::Half;
use crate::io::packet_socket::PacketSocket;
use crate::io::xdp;
use crate::settings::LinkConfig;

/// How a bridge takes frames from its interfaces and gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// `AF_XDP` where it can be had and loses nothing, else `AF_PACKET`.
    #[default]
    Auto,
    /// `AF_XDP`, which is faster.
    Xdp,
    /// `AF_PACKET`, which any interface and driver can do, without privileges on the machine, and
    /// with super-packets and checksums left to do.
    Packet,
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Xdp => "xdp",
            Self::Packet => "packet",
        })
    }
}

/// An interface, held.
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) link: Link,
    pub(crate) lock: Lock,
}

impl Port {
    pub(crate) fn open(name: &str) -> Result<Self, EngineError> {
        let interface = || name.to_owned();
        let link = look_up(name)?;
        if !link.ethernet {
            return Err(EngineError::NotEthernet { interface: interface() });
        }
        if !link.up {
            return Err(EngineError::Down { interface: interface() });
        }
        let lock = hold(name, &link)?;
        Ok(Self { name: interface(), link, lock })
    }

    fn for_xdp(&self) -> xdp::Port<'_> {
        xdp::Port {
            name: &self.name,
            link: &self.link,
            largest_frame: Medium::bridged(self.link.mtu).largest,
        }
    }

    /// `AF_PACKET` sockets to receive and to send.
    fn packet_sockets(&self) -> Result<(PacketSocket, PacketSocket), EngineError> {
        if self.link.controller.is_some() {
            return Err(EngineError::Enslaved { interface: self.name.clone() });
        }
        let open = || {
            let index = self.link.index;
            Ok((PacketSocket::receiver(index)?, PacketSocket::sender(index)?))
        };
        open().map_err(|source: io::Error| {
            let interface = self.name.clone();
            match source.kind() {
                io::ErrorKind::PermissionDenied => EngineError::NoPermission { interface },
                _ => EngineError::System { interface, doing: "opening a packet socket", source },
            }
        })
    }
}

/// What both directions take frames from and give them to, and how that was chosen.
pub(crate) fn take_io(
    ports: &[Port; 2],
    configs: &[LinkConfig; 2],
    io: Io,
) -> Result<([Half; 2], String), EngineError> {
    let open = |regardless| {
        xdp::open(&ports.each_ref().map(Port::for_xdp), most_packets(configs), regardless)
    };
    let reason = match io {
        Io::Packet => None,
        Io::Xdp => {
            let bridge = open(true)?;
            return Ok((bridge.halves, bridge.how));
        }
        Io::Auto => match open(false) {
            Ok(bridge) => return Ok((bridge.halves, bridge.how)),
            Err(reason) => Some(reason),
        },
    };
    let [left, right] = ports;
    let ((from_left, to_left), (from_right, to_right)) =
        (left.packet_sockets()?, right.packet_sockets()?);
    let half =
        |input, output| Half { input: Box::new(input), output: Box::new(output), buffers: None };
    let halves = [half(from_left, to_right), half(from_right, to_left)];
    let how = reason.map_or_else(
        || "AF_PACKET".to_owned(),
        |reason| format!("AF_PACKET, since AF_XDP cannot be had: {reason}"),
    );
    Ok((halves, how))
}

/// Most packets that a queue is to hold, as far as it counts packets.
fn most_packets(configs: &[LinkConfig; 2]) -> usize {
    let limit = |config: &LinkConfig| {
        let params = config.spec.params();
        match params.has("limit").then(|| params.amount("limit")) {
            Some(Amount::Packets(packets)) => packets as usize,
            _ => 0,
        }
    };
    configs.iter().map(limit).max().unwrap_or(0).min(MOST_FRAMES)
}
