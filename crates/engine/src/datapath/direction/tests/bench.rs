//! Interfaces that do as they are told, and a direction between them.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};

use sched::{Rate, Spec};

use super::super::*;
use crate::datapath::buffers::Offload;
use crate::datapath::observe::Counters;
use crate::settings::framing::Framing;

const CAPACITY: u32 = 200;

/// Hands out frames from a list, and is silent after that.
pub(super) struct Source {
    frames: VecDeque<(Vec<u8>, Offload)>,
    handed_out: u64,
    /// Frames that the kernel is said to have lost.
    lost: u64,
    socket: UnixDatagram,
}

/// Takes frames, or answers with the next of `answers`.
struct Destination {
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    answers: VecDeque<io::Result<usize>>,
    socket: UnixDatagram,
}

impl Source {
    /// `lost` more are said to have been lost by the kernel.
    pub(super) fn of(frames: impl IntoIterator<Item = (Vec<u8>, Offload)>, lost: u64) -> Self {
        let frames = frames.into_iter().collect();
        Self { frames, handed_out: 0, lost, socket: UnixDatagram::unbound().unwrap() }
    }
}

impl FrameIo for Source {
    fn receive(&mut self, buffers: &mut Buffers, received: &mut Vec<u32>) -> io::Result<()> {
        for _ in 0..BATCH.min(self.frames.len()) {
            let Some(buffer) = buffers.take() else { break };
            let Some((frame, offload)) = self.frames.pop_front() else { break };
            let space = buffers.space(buffer);
            let length = frame.len().min(space.len());
            space[..length].copy_from_slice(&frame[..length]);
            buffers.received(buffer, frame.len() as u32, offload);
            received.push(buffer);
            self.handed_out += 1;
        }
        Ok(())
    }

    fn send(&mut self, _: &mut Buffers, _: &[u32]) -> io::Result<usize> {
        unreachable!("nothing is sent to the input")
    }

    fn arrived(&mut self) -> io::Result<u64> {
        Ok(std::mem::take(&mut self.handed_out) + std::mem::take(&mut self.lost))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl FrameIo for Destination {
    fn receive(&mut self, _: &mut Buffers, _: &mut Vec<u32>) -> io::Result<()> {
        unreachable!("nothing is received from the output")
    }

    fn send(&mut self, buffers: &mut Buffers, frames: &[u32]) -> io::Result<usize> {
        let taken = self.answers.pop_front().unwrap_or(Ok(frames.len()))?.min(frames.len());
        let sent = frames[..taken].iter().map(|frame| buffers.frame(*frame).to_vec());
        self.sent.lock().unwrap().extend(sent);
        frames[..taken].iter().for_each(|frame| buffers.give(*frame));
        Ok(taken)
    }

    fn arrived(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A direction and what comes out of it.
pub(super) struct Bench<O: Observer> {
    pub(super) direction: Direction<O>,
    pub(super) sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl<O: Observer> Bench<O> {
    pub(super) fn new(
        qdisc: Box<dyn Qdisc<O>>,
        observer: O,
        rate: Rate,
        delay: Nanos,
        frames: Vec<Vec<u8>>,
        answers: Vec<io::Result<usize>>,
    ) -> Self {
        let sent = Arc::default();
        let source = Source::of(frames.into_iter().map(|frame| (frame, Offload::default())), 0);
        let destination = Destination {
            sent: Arc::clone(&sent),
            answers: answers.into(),
            socket: UnixDatagram::unbound().unwrap(),
        };
        let burst_time = Nanos::from_millis(1);
        let parts = Parts {
            input: Box::new(source),
            output: Box::new(destination),
            qdisc,
            tagger: None,
            observer,
            fingerprinter: Fingerprinter::from_seed(1),
            needs: Needs::NOTHING,
            pacing: Pacing { rate, framing: Framing::NONE, burst_time },
            delay,
            commands: None,
            medium: Medium {
                link_type: LinkType::Ethernet,
                largest: CAPACITY,
                head: CAPACITY as usize,
                splits: false,
                outlives_down: false,
            },
            note: None,
        };
        let buffers = Buffers::new(CAPACITY as usize, MOST_FRAMES).unwrap();
        Self { direction: Direction::new(parts, buffers), sent }
    }

    /// Lets it work, and returns its report, whose sums are checked.
    pub(super) fn run(mut self, steps: usize) -> (DirectionReport, Option<Fault>, Vec<Vec<u8>>) {
        let mut fault = None;
        for _ in 0..steps {
            fault = self.direction.step().err();
            if fault.is_some() {
                break;
            }
        }
        let report = self.direction.report(Nanos::ZERO);
        let accounted = report.sent + report.dropped() + report.queued + report.in_flight;
        assert_eq!(report.received, accounted, "{report:#?}");
        let sent = std::mem::take(&mut *self.sent.lock().unwrap());
        assert_eq!(sent.len() as u64, report.sent.packets);
        (report, fault, sent)
    }
}

/// A direction under a registered discipline, over an unlimited link without delay.
pub(super) fn over_free_link(
    spec: &str,
    frames: Vec<Vec<u8>>,
    answers: Vec<io::Result<usize>>,
) -> Bench<Counters> {
    over_link(spec, Rate::UNLIMITED, Nanos::ZERO, frames, answers)
}

pub(super) fn over_link(
    spec: &str,
    rate: Rate,
    delay: Nanos,
    frames: Vec<Vec<u8>>,
    answers: Vec<io::Result<usize>>,
) -> Bench<Counters> {
    let spec = spec.parse::<Spec>().unwrap();
    let mut bench = Bench::new(spec.build(1), Counters::default(), rate, delay, frames, answers);
    bench.direction.parts.needs = spec.info().needs;
    bench
}

/// An ECN-capable IPv4 packet of UDP flow `flow`, numbered.
pub(super) fn frame(flow: u8, number: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0, 0x45, 2, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, flow, 0, 53, 0, 40, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(74, 0);
    frame
}

pub(super) fn frames(count: u16) -> Vec<Vec<u8>> {
    (0..count).map(|number| frame(1, number)).collect()
}

pub(super) fn refusal(errno: i32) -> io::Result<usize> {
    Err(io::Error::from_raw_os_error(errno))
}

pub(super) fn count(report: &DirectionReport, reason: &str) -> u64 {
    let drops = report.drops.iter().filter(|drop| drop.reason == reason);
    drops.map(|drop| drop.count.packets).sum()
}
