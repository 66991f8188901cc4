//! Offloads of an interface, by the `ethtool` ioctl.

pub mod features;

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use units::Rate;

/// Commands that switch one offload each (`linux/ethtool.h`), first those that need the later
/// ones: the kernel refuses segmentation without checksums, not the other way round.
const SWITCHES: [u32; 7] = [
    0x2c, // ETHTOOL_SGRO: receive coalescing
    0x24, // ETHTOOL_SGSO: segmentation in software
    0x1f, // ETHTOOL_STSO: segmentation of TCP
    0x22, // ETHTOOL_SUFO: fragmentation of UDP
    0x19, // ETHTOOL_SSG: scattered frames
    TRANSMIT_CHECKSUMS,
    0x15, // ETHTOOL_SRXCSUM: checksums on reception
];
/// `ETHTOOL_STXCSUM`.
const TRANSMIT_CHECKSUMS: u32 = 0x17;
const GET_FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
const GET_CHANNELS: u32 = 0x3c;
/// Large receive offload, VLAN tags apart on transmission, on reception.
const FLAGS: u32 = 1 << 15 | 1 << 7 | TAGS_APART;
const TAGS_APART: u32 = 1 << 8;

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Switches all offloads that make an interface carry anything but what a wire would. What it
/// cannot switch stays.
///
/// # Errors
/// If there is no such interface, or permission is lacking.
pub fn switch_all(interface: &str, on: bool) -> io::Result<()> {
    let socket = control()?;
    let switch =
        |command: &u32| tolerate_unsupported(ioctl(&socket, interface, *command, on.into()));
    if on {
        SWITCHES.iter().rev().try_for_each(switch)?;
    } else {
        SWITCHES.iter().try_for_each(switch)?;
    }
    match ioctl(&socket, interface, GET_FLAGS, 0) {
        Ok(flags) => {
            let flags = if on { flags | FLAGS } else { flags & !FLAGS };
            tolerate_unsupported(ioctl(&socket, interface, SET_FLAGS, flags))
        }
        unsupported => tolerate_unsupported(unsupported),
    }
}

/// Switches the offload of checksums on transmission.
///
/// # Errors
/// As [`switch_all`], and if the interface cannot switch it.
pub fn switch_transmit_checksums(interface: &str, on: bool) -> io::Result<()> {
    ioctl(&control()?, interface, TRANSMIT_CHECKSUMS, on.into()).map(|_| ())
}

/// Whether an interface takes VLAN tags out of the frames that it receives.
///
/// # Errors
/// If the interface does not say.
pub fn takes_tags_off(interface: &str) -> io::Result<bool> {
    Ok(ioctl(&control()?, interface, GET_FLAGS, 0)? & TAGS_APART != 0)
}

/// How many queues an interface receives by; `None` if its driver does not say.
///
/// # Errors
/// If there is no such interface.
pub fn receive_queues(interface: &str) -> io::Result<Option<u32>> {
    /// `struct ethtool_channels`: the most of each kind, then those in use.
    #[repr(C)]
    #[derive(Default)]
    struct Channels {
        command: u32,
        most: [u32; 4],
        receive: u32,
        transmit: u32,
        other: u32,
        combined: u32,
    }
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    // SAFETY: the command takes an `ethtool_channels`, and writes nothing beyond it.
    match unsafe { ethtool(&control()?, interface, (&raw mut channels).cast()) } {
        Ok(()) => Ok(Some(channels.receive + channels.combined)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What an interface says it carries; none if it does not know.
#[must_use]
pub fn speed(interface: &str) -> Option<Rate> {
    /// `ETHTOOL_GSET`, whose answer every driver can give.
    const GET_SETTINGS: u32 = 1;
    // `struct ethtool_cmd`: the command, ..., `speed` at byte 12, ..., `speed_hi` at byte 28.
    let mut settings = [0u32; 11];
    settings[0] = GET_SETTINGS;
    // SAFETY: an `ethtool_cmd`, which has 44 bytes.
    unsafe { ethtool(&control().ok()?, interface, settings.as_mut_ptr().cast()) }.ok()?;
    let half = |word: u32| u16::from_ne_bytes([word.to_ne_bytes()[0], word.to_ne_bytes()[1]]);
    let mbps = u32::from(half(settings[7])) << 16 | u32::from(half(settings[3]));
    (mbps > 0 && mbps < u32::MAX).then(|| Rate(u64::from(mbps) * 1_000_000))
}

/// Any socket will do to speak about interfaces.
fn control() -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?)
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
    let mut value = EthtoolValue { command, data };
    // SAFETY: these commands take an `ethtool_value`, and write nothing beyond it.
    unsafe { ethtool(socket, interface, (&raw mut value).cast()) }?;
    Ok(value.data)
}

/// Gives `data` to the driver of an interface.
///
/// # Safety
/// It points to what the command in its first 32 bits takes, with room for what that answers.
unsafe fn ethtool(socket: &OwnedFd, interface: &str, data: *mut libc::c_char) -> io::Result<()> {
    let name = CString::new(interface).map_err(|_| io::ErrorKind::InvalidInput)?;
    let name = name.as_bytes();
    // SAFETY: all zeros is a value of this plain C struct.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = data;
    // SAFETY: the request is a C struct; what its data points to is the caller's promise.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
