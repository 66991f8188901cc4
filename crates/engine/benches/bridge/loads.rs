//! What is measured between the two hosts.

use std::io::{Read, Write};
use std::mem::zeroed;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::hosts::{A, B, FRAME, Hosts};

/// Bytes that a UDP packet of 1500 bytes carries.
const PAYLOAD: usize = 1472;
/// Packets that one system call sends.
const BATCH: usize = 64;
/// Ethernet, IPv4 and UDP headers.
const HEADERS: u64 = 42;

/// What a run has carried and taken.
pub(crate) struct Outcome {
    pub(crate) per_second: f64,
    /// Processor time of all that took part, in s per s.
    pub(crate) busy: f64,
}

/// TCP goodput of one connection, in Mbit/s.
pub(crate) fn tcp(hosts: &Hosts, duration: Duration) -> Outcome {
    let listener = hosts.b.run(|| TcpListener::bind((B, 0))).unwrap().unwrap();
    let server = listener.local_addr().unwrap();
    let mut sender = hosts.a.run(|| TcpStream::connect(server)).unwrap().unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let block = vec![0; 64 << 10];
            while !done.load(Ordering::Relaxed) {
                sender.write_all(&block).unwrap();
            }
            let _ = sender.shutdown(std::net::Shutdown::Both);
        });
        // Slow start is left out.
        let mut block = vec![0; 256 << 10];
        let warm = Instant::now() + Duration::from_millis(300);
        while Instant::now() < warm {
            receiver.read_exact(&mut block[..4096]).unwrap();
        }
        let (begin, busy, mut bytes) = (Instant::now(), processor_time(), 0);
        while begin.elapsed() < duration {
            bytes += receiver.read(&mut block).unwrap();
        }
        let span = begin.elapsed().as_secs_f64();
        let busy = (processor_time() - busy) / span;
        done.store(true, Ordering::Relaxed);
        while receiver.read(&mut block).is_ok_and(|n| n > 0) {}
        Outcome { per_second: bytes as f64 * 8.0 / span / 1e6, busy }
    })
}

/// Frames of 64 bytes (60 without the checksum) that arrive, in thousands a second, when as many
/// are offered as one thread can send.
pub(crate) fn small_packets(hosts: &Hosts, duration: Duration) -> Outcome {
    let sink = hosts.b.run(|| UdpSocket::bind((B, 0))).unwrap().unwrap();
    let source = hosts.a.run(|| UdpSocket::bind((A, 0))).unwrap().unwrap();
    source.connect(sink.local_addr().unwrap()).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let batch = Batch::new(60 - HEADERS as usize);
            while !done.load(Ordering::Relaxed) {
                batch.send(&source);
            }
        });
        let arrived = || hosts.b.run(received).unwrap().packets;
        thread::sleep(Duration::from_millis(300));
        let (begin, busy, before) = (Instant::now(), processor_time(), arrived());
        thread::sleep(duration);
        let (span, packets) = (begin.elapsed().as_secs_f64(), arrived() - before);
        let busy = (processor_time() - busy) / span;
        done.store(true, Ordering::Relaxed);
        Outcome { per_second: packets as f64 / span / 1e3, busy }
    })
}

/// Median round trip of a small UDP packet on an idle link, in us.
pub(crate) fn round_trip(hosts: &Hosts, times: usize) -> f64 {
    let server = hosts.b.run(|| UdpSocket::bind((B, 0))).unwrap().unwrap();
    let client = hosts.a.run(|| UdpSocket::bind((A, 0))).unwrap().unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut packet = [0; 64];
            loop {
                let (length, from) = server.recv_from(&mut packet).unwrap();
                if length == 0 {
                    break;
                }
                server.send_to(&packet[..length], from).unwrap();
            }
        });
        let mut packet = [0; 64];
        let mut trips: Vec<f64> = (0..times)
            .map(|_| {
                let sent = Instant::now();
                client.send(&packet).unwrap();
                client.recv(&mut packet).unwrap();
                sent.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        client.send(&[]).unwrap();
        crate::median(&mut trips)
    })
}

/// Offers packets of 1500 bytes at more than `rate`, `segments` of them at a time, and returns the
/// bytes of frames that arrive in each of `seconds`.
pub(crate) fn flood(hosts: &Hosts, rate: u64, segments: usize, seconds: usize) -> Vec<u64> {
    let sink = hosts.b.run(|| UdpSocket::bind((B, 0))).unwrap().unwrap();
    let source = hosts.a.run(|| UdpSocket::bind((A, 0))).unwrap().unwrap();
    source.connect(sink.local_addr().unwrap()).unwrap();
    if segments > 1 {
        segment(&source, PAYLOAD);
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let packet = vec![0; PAYLOAD * segments];
            let begin = Instant::now();
            let mut sent = 0u64;
            while !done.load(Ordering::Relaxed) {
                let allowed = begin.elapsed().as_secs_f64() * 1.5 * rate as f64 / 8.0;
                while sent * FRAME < allowed as u64 {
                    // A sender that was held up does not make up for it.
                    sent = sent.max((allowed as u64 / FRAME).saturating_sub(1000));
                    source.send(&packet).unwrap();
                    sent += segments as u64;
                }
                thread::sleep(Duration::from_micros(300));
            }
        });
        let read = || (Instant::now(), hosts.b.run(received).unwrap().on_the_wire());
        // The queue is full after a while.
        thread::sleep(Duration::from_millis(500));
        let mut before = read();
        let windows = (0..seconds)
            .map(|_| {
                thread::sleep(Duration::from_secs(1));
                let now = read();
                let (span, bytes) = (now.0 - before.0, now.1 - before.1);
                before = now;
                (bytes as f64 / span.as_secs_f64()) as u64
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        windows
    })
}

/// What an interface has received. (A socket would lose some whenever its reader is late.)
struct Received {
    packets: u64,
    bytes: u64,
}

impl Received {
    /// Bytes that UDP packets of 1500 bytes have as frames, if they came in super-packets.
    fn on_the_wire(&self) -> u64 {
        (self.bytes - self.packets * HEADERS) / PAYLOAD as u64 * FRAME
    }
}

/// Of the interface of the calling thread's host.
fn received() -> Received {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    let mut columns = line.split_whitespace().map(|column| column.parse().unwrap());
    Received { bytes: columns.next().unwrap(), packets: columns.next().unwrap() }
}

/// Processor time, in s, of this process (both hosts, the engine, and what the kernel does on
/// their behalf) and of the kernel's threads for what is left over (`ksoftirqd`).
fn processor_time() -> f64 {
    // SAFETY: all zeros is a value of this plain C struct.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: the pointer is to a local.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime) + left_over()
}

fn left_over() -> f64 {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ticks = processes.filter_map(|process| {
        let text = std::fs::read_to_string(process.path().join("stat")).ok()?;
        let (name, rest) = text.rsplit_once(')')?;
        let mut columns = rest.split_whitespace().skip(11).map(|column| column.parse::<u64>());
        name.contains("(ksoftirqd/")
            .then(|| columns.next()?.ok()?.checked_add(columns.next()?.ok()?))?
    });
    ticks.sum::<u64>() as f64 / 100.0
}

/// Small packets that one system call sends.
struct Batch {
    payload: Vec<u8>,
}

impl Batch {
    fn new(payload: usize) -> Self {
        Self { payload: vec![0; payload] }
    }

    fn send(&self, socket: &UdpSocket) {
        let (base, length) = (self.payload.as_ptr().cast_mut().cast(), self.payload.len());
        let mut vector = libc::iovec { iov_base: base, iov_len: length };
        // SAFETY: all zeros is a value of this plain C struct.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        for header in &mut headers {
            header.msg_hdr.msg_iov = &raw mut vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: the headers point to one vector, that to the payload, and all outlive the call.
        let sent =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), BATCH as u32, 0) };
        assert!(sent > 0, "{}", std::io::Error::last_os_error());
    }
}

/// Leaves it to the interface to cut what is sent into packets of `payload` bytes.
fn segment(socket: &UdpSocket, payload: usize) {
    let payload = payload as libc::c_int;
    let (value, length) = ((&raw const payload).cast(), size_of_val(&payload) as u32);
    // SAFETY: the pointer is to a local of the stated length.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, length)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}
