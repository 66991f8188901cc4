//! Losses that only the time of sending shows (RFC 8985).

use tcp::{Config, Recovery};

use crate::net::{CLIENT, Fate, MS, Net, SERVER};

/// Reno at 20 ms, a window of ten segments, each acknowledged; least timeout 200 ms.
fn config(rack: bool) -> Config {
    Config {
        mss: 1000,
        recovery: Recovery::Sack,
        timestamps: true,
        initial_window: 10,
        rack,
        ..Config::ns2()
    }
}

/// So many bytes, without these data segments in the order of sending.
fn transfer(config: Config, bytes: u64, lost: &'static [usize]) -> Net {
    let mut net = Net::losing(config, 10 * MS, lost);
    net.open();
    net.write(CLIENT, bytes);
    net.run(1000);
    assert_eq!(net.ends[SERVER].received(), bytes);
    net
}

#[test]
fn a_lost_retransmission_is_repaired_without_a_timeout() {
    // Number 10 repeats 0. What was sent beside it arrives a round trip later.
    let net = transfer(config(true), 20_000, &[0, 10]);
    assert_eq!(net.again(CLIENT), [(40, 0), (60, 0)]);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.timeouts, stats.fast_retransmits), (0, 1));
    assert_eq!(net.ends[SERVER].stats().duplicates_received, 0);
    // Without, the timer does it.
    let net = transfer(config(false), 20_000, &[0, 10]);
    assert_eq!(net.ends[CLIENT].stats().timeouts, 1);
    assert!(net.again(CLIENT)[1].0 >= 220);
}

#[test]
fn it_is_repaired_without_timestamps_and_with_prr_too() {
    for (timestamps, prr) in [(false, false), (false, true), (true, true)] {
        let net = transfer(Config { timestamps, prr, ..config(true) }, 20_000, &[0, 10]);
        assert_eq!(net.again(CLIENT), [(40, 0), (60, 0)]);
    }
}

#[test]
fn a_single_sack_is_believed_after_a_quarter_of_the_round_trip() {
    let net = transfer(config(true), 4000, &[0, 1, 2]);
    // 5 ms after it, and 2 as in Linux.
    assert_eq!(net.again(CLIENT), [(47, 0), (47, 1), (47, 2)]);
    let net = transfer(config(false), 4000, &[0, 1, 2]);
    assert_eq!(net.again(CLIENT)[0], (220, 0));
    // With proportional reduction one goes first, and two more with its acknowledgment.
    let net = transfer(Config { prr: true, ..config(true) }, 4000, &[0, 1, 2]);
    assert_eq!(net.again(CLIENT), [(47, 0), (67, 1), (67, 2)]);
}

#[test]
fn three_sacked_segments_leave_no_time_for_reordering() {
    let net = transfer(config(true), 4000, &[0]);
    assert_eq!(net.again(CLIENT), [(40, 0)]);
    let patient = Config { dup_threshold: 4, ..config(true) };
    assert_eq!(transfer(patient, 4000, &[0]).again(CLIENT), [(47, 0)]);
}

#[test]
fn reordering_once_seen_is_given_its_time() {
    let spurious = |rack, first: u64, second: u64| {
        let mut net = Net::of(config(rack), 10 * MS);
        net.fate = Box::new(move |sent| {
            match (sent.from == CLIENT && sent.has_data(), sent.segment.is_retransmission()) {
                (true, false) if sent.index(1000) == 0 => Fate::Late(first * MS),
                (true, false) if sent.index(1000) == 3 => Fate::Late(second * MS),
                _ => Fate::Arrive,
            }
        });
        net.open();
        // Three segments, of which the first may be overtaken by two: too few to be lost.
        net.write(CLIENT, 3000);
        net.run(1000);
        // Eight, of which the first is overtaken by all others.
        net.write(CLIENT, 8000);
        net.run(1000);
        let stats = net.ends[CLIENT].stats();
        assert_eq!(stats.fast_retransmits, stats.retransmissions);
        stats.retransmissions
    };
    assert_eq!(spurious(false, 4, 4), 1);
    assert_eq!(spurious(true, 0, 4), 1);
    assert_eq!(spurious(true, 4, 4), 0);
    // But no more than a quarter of the round trip; and what was sent again does not tell.
    assert_eq!(spurious(true, 4, 9), 1);
    assert_eq!(spurious(true, 9, 4), 2);
}

#[test]
fn a_lost_tail_is_found_by_the_probe() {
    let config = Config { tail_loss_probe: true, ..config(true) };
    // The probe repeats the last at 80 ms, two round trips after what arrived last. Its SACK shows
    // the others, which were sent before it.
    let net = transfer(config.clone(), 10_000, &[6, 7, 8, 9]);
    assert_eq!(net.again(CLIENT), [(80, 9), (100, 6), (100, 7), (100, 8)]);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.tail_probes, stats.timeouts, stats.fast_retransmits), (1, 0, 1));
    // If only the last was lost, the probe repairs it, and the window is reduced all the same.
    let net = transfer(config, 10_000, &[9]);
    assert_eq!(net.again(CLIENT), [(240, 9)]);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.tail_probes, stats.timeouts, stats.fast_retransmits), (1, 0, 1));
}

#[test]
fn the_reordering_timer_takes_the_place_of_a_probe() {
    // Of four the last arrives, and its SACK 2 ms before the probe is due, 40 ms after they left.
    let mut net = Net::of(Config { tail_loss_probe: true, ..config(true) }, 10 * MS);
    net.fate = Box::new(|sent| match (sent.from == CLIENT, sent.number) {
        (true, 2..=4) => Fate::Lost,
        (false, 1) => Fate::Late(18 * MS),
        _ => Fate::Arrive,
    });
    net.open();
    net.write(CLIENT, 4000);
    net.run(1000);
    // It took 38 ms, and 7 for reordering.
    assert_eq!(net.again(CLIENT), [(65, 0), (65, 1), (65, 2)]);
    assert_eq!(net.ends[CLIENT].stats().tail_probes, 0);
}

#[test]
fn a_timeout_leaves_room_for_one_beside_what_may_still_arrive() {
    let mut net = Net::losing(config(true), 10 * MS, &[1]);
    net.open();
    net.write(CLIENT, 1000);
    net.run_until(100 * MS);
    net.write(CLIENT, 1000);
    // The timeout is 200 ms; three more leave 5 ms before.
    net.run_until(295 * MS);
    net.write(CLIENT, 3000);
    net.run(1000);
    assert_eq!(net.data(CLIENT)[1..], [(100, 1), (295, 2), (295, 3), (295, 4), (300, 1)]);
    assert_eq!(net.ends[CLIENT].stats().timeouts, 1);
}

#[test]
fn all_of_a_lost_flight_is_repaired_after_the_timeout() {
    let lost: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let net = transfer(config(true), 10_000, lost);
    assert_eq!(net.again(CLIENT)[..3], [(220, 0), (240, 1), (240, 2)]);
    assert_eq!(net.again(CLIENT).len(), 10);
    // A repair after the timeout that is lost in turn is found by those sent beside it.
    let lost: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11];
    let net = transfer(config(true), 10_000, lost);
    let again = net.again(CLIENT);
    let second = again.iter().filter(|sent| sent.1 == 1).map(|sent| sent.0).collect::<Vec<_>>();
    assert_eq!(second, [240, 260]);
    assert_eq!(net.ends[CLIENT].stats().timeouts, 1);
}

/// Where a segment is lost again and again while others arrive.
#[test]
fn the_timer_may_start_again_with_each_repair() {
    let timeouts = |restart_with_repair| {
        let config = Config { restart_with_repair, ..config(true) };
        let mut net = Net::of(config, 10 * MS);
        // Every copy of the first segment in the first 400 ms: twice the timeout.
        net.fate = Box::new(|sent| {
            let is_first = sent.from == CLIENT && sent.has_data() && sent.index(1000) == 0;
            if is_first && sent.at < 400 * MS { Fate::Lost } else { Fate::Arrive }
        });
        net.open();
        net.write(CLIENT, 100_000);
        net.run(2000);
        assert_eq!(net.ends[SERVER].received(), 100_000);
        net.ends[CLIENT].stats().timeouts
    };
    assert_eq!(timeouts(true), 0);
    assert!(timeouts(false) > 0);
}

/// RFC 5681, section 4.3: a window that a timeout has reduced is reduced again.
#[test]
fn the_loss_of_a_repair_after_a_timeout_is_a_second_loss() {
    // The whole first window, and of what is sent again, by twos after the first, 1.
    let lost: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11];
    let net = transfer(config(true), 20_000, lost);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.timeouts, stats.fast_retransmits), (1, 1));
    let again = net.again(CLIENT);
    assert_eq!(again[..4], [(220, 0), (240, 1), (240, 2), (260, 1)]);
    // Without that loss, the window doubles until it is half of what it was.
    let net = transfer(config(true), 20_000, &lost[..10]);
    assert_eq!(net.ends[CLIENT].stats().fast_retransmits, 0);
    assert_eq!(net.again(CLIENT)[3..7], [(260, 3), (260, 4), (260, 5), (260, 6)]);
}

/// As in Linux: else the timeout would not follow a queue that grows while the first is missing.
#[test]
fn what_is_sacked_measures_the_round_trip() {
    let srtt = |rack| {
        let mut net = Net::of(config(rack), 10 * MS);
        net.fate = Box::new(|sent| match sent.from == CLIENT && sent.has_data() {
            true if sent.index(1000) == 0 => Fate::Lost,
            true if sent.at > 30 * MS => Fate::Late(50 * MS),
            _ => Fate::Arrive,
        });
        net.open();
        net.write(CLIENT, 100_000);
        net.run_until(200 * MS);
        net.ends[CLIENT].srtt()
    };
    assert_eq!(srtt(false), Some(20 * MS));
    assert!(srtt(true) > Some(30 * MS), "{:?}", srtt(true));
}
