//! How much is sent when nothing is lost, and by how much that changes.

use tcp::{
    Config, Congestion, Growth, HyStartLaw, MAX_WINDOW, Pacing, Recovery, ReduceFrom, SlowStartExit,
};

use crate::net::{CLIENT, Fate, MS, Net, SECOND, SERVER};

/// No options, one acknowledgment for each segment of 1000 bytes.
fn plain() -> Config {
    Config { mss: 1000, ..Config::ns2() }
}

/// Segments sent in each round trip of 20 ms.
fn rounds(config: Config, segments: u64) -> Vec<usize> {
    let mut net = Net::of(config, 10 * MS);
    net.open();
    net.write(CLIENT, segments * 1000);
    net.run(100_000);
    let bursts = net.bursts(CLIENT);
    assert!(bursts.iter().zip(1..).all(|(burst, round)| burst.0 == round * 20), "{bursts:?}");
    bursts.into_iter().map(|burst| burst.1).collect()
}

#[test]
fn slow_start_doubles() {
    assert_eq!(rounds(plain(), 62), [2, 4, 8, 16, 32]);
    assert_eq!(rounds(Config { initial_window: 10, ..plain() }, 70), [10, 20, 40]);
}

/// A transfer that fills its window exactly does not wait a round trip for room for its FIN.
#[test]
fn fin_takes_no_room_in_the_window() {
    for (segments, expected) in [(2, vec![2]), (6, vec![2, 4]), (14, vec![2, 4, 8])] {
        let mut net = Net::of(plain(), 10 * MS);
        net.open();
        net.ends[CLIENT].write(segments * 1000);
        net.close(CLIENT);
        net.run(100_000);
        let bursts: Vec<usize> = net.bursts(CLIENT).into_iter().map(|burst| burst.1).collect();
        assert_eq!(bursts, expected, "{segments} segments");
    }
}

/// Nor does one in flight take the room of a segment that is to be sent again.
#[test]
fn fin_in_flight_leaves_room_for_what_was_lost() {
    let mut net = Net::losing(Config { initial_window: 4, ..plain() }, 10 * MS, &[0]);
    net.open();
    net.ends[CLIENT].write(4000);
    net.close(CLIENT);
    net.run(100_000);
    let again = net.log.iter().filter(|sent| sent.from == CLIENT && sent.has_data()).nth(4);
    assert_eq!(again.map(|sent| (sent.at, sent.index(1000))), Some((40 * MS, 0)));
}

#[test]
fn what_delayed_acknowledgments_cost_depends_on_what_is_counted() {
    let delayed = Config { initial_window: 4, ack_every: 2, ..plain() };
    assert_eq!(
        rounds(Config { growth: Growth::PerAck, ..delayed.clone() }, 32)[..4],
        [4, 6, 9, 12]
    );
    let limit_1 = Growth::PerByte { limit: 1 };
    assert_eq!(rounds(Config { growth: limit_1, ..delayed.clone() }, 32)[..4], [4, 6, 9, 12]);
    let limit_2 = Growth::PerByte { limit: 2 };
    assert_eq!(rounds(Config { growth: limit_2, ..delayed }, 60), [4, 8, 16, 32]);
}

#[test]
fn avoidance_adds_a_segment_in_a_round_trip() {
    let config = Config { initial_ssthresh: 4000, ..plain() };
    let bytes = Config { growth: Growth::PerByte { limit: 2 }, ..config.clone() };
    assert_eq!(rounds(bytes, 2 + 4 + 5 + 6 + 7 + 8), [2, 4, 5, 6, 7, 8]);
    // Shares of a segment for each acknowledgment add up to a little less than one.
    let shares = rounds(config, 100);
    assert_eq!(shares[..6], [2, 4, 4, 5, 6, 7]);
}

#[test]
fn the_receivers_window_and_the_senders_buffer_are_limits() {
    let window = Config { receive_window: 5500, ..plain() };
    assert_eq!(rounds(window, 27), [2, 4, 5, 5, 5, 5, 1]);
    let buffer = Config { send_buffer: 3000, ..plain() };
    assert_eq!(rounds(buffer, 12), [2, 3, 3, 3, 1]);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let run = |validate_window, bytes| {
        let config = Config { validate_window, initial_window: 10, ..plain() };
        let mut net = Net::of(config, 10 * MS);
        net.open();
        for _ in 0..50 {
            net.write(CLIENT, bytes);
            net.run_until(net.now + 20 * MS);
        }
        net.run(1000);
        net.ends[CLIENT].congestion_window()
    };
    assert_eq!(run(true, 3000), 10_000);
    // In slow start half of it is enough, as long as it is more than half.
    assert_eq!(run(true, 6000), 12_000);
    // One segment for each of 150 acknowledgments.
    assert_eq!(run(false, 3000), 160_000);
    // What is used grows, as without the check.
    assert_eq!(rounds(Config { validate_window: true, ..plain() }, 62), [2, 4, 8, 16, 32]);
}

#[test]
fn after_an_idle_time_the_window_is_the_initial_one() {
    let run = |restart_after_idle, idle| {
        let mut net = Net::of(Config { restart_after_idle, ..plain() }, 10 * MS);
        net.open();
        net.write(CLIENT, 30_000);
        net.run_until(net.now + idle);
        let before = net.data(CLIENT).len();
        net.write(CLIENT, 30_000);
        net.data(CLIENT).len() - before
    };
    assert_eq!(run(true, SECOND), 2);
    assert_eq!(run(false, SECOND), 30);
    assert_eq!(run(true, 150 * MS), 30);
}

#[test]
fn cubic_follows_the_closed_form() {
    // Slow start to 64 segments, a loss there; K = cbrt(64 * 0.3 / 0.4), and the window is
    // W(t) = 64 + 0.4 (t - K)^3, t from the first acknowledgment after recovery.
    let rtt = 0.1;
    let config = Config {
        mss: 1000,
        initial_window: 64,
        initial_ssthresh: 64_000,
        reduce_from: ReduceFrom::Window,
        cubic_friendly: false,
        slow_start_exit: SlowStartExit::Loss,
        ack_every: 1,
        receive_window: MAX_WINDOW,
        min_rto: SECOND,
        ..Config::default()
    };
    let mut net = Net::losing(config, 50 * MS, &[20]);
    net.open();
    net.write(CLIENT, u64::MAX / 2);
    let mut checked = 0;
    // Handshake, the first window, recovery: avoidance begins with the acknowledgment at 400 ms.
    let epoch = 400 * MS;
    let at = |t: f64| 64.0 + 0.4 * (t - (64.0f64 * 0.3 / 0.4).powf(1.0 / 3.0)).powi(3);
    for round in 1..80 {
        let now = epoch + round * 100 * MS;
        net.run_until(now);
        let window = f64::from(net.ends[CLIENT].congestion_window()) / 1000.0;
        // Acknowledgments of a round trip come at its beginning, and aim one round trip ahead.
        let expected = at(round as f64 * rtt + rtt);
        assert!((window - expected).abs() < 1.5, "round {round}: {window}, not {expected}");
        checked += 1;
    }
    assert_eq!(checked, 79);
    assert_eq!(net.ends[CLIENT].stats().fast_retransmits, 1);
}

#[test]
fn ecn_reduces_once_for_each_window() {
    for prr in [false, true] {
        for congestion in [Congestion::Reno, Congestion::Cubic] {
            let config = Config {
                ecn: true,
                prr,
                congestion,
                initial_window: 16,
                initial_ssthresh: 16_000,
                recovery: Recovery::Sack,
                ..plain()
            };
            let mut net = Net::of(config, 10 * MS);
            // Three marks in the first window, one in the fourth.
            net.fate = Box::new(|s| {
                let mark = s.from == CLIENT && [3, 7, 12, 40].contains(&s.data_number);
                if mark { Fate::Marked } else { Fate::Arrive }
            });
            net.open();
            net.write(CLIENT, 100_000);
            net.run(1000);
            let stats = net.ends[CLIENT].stats();
            assert_eq!(
                (stats.ecn_reductions, stats.retransmissions),
                (2, 0),
                "{prr} {congestion:?}"
            );
            let cwr: Vec<_> = net
                .sent_by(CLIENT)
                .filter(|s| s.segment.flags.has(tcp::Flags::CWR) && s.segment.len > 0)
                .map(|s| s.data_number)
                .collect();
            assert_eq!(cwr.len(), 2, "{cwr:?}");
            assert!(net.sent_by(CLIENT).filter(|s| s.segment.len > 0).all(|s| s.segment.is_ect()));
            // Echoes from the first mark until the reduction is known: those of the window.
            let echoes: Vec<_> = net
                .sent_by(SERVER)
                .filter(|s| s.segment.flags.has(tcp::Flags::ECE) && s.number > 0)
                .map(|s| s.segment.ack / 1000)
                .collect();
            assert_eq!((echoes[0], echoes[1]), (4, 5));
            let first = if congestion == Congestion::Reno { 8000 } else { 11_000 };
            let after = net.sent_by(CLIENT).find(|s| s.at == 60 * MS).unwrap();
            assert!(after.cwnd.abs_diff(first) <= 1000, "{prr} {congestion:?} {}", after.cwnd);
        }
    }
}

#[test]
fn retransmissions_are_not_ecn_capable() {
    let config = Config { ecn: true, ..plain() };
    let mut net = Net::losing(config, 10 * MS, &[5]);
    net.open();
    net.write(CLIENT, 30_000);
    net.run(1000);
    for sent in net.sent_by(CLIENT).filter(|s| s.segment.len > 0) {
        assert_eq!(sent.segment.is_ect(), !sent.segment.is_retransmission());
    }
    assert_eq!(net.again(CLIENT).len(), 1);
}

#[test]
fn without_agreement_there_is_no_ecn() {
    let with = Config { ecn: true, ..plain() };
    for (client, server) in [(with.clone(), plain()), (plain(), with)] {
        let mut net = Net::new(client, server, 10 * MS);
        net.fate = Box::new(|_| Fate::Marked);
        net.open();
        net.write(CLIENT, 100_000);
        net.run(1000);
        assert!(net.log.iter().all(|s| !s.segment.is_ect()));
        assert_eq!(net.ends[CLIENT].stats().ecn_reductions, 0);
    }
}

#[test]
fn options_need_both_ends() {
    let sack = Config { recovery: Recovery::Sack, timestamps: true, ..plain() };
    for (client, server) in [(sack.clone(), plain()), (plain(), sack)] {
        let mut net = Net::new(client, server, 10 * MS);
        net.fate = Box::new(|s| {
            let lost = s.from == CLIENT && s.has_data() && [5, 9].contains(&s.data_number);
            if lost { Fate::Lost } else { Fate::Arrive }
        });
        net.open();
        net.write(CLIENT, 50_000);
        net.run(1000);
        assert_eq!(net.ends[SERVER].received(), 50_000);
        let open = net.log.iter().skip(1);
        assert!(open.clone().all(|s| !s.segment.flags.has(tcp::Flags::TIMESTAMPS)));
        assert!(open.clone().all(|s| s.segment.sack.is_empty()));
    }
}

#[test]
fn a_window_that_was_full_may_grow_though_nothing_is_left_to_send() {
    let after = |bytes| {
        let config = Config {
            initial_window: 10,
            initial_ssthresh: 10_000,
            validate_window: true,
            growth: Growth::PerByte { limit: 1 },
            ..plain()
        };
        let mut net = Net::of(config, 10 * MS);
        net.open();
        net.write(CLIENT, bytes);
        net.run(1000);
        net.ends[CLIENT].congestion_window()
    };
    assert_eq!((after(10_000), after(9000)), (11_000, 10_000));
}

#[test]
fn pacing_spreads_a_window_over_the_round_trip() {
    let run = |initial_ssthresh| {
        let config = Config {
            pacing: Some(Pacing { slow_start_percent: 200, avoidance_percent: 100 }),
            initial_window: 10,
            initial_ssthresh,
            ..plain()
        };
        let mut net = Net::of(config, 10 * MS);
        net.open();
        net.write(CLIENT, 10_000);
        net.run(1000);
        net.data(CLIENT).iter().map(|sent| sent.0).collect::<Vec<_>>()
    };
    // Ten segments in a round trip of 20 ms, and twice as fast in slow start.
    assert_eq!(run(10_000), [20, 22, 24, 26, 28, 30, 32, 34, 36, 38]);
    assert_eq!(run(100_000), [20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
}

#[test]
fn hystart_leaves_slow_start_before_the_queue_overflows() {
    // 12 Mbit/s, 40 ms, a queue that holds 500 ms and then drops.
    let losses = |slow_start_exit| {
        let config = Config {
            mss: 1460,
            header_bytes: 40,
            slow_start_exit,
            ack_every: 1,
            ..Config::linux()
        };
        let mut net = Net::of(config, 20 * MS);
        net.rate = Some(13_000_000);
        net.queue_limit = Some(500 * MS);
        net.open();
        net.write(CLIENT, 3_000_000);
        net.run(100_000);
        net.ends[CLIENT].stats().retransmissions
    };
    let none = losses(SlowStartExit::Loss);
    assert!(none > 20, "{none}");
    for exit in [SlowStartExit::HyStart(HyStartLaw::LINUX), SlowStartExit::HyStartPlusPlus] {
        assert_eq!(losses(exit), 0, "{exit:?}");
    }
}

#[test]
fn a_sample_with_timestamps_has_the_delay_of_the_acknowledgment() {
    // Both of two segments are answered with the timestamp of the first (RFC 7323, 4.3).
    let config = Config { timestamps: true, ack_every: 2, ..plain() };
    let mut net = Net::of(config, 10 * MS);
    net.open();
    net.write(CLIENT, 1000);
    net.run_until(25 * MS);
    net.write(CLIENT, 1000);
    net.run(1000);
    let ack = net.sent_by(SERVER).last().unwrap();
    assert_eq!(net.now, 45 * MS);
    assert_eq!((ack.segment.echo, ack.segment.ack), (20 * MS, 2001));
}
