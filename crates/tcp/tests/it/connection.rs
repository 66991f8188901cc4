//! Opening, closing, giving up, acknowledging: segment by segment.

use crate::net::{CLIENT, Fate, MS, Net, SECOND, SERVER};
use tcp::{Config, Failure, Flags, Segment, State};

/// No options, one acknowledgment for each segment, windows in round numbers.
fn plain() -> Config {
    Config { mss: 1000, ..Config::ns2() }
}

#[test]
fn a_request_and_its_answer() {
    let mut net = Net::of(plain(), 10 * MS);
    let mut answered = false;
    net.app = Box::new(move |end, endpoint| {
        if end == SERVER && endpoint.received() == 300 && !answered {
            answered = true;
            endpoint.write(2500);
            endpoint.close();
        } else if end == CLIENT && endpoint.state() == State::CloseWait {
            endpoint.close();
        }
    });
    net.connect();
    net.write(CLIENT, 300);
    net.run(100);
    assert_eq!((net.ends[CLIENT].received(), net.ends[SERVER].received()), (2500, 300));
    assert_eq!((net.ends[CLIENT].acked(), net.ends[SERVER].acked()), (300, 2500));
    assert_eq!(net.ends[CLIENT].state(), State::Closed);
    assert_eq!(net.ends[SERVER].state(), State::TimeWait);
    assert!(net.ends[CLIENT].is_finished() && net.ends[SERVER].is_finished());
    let seen: Vec<_> = net
        .log
        .iter()
        .map(|s| {
            (s.at.0 / MS.0, s.from, s.segment.seq, s.segment.len, s.segment.ack, s.segment.flags)
        })
        .collect();
    let ack = Flags::ACK;
    let fin = Flags::FIN.with(ack);
    assert_eq!(
        seen,
        [
            (0, CLIENT, 0, 0, 0, Flags::SYN),
            (10, SERVER, 0, 0, 1, Flags::SYN.with(ack)),
            (20, CLIENT, 1, 0, 1, ack),
            (20, CLIENT, 1, 300, 1, ack.with(Flags::PSH)),
            // The acknowledgment travels on the answer, and FIN on its last segment.
            (30, SERVER, 1, 1000, 301, ack),
            (30, SERVER, 1001, 1000, 301, ack),
            (40, CLIENT, 301, 0, 1001, ack),
            (40, CLIENT, 301, 0, 2001, ack),
            (50, SERVER, 2001, 500, 301, fin.with(Flags::PSH)),
            (60, CLIENT, 301, 0, 2502, fin),
            (70, SERVER, 2502, 0, 302, ack),
        ]
    );
}

#[test]
fn syns_are_sent_at_0_3_9_21_45_93_seconds_and_then_no_more() {
    let mut net = Net::of(Config::ns3(), 10 * MS);
    net.fate = Box::new(|_| Fate::Lost);
    net.connect();
    net.run(100);
    let times: Vec<_> = net.log.iter().map(|s| s.at.0 / SECOND.0).collect();
    assert_eq!(times, [0, 3, 9, 21, 45, 93]);
    assert!(net.log.iter().all(|s| s.segment.flags.has(Flags::SYN)));
    assert_eq!(net.now, 189 * SECOND);
    let client = &net.ends[CLIENT];
    assert_eq!((client.state(), client.failed()), (State::Failed, Some(Failure::Handshake)));
    assert_eq!((client.stats().syn_timeouts, client.stats().timeouts), (5, 0));
    assert!(client.is_finished());
}

#[test]
fn a_lost_syn_ack_is_sent_again() {
    let mut net = Net::of(plain(), 10 * MS);
    net.fate =
        Box::new(|s| if s.from == SERVER && s.number == 0 { Fate::Lost } else { Fate::Arrive });
    net.connect();
    net.run(100);
    // The client's timer is the first; the server answers it and its own timer, too.
    assert_eq!(net.ends[SERVER].state(), State::Established);
    assert_eq!(net.ends[CLIENT].state(), State::Established);
    assert_eq!(net.ends[CLIENT].stats().syn_timeouts, 1);
}

#[test]
fn data_is_retransmitted_with_backoff_and_given_up() {
    let config = Config { data_tries: 4, min_rto: SECOND, ..plain() };
    let mut net = Net::of(config, 10 * MS);
    net.fate = Box::new(|s| if s.has_data() { Fate::Lost } else { Fate::Arrive });
    net.open();
    net.write(CLIENT, 500);
    net.run(100);
    let times: Vec<_> = net.data(CLIENT);
    assert_eq!(times, [(20, 0), (1020, 0), (3020, 0), (7020, 0), (15020, 0)]);
    assert_eq!(net.now, 31_020 * MS);
    let client = &net.ends[CLIENT];
    assert_eq!(client.failed(), Some(Failure::Data));
    assert_eq!((client.stats().timeouts, client.stats().retransmissions), (4, 4));
}

#[test]
fn each_way_of_closing_ends() {
    // Client first, server first, both at once; with the last acknowledgment lost or not.
    for (first, lose) in [(0, false), (1, false), (2, false), (0, true), (1, true), (2, true)] {
        let mut net = Net::of(plain(), 10 * MS);
        net.open();
        net.run(100);
        if lose {
            let mut left = 1;
            net.fate = Box::new(move |s| {
                let last = !s.has_data() && s.segment.ack == 2 && left > 0;
                left -= i32::from(last);
                if last { Fate::Lost } else { Fate::Arrive }
            });
        }
        match first {
            0 => net.close(CLIENT),
            1 => net.close(SERVER),
            _ => {
                net.close(CLIENT);
                net.close(SERVER);
            }
        }
        net.run(100);
        net.close(CLIENT);
        net.close(SERVER);
        net.run(100);
        let states = [net.ends[CLIENT].state(), net.ends[SERVER].state()];
        let expected = match first {
            0 => [State::TimeWait, State::Closed],
            1 => [State::Closed, State::TimeWait],
            _ => [State::TimeWait, State::TimeWait],
        };
        assert_eq!(states, expected, "{first} {lose}");
        assert!(net.ends.iter().all(|end| end.is_finished() && end.next_timer().is_none()));
    }
}

#[test]
fn acknowledgments_are_delayed_up_to_the_second_segment_or_the_timer() {
    let mut net = Net::of(Config { initial_window: 5, ..Config::ns3() }, 10 * MS);
    net.open();
    net.write(CLIENT, 5 * 536);
    net.run_until(SECOND);
    let acks: Vec<_> =
        net.sent_by(SERVER).skip(1).map(|s| (s.at.0 / MS.0, (s.segment.ack - 1) / 536)).collect();
    // The first data segment is acknowledged at once, then every second, and the last by time.
    assert_eq!(acks, [(30, 1), (30, 3), (30, 5)]);
    net.write(CLIENT, 536);
    net.run_until(2 * SECOND);
    let last = net.sent_by(SERVER).last().unwrap();
    assert_eq!((last.at.0 / MS.0, last.segment.ack), (1210, 6 * 536 + 1));
}

#[test]
fn a_fin_is_sent_again_with_its_data() {
    for lost in [&[2][..], &[1, 2]] {
        let mut net = Net::losing(plain(), 10 * MS, lost);
        net.ends[CLIENT].write(3000);
        net.ends[CLIENT].close();
        net.connect();
        net.run(1000);
        let fins: Vec<_> = net
            .sent_by(CLIENT)
            .filter(|s| s.segment.flags.has(Flags::FIN))
            .map(|s| (s.segment.seq, s.segment.len))
            .collect();
        assert_eq!(fins, [(2001, 1000), (2001, 1000)]);
        assert_eq!(net.ends[SERVER].state(), State::CloseWait);
    }
}

#[test]
fn after_a_lost_syn_the_window_is_one_segment() {
    let run = |config: Config, lost: fn(&crate::net::Sent) -> bool| {
        let mut net = Net::of(config, 10 * MS);
        net.fate = Box::new(move |s| if lost(s) { Fate::Lost } else { Fate::Arrive });
        net.connect();
        net.write(CLIENT, 50_000);
        net.run(1000);
        net.bursts(CLIENT)[0]
    };
    let first_syn = |s: &crate::net::Sent| s.from == CLIENT && s.number == 0;
    let cautious = Config { trusted_syns: 1, initial_window: 10, ..plain() };
    assert_eq!(run(cautious.clone(), first_syn), (3020, 1));
    let careless = Config { trusted_syns: 2, ..cautious.clone() };
    assert_eq!(run(careless, first_syn), (3020, 10));
    assert_eq!(run(cautious, |_| false), (20, 10));
}

#[test]
fn after_a_lost_syn_the_first_timeout_is_longer() {
    let run = |lost: fn(&crate::net::Sent) -> bool| {
        let config = Config {
            initial_rto: SECOND,
            rto_after_syn_loss: 5 * SECOND,
            min_rto: SECOND,
            ..plain()
        };
        let mut net = Net::of(config, 10 * MS);
        net.fate = Box::new(move |s| if lost(s) { Fate::Lost } else { Fate::Arrive });
        net.connect();
        net.write(CLIENT, 1000);
        net.run(1000);
        net.data(CLIENT)
    };
    let first_data = |s: &crate::net::Sent| s.has_data() && s.data_number == 0;
    assert_eq!(run(first_data), [(20, 0), (1020, 0)]);
    let both = |s: &crate::net::Sent| {
        s.number == 0 && s.from == CLIENT || s.has_data() && s.data_number == 0
    };
    assert_eq!(run(both), [(3020, 0), (8020, 0)]);
}

#[test]
fn gaps_what_fills_them_and_fin_are_acknowledged_at_once() {
    let config = Config { ack_every: 2, quick_acks: 0, initial_window: 5, ..plain() };
    let mut net = Net::of(config, 10 * MS);
    net.fate = Box::new(|s| {
        let late = s.from == CLIENT && s.has_data() && s.data_number == 1;
        if late { Fate::Late(5 * MS) } else { Fate::Arrive }
    });
    net.open();
    net.write(CLIENT, 4000);
    net.run_until(100 * MS);
    let acks = |net: &Net| -> Vec<_> {
        net.sent_by(SERVER).skip(1).map(|s| (s.at.0 / MS.0, s.segment.ack)).collect()
    };
    // 0 waits; 2 and 3 leave a gap, 1 fills it.
    assert_eq!(acks(&net), [(30, 1001), (30, 1001), (35, 4001)]);
    net.close(CLIENT);
    net.run_until(200 * MS);
    assert_eq!(acks(&net)[3..], [(110, 4002)]);
}

#[test]
fn quick_acknowledgments_come_first() {
    let config = Config { ack_every: 2, quick_acks: 3, initial_window: 8, ..plain() };
    let mut net = Net::of(config, 10 * MS);
    net.open();
    net.write(CLIENT, 8000);
    net.run(1000);
    let acks: Vec<_> = net.sent_by(SERVER).skip(1).map(|s| s.segment.ack / 1000).collect();
    assert_eq!(acks, [1, 2, 3, 5, 7, 8]);
    assert_eq!(net.now, 240 * MS);
}

/// Acknowledgments of 400 segments, sent so many in a round trip.
fn acknowledgments(in_flight: u32, adaptive_acks: bool) -> usize {
    let config = Config {
        timestamps: true,
        ack_every: 2,
        quick_acks: 16,
        initial_window: 10,
        send_buffer: in_flight * 1000,
        adaptive_acks,
        ..plain()
    };
    let mut net = Net::of(config, 10 * MS);
    net.open();
    net.write(CLIENT, 400_000);
    net.run(10_000);
    assert_eq!(net.ends[SERVER].received(), 400_000);
    net.sent_by(SERVER).skip(1).count()
}

#[test]
fn each_segment_is_acknowledged_while_the_window_grows() {
    // 16, and one for two of the others. Up to ten in a round trip nothing has to grow; once an odd
    // segment is pushed.
    assert_eq!(acknowledgments(40, false), 16 + 192);
    assert_eq!(acknowledgments(10, true), 16 + 192 + 1);
    // Of 20 and then 33 in a round trip the window grows by 40 and 47 kB, two segments at a time:
    // 44 are acknowledged at once, 22 more than otherwise.
    assert_eq!(acknowledgments(40, true), 16 + 192 + 22);
}

#[test]
fn each_segment_is_acknowledged_after_a_gap_until_the_window_is_what_it_was() {
    let config = Config {
        timestamps: true,
        ack_every: 2,
        ack_delay: 40 * MS,
        initial_window: 10,
        adaptive_acks: true,
        ..plain()
    };
    let mut net = Net::of(config, 10 * MS);
    net.open();
    net.fate = Box::new(|s| {
        let first = s.segment.seq == 1 && !s.segment.flags.has(Flags::RETRANSMISSION);
        if first && s.has_data() { Fate::Lost } else { Fate::Arrive }
    });
    net.write(CLIENT, 24_000);
    net.run(1000);
    let acks: Vec<_> = net.sent_by(SERVER).skip(1).map(|s| s.segment.ack / 1000).collect();
    // Nine wait for the first of ten. What they took of the window is back with the fifth in order.
    assert_eq!(acks, [vec![0; 9], vec![10, 11, 12, 13, 14, 16, 18, 20, 22, 24]].concat());
}

#[test]
fn acknowledgments_follow_what_arrives() {
    let config = Config {
        timestamps: true,
        ack_every: 2,
        ack_delay: 40 * MS,
        min_rto: 200 * MS,
        adaptive_acks: true,
        ..plain()
    };
    let mut net = Net::of(config, 10 * MS);
    net.open();
    let mut acks_of = |at: u64, segments: u64| {
        net.run_until(at * MS);
        let before = net.sent_by(SERVER).count();
        net.write(CLIENT, segments * 1000);
        net.run_until((at + 400) * MS);
        let acks = net.sent_by(SERVER).skip(before);
        acks.map(|s| (s.at.0 / MS.0 - at, s.segment.ack / 1000)).collect::<Vec<_>>()
    };
    // What ends a write is pushed, and acknowledged at once.
    assert_eq!(acks_of(100, 3), [(10, 2), (30, 3)]);
    // After a pause, so is all else.
    assert_eq!(acks_of(1000, 3), [(10, 4), (10, 5), (10, 6)]);
}

#[test]
fn what_was_forgotten_still_answers_a_fin() {
    // The client closes second; the last acknowledgment is lost, and the server is gone.
    let mut net = Net::of(plain(), 10 * MS);
    net.fate = Box::new(|s| {
        let last = s.from == SERVER && !s.has_data() && s.segment.ack == 2;
        if last { Fate::Lost } else { Fate::Arrive }
    });
    net.open();
    net.close(SERVER);
    net.run(100);
    net.close(CLIENT);
    net.run_until(100 * MS);
    assert_eq!(net.ends[CLIENT].state(), State::LastAck);
    assert!(net.ends[SERVER].is_finished());
    let now = SECOND;
    net.ends[CLIENT].on_timer(&net.config[CLIENT], now);
    let fin = net.ends[CLIENT].poll_transmit(&net.config[CLIENT], now).unwrap();
    let reply = fin.reply_after_close().unwrap();
    net.ends[CLIENT].on_segment(&net.config[CLIENT], &reply, false, now);
    assert_eq!(net.ends[CLIENT].state(), State::Closed);
}

#[test]
fn the_delay_of_an_acknowledgment_counts_from_the_first_segment() {
    let config = Config { ack_every: 3, min_rto: SECOND, ..plain() };
    let mut net = Net::of(config, 10 * MS);
    net.open();
    net.write(CLIENT, 1000);
    net.run_until(120 * MS);
    net.write(CLIENT, 1000);
    net.run(1000);
    let ack = net.sent_by(SERVER).last().unwrap();
    assert_eq!((ack.at.0 / MS.0, ack.segment.ack), (230, 2001));
}

#[test]
fn a_syn_that_is_seen_again_is_answered_again() {
    // The server's own timer would be later.
    let patient = Config { syn_timeout: 10 * SECOND, ..plain() };
    let mut net = Net::new(plain(), patient, 10 * MS);
    net.fate =
        Box::new(|s| if s.from == SERVER && s.number == 0 { Fate::Lost } else { Fate::Arrive });
    net.connect();
    net.run_until(5 * SECOND);
    assert_eq!(net.ends[CLIENT].state(), State::Established);
    let answers: Vec<_> = net.sent_by(SERVER).map(|s| s.at.0 / MS.0).collect();
    assert_eq!(answers, [10, 3010]);
}

#[test]
fn qualnets_timers_are_those_of_bsd() {
    // Handshake: five SYNs. Data: 3 s, then twice as long each time up to 64 s, twelve times.
    let mut net = Net::of(Config::qualnet(), 10 * MS);
    net.fate = Box::new(|_| Fate::Lost);
    net.connect();
    net.run(100);
    let times: Vec<_> = net.log.iter().map(|s| s.at.0 / SECOND.0).collect();
    assert_eq!(times, [0, 3, 9, 21, 45]);
    assert_eq!(net.now, 93 * SECOND);

    let mut net = Net::of(Config::qualnet(), 10 * MS);
    net.fate = Box::new(|s| if s.has_data() { Fate::Lost } else { Fate::Arrive });
    net.open();
    net.write(CLIENT, 1460);
    net.run(100);
    let times: Vec<_> = net.data(CLIENT).iter().map(|(at, _)| at / 1000).collect();
    // The handshake took 20 ms: that sample and a clock of 500 ms make less than the least of 1 s.
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 127, 191, 255, 319, 383, 447]);
    assert_eq!(net.ends[CLIENT].failed(), Some(Failure::Data));
}

#[test]
fn qualnets_window_starts_with_a_segment_and_ends_at_16_kib() {
    // Every other segment is acknowledged, the first alone after 200 ms: windows of 1, 2, 3, 4, and
    // at 600 ms one of the four is still out. Eleven fit the buffer.
    let mut net = Net::of(Config::qualnet(), 50 * MS);
    net.open();
    net.write(CLIENT, 100 * 1460);
    net.run(10_000);
    let bursts = net.bursts(CLIENT);
    assert_eq!(bursts[..4], [(100, 1), (400, 2), (500, 3), (600, 3)]);
    assert_eq!(net.log.iter().map(|sent| sent.pipe).max(), Some(11 * 1460));
}

#[test]
fn a_segment_that_acknowledges_what_was_never_sent_counts_for_nothing() {
    let mut net = Net::of(Config { timestamps: true, ..Config::default() }, 10 * MS);
    net.open();
    net.run(100);
    let (config, server) = (net.config[SERVER].clone(), &mut net.ends[SERVER]);
    let flags = Flags::ACK.with(Flags::FIN).with(Flags::TIMESTAMPS);
    let timestamp = net.now + SECOND;
    let mut segment =
        Segment { seq: 1, ack: 9999, len: 500, timestamp, flags, ..Segment::default() };
    server.on_segment(&config, &segment, false, net.now);
    assert_eq!((server.received(), server.stats().refused), (0, 1));
    assert_eq!(server.poll_transmit(&config, net.now), None);
    segment = Segment {
        ack: 1,
        timestamp: net.now,
        flags: Flags::ACK.with(Flags::TIMESTAMPS),
        ..segment
    };
    server.on_segment(&config, &segment, false, net.now);
    assert_eq!(server.received(), 500);
}
