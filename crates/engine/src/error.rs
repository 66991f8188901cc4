//! Why an engine cannot start.

use std::io;

use thiserror::Error;

use crate::io::xdp::Unavailable;
use crate::settings::SettingsError;

/// Why an engine cannot start: which interface, what is wrong with it, and the remedy.
#[derive(Debug, Error)]
pub enum EngineError {
    /// No interface has this name.
    #[error("{interface}: there is no such interface; `ip link` lists those there are")]
    NoSuchInterface {
        /// Its name.
        interface: String,
    },
    /// The interface is down.
    #[error("{interface}: the interface is down; `ip link set {interface} up` brings it up")]
    Down {
        /// Its name.
        interface: String,
    },
    /// The interface does not carry Ethernet.
    #[error("{interface}: the interface carries no Ethernet frames, which a bridge needs")]
    NotEthernet {
        /// Its name.
        interface: String,
    },
    /// The interface is the loopback.
    #[error(
        "{interface}: the loopback leads to no link; name the interface towards it, such as eth0"
    )]
    Loopback {
        /// Its name.
        interface: String,
    },
    /// The interface carries something else than Ethernet frames or IP packets.
    #[error(
        "{interface}: the interface carries neither Ethernet frames nor bare IP packets; attach to \
         the one that its packets leave by"
    )]
    Unfit {
        /// Its name.
        interface: String,
    },
    /// Neither direction is to be shaped.
    #[error("{interface}: neither direction has a rate; give one for egress, ingress, or both")]
    NoDirection {
        /// The interface's name.
        interface: String,
    },
    /// The process may not attach.
    #[error(
        "{interface}: attaching needs {capability}; run it as root (not in a user namespace), or \
         give the program what is missing"
    )]
    Lacking {
        /// The interface's name.
        interface: String,
        /// What is missing.
        capability: String,
    },
    /// Another engine runs on the interface.
    #[error("{interface}: another Shortlane engine runs on this interface; stop that one first")]
    Taken {
        /// Its name.
        interface: String,
    },
    /// The kernel forwards the interface's frames already.
    #[error(
        "{interface}: the interface is part of a bridge or bond of the kernel, which would pass \
         every frame on a second time; `ip link set {interface} nomaster` takes it out, and with \
         AF_XDP it could stay"
    )]
    Enslaved {
        /// Its name.
        interface: String,
    },
    /// Both ends of the bridge are one interface.
    #[error("{interface}: a bridge needs two interfaces, and both ends are this one")]
    SameInterface {
        /// Its name.
        interface: String,
    },
    /// The process may not open packet sockets.
    #[error(
        "{interface}: no permission to open a packet socket; run as root, with CAP_NET_RAW, or in \
         a user namespace that owns the network namespace"
    )]
    NoPermission {
        /// The interface's name.
        interface: String,
    },
    /// The link cannot be as it is set.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// `AF_XDP` was asked for and cannot be had.
    #[error("{0}; without `--io xdp` packet sockets serve")]
    Xdp(#[from] Unavailable),
    /// The system has refused something else.
    #[error("{interface}: {doing}: {source}")]
    System {
        /// The interface's name.
        interface: String,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl EngineError {
    /// Whether what was asked for is at fault, rather than what was found.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoSuchInterface { .. }
                | Self::NotEthernet { .. }
                | Self::SameInterface { .. }
                | Self::Loopback { .. }
                | Self::Unfit { .. }
                | Self::NoDirection { .. }
                | Self::Settings(_)
        )
    }
}
