//! One direction of a bridge: from one interface through a queue and a link to the other.
//!
//! Receive, enqueue, dequeue what may start now, release what has travelled, sleep until the
//! next of these. The queue stands in front of the shaper: a packet leaves it when its
//! transmission starts and not before, as what has left the queue can no longer be overtaken.

mod account;
mod orders;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use frame::{Fingerprinter, LinkType, Parsed, mark_ce, set_dscp};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use sched::edge::Tagger;
use sched::{Dequeue, Nanos, Needs, Packet, Qdisc};

use self::account::Counts;
use crate::datapath::buffers::Buffers;
use crate::datapath::clock;
use crate::datapath::command::Command;
use crate::datapath::follow::Note;
use crate::datapath::frame_io::{BATCH, FrameIo};
use crate::datapath::medium::Medium;
use crate::datapath::observe::{Observer, sample_if_due};
use crate::datapath::priority::{Priority, take_exact_timers};
use crate::datapath::report::{DirectionReport, Loss};
use crate::datapath::segments::{self, Segments};
use crate::datapath::shaper::{Pacing, Shaper};

/// Longest sleep: a request to stop is seen within this time, and no heartbeat is older.
const LONGEST_SLEEP: Nanos = Nanos::from_millis(10);
/// With a packet waiting and its start this close, arrivals are not looked at before it: they
/// could not change what is sent until then, and each would cost a wake-up.
const NAP: Nanos = Nanos(50_000);
/// Shortest nap. More frequent wake-ups cost more than the shaper's catching up.
const LEAST_NAP: Nanos = Nanos(20_000);
/// With something to do this soon, the thread goes on at once: falling asleep and waking up take
/// longer.
const SPIN: Nanos = Nanos(5_000);
/// Most frames that one direction holds.
pub(crate) const MOST_FRAMES: usize = 1 << 16;
/// Most super-packets that one direction holds.
pub(crate) const MOST_SUPER_PACKETS: usize = 1 << 12;
/// Frames between two looks at the kernel's counter, which has 32 bits.
const COUNTER_PERIOD: u64 = 1 << 20;

/// What a direction is made of.
pub(crate) struct Parts<O: Observer> {
    pub(crate) input: Box<dyn FrameIo>,
    pub(crate) output: Box<dyn FrameIo>,
    pub(crate) qdisc: Box<dyn Qdisc<O>>,
    pub(crate) tagger: Option<Tagger>,
    pub(crate) observer: O,
    pub(crate) fingerprinter: Fingerprinter,
    pub(crate) needs: Needs,
    pub(crate) pacing: Pacing,
    pub(crate) delay: Nanos,
    /// What the control thread asks, if there is one.
    pub(crate) commands: Option<Receiver<Command>>,
    pub(crate) medium: Medium,
    /// What to note for who has its rate follow the link.
    pub(crate) note: Option<Note>,
}

/// The end of a direction that was not asked for.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) side: Side,
    pub(crate) error: io::Error,
}

/// Which interface of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Input,
    Output,
}

pub(crate) struct Direction<O: Observer> {
    parts: Parts<O>,
    buffers: Buffers,
    /// Frames that were just received.
    received: Vec<u32>,
    shaper: Shaper,
    /// Whether the discipline holds a packet.
    waiting: bool,
    /// Frames under way, in the order of their release.
    link: VecDeque<InFlight>,
    /// Whether the output takes no frames for now.
    blocked: bool,
    priority: Priority,
    counts: Counts,
}

#[derive(Clone, Copy)]
struct InFlight {
    release: Nanos,
    buffer: u32,
}

impl<O: Observer> Direction<O> {
    pub(crate) fn new(parts: Parts<O>, buffers: Buffers) -> Self {
        let shaper = Shaper::new(parts.pacing);
        Self {
            parts,
            buffers,
            received: Vec::with_capacity(BATCH),
            shaper,
            waiting: false,
            link: VecDeque::new(),
            blocked: false,
            priority: Priority::ordinary(),
            counts: Counts::default(),
        }
    }

    /// Runs until either flag is set, or an interface fails. The fields of the report that
    /// only the bridge knows are left empty. `started` is dropped once it takes frames.
    pub(crate) fn run(
        mut self,
        stop: &AtomicBool,
        halt: &AtomicBool,
        started: Sender<Infallible>,
    ) -> (DirectionReport, Option<Fault>) {
        take_exact_timers();
        let begin = clock::now();
        let mut fault = self.work(clock::now).err();
        drop(started);
        while fault.is_none() && !stop.load(Ordering::Relaxed) && !halt.load(Ordering::Relaxed) {
            fault = self.step().err();
        }
        halt.store(true, Ordering::Relaxed);
        if fault.as_ref().is_none_or(|fault| fault.side == Side::Input) {
            self.hand_over();
        }
        let duration = clock::now() - begin;
        (self.report(duration), fault)
    }

    fn step(&mut self) -> Result<(), Fault> {
        if self.work(clock::now)? < BATCH {
            self.sleep();
        }
        Ok(())
    }

    /// The output may have room again.
    #[cfg(feature = "harness")]
    pub(crate) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Does all that is to be done now, and returns how many frames have come in.
    pub(crate) fn work(&mut self, clock: impl Fn() -> Nanos) -> Result<usize, Fault> {
        let received = self.pass_on(&clock)?;
        let now = clock();
        sample_if_due(&mut self.parts.observer, &*self.parts.qdisc, now);
        let flows = self.parts.qdisc.flows() as u64;
        self.counts.peak_flows = self.counts.peak_flows.max(flows);
        self.obey(now);
        Ok(received)
    }

    /// Takes in what has come, and lets out what may go. Returns how many frames have come.
    fn pass_on(&mut self, clock: impl Fn() -> Nanos) -> Result<usize, Fault> {
        self.receive()?;
        let received = self.received.len();
        let now = clock();
        self.take_in(received, now);
        // What has become due in the meantime: small packets on a fast link take less than it
        // takes to look at them.
        let now = if self.waiting { clock() } else { now };
        self.serve(now);
        self.reclaim();
        self.send(now)?;
        Ok(received)
    }

    fn receive(&mut self) -> Result<(), Fault> {
        let at_input = |error| Fault { side: Side::Input, error };
        let input = &mut self.parts.input;
        input.receive(&mut self.buffers, &mut self.received).map_err(at_input)?;
        let before = self.counts.received.packets;
        if before / COUNTER_PERIOD != (before + self.received.len() as u64) / COUNTER_PERIOD {
            self.counts.arrived += input.arrived().map_err(at_input)?;
        }
        Ok(())
    }

    /// Enqueues the first `count` of the frames that were received.
    fn take_in(&mut self, count: usize, now: Nanos) {
        for index in 0..count {
            let buffer = self.received[index];
            let obstacle = self.obstacle(buffer);
            let segments = Segments::of(&self.buffers, buffer);
            if segments.count > 1 {
                self.buffers.set_wire_len(buffer, segments.bytes());
            }
            self.counts.received.count(self.buffers.wire_len(buffer));
            if let Some(note) = &self.parts.note {
                let bytes = self.parts.pacing.framing.segments_on_link(segments).into();
                note.came(self.buffers.frame(buffer), bytes, now);
            }
            match obstacle {
                None => {
                    self.enqueue(buffer, segments.count, now);
                    // What may start at once takes no room in the queue from the next one.
                    self.serve(now);
                }
                Some(loss) => {
                    self.count_loss(buffer, loss);
                    self.buffers.give(buffer);
                }
            }
        }
        self.received.drain(..count);
    }

    /// Why a frame cannot be passed on.
    fn obstacle(&self, buffer: u32) -> Option<Loss> {
        let size = self.buffers.wire_len(buffer);
        let is_whole = self.buffers.len(buffer) == size;
        if self.buffers.offload(buffer).is_super_packet() {
            let fits =
                self.parts.medium.splits || segments::fits(size.into(), self.parts.pacing.rate);
            return (!is_whole || !fits).then_some(Loss::SuperPacket);
        }
        (!is_whole || size > self.parts.medium.largest).then_some(Loss::Oversize)
    }

    fn enqueue(&mut self, buffer: u32, segments: u16, now: Nanos) {
        let Parsed { mut packet, key, .. } = self.parse(buffer, segments);
        let Parts { qdisc, tagger, observer, medium, .. } = &mut self.parts;
        if let Some(tagger) = tagger {
            tag(tagger, &mut packet, medium.link_type, self.buffers.frame_mut(buffer), now);
        }
        observer.arriving(&packet, &key, now);
        qdisc.enqueue(packet, now, observer);
        if !self.waiting {
            self.waiting = true;
            self.shaper.waits_since(now);
        }
    }

    /// The packet that the frame in a buffer is.
    fn parse(&self, buffer: u32, segments: u16) -> Parsed {
        let Parts { fingerprinter, needs, medium, input, .. } = &self.parts;
        let (frame, size) = (self.buffers.frame(buffer), self.buffers.wire_len(buffer));
        let Parsed { packet, mut key, sequence } =
            fingerprinter.packet(medium.link_type, frame, size, *needs);
        let mut packet = packet.with_id(buffer.into()).with_segments(segments);
        if needs.hosts
            && let Some(revealed) = input.reveal(&key)
        {
            key = revealed;
            let (source, destination) = fingerprinter.hosts(&key);
            packet = packet.with_hosts(source, destination);
        }
        Parsed { packet, key, sequence }
    }

    /// Starts every transmission that is due.
    fn serve(&mut self, now: Nanos) {
        while self.waiting && !self.blocked && self.shaper.due() <= now {
            match self.parts.qdisc.dequeue(now, &mut self.parts.observer) {
                Dequeue::Packet { packet, mark } => self.transmit(packet, mark, now),
                Dequeue::Wait(until) => {
                    // Held back by the discipline; should it ask for the past, by 1 us.
                    self.shaper.waits_since(until.max(now + Nanos(1000)));
                }
                Dequeue::Empty => self.waiting = false,
            }
        }
    }

    fn transmit(&mut self, packet: Packet, mark: bool, now: Nanos) {
        let buffer = packet.id as u32;
        self.mark(buffer, mark);
        let segments = Segments::of(&self.buffers, buffer);
        let start = self.shaper.start(segments, now);
        if let Some(note) = &self.parts.note {
            let bytes = self.parts.pacing.framing.segments_on_link(segments).into();
            note.left(self.buffers.frame(buffer), bytes, now);
        }
        self.link.push_back(InFlight { release: start + self.parts.delay, buffer });
    }

    fn mark(&mut self, buffer: u32, mark: bool) {
        if mark && mark_ce(self.parts.medium.link_type, self.buffers.frame_mut(buffer)) {
            self.counts.marked += 1;
        }
    }

    /// Releases every frame that has arrived at the far end of the link.
    fn send(&mut self, now: Nanos) -> Result<(), Fault> {
        let mut batch = [0; BATCH];
        while !self.blocked {
            let due = self.link.iter().take(BATCH).take_while(|frame| frame.release <= now);
            let count = due.zip(&mut batch).map(|(frame, slot)| *slot = frame.buffer).count();
            if count == 0 {
                break;
            }
            match self.parts.output.send(&mut self.buffers, &batch[..count]) {
                Ok(0) => self.blocked = true,
                Ok(sent) => {
                    for buffer in self.link.drain(..sent).map(|frame| frame.buffer) {
                        self.counts.sent.count(self.buffers.wire_len(buffer));
                    }
                }
                Err(error) => self.refused(error)?,
            }
        }
        Ok(())
    }

    /// The output refuses the first frame: a fault of the interface, or of the frame.
    fn refused(&mut self, error: io::Error) -> Result<(), Fault> {
        let loss = match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENETDOWN) if self.parts.medium.outlives_down => Loss::SendError,
            Some(Errno::ENETDOWN | Errno::ENXIO | Errno::ENODEV | Errno::EBADFD) => {
                return Err(Fault { side: Side::Output, error });
            }
            Some(Errno::EMSGSIZE) => Loss::Oversize,
            _ => Loss::SendError,
        };
        if let Some(frame) = self.link.pop_front() {
            self.count_loss(frame.buffer, loss);
            self.buffers.give(frame.buffer);
        }
        Ok(())
    }

    /// Sleeps until a frame comes in or something else is to be done.
    fn sleep(&mut self) {
        let now = clock::now();
        self.priority.adjust(self.waiting || !self.link.is_empty(), now);
        let timeout = self.next_event().min(now + LONGEST_SLEEP) - now;
        if timeout < SPIN && !self.blocked {
            return;
        }
        if self.waiting && !self.blocked && timeout < NAP {
            let nap = timeout.max(self.least_nap());
            let _ = ppoll(&mut [], Some(TimeSpec::new(0, nap.0 as i64)), None);
            return;
        }
        let timeout = TimeSpec::new(0, timeout.0 as i64);
        let output = if self.blocked { PollFlags::POLLOUT } else { PollFlags::empty() };
        // With all buffers in use, frames wait in the kernel.
        let input =
            if self.buffers.is_exhausted() { PollFlags::empty() } else { PollFlags::POLLIN };
        let mut fds = [
            PollFd::new(self.parts.input.fd(), input),
            PollFd::new(self.parts.output.fd(), output),
        ];
        // Errors of a socket show in its next call; EINTR is as good as a wake-up.
        let _ = ppoll(&mut fds, Some(timeout), None);
        if self.blocked {
            self.blocked = fds[1].revents().is_none_or(|events| events.is_empty());
        }
    }

    /// A nap makes the shaper late on purpose, so not by more than it can easily catch up with.
    fn least_nap(&self) -> Nanos {
        LEAST_NAP.min(Nanos(self.parts.pacing.burst_time.0 / 4))
    }

    /// When there is something to do, if no frame comes in before.
    fn next_event(&self) -> Nanos {
        let sample = self.parts.observer.next_sample();
        if self.blocked {
            return sample;
        }
        let due = if self.waiting { self.shaper.due() } else { Nanos::MAX };
        let release = self.link.front().map_or(Nanos::MAX, |frame| frame.release);
        due.min(release).min(sample)
    }

    /// Takes back the buffers of packets that the discipline has dropped or that have left.
    fn reclaim(&mut self) {
        self.parts.output.reclaim(&mut self.buffers);
        for buffer in self.parts.observer.freed().drain(..) {
            self.buffers.give(buffer);
        }
    }
}

/// Writes what the edge says into packet and frame; a frame that has no room for it, such as ARP,
/// stays as it is.
fn tag(tagger: &mut Tagger, packet: &mut Packet, link: LinkType, frame: &mut [u8], now: Nanos) {
    let before = packet.dscp;
    tagger.tag(packet, now);
    if packet.dscp != before && !set_dscp(link, frame, packet.dscp) {
        packet.dscp = before;
    }
}

#[cfg(test)]
mod tests;
