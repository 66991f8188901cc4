//! Qdiscs by netlink, for what `tc` would not send.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const RTM_NEWQDISC: u16 = 36;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const ROOT: u32 = 0xffff_ffff;

fn attribute(into: &mut Vec<u8>, kind: u16, value: &[u8]) {
    into.extend((4 + value.len() as u16).to_ne_bytes());
    into.extend(kind.to_ne_bytes());
    into.extend(value);
    into.resize(into.len().next_multiple_of(4), 0);
}

/// Adds a root qdisc with these bytes as its options.
pub(crate) fn add_root(ifindex: u32, kind: &str, options: &[u8]) -> io::Result<()> {
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let mut message = vec![0; 4];
    message.extend(RTM_NEWQDISC.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]); // sequence number, port
    message.extend([0; 4]); // family
    message.extend(ifindex.to_ne_bytes());
    message.extend(0u32.to_ne_bytes()); // handle
    message.extend(ROOT.to_ne_bytes());
    message.extend([0; 4]);
    attribute(&mut message, TCA_KIND, format!("{kind}\0").as_bytes());
    attribute(&mut message, TCA_OPTIONS, options);
    let size = message.len() as u32;
    message[..4].copy_from_slice(&size.to_ne_bytes());
    ask(&message)
}

/// Sends a request and reads its acknowledgement.
fn ask(message: &[u8]) -> io::Result<()> {
    let mut answer = [0; 4096];
    // SAFETY: the descriptor is new, and is checked.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: both buffers are as long as is said.
    let received = unsafe {
        let fd = socket.as_raw_fd();
        if libc::send(fd, message.as_ptr().cast(), message.len(), 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0)
    };
    if received < 20 {
        return Err(io::Error::last_os_error());
    }
    let mut error = [0; 4];
    error.copy_from_slice(&answer[16..20]);
    match i32::from_ne_bytes(error) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}
