//! Traffic of the guest's own: frames as fast as they can be made, TCP bulk, a sparse UDP flow.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::namespace;

/// Frames that a system call sends at most.
const BATCH: usize = 64;
const HEADERS: usize = 14 + 20 + 8;

/// UDP in IPv4 in Ethernet, to a MAC address that nobody has: whoever receives it drops it at
/// once.
#[derive(Clone)]
pub(crate) struct Frames {
    size: usize,
    /// What sets one frame apart from the one before.
    pub(crate) varying: Varying,
    next: u32,
}

/// What sets one frame apart from the one before.
#[derive(Clone, Copy)]
pub(crate) enum Varying {
    /// Nothing: one flow, of this number.
    Nothing(u16),
    /// The source port, so that there are this many flows.
    Ports(u16),
    /// The source address: every frame is a flow of its own.
    Addresses,
}

impl Frames {
    /// Frames of this size, without the link's checksum.
    pub(crate) fn new(size: usize, varying: Varying) -> Self {
        Self { size: size.max(HEADERS), varying, next: 0 }
    }

    fn write_next(&mut self, into: &mut Vec<u8>) {
        let (address, port) = match self.varying {
            Varying::Nothing(flow) => (0, flow),
            Varying::Ports(flows) => (0, (self.next % u32::from(flows)) as u16),
            Varying::Addresses => (self.next, 0),
        };
        self.next = self.next.wrapping_add(1);
        into.clear();
        into.extend([2, 0, 0, 0, 0, 99, 2, 0, 0, 0, 0, 1, 8, 0]);
        let ip_size = (self.size - 14) as u16;
        into.extend([0x45, 0]);
        into.extend(ip_size.to_be_bytes());
        into.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        into.extend((0x0b00_0001 + address).to_be_bytes());
        into.extend([10, 9, 0, 2]);
        into.extend(port.to_be_bytes());
        into.extend(9u16.to_be_bytes());
        into.extend((ip_size - 20).to_be_bytes());
        into.resize(self.size, 0);
    }
}

/// A packet socket that sends on one interface, through its qdisc.
pub(crate) struct Sender {
    socket: OwnedFd,
}

/// What became of frames that were offered to the interface.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offered {
    /// Taken by the qdisc.
    pub(crate) taken: u64,
    /// Dropped by it.
    pub(crate) refused: u64,
}

impl Offered {
    pub(crate) fn total(self) -> u64 {
        self.taken + self.refused
    }
}

impl Sender {
    /// A sender on an interface of the thread's namespace.
    pub(crate) fn new(interface: &str) -> Result<Self> {
        let ifindex = crate::namespace::ifindex(interface)?;
        // SAFETY: the descriptor is new, and is checked.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            checked(fd)?;
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: all zeros is an address; what is passed lives during the calls.
        unsafe {
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_ifindex = ifindex as i32;
            let size = size_of_val(&address) as u32;
            let at = std::ptr::from_ref(&address).cast();
            checked(libc::bind(socket.as_raw_fd(), at, size))?;
            // So that what is queued never keeps the socket from sending.
            let bytes: libc::c_int = 256 << 20;
            let (level, option) = (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE);
            let at = std::ptr::from_ref(&bytes).cast();
            checked(libc::setsockopt(socket.as_raw_fd(), level, option, at, 4))?;
        }
        Ok(Self { socket })
    }

    /// Sends `count` frames; what the qdisc drops counts as refused.
    pub(crate) fn send(&self, frames: &mut Frames, count: u64) -> io::Result<Offered> {
        let mut offered = Offered::default();
        let mut buffers = vec![Vec::new(); BATCH];
        while offered.total() < count {
            let wanted = (count - offered.total()).min(BATCH as u64) as usize;
            buffers[..wanted].iter_mut().for_each(|buffer| frames.write_next(buffer));
            let mut at = 0;
            while at < wanted {
                match self.send_batch(&buffers[at..wanted]) {
                    // The frame behind the last that was taken has been tried, and refused.
                    Ok(sent) => {
                        let refused = u64::from(at + sent < wanted);
                        offered.taken += sent as u64;
                        offered.refused += refused;
                        at += sent + refused as usize;
                    }
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                        offered.refused += 1;
                        at += 1;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(offered)
    }

    fn send_batch(&self, buffers: &[Vec<u8>]) -> io::Result<usize> {
        let mut vectors: Vec<libc::iovec> = buffers
            .iter()
            .map(|buffer| libc::iovec {
                iov_base: buffer.as_ptr().cast_mut().cast(),
                iov_len: buffer.len(),
            })
            .collect();
        let mut messages: Vec<libc::mmsghdr> = vectors
            .iter_mut()
            .map(|vector| {
                // SAFETY: all zeros is a message without name and control data.
                let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                message.msg_hdr.msg_iov = vector;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        // SAFETY: the messages point to buffers that outlive the call.
        let sent = unsafe {
            let count = messages.len() as u32;
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count, 0)
        };
        checked(sent).map(|sent| sent as usize)
    }

    /// Bytes of memory that frames of this socket take which are not freed yet.
    pub(crate) fn unfreed(&self) -> io::Result<i32> {
        let mut bytes = 0;
        // SAFETY: the call writes one integer.
        checked(unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) })?;
        Ok(bytes)
    }
}

fn checked(answer: i32) -> io::Result<i32> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Work on another thread, until it is told to stop.
pub(crate) struct Running<T> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<T>>,
}

impl<T: Send + 'static> Running<T> {
    /// Starts `work` in a namespace; it looks at the flag now and then, and ends once it is set.
    pub(crate) fn start(
        namespace: &str,
        work: impl FnOnce(&AtomicBool) -> Result<T> + Send + 'static,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, namespace) = (stop.clone(), namespace.to_owned());
        let thread = thread::spawn(move || namespace::run(&namespace, || work(&seen))?);
        Self { stop, thread }
    }

    /// Its result, once it has stopped.
    pub(crate) fn finish(self) -> Result<T> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Frames as fast as they can be made, with a pause after each `batch` of them.
///
/// An interface that is down or gone is no error: the next frame is tried a little later.
pub(crate) fn flood(
    namespace: &str,
    interface: &str,
    mut frames: Frames,
    batch: u64,
    pause: Duration,
) -> Running<Offered> {
    let interface = interface.to_owned();
    Running::start(namespace, move |stop| {
        let sender = Sender::new(&interface)?;
        let mut all = Offered::default();
        while !stop.load(Ordering::Relaxed) {
            match sender.send(&mut frames, batch) {
                Ok(offered) => {
                    all.taken += offered.taken;
                    all.refused += offered.refused;
                }
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
            thread::sleep(pause);
        }
        Ok(all)
    })
}

/// Takes all that TCP senders send to a port of all addresses; gives the bytes.
pub(crate) fn tcp_sink(namespace: &str, port: u16) -> Result<(Running<()>, Arc<AtomicU64>)> {
    let listener = namespace::run(namespace, || TcpListener::bind(("0.0.0.0", port)))??;
    listener.set_nonblocking(true)?;
    let received = Arc::new(AtomicU64::new(0));
    let counted = received.clone();
    let running = Running::start(namespace, move |stop| {
        while !stop.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let counted = counted.clone();
                    thread::spawn(move || drain(stream, &counted));
                }
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
        Ok(())
    });
    Ok((running, received))
}

fn drain(mut stream: TcpStream, counted: &AtomicU64) {
    let mut buffer = vec![0; 1 << 16];
    let _ = stream.set_nonblocking(false);
    while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
        counted.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A TCP connection that sends without end.
pub(crate) fn tcp_bulk(namespace: &str, to: SocketAddr) -> Running<()> {
    Running::start(namespace, move |stop| {
        let mut stream = TcpStream::connect(to).context("connecting")?;
        stream.set_write_timeout(Some(Duration::from_millis(100)))?;
        let buffer = vec![0; 1 << 14];
        while !stop.load(Ordering::Relaxed) {
            match stream.write(&buffer) {
                Err(error)
                    if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Err(error).context("sending");
                }
                _ => {}
            }
        }
        Ok(())
    })
}

/// What a sparse flow lived through.
pub(crate) struct Sparse {
    pub(crate) sent: u64,
    /// One-way delays of what arrived, in order of length.
    pub(crate) delays: Vec<Duration>,
}

impl Sparse {
    pub(crate) fn delay(&self, part: f64) -> Duration {
        let at = (self.delays.len() as f64 * part) as usize;
        self.delays.get(at.min(self.delays.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    pub(crate) fn lost(&self) -> f64 {
        1.0 - self.delays.len() as f64 / self.sent.max(1) as f64
    }
}

/// A UDP flow of small packets, one each `interval`, for this long, between two namespaces.
pub(crate) fn sparse(
    from: &str,
    to: (&str, SocketAddr),
    interval: Duration,
    duration: Duration,
) -> Result<Sparse> {
    let receiver = namespace::run(to.0, || UdpSocket::bind(to.1))??;
    let sender = namespace::run(from, || UdpSocket::bind("0.0.0.0:0"))??;
    sender.connect(to.1)?;
    let begin = Instant::now();
    let listening = Running::start(to.0, move |stop| {
        receiver.set_read_timeout(Some(Duration::from_millis(50)))?;
        let (mut delays, mut buffer) = (Vec::new(), [0; 64]);
        while !stop.load(Ordering::Relaxed) {
            if let Ok(8) = receiver.recv(&mut buffer) {
                let mut at = [0; 8];
                at.copy_from_slice(&buffer[..8]);
                let sent_at = Duration::from_nanos(u64::from_ne_bytes(at));
                delays.push(begin.elapsed().saturating_sub(sent_at));
            }
        }
        Ok(delays)
    });
    let mut sent = 0;
    while begin.elapsed() < duration {
        // What the qdisc drops counts as sent.
        let _ = sender.send(&(begin.elapsed().as_nanos() as u64).to_ne_bytes());
        sent += 1;
        // Nothing is made up for after a pause of the machine: a burst would not be sparse.
        thread::sleep(interval);
    }
    thread::sleep(Duration::from_secs(1));
    let mut delays = listening.finish()?;
    delays.sort_unstable();
    Ok(Sparse { sent, delays })
}
