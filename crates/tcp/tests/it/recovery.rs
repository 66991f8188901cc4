//! Losses and their repair: segment by segment.
//!
//! Windows of 16 segments when segments 14, 16 and 17 are lost: the round trip is 20 ms, and each
//! segment is acknowledged.

use tcp::{Config, Growth, Recovery, ReduceFrom};

use crate::net::{CLIENT, Fate, MS, Net, SECOND, SERVER};

/// No options, one acknowledgment for each segment, least timeout 200 ms.
fn plain(recovery: Recovery) -> Config {
    Config { mss: 1000, recovery, ..Config::ns2() }
}

/// A transfer of 60 segments of which these data segments, in the order of sending, are lost.
fn transfer(config: Config, lost: &'static [usize]) -> Net {
    let mut net = Net::losing(config, 10 * MS, lost);
    net.open();
    net.write(CLIENT, 60_000);
    net.run(10_000);
    assert_eq!(net.ends[SERVER].received(), 60_000);
    net
}

/// Segments sent in the round trip that begins at this millisecond.
fn round(net: &Net, at: u64) -> Vec<u64> {
    net.data(CLIENT).iter().filter(|sent| sent.0 == at).map(|sent| sent.1).collect()
}

#[test]
fn the_third_duplicate_retransmits_and_halves() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let net = transfer(plain(recovery), &[14]);
        assert_eq!(net.again(CLIENT), [(100, 14)]);
        // 15 of 16 arrived: 3 duplicates to notice, 5 until half the window is left, and each of
        // the other 7 lets a new segment go.
        assert_eq!(round(&net, 100), [14, 30, 31, 32, 33, 34, 35, 36], "{recovery:?}");
        // The acknowledgment of all 16 leaves room for one, the 7 that follow for one each.
        assert_eq!(round(&net, 120).len(), 8, "{recovery:?}");
        let stats = net.ends[CLIENT].stats();
        assert_eq!((stats.fast_retransmits, stats.timeouts, stats.retransmissions), (1, 0, 1));
        assert_eq!((stats.bytes_retransmitted, stats.retransmissions_after_timeout), (1000, 0));
        assert_eq!(net.ends[SERVER].stats().out_of_order_received, 15);
    }
}

#[test]
fn the_acknowledgment_that_ends_recovery_counts_for_the_window_as_in_linux() {
    for (grow_by_delivered, sent) in [(false, 8), (true, 9)] {
        let growth = Growth::PerByte { limit: u32::MAX };
        let config = Config { growth, grow_by_delivered, ..plain(Recovery::Sack) };
        let net = transfer(config, &[14]);
        // It delivers the segment that was lost; the 7 that follow then make the 8 for one more.
        assert_eq!(round(&net, 120).len(), sent);
    }
}

#[test]
fn two_duplicates_do_not() {
    // Segment 14 is overtaken by two.
    let mut net = Net::of(plain(Recovery::NewReno), 10 * MS);
    net.rate = Some(8_320_000);
    net.fate = Box::new(|sent| {
        let late = sent.from == CLIENT && sent.has_data() && sent.data_number == 14;
        if late { Fate::Late(2 * MS + MS / 2) } else { Fate::Arrive }
    });
    net.open();
    net.write(CLIENT, 60_000);
    net.run(10_000);
    assert_eq!(net.ends[CLIENT].stats().retransmissions, 0);
    assert_eq!(net.ends[SERVER].stats().out_of_order_received, 2);
}

#[test]
fn new_reno_repairs_one_loss_in_a_round_trip() {
    let net = transfer(plain(Recovery::NewReno), &[14, 16, 17]);
    assert_eq!(net.again(CLIENT), [(100, 14), (120, 16), (140, 17)]);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.fast_retransmits, stats.timeouts), (1, 0));
    assert_eq!(net.ends[CLIENT].slow_start_threshold(), 8000);
    // 30 to 34 make five duplicates at 120 ms, behind the partial acknowledgment of 14 and 15:
    // eight are in the network throughout.
    assert_eq!(round(&net, 120), [16, 35, 36, 37, 38, 39, 40]);
    assert_eq!(round(&net, 140).len(), 8);
    assert_eq!(round(&net, 160).len(), 8);
    // So it is where the window leaves no room for the retransmission.
    let ns3 = Config { prr: true, ns3_recovery: true, ..plain(Recovery::NewReno) };
    assert_eq!(transfer(ns3, &[14, 16, 17]).again(CLIENT), [(100, 14), (120, 16), (140, 17)]);
}

#[test]
fn the_impatient_variant_lets_the_timer_end_a_long_recovery() {
    // Twelve losses take twelve round trips of 20 ms; the timer is 200 ms.
    let lost: &[usize] = &[14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25];
    let run = |impatient| {
        let net = transfer(Config { impatient, ..plain(Recovery::NewReno) }, lost);
        let stats = net.ends[CLIENT].stats();
        (stats.fast_retransmits, stats.timeouts)
    };
    assert_eq!(run(false), (1, 0));
    assert_eq!(run(true), (1, 1));
}

#[test]
fn reno_halves_twice_and_then_waits_for_the_timer() {
    let net = transfer(plain(Recovery::Reno), &[14, 16, 17]);
    // The second partial acknowledgment is followed by too few duplicates; the timer was
    // restarted at 140 ms.
    assert_eq!(net.again(CLIENT), [(100, 14), (120, 16), (340, 17)]);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.fast_retransmits, stats.timeouts), (2, 1));
    assert_eq!(stats.retransmissions_after_timeout, 1);
}

#[test]
fn sack_repairs_all_in_one_round_trip() {
    let net = transfer(plain(Recovery::Sack), &[14, 16, 17]);
    assert_eq!(net.again(CLIENT), [(100, 14), (100, 16), (100, 17)]);
    assert_eq!(round(&net, 100).len(), 8);
    assert_eq!(net.ends[CLIENT].stats().fast_retransmits, 1);
}

#[test]
fn limited_transmit_sends_new_data_on_the_first_two_duplicates() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let reduce_from = ReduceFrom::Flight;
        let config = Config { limited_transmit: true, reduce_from, ..plain(recovery) };
        let net = transfer(config, &[14]);
        assert_eq!(round(&net, 100)[..3], [30, 31, 14]);
        // Half of the window, not of the two more that are out.
        assert_eq!(net.ends[CLIENT].slow_start_threshold(), 8000);
        let net = transfer(plain(recovery), &[14]);
        assert_eq!(round(&net, 100)[..3], [14, 30, 31]);
    }
    // With a window of three there would not be three duplicates without it.
    let config = Config { initial_window: 3, initial_ssthresh: 3000, ..plain(Recovery::NewReno) };
    let limited = Config { limited_transmit: true, ..config.clone() };
    assert_eq!(transfer(limited, &[0]).again(CLIENT), [(60, 0)]);
    assert_eq!(transfer(config, &[0]).again(CLIENT), [(220, 0)]);
}

#[test]
fn prr_spreads_the_reduction_over_the_round_trip() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let net = transfer(Config { prr: true, ..plain(recovery) }, &[14]);
        // Of 15 duplicates 3 start recovery; then one segment for every two, not a pause
        // and then one for each.
        let sent: Vec<u64> = round(&net, 100);
        assert_eq!(sent[0], 14);
        assert!((7..=8).contains(&sent.len()), "{recovery:?} {sent:?}");
        let exit = net.sent_by(CLIENT).find(|s| s.at == 120 * MS).unwrap();
        assert_eq!(exit.cwnd, 8000, "{recovery:?}");
    }
    // When the next segment after the retransmission goes out: 13 of 16 are still to be delivered
    // when recovery begins, the third SACKed segment makes 14, and 8 of them may be replaced, so
    // the second goes out with the fourth, the sixth duplicate. RFC 6675 waits until pipe has
    // fallen from 13 to 7, the ninth.
    let when = |prr| {
        let mut net = Net::losing(Config { prr, ..plain(Recovery::Sack) }, 10 * MS, &[14]);
        net.open();
        net.write(CLIENT, 60_000);
        net.run_until(95 * MS);
        let mut duplicates = 0;
        while net.again(CLIENT).is_empty() || net.data(CLIENT).last().unwrap().1 < 30 {
            net.step();
            duplicates += 1;
        }
        duplicates
    };
    assert_eq!((when(true), when(false)), (6, 9));
}

#[test]
fn recovery_ends_at_the_threshold_even_if_there_was_nothing_to_send() {
    // ns-3's rule follows the shrinking pipe down; there the window then grows by the share of one
    // acknowledgment, 1000 x 1000 / 8000.
    for (ns3_recovery, expected) in [(false, 8000), (true, 8125)] {
        let config = Config { prr: true, ns3_recovery, ..plain(Recovery::NewReno) };
        let mut net = Net::losing(config, 10 * MS, &[14]);
        net.open();
        net.write(CLIENT, 30_000);
        net.run(1000);
        assert_eq!(net.ends[CLIENT].congestion_window(), expected);
    }
}

#[test]
fn data_that_comes_the_other_way_is_no_duplicate() {
    let mut net = Net::of(plain(Recovery::NewReno), 10 * MS);
    net.open();
    net.run(100);
    net.write(CLIENT, 10_000);
    net.write(SERVER, 100_000);
    net.run(1000);
    for end in [CLIENT, SERVER] {
        let stats = net.ends[end].stats();
        assert_eq!((stats.fast_retransmits, stats.retransmissions), (0, 0));
    }
    assert_eq!((net.ends[CLIENT].received(), net.ends[SERVER].received()), (100_000, 10_000));
}

#[test]
fn a_lost_retransmission_waits_for_the_timer() {
    // Data segment 30 of the transfer is the retransmission of 14.
    for (recovery, prr) in
        [(Recovery::NewReno, false), (Recovery::Sack, false), (Recovery::Sack, true)]
    {
        let net = transfer(Config { prr, ..plain(recovery) }, &[14, 30]);
        let again = net.again(CLIENT);
        assert_eq!(again[0], (100, 14));
        // The timer was last started at 80 ms, by the acknowledgment of 13.
        assert_eq!(again[1], (280, 14), "{recovery:?}");
        let stats = net.ends[CLIENT].stats();
        assert_eq!((stats.fast_retransmits, stats.timeouts), (1, 1));
        // What was SACKed is not sent again, what was just not acknowledged is not known.
        if recovery == Recovery::Sack {
            assert_eq!(again.len(), 2);
        }
    }
}

#[test]
fn a_timeout_starts_slowly_from_the_first_hole() {
    // All of the fourth flight is lost.
    let lost: &[usize] = &[14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29];
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let net = transfer(plain(recovery), lost);
        // The timer was last started at 80 ms.
        assert_eq!(round(&net, 280), [14], "{recovery:?}");
        assert_eq!(round(&net, 300), [15, 16]);
        assert_eq!(round(&net, 320), [17, 18, 19, 20]);
        // Half of the 16 that were outstanding: slow start ends at 8.
        assert_eq!(round(&net, 340).len(), 8);
        assert_eq!(round(&net, 360).len(), 8);
        assert_eq!(round(&net, 380).len(), 9);
        let stats = net.ends[CLIENT].stats();
        assert_eq!((stats.timeouts, stats.retransmissions), (1, 16));
        assert_eq!(stats.retransmissions_after_timeout, 16);
        assert_eq!(stats.fast_retransmits, 0);
    }
}

#[test]
fn after_a_timeout_old_duplicates_do_not_start_recovery() {
    // Eight are lost, and all acknowledgments for 115 ms after that. The timer repeats from 14 on;
    // when 24 has filled the last gap, 25 to 29 are on their way again as 21 to 23 were, and each
    // of them makes a duplicate of the acknowledgment of 29.
    let lost = &[14, 15, 16, 17, 18, 19, 20, 24];
    let mut net = Net::losing(plain(Recovery::NewReno), 10 * MS, lost);
    let mut fate = std::mem::replace(&mut net.fate, Box::new(|_| Fate::Arrive));
    net.fate = Box::new(move |sent| {
        let mute = sent.from == SERVER && (85 * MS..200 * MS).contains(&sent.at);
        if mute { Fate::Lost } else { fate(sent) }
    });
    net.open();
    net.write(CLIENT, 60_000);
    net.run(10_000);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.fast_retransmits, stats.timeouts), (0, 1));
    assert_eq!(net.ends[SERVER].stats().duplicates_received, 8);
    assert_eq!(net.ends[SERVER].received(), 60_000);
}

#[test]
fn the_rescue_retransmission_saves_a_timeout() {
    // Of the last window the first and the last segment are lost.
    let config = |rescue| Config { rescue, ..plain(Recovery::Sack) };
    let run = |rescue| {
        let mut net = Net::losing(config(rescue), 10 * MS, &[14, 29]);
        net.open();
        net.write(CLIENT, 30_000);
        net.run(10_000);
        net
    };
    let with = run(true);
    assert_eq!(with.again(CLIENT), [(100, 14), (100, 29)]);
    assert_eq!(with.ends[CLIENT].stats().rescue_retransmissions, 1);
    let without = run(false);
    // The acknowledgment of 28 restarts the timer at 120 ms.
    assert_eq!(without.again(CLIENT), [(100, 14), (320, 29)]);
    assert_eq!(without.ends[CLIENT].stats().timeouts, 1);
}

#[test]
fn what_is_doubtful_is_sent_where_nothing_is_new() {
    // 27 and 28 are lost, only 29 arrives: too little to call them lost, but 14 has started a
    // recovery and there is nothing else to send (NextSeg rule 3).
    let mut net = Net::losing(plain(Recovery::Sack), 10 * MS, &[14, 27, 28]);
    net.open();
    net.write(CLIENT, 30_000);
    net.run(10_000);
    assert_eq!(net.again(CLIENT), [(100, 14), (100, 27), (100, 28)]);
}

#[test]
fn a_whole_window_of_acknowledgments_may_be_lost() {
    let mut net = Net::of(plain(Recovery::Sack), 10 * MS);
    net.fate = Box::new(|sent| {
        let mute = sent.from == SERVER && sent.has_data() != (85 * MS..100 * MS).contains(&sent.at);
        if mute { Fate::Lost } else { Fate::Arrive }
    });
    net.open();
    net.write(CLIENT, 100_000);
    net.run(10_000);
    assert_eq!(net.ends[SERVER].received(), 100_000);
    assert!(net.ends[CLIENT].stats().timeouts >= 1);
}

#[test]
fn backoff_lasts_until_a_sample() {
    // Without timestamps an acknowledgment of what was sent twice measures nothing (Karn).
    let run = |karn_backoff| {
        let config = Config { karn_backoff, min_rto: SECOND, ..plain(Recovery::NewReno) };
        let mut net = Net::losing(config, 10 * MS, &[0, 1, 3]);
        net.open();
        net.write(CLIENT, 1000);
        net.run_until(5 * SECOND);
        net.write(CLIENT, 1000);
        net.run(1000);
        net.again(CLIENT)
    };
    // 0 is lost twice: timeouts of 1 and 2 s, and 4 s from then on, until a sample.
    assert_eq!(run(true), [(1020, 0), (3020, 0), (9000, 1)]);
    assert_eq!(run(false), [(1020, 0), (3020, 0), (6000, 1)]);
}

#[test]
fn what_was_sent_twice_is_not_measured() {
    // 14 is the segment that is timed when it is lost.
    let net = transfer(plain(Recovery::NewReno), &[14]);
    assert_eq!(net.ends[CLIENT].srtt(), Some(20 * MS));
    assert_eq!(net.ends[CLIENT].min_rtt(), Some(20 * MS));
}

#[test]
fn with_timestamps_every_acknowledgment_is_a_sample() {
    let config = Config { timestamps: true, min_rto: SECOND, ..plain(Recovery::NewReno) };
    let mut net = Net::losing(config, 10 * MS, &[0, 1, 3]);
    net.open();
    net.write(CLIENT, 1000);
    net.run_until(5 * SECOND);
    net.write(CLIENT, 1000);
    net.run(1000);
    assert_eq!(net.again(CLIENT), [(1020, 0), (3020, 0), (6000, 1)]);
}

#[test]
fn each_timeout_reduces_the_threshold_only_where_ns_3_does() {
    let run = |reduce_on_every_timeout| {
        let config = Config { reduce_on_every_timeout, ..plain(Recovery::NewReno) };
        let lost: &[usize] = &[14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30];
        let mut net = Net::losing(config, 10 * MS, lost);
        net.open();
        net.write(CLIENT, 60_000);
        net.run_while(10_000, |net| net.ends[CLIENT].stats().timeouts < 2);
        net.ends[CLIENT].slow_start_threshold()
    };
    assert_eq!((run(false), run(true)), (8000, 2000));
}

#[test]
fn bsd_halves_what_the_buffer_lets_it_use() {
    // The window has grown to 30 segments and more of which the buffer takes ten.
    let threshold = |reduce_from| {
        let config = Config { reduce_from, send_buffer: 10_000, ..plain(Recovery::Reno) };
        let net = transfer(config, &[40]);
        net.ends[CLIENT].slow_start_threshold()
    };
    assert_eq!(threshold(ReduceFrom::UsedWindow), 5000);
    assert!(threshold(ReduceFrom::Window) >= 15_000);
}

#[test]
fn what_arrived_before_a_timeout_does_not_open_the_window_after_it() {
    // Of 16 only the first is lost, and with it all acknowledgments: the timer repeats 14, and
    // the answer acknowledges all 16. That is worth one segment, not sixteen; with ns-3's rule,
    // which counts what lies beyond the 16, nothing.
    for (ns3_recovery, expected) in [(false, &[30, 31][..]), (true, &[30])] {
        let growth = tcp::Growth::PerByte { limit: 100 };
        let config = Config { growth, ns3_recovery, ..plain(Recovery::NewReno) };
        let mut net = Net::losing(config, 10 * MS, &[14]);
        let mut fate = std::mem::replace(&mut net.fate, Box::new(|_| Fate::Arrive));
        net.fate = Box::new(move |sent| {
            let mute = sent.from == SERVER && (85 * MS..200 * MS).contains(&sent.at);
            if mute { Fate::Lost } else { fate(sent) }
        });
        net.open();
        net.write(CLIENT, 60_000);
        net.run_until(301 * MS);
        assert_eq!(round(&net, 280), [14]);
        assert_eq!(round(&net, 300), expected);
        net.run(1000);
        assert_eq!(net.ends[CLIENT].stats().retransmissions, 1);
    }
}

#[test]
fn ns_3_repeats_what_is_not_sacked_where_nothing_is_new() {
    // The whole transfer is out when 14 is found to be lost: 29, the last, is not SACKed yet when
    // there is room for more.
    let run = |ns3_recovery| {
        let config = Config { ns3_recovery, prr: true, ..plain(Recovery::Sack) };
        let mut net = Net::losing(config, 10 * MS, &[14, 29]);
        net.open();
        net.write(CLIENT, 30_000);
        net.run(1000);
        let stats = net.ends[CLIENT].stats();
        (net.again(CLIENT), stats.timeouts)
    };
    let (again, timeouts) = run(true);
    assert_eq!((again.last(), timeouts), (Some(&(100, 29)), 0));
    let (again, timeouts) = run(false);
    assert_eq!((again, timeouts), (vec![(100, 14), (320, 29)], 1));
}
