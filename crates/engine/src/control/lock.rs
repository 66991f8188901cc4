//! Holding an interface.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{UnixCredentials, getsockopt};
use nix::unistd::geteuid;

/// An interface, held: no other engine can hold it before this one is dropped or its process
/// ends, however it does.
#[derive(Debug)]
pub(crate) struct Lock {
    pub(super) listener: UnixListener,
}

impl Lock {
    /// Takes hold of an interface of the current network namespace.
    ///
    /// # Errors
    /// `AddrInUse` if somebody holds it.
    pub(crate) fn take(ifindex: u32) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&address(ifindex)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }
}

/// Connects to the engine that holds an interface; `None` if none does.
pub(super) fn connect(ifindex: u32) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect_addr(&address(ifindex)?) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
        Err(error) => Err(error),
    }
}

/// Names in the abstract space of Unix sockets belong to one network namespace, as interface
/// indices do, and to the process that bound them.
fn address(ifindex: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("shortlane/interface/{ifindex}"))
}

/// Who is at the other end.
pub(super) struct Peer {
    pub(super) pid: i32,
    pub(super) uid: u32,
}

impl Peer {
    pub(super) fn of(stream: &UnixStream) -> io::Result<Self> {
        let found: UnixCredentials = getsockopt(stream, PeerCredentials)?;
        Ok(Self { pid: found.pid(), uid: found.uid() })
    }

    /// Whether it is root or of the same user.
    pub(super) fn is_trusted(&self) -> bool {
        self.uid == 0 || self.uid == geteuid().as_raw()
    }
}
