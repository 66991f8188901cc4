//! TCP sockets as both roles use them.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::error::Error;
use super::plan::Tcp;

/// Waiting connections the kernel keeps for the server; it takes less if `somaxconn` is less.
const BACKLOG: i32 = 4096;

/// Listens; the socket is ready for tokio.
pub(crate) fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Begins to connect from an address of this host, with a sender's congestion control if this side
/// sends.
///
/// The local port is known at once, so that an attempt that fails later has its flow's name;
/// [`connected`] waits for the rest.
pub(crate) fn connect(
    from: IpAddr,
    address: SocketAddr,
    tcp: Option<Tcp>,
) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(tcp) = tcp {
        socket.set_tcp_congestion(tcp.name().as_bytes())?;
    }
    // The port is chosen with the connection: there are as many as there are to one server.
    setsockopt(&socket, sockopt::IpBindAddressNoPort, &true)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        other => other?,
    }
    TcpStream::from_std(socket.into())
}

/// Waits until a connection stands.
pub(crate) async fn connected(stream: &TcpStream) -> io::Result<()> {
    stream.writable().await?;
    stream.take_error()?.map_or(Ok(()), Err)
}

/// Makes this side of a connection send with a congestion control.
pub(crate) fn set_congestion(stream: &TcpStream, tcp: Tcp) -> io::Result<()> {
    SockRef::from(stream).set_tcp_congestion(tcp.name().as_bytes())
}

/// The congestion control this side of a connection sends with, as the kernel has it.
pub(crate) fn congestion(stream: &TcpStream) -> Option<Tcp> {
    let name = SockRef::from(stream).tcp_congestion().ok()?;
    // The kernel pads the name with zeros.
    let name = name.split(|byte| *byte == 0).next()?;
    Tcp::ALL.into_iter().find(|tcp| tcp.name().as_bytes() == name)
}

/// Checks that the kernel lets this process use a congestion control.
pub(crate) fn check_congestion(name: &'static str) -> Result<(), Error> {
    let probe = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .map_err(Error::io("cannot open a TCP socket"))?;
    probe.set_tcp_congestion(name.as_bytes()).map_err(|source| {
        let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        let offered = std::fs::read_to_string(list).unwrap_or_default();
        Error::Congestion { wanted: name, offered: offered.trim().to_string(), source }
    })
}

/// Closes with a reset: nothing that is still in the send buffer goes out.
pub(crate) fn reset(stream: TcpStream) {
    // If this fails the connection has already ended, which is what is wanted.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
}

thread_local! {
    /// Where bytes nobody looks at are read to: one buffer a thread, not one a connection.
    static DISCARD: RefCell<Vec<u8>> = RefCell::new(vec![0; 256 << 10]);
}

/// Reads what has arrived and discards it; 0 at the end of the stream. Cancel-safe.
pub(crate) async fn receive(stream: &TcpStream) -> io::Result<usize> {
    // A connection that always has something must not keep the others waiting.
    tokio::task::coop::consume_budget().await;
    loop {
        stream.readable().await?;
        match DISCARD.with_borrow_mut(|buffer| stream.try_read(buffer)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
    }
}

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Sends this many bytes; `u64::MAX` never ends.
pub(crate) async fn send(stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        tokio::task::coop::consume_budget().await;
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
        let sent = stream.write(&ZEROS[..most]).await?;
        if bytes != u64::MAX {
            left -= sent as u64;
        }
    }
    Ok(())
}

/// Reads and discards until the peer has closed.
pub(crate) async fn end_of_stream(stream: &TcpStream) -> io::Result<()> {
    while receive(stream).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_congestion_control_that_is_not_there_is_refused_with_those_that_are() {
        check_congestion("reno").unwrap();
        let error = check_congestion("no-such").unwrap_err().to_string();
        assert!(error.contains("'no-such'") && error.contains("offers"), "{error}");
        assert!(error.contains("reno"), "{error}");
    }
}
