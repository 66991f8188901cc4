//! What the kernel keeps of a TCP connection.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use socket2::Socket;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::interval;

/// How long what a sender has not sent yet may take to send (the draft's replenish time).
const REPLENISH: Duration = Duration::from_millis(5);
/// The least that is worth a write: two packets.
const LEAST_UNSENT: u32 = 3000;
const MOST_UNSENT: u32 = 4 << 20;
/// How often the amount is set anew.
const TICK: Duration = Duration::from_millis(100);

/// Its smoothed round-trip time: just after the handshake, what that took.
pub(crate) fn round_trip(stream: &TcpStream) -> io::Result<Duration> {
    Ok(Duration::from_micros(info(stream)?.round_trip_us.into()))
}

/// Keeps what is written but not sent yet short, as the draft asks of both ends, until the
/// handle is dropped: a reply must not wait behind it.
pub(crate) fn keep_unsent_short(stream: &TcpStream) -> io::Result<Keeper> {
    stream.set_nodelay(true)?;
    let socket = Socket::from(stream.as_fd().try_clone_to_owned()?);
    socket.set_tcp_notsent_lowat(LEAST_UNSENT)?;
    Ok(Keeper(tokio::spawn(async move {
        let mut ticks = interval(TICK);
        loop {
            ticks.tick().await;
            let Ok(info) = info(&socket) else { return };
            let unsent = u128::from(info.delivery_rate) * REPLENISH.as_micros() / 1_000_000;
            let unsent = unsent.clamp(LEAST_UNSENT.into(), MOST_UNSENT.into()) as u32;
            if socket.set_tcp_notsent_lowat(unsent).is_err() {
                return;
            }
        }
    })))
}

/// Ends the keeping when it is dropped.
pub(crate) struct Keeper(JoinHandle<()>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What `struct tcp_info` (uapi/linux/tcp.h, which only grows at its end) has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info {
    round_trip_us: u32,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_received: u64,
    /// Bytes per second; 0 on kernels before 4.9.
    delivery_rate: u64,
}

pub(crate) fn info(socket: &impl AsFd) -> io::Result<Info> {
    let mut bytes = [0u8; 512];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `bytes`, and both outlive the call.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // What the kernel has not written is 0.
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    Ok(Info {
        round_trip_us: u32::from_ne_bytes(bytes[68..72].try_into().expect("four bytes")),
        bytes_acked: word(120),
        bytes_received: word(128),
        delivery_rate: word(160),
    })
}
