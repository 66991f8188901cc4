//! `AF_XDP` sockets by system calls: the memory they share, their rings, the interface they are
//! bound to.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::{c_int, xdp_desc, xdp_mmap_offsets, xdp_statistics};

use super::ring::{Consumer, Producer};

/// Entries of each ring: buffers in the kernel's hands on the way in, and on the way out.
pub(super) const RING: u32 = 2048;
/// Kernel memory for frames that the interface has not sent yet.
const SEND_MEMORY: c_int = 4 << 20;
/// Most frames that the kernel sends in one call; before 6.17 it is 32, which is not to be changed.
const XDP_MAX_TX_SKB_BUDGET: c_int = 9;

/// Memory in which the frames of a bridge lie, as the kernel is told of it.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) address: *mut u8,
    pub(super) length: usize,
    pub(super) chunk: u32,
}

/// A socket that is not bound yet.
pub(super) struct Socket(OwnedFd);

/// The two rings of an interface by which buffers change hands.
pub(super) struct BufferRings {
    pub(super) fill: Producer<u64>,
    pub(super) completion: Consumer<u64>,
}

impl Socket {
    pub(super) fn open() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        succeeded(fd)?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Tells the kernel of the memory; it pins all of it, so that it is there as long as a socket
    /// is. The kernel writes only to buffers that stand in a fill ring.
    pub(super) fn register(&self, memory: Memory) -> io::Result<()> {
        // SAFETY: all zeros is a value of this plain C struct.
        let mut registration: libc::xdp_umem_reg = unsafe { zeroed() };
        registration.addr = memory.address as u64;
        registration.len = memory.length as u64;
        registration.chunk_size = memory.chunk;
        set(&self.0, libc::XDP_UMEM_REG, &registration)
    }

    /// The rings by which the buffers of one interface change hands.
    pub(super) fn buffer_rings(&self) -> io::Result<BufferRings> {
        set(&self.0, libc::XDP_UMEM_FILL_RING, &RING)?;
        set(&self.0, libc::XDP_UMEM_COMPLETION_RING, &RING)?;
        let (socket, at) = (self.0.as_fd(), self.offsets()?);
        let completion = libc::XDP_UMEM_PGOFF_COMPLETION_RING;
        Ok(BufferRings {
            fill: Producer::map(socket, libc::XDP_UMEM_PGOFF_FILL_RING, &at.fr, RING)?,
            completion: Consumer::map(socket, completion, &at.cr, RING)?,
        })
    }

    pub(super) fn receive_ring(&self) -> io::Result<Consumer<xdp_desc>> {
        set(&self.0, libc::XDP_RX_RING, &RING)?;
        Consumer::map(self.0.as_fd(), libc::XDP_PGOFF_RX_RING as u64, &self.offsets()?.rx, RING)
    }

    pub(super) fn transmit_ring(&self) -> io::Result<Producer<xdp_desc>> {
        set(&self.0, libc::XDP_TX_RING, &RING)?;
        for option in [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF] {
            if set_at(&self.0, libc::SOL_SOCKET, option, &SEND_MEMORY).is_ok() {
                break;
            }
        }
        let _ = set(&self.0, XDP_MAX_TX_SKB_BUDGET, &RING);
        Producer::map(self.0.as_fd(), libc::XDP_PGOFF_TX_RING as u64, &self.offsets()?.tx, RING)
    }

    /// Binds to the first queue of an interface, with the memory of `shared` unless it has its
    /// own.
    pub(super) fn bind(
        self,
        ifindex: u32,
        shared: Option<BorrowedFd<'_>>,
        flags: u16,
    ) -> io::Result<OwnedFd> {
        // SAFETY: all zeros is a value of this plain C struct.
        let mut address: libc::sockaddr_xdp = unsafe { zeroed() };
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_ifindex = ifindex;
        // How memory is shared was said by the socket that has it.
        address.sxdp_flags = if shared.is_some() { libc::XDP_SHARED_UMEM } else { flags };
        address.sxdp_shared_umem_fd = shared.map_or(0, |fd| fd.as_raw_fd() as u32);
        // SAFETY: the pointer is to an address of the stated size.
        let result = unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
            )
        };
        succeeded(result)?;
        Ok(self.0)
    }

    fn offsets(&self) -> io::Result<xdp_mmap_offsets> {
        get(self.0.as_fd(), libc::XDP_MMAP_OFFSETS)
    }
}

/// What a socket has lost so far.
pub(super) fn statistics(socket: BorrowedFd<'_>) -> io::Result<xdp_statistics> {
    get(socket, libc::XDP_STATISTICS)
}

/// Whether a bound socket exchanges frames with the driver without a copy.
pub(super) fn is_zero_copy(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let options: libc::xdp_options = get(socket, libc::XDP_OPTIONS)?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// Makes the kernel look at the transmit ring.
pub(super) fn kick(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: nothing is passed but the descriptor.
    let result = unsafe {
        libc::sendto(socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes the driver look at the fill ring.
pub(super) fn wake(socket: BorrowedFd<'_>) {
    // What is wrong with the interface shows when it is checked.
    let _ = check(socket);
}

/// Whether the interface is there and up.
pub(super) fn check(socket: BorrowedFd<'_>) -> io::Result<()> {
    let (nothing, nobody) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: nothing is passed but the descriptor.
    let result = unsafe {
        libc::recvfrom(socket.as_raw_fd(), nothing, 0, libc::MSG_DONTWAIT, nobody, ptr::null_mut())
    };
    match succeeded(result as c_int) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        other => other,
    }
}

fn set<T>(socket: &OwnedFd, option: c_int, value: &T) -> io::Result<()> {
    set_at(socket, libc::SOL_XDP, option, value)
}

fn set_at<T>(socket: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let (value, length) = (ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the pointer is to a value of the stated size.
    succeeded(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) })
}

fn get<T>(socket: BorrowedFd<'_>, option: c_int) -> io::Result<T> {
    // SAFETY: used for plain C structs only, of which all zeros is a value.
    let mut value: T = unsafe { zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    let to = ptr::from_mut(&mut value).cast();
    // SAFETY: the pointers are to locals of the stated length.
    succeeded(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, to, &raw mut length)
    })?;
    Ok(value)
}

fn succeeded(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
