//! Frame I/O over `AF_PACKET` sockets.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::{c_int, iovec, mmsghdr};

use crate::datapath::buffers::{Buffers, Offload};
use crate::io::{BATCH, FrameIo};

/// Kernel memory for frames that wait to be received: some 20 ms at 1 Gbit/s. The kernel grants
/// less to the unprivileged.
const RECEIVE_MEMORY: c_int = 8 << 20;
/// Kernel memory for frames that the interface has not sent yet.
const SEND_MEMORY: c_int = 4 << 20;

/// A raw socket on one interface, for one direction: either it receives or it sends.
pub struct PacketSocket {
    socket: OwnedFd,
    /// Buffers to receive into.
    slots: Vec<u32>,
    /// Whom packets without a header of their own are sent to: IPv4, IPv6.
    addresses: Option<Box<[libc::sockaddr_ll; 2]>>,
    batch: Box<Batch>,
}

impl PacketSocket {
    /// A socket that receives every frame that arrives at the interface, whatever its destination, and
    /// none that leaves through it.
    ///
    /// # Errors
    /// If the socket may not be opened, or the interface is gone.
    pub fn receiver(ifindex: u32) -> io::Result<Self> {
        let socket = open()?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_MEMORY)
            .or_else(|_| set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_MEMORY))?;
        bind(&socket, ifindex, libc::ETH_P_ALL as u16)?;
        be_promiscuous(&socket, ifindex)?;
        Ok(Self::new(socket))
    }

    /// A socket that sends through the interface and receives nothing.
    ///
    /// # Errors
    /// If the socket may not be opened, or the interface is gone.
    pub fn sender(ifindex: u32) -> io::Result<Self> {
        let socket = open()?;
        prepare_to_send(&socket, ifindex)?;
        Ok(Self::new(socket))
    }

    /// A socket that sends IP packets through an interface that puts no header in front of them.
    ///
    /// # Errors
    /// As [`sender`](Self::sender).
    pub fn ip_sender(ifindex: u32) -> io::Result<Self> {
        let socket = open()?;
        prepare_to_send(&socket, ifindex)?;
        let address = |protocol: c_int| address(ifindex, protocol as u16);
        let addresses = [address(libc::ETH_P_IP), address(libc::ETH_P_IPV6)];
        Ok(Self { addresses: Some(Box::new(addresses)), ..Self::new(socket) })
    }

    /// The number by which the kernel knows the socket; no other one has it until the next boot.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn cookie(&self) -> io::Result<u64> {
        let mut cookie = 0u64;
        let mut length = size_of::<u64>() as libc::socklen_t;
        // SAFETY: the pointers are to locals of the stated length.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_COOKIE,
                (&raw mut cookie).cast(),
                &raw mut length,
            )
        };
        check(result).map(|()| cookie)
    }

    fn new(socket: OwnedFd) -> Self {
        let slots = Vec::with_capacity(BATCH);
        Self { socket, slots, addresses: None, batch: Batch::new() }
    }
}

impl FrameIo for PacketSocket {
    fn receive(&mut self, buffers: &mut Buffers, received: &mut Vec<u32>) -> io::Result<()> {
        while self.slots.len() < BATCH {
            let Some(buffer) = buffers.take() else { break };
            self.slots.push(buffer);
        }
        let slots = &self.slots;
        self.batch.prepare_receive(buffers, slots);
        // MSG_TRUNC makes the kernel tell the whole length of a frame that does not fit.
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: the first `slots.len()` headers were just prepared and point to buffers of
        // distinct slots and to arrays of the batch, all of which outlive the call.
        let count = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                self.batch.headers.as_mut_ptr(),
                slots.len() as u32,
                flags,
                ptr::null_mut(),
            )
        };
        if count < 0 {
            return none_if_would_block(io::Error::last_os_error()).map(|_| ());
        }
        for (index, slot) in slots[..count as usize].iter().enumerate() {
            self.batch.take_in(index, buffers, *slot);
        }
        received.extend(self.slots.drain(..count as usize));
        Ok(())
    }

    fn send(&mut self, buffers: &mut Buffers, frames: &[u32]) -> io::Result<usize> {
        let frames = &frames[..frames.len().min(BATCH)];
        self.batch.prepare_send(buffers, frames);
        if let Some(addresses) = &mut self.addresses {
            self.batch.address(buffers, frames, addresses);
        }
        // SAFETY: the first `frames.len()` headers were just prepared and point to buffers and
        // to arrays of the batch, which outlive the call; the kernel only reads them.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                self.batch.headers.as_mut_ptr(),
                frames.len() as u32,
                libc::MSG_DONTWAIT,
            )
        };
        if sent < 0 {
            return none_if_would_block(io::Error::last_os_error());
        }
        frames[..sent as usize].iter().for_each(|frame| buffers.give(*frame));
        Ok(sent as usize)
    }

    fn arrived(&mut self) -> io::Result<u64> {
        // SAFETY: all zeros is a value of this plain C struct.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the pointers are to locals of the stated length.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                ptr::from_mut(&mut statistics).cast(),
                &mut length,
            )
        };
        check(result)?;
        // Lost frames included.
        Ok(statistics.tp_packets.into())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A control message of this type carries what `PACKET_AUXDATA` tells, which fits in here.
type Control = [u64; 8];

/// The arrays that one system call on many frames works on; made once, filled for each call.
struct Batch {
    headers: [mmsghdr; BATCH],
    vectors: [[iovec; 3]; BATCH],
    offloads: [Offload; BATCH],
    controls: [Control; BATCH],
}

// SAFETY: the pointers in `headers` and `vectors` are set anew before each system call, to memory
// that the calling thread has exclusive access to, and never followed after it.
unsafe impl Send for Batch {}

impl Batch {
    fn new() -> Box<Self> {
        // SAFETY: all zeros is a value of each of these plain C structs and arrays.
        Box::new(unsafe { zeroed() })
    }

    fn prepare_receive(&mut self, buffers: &mut Buffers, slots: &[u32]) {
        for (index, slot) in slots.iter().enumerate() {
            let [head, tail] = buffers.spaces(*slot);
            self.point(index, [vector(head), vector(tail)]);
            let header = &mut self.headers[index].msg_hdr;
            header.msg_control = self.controls[index].as_mut_ptr().cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
    }

    fn prepare_send(&mut self, buffers: &Buffers, frames: &[u32]) {
        for (index, frame) in frames.iter().enumerate() {
            self.offloads[index] = buffers.offload(*frame);
            // The kernel only reads them.
            let pieces = buffers.pieces(*frame).map(|piece| iovec {
                iov_base: piece.as_ptr().cast_mut().cast(),
                iov_len: piece.len(),
            });
            self.point(index, pieces);
        }
    }

    /// Says of each packet what it is, which its first bits tell.
    fn address(&mut self, buffers: &Buffers, frames: &[u32], to: &mut [libc::sockaddr_ll; 2]) {
        let [v4, v6] = to;
        for (header, frame) in self.headers.iter_mut().zip(frames) {
            let is_v6 = buffers.frame(*frame).first().is_some_and(|byte| byte >> 4 == 6);
            let address = if is_v6 { &raw mut *v6 } else { &raw mut *v4 };
            header.msg_hdr.msg_name = address.cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        }
    }

    /// Makes message `index` of an offload header and a frame in two pieces.
    fn point(&mut self, index: usize, [head, tail]: [iovec; 2]) {
        self.vectors[index] = [vector(&mut self.offloads[index].0), head, tail];
        let header = &mut self.headers[index].msg_hdr;
        header.msg_iov = self.vectors[index].as_mut_ptr();
        header.msg_iovlen = if tail.iov_len == 0 { 2 } else { 3 };
    }

    /// Notes in the buffers what message `index` has brought.
    fn take_in(&self, index: usize, buffers: &mut Buffers, slot: u32) {
        let length = self.headers[index].msg_len.saturating_sub(Offload::LEN as u32);
        buffers.received(slot, length, self.offloads[index]);
        if let Some((tag_type, tag)) = self.stripped_tag(index) {
            buffers.insert_tag(slot, tag_type, tag);
        }
    }

    /// The VLAN tag that the kernel took out of the frame of message `index`.
    fn stripped_tag(&self, index: usize) -> Option<(u16, u16)> {
        let header = &self.headers[index].msg_hdr;
        // SAFETY: the kernel has filled in the control messages of `header`, which point into
        // `self.controls[index]`; the macros stay within the length it has set.
        let auxdata = unsafe {
            let message = libc::CMSG_FIRSTHDR(header);
            let is_auxdata = !message.is_null()
                && (*message).cmsg_level == libc::SOL_PACKET
                && (*message).cmsg_type == libc::PACKET_AUXDATA;
            if !is_auxdata {
                return None;
            }
            libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>().read_unaligned()
        };
        if auxdata.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
            return None;
        }
        let has_type = auxdata.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tag_type = if has_type { auxdata.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
        Some((tag_type, auxdata.tp_vlan_tci))
    }
}

fn vector(piece: &mut [u8]) -> iovec {
    iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() }
}

pub(crate) fn open() -> io::Result<OwnedFd> {
    // Protocol 0: no frame is queued before the socket is bound to its interface.
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    check(fd)?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set(socket: &OwnedFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    set_value(socket, level, option, &value)
}

pub(crate) fn set_value<T>(
    socket: &OwnedFd,
    level: c_int,
    option: c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer is to a value of the stated size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(result)
}

fn prepare_to_send(socket: &OwnedFd, ifindex: u32) -> io::Result<()> {
    set(socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_MEMORY)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, SEND_MEMORY))?;
    // Protocol 0: bound to the interface, but handed no frame.
    bind(socket, ifindex, 0)
}

fn address(ifindex: u32, protocol: u16) -> libc::sockaddr_ll {
    // SAFETY: all zeros is a value of this plain C struct.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = ifindex as c_int;
    address
}

pub(crate) fn bind(socket: &OwnedFd, ifindex: u32, protocol: u16) -> io::Result<()> {
    let address = address(ifindex, protocol);
    // SAFETY: the pointer is to an address of the stated size.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    check(result)
}

/// A socket that receives nothing, and makes the interface take every frame on the wire, whoever
/// it is for, until it is closed.
pub(crate) fn promiscuous(ifindex: u32) -> io::Result<OwnedFd> {
    let socket = open()?;
    be_promiscuous(&socket, ifindex)?;
    Ok(socket)
}

/// The interface goes back to normal when the socket is closed.
fn be_promiscuous(socket: &OwnedFd, ifindex: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: ifindex as c_int,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_value(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn none_if_would_block(error: io::Error) -> io::Result<usize> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}
