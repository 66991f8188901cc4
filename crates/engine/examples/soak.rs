//! Weeks of traffic in minutes: packets through a direction of the engine with I/O in memory, to
//! see that its memory does not grow.
//!
//! `soak [PACKETS]` gives every discipline that a live link can have its part of so many packets
//! (300 million unless said): steady flows, floods in which every packet is a flow of its own, a few
//! bulk flows, silence; with the limit and the rate changed all the time. It prints what the process
//! holds in memory after the first half and at the end, and fails if that has grown.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use engine::buffers::{Buffers, Offload};
use engine::harness::Harness;
use engine::io::{BATCH, FrameIo};
use engine::live::Live;
use engine::{LinkConfig, LinkSettings, Rate};
use sched::{Info, Nanos, Spec, registry};

const MTU: u32 = 1500;
const GIGABIT: u64 = 1_000_000_000;
/// Packets of one kind of traffic, before the next kind.
const PHASE: u64 = 1 << 15;
/// Turns between two changes of parameters.
const CHANGE: u64 = 1 << 10;
/// What may come on top in the second half, in bytes: pages that the allocator takes as it likes.
const SLACK: u64 = 256 << 10;

fn main() -> ExitCode {
    let packets = std::env::args().nth(1).map_or(Ok(300_000_000), |text| text.parse::<u64>());
    let Ok(packets) = packets else {
        eprintln!("soak: the number of packets is to be a whole number");
        return ExitCode::from(2);
    };
    let live = || registry::ALL.iter().filter(|info| info.needs.of_no_link().is_none());
    let each = packets / live().count() as u64;
    println!("discipline        packets  ns each   sent %   flows  half MB   end MB");
    let grown: Vec<&str> = live().filter(|info| !soak(info, each)).map(|info| info.name).collect();
    if grown.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("memory has grown with {}", grown.join(", "));
    ExitCode::FAILURE
}

/// Returns whether memory has stayed what it was after the first half.
fn soak(info: &Info, packets: u64) -> bool {
    let handed_out = Arc::new(AtomicU64::new(0));
    let source = Source::new(Arc::clone(&handed_out));
    let buffers = Buffers::new(MTU as usize + 22, 1 << 16).expect("address space");
    let config = LinkConfig::new(Spec::named(info.name).expect("of the registry"), Rate(GIGABIT));
    let sink = Box::new(Sink(UnixDatagram::unbound().expect("a socket")));
    let mut harness = Harness::new(Box::new(source), sink, buffers, &config, Live::account(2), MTU);
    let begin = Instant::now();
    let (mut now, mut half) = (Nanos(1), None);
    for turn in 0.. {
        let passed = handed_out.load(Relaxed);
        if passed >= packets {
            break;
        }
        if passed >= packets / 2 && half.is_none() {
            half = Some(resident());
        }
        // A batch of mixed sizes takes some 200 us.
        now += if phase(passed) == Phase::Silence { Nanos(50_000_000) } else { Nanos(200_000) };
        if turn % CHANGE == 0 {
            drop(harness.change(&changed(&config, turn / CHANGE)));
        }
        harness.turn(now).expect("nothing that fails");
    }
    let taken = begin.elapsed();
    let counted = harness.counted();
    let accounted = counted.sent + counted.dropped() + counted.queued + counted.in_flight;
    assert_eq!(counted.received, accounted, "{counted:#?}");
    let (half, end) = (half.unwrap_or_default(), resident());
    let mb = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "{:12} {:12} {:8.0} {:8.1} {:7} {:8.1} {:8.1}",
        info.name,
        counted.received.packets,
        taken.as_nanos() as f64 / counted.received.packets as f64,
        counted.sent.packets as f64 / counted.received.packets as f64 * 100.0,
        counted.peak_flows,
        mb(half),
        mb(end),
    );
    end <= half + SLACK
}

/// Another limit and another rate, where the discipline has a limit that goes with the rest.
fn changed(config: &LinkConfig, number: u64) -> LinkConfig {
    let limit = format!("{}packets", 100 + number * 37 % 900);
    let spec = config.spec.clone().with("limit", &limit).ok();
    let spec = spec.filter(|spec| spec.check().is_ok()).unwrap_or_else(|| config.spec.clone());
    let link = LinkSettings { rate: Rate(GIGABIT / (1 + number % 4)), ..config.link };
    LinkConfig { spec, link, ..config.clone() }
}

/// Bytes of memory that the process holds.
fn resident() -> u64 {
    const PAGE: u64 = 4096;
    let text = fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("a number") * PAGE
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Steady,
    Flood,
    Bulk,
    Silence,
}

/// What comes after so many packets.
fn phase(packets: u64) -> Phase {
    [Phase::Steady, Phase::Flood, Phase::Bulk, Phase::Silence][(packets / PHASE % 4) as usize]
}

/// Makes frames up.
struct Source {
    handed_out: Arc<AtomicU64>,
    told: u64,
    random: u64,
    socket: UnixDatagram,
}

impl Source {
    fn new(handed_out: Arc<AtomicU64>) -> Self {
        let socket = UnixDatagram::unbound().expect("a socket");
        Self { handed_out, told: 0, random: 0x9e37_79b9_7f4a_7c15, socket }
    }

    /// Xorshift.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Flow and size of the next packet.
    fn next(&mut self, number: u64) -> (u64, u32) {
        let random = self.random();
        let size = [60, 200, 600, 1514][random as usize % 4];
        match phase(number) {
            Phase::Steady => (random >> 8 & 0xff, size),
            Phase::Flood => (number, 60),
            Phase::Bulk => (random >> 8 & 3, 1514),
            Phase::Silence => (random >> 8 & 0xffff, size),
        }
    }
}

impl FrameIo for Source {
    fn receive(&mut self, buffers: &mut Buffers, received: &mut Vec<u32>) -> io::Result<()> {
        let handed_out = self.handed_out.load(Relaxed);
        let most = if phase(handed_out) == Phase::Silence { 2 } else { BATCH as u64 };
        let count = self.random() % (most + 1);
        for number in handed_out..handed_out + count {
            let Some(buffer) = buffers.take() else { break };
            let (flow, size) = self.next(number);
            buffers.space(buffer)[..HEADERS].copy_from_slice(&headers(flow, size));
            buffers.received(buffer, size, Offload::default());
            received.push(buffer);
            self.handed_out.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    fn send(&mut self, _: &mut Buffers, _: &[u32]) -> io::Result<usize> {
        unreachable!("nothing is sent to the input")
    }

    fn arrived(&mut self) -> io::Result<u64> {
        let total = self.handed_out.load(Relaxed);
        Ok(total - std::mem::replace(&mut self.told, total))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const HEADERS: usize = 42;

/// Ethernet, IPv4 and UDP, half of it ECN-capable.
fn headers(flow: u64, size: u32) -> [u8; HEADERS] {
    let mut bytes = [0; HEADERS];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14..16].copy_from_slice(&[0x45, (flow & 1) as u8 * 2]);
    bytes[16..18].copy_from_slice(&(size as u16 - 14).to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 17]);
    bytes[26..34].copy_from_slice(&flow.to_be_bytes());
    bytes[34..38].copy_from_slice(&[0x9c, 0x40, 0, 53]);
    bytes
}

/// Takes whatever comes.
struct Sink(UnixDatagram);

impl FrameIo for Sink {
    fn receive(&mut self, _: &mut Buffers, _: &mut Vec<u32>) -> io::Result<()> {
        unreachable!("nothing is received from the output")
    }

    fn send(&mut self, buffers: &mut Buffers, frames: &[u32]) -> io::Result<usize> {
        frames.iter().for_each(|buffer| buffers.give(*buffer));
        Ok(frames.len())
    }

    fn arrived(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
