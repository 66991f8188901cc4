//! Offloads of an interface, by the `ethtool` ioctl.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::link::c_name;

/// Commands that switch one offload each (`linux/ethtool.h`), those first that others build on:
/// the kernel refuses segmentation without checksums, not the other way round.
const SWITCHES: [u32; 7] = [
    0x2c, // ETHTOOL_SGRO: receive coalescing
    0x24, // ETHTOOL_SGSO: segmentation in software
    0x1f, // ETHTOOL_STSO: segmentation of TCP
    0x22, // ETHTOOL_SUFO: fragmentation of UDP
    0x19, // ETHTOOL_SSG: scattered frames
    0x17, // ETHTOOL_STXCSUM: checksums on transmission
    0x15, // ETHTOOL_SRXCSUM: checksums on reception
];
const GET_FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
/// Large receive offload, VLAN tags apart on transmission, on reception.
const FLAGS: u32 = 1 << 15 | 1 << 7 | 1 << 8;

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

pub(crate) fn all_off(interface: &str) -> io::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    for command in SWITCHES {
        tolerate_unsupported(ioctl(&socket, interface, command, 0))?;
    }
    match ioctl(&socket, interface, GET_FLAGS, 0) {
        Ok(flags) => {
            let off = ioctl(&socket, interface, SET_FLAGS, flags & !FLAGS);
            tolerate_unsupported(off)
        }
        unsupported => tolerate_unsupported(unsupported),
    }
}

fn tolerate_unsupported(result: io::Result<u32>) -> io::Result<()> {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL)) => {
            Ok(())
        }
        other => other.map(|_| ()),
    }
}

fn ioctl(socket: &OwnedFd, interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let name = c_name(interface)?;
    let name = name.as_bytes();
    // SAFETY: all zeros is a value of this plain C struct.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    let mut value = EthtoolValue { command, data };
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request is a C struct whose data points to an `ethtool_value`, as these
    // commands take it; both outlive the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value.data) }
}
