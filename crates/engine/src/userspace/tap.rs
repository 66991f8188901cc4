//! TAP devices: where the packets of a device come to the engine, and those that have arrived go
//! back.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use frame::FlowKey;
use netdev::netlink::Connection;
use netlink_packet_core::NLM_F_ACK;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkMessage,
};

use super::hook::{Attached, Pulse};
use super::nat::Clients;
use crate::datapath::buffers::{Buffers, Offload, TAIL};
use crate::datapath::clock;
use crate::datapath::report::Tally;
use crate::datapath::segments::fits;
use crate::io::{BATCH, FrameIo};
use sched::Rate;

/// Frames that wait for the engine to read them; what comes beyond is lost. A burst of several
/// connections without segmentation offload fits.
const QUEUE: u32 = 2048;
/// The largest that a TAP takes. Packets are as large as the device wants, whatever a TAP says.
const MTU: u32 = 65_521;

mod ioctl {
    #![allow(missing_docs, reason = "generated")]
    // SAFETY (of all three): as `linux/if_tun.h` defines them.
    nix::ioctl_write_ptr!(set_interface, b'T', 202, libc::c_int);
    nix::ioctl_write_int!(set_offload, b'T', 208);
    nix::ioctl_read!(set_filter, b'T', 225, libc::c_int);
}

/// What a TAP's reader does by itself, so that the kernel need not (`TUN_F_*`).
mod offload {
    pub(super) const CHECKSUM: u64 = 0x01;
    pub(super) const TCP: u64 = 0x02 | 0x04 | 0x08; // over IPv4, IPv6, and with ECN
    pub(super) const UDP: u64 = 0x20 | 0x40; // over IPv4 and IPv6, since Linux 6.2
}

/// What frames look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// With an Ethernet header.
    Ethernet,
    /// IP packets.
    Ip,
}

/// A device that exists for as long as the process has it open.
pub(super) struct Tap {
    file: File,
    pub(super) name: String,
    pub(super) index: u32,
}

impl Tap {
    /// Makes one in the network namespace of the calling thread. `purpose` is for people who look
    /// at it. It is not [up](Self::up) yet.
    pub(super) fn new(layer: Layer, purpose: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        // SAFETY: all zeros is a value of this plain C struct.
        let mut request: libc::ifreq = unsafe { zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(b"shortlane%d") {
            *to = *from as libc::c_char;
        }
        let kind = match layer {
            Layer::Ethernet => libc::IFF_TAP,
            Layer::Ip => libc::IFF_TUN,
        };
        request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
        // SAFETY: the command reads and writes an `ifreq`.
        unsafe { ioctl::set_interface(file.as_raw_fd(), (&raw mut request).cast()) }?;
        // SAFETY: the kernel has written a name of its own length, and a 0 behind it.
        let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) };
        let name = name.to_string_lossy().into_owned();
        let mut connection = Connection::open()?;
        let index = index_of(&mut connection, &name)?;
        let tap = Self { file, name, index };
        tap.configure(&mut connection, purpose)?;
        Ok(tap)
    }

    /// A quiet device: the kernel sends nothing of its own through it.
    fn configure(&self, connection: &mut Connection, purpose: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        message.header.flags = LinkFlags::Noarp;
        message.header.change_mask = LinkFlags::Noarp | LinkFlags::Multicast;
        message.attributes.push(LinkAttribute::Mtu(MTU));
        message.attributes.push(LinkAttribute::TxQueueLen(QUEUE));
        message.attributes.push(LinkAttribute::IfAlias(purpose.to_owned()));
        set(connection, message)?;
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        let no_address = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        let inet6 = AfSpecUnspec::Inet6(vec![no_address]);
        message.attributes.push(LinkAttribute::AfSpecUnspec(vec![inet6]));
        match set(connection, message) {
            // A kernel without IPv6.
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => Ok(()),
            result => result,
        }
    }

    /// Has the kernel split super-packets if one of 64 KB would take too long at this rate.
    pub(super) fn suit(&self, rate: Rate) -> io::Result<()> {
        use offload::{CHECKSUM, TCP, UDP};
        // SAFETY: the argument is a plain number.
        let set = |flags| unsafe { ioctl::set_offload(self.file.as_raw_fd(), flags) };
        if fits(TAIL as u64, rate) {
            set(CHECKSUM | TCP | UDP).or_else(|_| set(CHECKSUM | TCP))?;
        } else {
            set(CHECKSUM)?;
        }
        Ok(())
    }

    /// Lets through to the engine only what this program says.
    pub(super) fn filter(&self, program: &OwnedFd) -> io::Result<()> {
        let mut program = program.as_raw_fd();
        // SAFETY: the command reads an `int`.
        unsafe { ioctl::set_filter(self.file.as_raw_fd(), &raw mut program) }?;
        Ok(())
    }

    /// Switches it on.
    pub(super) fn up(&self) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        set(&mut Connection::open()?, message)
    }

    /// The end from which the engine reads; the programs of `hook` lead packets there.
    pub(super) fn reader(
        &self,
        pulse: Pulse,
        hook: Attached,
        clients: Option<Clients>,
    ) -> io::Result<TapReader> {
        let file = self.file.try_clone()?;
        let statistics = Statistics { connection: Connection::open()?, index: self.index, told: 0 };
        Ok(TapReader {
            file,
            pulse,
            _hook: hook,
            clients,
            lets_pass: false,
            slot: None,
            statistics,
        })
    }

    /// The end to which it writes.
    pub(super) fn writer(&self, hook: Attached) -> io::Result<TapWriter> {
        Ok(TapWriter { file: self.file.try_clone()?, _hook: hook })
    }
}

fn index_of(connection: &mut Connection, name: &str) -> io::Result<u32> {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    get(connection, message).map(|link| link.header.index)
}

fn get(connection: &mut Connection, message: LinkMessage) -> io::Result<LinkMessage> {
    let replies = connection.request(RouteNetlinkMessage::GetLink(message), NLM_F_ACK);
    match replies.map_err(netdev::netlink::Refusal::into_system)?.pop() {
        Some(RouteNetlinkMessage::NewLink(link)) => Ok(link),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn set(connection: &mut Connection, message: LinkMessage) -> io::Result<()> {
    let done = connection.request(RouteNetlinkMessage::SetLink(message), NLM_F_ACK);
    done.map(|_| ()).map_err(netdev::netlink::Refusal::into_system)
}

/// The device's own counters.
struct Statistics {
    connection: Connection,
    index: u32,
    told: u64,
}

impl Statistics {
    /// Frames read and lost since the last call.
    fn arrived(&mut self) -> io::Result<u64> {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        let link = get(&mut self.connection, message)?;
        let now = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats.tx_packets + stats.tx_dropped),
            _ => None,
        });
        let now = now.unwrap_or(self.told);
        Ok(now - std::mem::replace(&mut self.told, now))
    }
}

/// Receives what the programs lead to a TAP, and keeps the heartbeat.
pub(super) struct TapReader {
    file: File,
    pulse: Pulse,
    _hook: Attached,
    clients: Option<Clients>,
    lets_pass: bool,
    /// A buffer for the next frame.
    slot: Option<u32>,
    statistics: Statistics,
}

impl FrameIo for TapReader {
    fn receive(&mut self, buffers: &mut Buffers, received: &mut Vec<u32>) -> io::Result<()> {
        if !self.lets_pass {
            self.pulse.beat(clock::now());
        }
        for _ in 0..BATCH {
            if buffers.is_exhausted() {
                break;
            }
            let Some(slot) = self.slot.take().or_else(|| buffers.take()) else { break };
            let mut offload = Offload::default();
            let [head, tail] = buffers.spaces(slot);
            let mut pieces = [&mut offload.0[..], head, tail].map(IoSliceMut::new);
            match (&self.file).read_vectored(&mut pieces) {
                Ok(length) => {
                    let length = length.saturating_sub(Offload::LEN) as u32;
                    buffers.received(slot, length, offload);
                    received.push(slot);
                }
                Err(error) => {
                    self.slot = Some(slot);
                    return match error.kind() {
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
                        _ => Err(error),
                    };
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, _: &mut Buffers, _: &[u32]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn let_pass(&mut self) -> bool {
        self.lets_pass = true;
        self.pulse.rest();
        true
    }

    fn reveal(&self, key: &FlowKey) -> Option<FlowKey> {
        self.clients.as_ref()?.reveal(key)
    }

    fn reveals(&self) -> bool {
        self.clients.is_some()
    }

    fn passed(&self) -> Tally {
        self.pulse.passed()
    }

    fn arrived(&mut self) -> io::Result<u64> {
        self.statistics.arrived()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Gives what has arrived back to the device, by way of the TAP's ingress.
pub(super) struct TapWriter {
    file: File,
    _hook: Attached,
}

impl FrameIo for TapWriter {
    fn receive(&mut self, _: &mut Buffers, _: &mut Vec<u32>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn send(&mut self, buffers: &mut Buffers, frames: &[u32]) -> io::Result<usize> {
        for (sent, frame) in frames.iter().enumerate() {
            let offload = buffers.offload(*frame);
            let [head, tail] = buffers.pieces(*frame);
            let pieces = [&offload.0[..], head, tail].map(IoSlice::new);
            match (&self.file).write_vectored(&pieces) {
                Ok(_) => buffers.give(*frame),
                // What is in the way of this one is told when it is the first.
                Err(_) if sent > 0 => return Ok(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) => return Err(error),
            }
        }
        Ok(frames.len())
    }

    fn arrived(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
