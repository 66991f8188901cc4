//! A direction between interfaces that do as they are told.

mod bench;

use sched::edge::EdgeSpec;
use sched::{Backlog, ParamError, Params, Queue, Rate, Sink, Spec};

use self::bench::{Bench, Source, count, frame, frames, over_free_link, over_link, refusal};
use super::*;
use crate::datapath::buffers::Offload;
use crate::datapath::observe::{Counters, Observe, Records, drop_counts};

#[test]
fn frames_leave_as_they_came_and_in_order() {
    let (report, fault, sent) = over_free_link("fifo", frames(200), vec![]).run(10);
    assert!(fault.is_none());
    assert_eq!(sent, frames(200));
    assert_eq!((report.received.packets, report.received.bytes), (200, 200 * 74));
    assert!(report.drops.is_empty());
}

#[test]
fn a_frame_that_the_interface_refuses_is_counted_by_reason_and_the_rest_goes_on() {
    let answers = vec![Ok(3), refusal(libc::EMSGSIZE), Ok(2), refusal(libc::ENOBUFS)];
    let (report, fault, sent) = over_free_link("fifo", frames(10), answers).run(5);
    assert!(fault.is_none());
    assert_eq!((count(&report, "oversize"), count(&report, "send-error")), (1, 1));
    let expected: Vec<_> = [0, 1, 2, 4, 5, 7, 8, 9].map(|number| frame(1, number)).into();
    assert_eq!(sent, expected);
}

#[test]
fn an_interface_that_goes_away_ends_it_and_nothing_goes_uncounted() {
    for errno in [libc::ENETDOWN, libc::ENXIO, libc::ENODEV] {
        let answers = vec![Ok(4), refusal(errno)];
        let (report, fault, _) = over_free_link("fifo", frames(10), answers).run(5);
        assert_eq!(fault.unwrap().side, Side::Output);
        assert_eq!((report.sent.packets, report.in_flight.packets), (4, 6));
    }
}

#[test]
fn while_the_output_is_blocked_packets_wait_in_the_queue() {
    let mut bench = over_free_link("fifo", frames(100), vec![Ok(5), Ok(0)]);
    bench.direction.receive().unwrap();
    bench.direction.take_in(10, Nanos(1));
    bench.direction.serve(Nanos(1));
    bench.direction.send(Nanos(1)).unwrap();
    assert!(bench.direction.blocked);
    bench.direction.take_in(10, Nanos(2));
    bench.direction.serve(Nanos(2));
    assert_eq!(bench.direction.link.len(), 5, "nothing was dequeued in the meantime");
    assert_eq!(bench.direction.next_event(), Nanos::MAX, "room to send is what it waits for");
}

#[test]
fn a_blocked_output_is_used_again_when_it_has_room() {
    // The socket behind the output is writable: the first sleep ends the blockade.
    let (report, _, sent) = over_free_link("fifo", frames(20), vec![Ok(5), Ok(0)]).run(5);
    assert_eq!(sent, frames(20));
    assert_eq!(report.in_flight.packets, 0);
}

#[test]
fn what_is_too_large_is_dropped_before_it_is_queued() {
    // Where 100 bytes take longer than a millisecond.
    let mut bench = over_link("fifo", Rate(500_000), Nanos::ZERO, vec![], vec![]);
    let unsplit = Offload([0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    let frames = [(150, Offload::default()), (201, Offload::default()), (100, unsplit)];
    let source = Source::of(frames.map(|(size, offload)| (vec![1; size], offload)), 7);
    bench.direction.parts.input = Box::new(source);
    let (report, _, sent) = bench.run(3);
    assert_eq!(sent, [vec![1; 150]]);
    assert_eq!((count(&report, "oversize"), count(&report, "super-packet")), (1, 1));
    assert_eq!(report.received.bytes, 150 + 201 + 100);
    assert_eq!(report.lost_in_kernel, 7);
}

/// A TCP packet of four segments that the kernel has not split.
fn super_packet() -> (Vec<u8>, Offload) {
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0, 0x45, 0, 0, 174, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 80]);
    frame.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    frame.extend([0; 130]);
    // To be completed from byte 34 on, 40 bytes a segment.
    let offload = [[1, 1], 54u16.to_ne_bytes(), 40u16.to_ne_bytes(), 34u16.to_ne_bytes(), [16, 0]];
    (frame, Offload(offload.concat().try_into().unwrap()))
}

#[test]
fn a_super_packet_counts_as_its_segments_do() {
    let mut bench = over_link("fifo:limit=5packets", Rate(1_000_000), Nanos::ZERO, vec![], vec![]);
    let medium = &mut bench.direction.parts.medium;
    medium.splits = true;
    bench.direction.parts.pacing.framing.overhead = 10;
    bench.direction.shaper = Shaper::new(bench.direction.parts.pacing);
    let source = Source::of([super_packet(), super_packet(), super_packet()], 0);
    bench.direction.parts.input = Box::new(source);
    bench.direction.receive().unwrap();
    bench.direction.take_in(3, Nanos::ZERO);
    // Three of 94 bytes, one of 64, and 10 bytes more for each, at 8 us a byte.
    assert_eq!(bench.direction.shaper.due(), Nanos((3 * 104 + 74) * 8000));
    // One has started, one is queued, and a third has no room for four segments beside it.
    let backlog = bench.direction.parts.qdisc.backlog();
    assert_eq!((backlog.packets, backlog.segments, backlog.bytes), (1, 4, 346));
    let report = bench.direction.report(Nanos::ZERO);
    let (received, on_link) = (report.received.bytes, report.in_flight.bytes);
    assert_eq!((received, on_link, count(&report, "full")), (3 * 346, 346, 1));
}

#[test]
fn another_discipline_takes_over_what_is_queued_in_order() {
    // Two flows, of which the second is the longer one: EFD sends the first one's packets first.
    let flows: Vec<_> = (0..6).map(|n| frame(1 + u8::from(n > 0 && n < 5), n)).collect();
    let spec = "efd:threshold=2packets,limit=100packets";
    let mut bench = over_link(spec, Rate(1_000_000), Nanos::ZERO, flows.clone(), vec![]);
    bench.direction.receive().unwrap();
    bench.direction.take_in(6, Nanos::ZERO);
    let direction = &mut bench.direction;
    direction.replace(&"fifo:limit=3packets".parse().unwrap(), 1, Nanos(1));
    let order: Vec<u64> = std::iter::from_fn(|| {
        direction.parts.qdisc.dequeue(Nanos(2), &mut direction.parts.observer).packet()
    })
    .map(|packet| {
        u16::from_be_bytes(direction.buffers.frame(packet.id as u32)[42..44].try_into().unwrap())
            .into()
    })
    .collect();
    // 0 is on the link; 3 and 4 are long, and there is room for three.
    assert_eq!(order, [1, 2, 5]);
    let full = drop_counts(direction.parts.observer.dropped_so_far());
    assert_eq!((full[0].reason.as_str(), full[0].count.packets), ("full", 2));
}

#[test]
fn drops_of_the_discipline_are_counted_by_lane_and_their_buffers_come_back() {
    // 1 bit/s: one transmission starts, three wait, the rest is dropped.
    let frames = (0..30_000).map(|number| frame(1, number as u16)).collect();
    let bench = over_link("fifo:limit=3packets", Rate(1), Nanos::ZERO, frames, vec![]);
    let (report, _, sent) = bench.run(469);
    assert_eq!((report.received.packets, sent.len()), (30_000, 1));
    assert_eq!(report.queued.packets, 3);
    let full = &report.drops[0];
    assert_eq!((full.reason.as_str(), full.lane, full.count.packets), ("full", Some(0), 29_996));
}

#[test]
fn with_all_buffers_in_use_frames_wait_in_the_kernel() {
    let frames = (0..MOST_FRAMES).map(|_| vec![0; 14]).collect();
    let spec = "fifo:limit=1000000packets";
    let mut bench = over_link(spec, Rate(1), Nanos::ZERO, frames, vec![]);
    (0..1024).for_each(|_| bench.direction.step().unwrap());
    let [first, second] = [(); 2].map(|()| bench.direction.parts.input.arrived().unwrap());
    // One frame has been sent, and its buffer was there for another one.
    assert_eq!((first as usize, second), (MOST_FRAMES, 0));
    let direction = &mut bench.direction;
    assert!(!direction.buffers.is_exhausted());
    direction.buffers.take().unwrap();
    assert!(direction.buffers.is_exhausted(), "nothing is received now");
}

#[test]
fn frames_are_held_for_the_propagation_delay() {
    let hour = Nanos::from_secs(3600);
    let bench = over_link("fifo", Rate::UNLIMITED, hour, frames(20), vec![]);
    let (report, _, sent) = bench.run(2);
    assert_eq!((report.in_flight.packets, report.queued.packets), (20, 0));
    assert!(sent.is_empty());
}

/// Marks every packet, after holding each back for a nanosecond.
#[derive(Default)]
struct Marker {
    queue: VecDeque<Packet>,
    held: bool,
}

impl<S: Sink> Qdisc<S> for Marker {
    fn enqueue(&mut self, packet: Packet, _: Nanos, _: &mut S) {
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, now: Nanos, _: &mut S) -> Dequeue {
        self.held = !self.held;
        if self.held && !self.queue.is_empty() {
            return Dequeue::Wait(now + Nanos(1));
        }
        match self.queue.pop_front() {
            Some(packet) => Dequeue::Packet { packet, mark: true },
            None => Dequeue::Empty,
        }
    }
}

impl Queue for Marker {
    fn backlog(&self) -> Backlog {
        let mut backlog = Backlog::default();
        self.queue.iter().for_each(|packet| backlog.add(packet));
        backlog
    }

    fn change(&mut self, _: &Params) -> Result<(), ParamError> {
        Ok(())
    }
}

#[test]
fn marks_are_set_in_the_frame_and_a_discipline_may_hold_packets_back() {
    let qdisc = Box::new(Marker::default());
    let mut arp = vec![0xff; 60];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let frames = vec![frame(1, 0), arp.clone(), frame(2, 1)];
    let observer = Counters::default();
    let bench = Bench::new(qdisc, observer, Rate::UNLIMITED, Nanos::ZERO, frames, vec![]);
    let (report, _, sent) = bench.run(10);
    assert_eq!(sent.len(), 3);
    assert_eq!((sent[0][15] & 3, sent[2][15] & 3), (3, 3));
    assert_eq!(sent[1], arp, "what has no ECN bits is sent as it is");
    assert_eq!(report.marked, 2);
}

/// A one's complement sum over the IPv4 header; all ones if its checksum is right.
fn header_sum(frame: &[u8]) -> u16 {
    let words = frame[14..34].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[test]
fn an_edge_tags_frames_and_the_discipline_goes_by_the_tag() {
    let mut arp = vec![0xff; 60];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let mut frames: Vec<_> = (0..4).map(|number| frame(1, number)).collect();
    frames.extend([frame(2, 0), arp.clone()]);
    for frame in &mut frames {
        if frame[13] == 0 {
            let checksum = !header_sum(frame);
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
    }
    // At 1 kbit/s the first is on the wire for half a second, and the others wait.
    let spec = "lanes:accounting=mark,short-dscp=10";
    let mut bench = over_link(spec, Rate(1_000), Nanos::ZERO, frames, vec![]);
    let edge: EdgeSpec = "threshold=2,update=inf".parse().unwrap();
    bench.direction.parts.tagger = Some(edge.build());
    let us = |n: u64| Nanos(1_000_000_000 + n * 1_000_000);
    bench.direction.receive().unwrap();
    assert_eq!(bench.direction.received.len(), 6);
    bench.direction.take_in(6, us(0));
    (1..6).for_each(|n| bench.direction.serve(us(n * 1_000)));
    bench.direction.send(us(10_000)).unwrap();
    let sent = std::mem::take(&mut *bench.sent.lock().unwrap());
    let found: Vec<_> = sent.iter().map(|frame| (frame[35], frame[15] >> 2)).collect();
    // ARP has no room for a tag, and is not taken for tagged.
    assert_eq!(found[..5], [(1, 10), (1, 10), (2, 10), (1, 12), (1, 12)]);
    assert_eq!(sent[5], arp);
    for frame in &sent[..5] {
        assert_eq!((frame[15] & 3, header_sum(frame)), (2, 0xffff), "ECN and checksum");
    }
}

#[test]
fn the_ledger_follows_each_flow_and_the_queue() {
    let epoch = clock::now();
    let mut frames: Vec<_> = (0..6).map(|number| frame(1, number)).collect();
    frames.push(frame(2, 0));
    // 1 bit/s: the first packet leaves, the others stay, three are pushed out.
    let qdisc = "efd:threshold=2packets,limit=3packets".parse::<Spec>().unwrap().build(1);
    let observer = Records::account(Observe { epoch, sample_every: Nanos(1) });
    let bench = Bench::new(qdisc, observer, Rate(1), Nanos::ZERO, frames, vec![]);
    let (report, _, _) = bench.run(1);
    let observed = report.observed.unwrap();
    let [long, short] = &observed.flows[..] else { panic!("{observed:#?}") };
    assert_eq!(long.flow, "10.0.0.1:1 > 10.0.0.2:53 udp");
    assert_eq!((long.arrived.packets, long.departed.packets), (6, 1));
    // EFD forgets the flow when its first packet leaves, and takes it up again with the second.
    assert_eq!((long.departed_by_lane.as_slice(), long.fragments), (&[1][..], 2));
    let dropped: u64 = long.drops.iter().map(|drop| drop.count.packets).sum();
    assert_eq!(dropped + report.queued.packets, 6);
    assert_eq!((short.flow.as_str(), short.arrived.packets), ("10.0.0.1:2 > 10.0.0.2:53 udp", 1));
    assert!(short.drops.is_empty());
    assert_eq!((observed.samples[0].packets, observed.samples[0].short_lane_packets), (3, 3));
    assert_eq!(observed.samples[0].flows, 2);
}

#[test]
fn packets_leave_the_queue_when_their_transmission_starts_and_no_sooner() {
    // 74 bytes at 8 Mbit/s take 74 us; burst time is 1 ms.
    let us = |n: u64| Nanos(1_000_000_000 + n * 1000);
    let delay = Nanos::from_millis(20);
    let mut bench = over_link("fifo", Rate(8_000_000), delay, frames(60), vec![]);
    let direction = &mut bench.direction;
    direction.receive().unwrap();
    assert_eq!(direction.received.len(), 60);
    direction.take_in(60, us(0));
    let starts = |direction: &Direction<Counters>| -> Vec<Nanos> {
        direction.link.iter().map(|frame| frame.release - delay).collect()
    };
    assert_eq!(starts(direction), [us(0)], "the link is busy with the first");
    direction.serve(us(73));
    assert_eq!(direction.link.len(), 1);
    assert_eq!(direction.next_event(), us(74));
    direction.serve(us(74));
    assert_eq!(starts(direction), [us(0), us(74)]);
    // 3 ms late: what was due within the last millisecond is caught up with, the rest is lost.
    direction.serve(us(148 + 3000));
    let caught_up = &starts(direction)[2..];
    assert_eq!(caught_up[0], us(148 + 2000));
    assert_eq!(caught_up.len(), 1000 / 74 + 1);
    assert!(caught_up.windows(2).all(|pair| pair[1] - pair[0] == Nanos(74_000)));
    assert_eq!(direction.shaper.punctuality().lost, Nanos::from_millis(2));
    direction.send(us(20_074)).unwrap();
    assert_eq!(direction.counts.sent.packets, 2, "what has travelled is released");
}

/// One queue for each receiver: ten flows to one of them, then a packet to another.
#[test]
fn a_discipline_that_needs_hosts_is_told_them() {
    let to = |host: u8, number: u16| {
        let mut frame = frame(number as u8, number);
        frame[33] = host;
        frame
    };
    let frames = (0..10).map(|number| to(2, number)).chain([to(3, 10)]).collect();
    let spec = "cake:isolation=dsthost,rate=1mbit";
    let mut bench = over_link(spec, Rate(1_000_000), Nanos::ZERO, frames, vec![]);
    bench.direction.receive().unwrap();
    bench.direction.take_in(11, Nanos::ZERO);
    let parts = &mut bench.direction.parts;
    let sent = std::iter::from_fn(|| {
        parts.qdisc.dequeue(Nanos(2), &mut parts.observer).packet().map(|packet| packet.destination)
    });
    let sent: Vec<_> = sent.collect();
    // A queue's first turn is 300 bytes, five of these packets; the first is on the wire already.
    let others: Vec<usize> = (0..sent.len()).filter(|place| sent[*place] != sent[0]).collect();
    assert_eq!((sent.len(), others), (10, vec![4]));
}
