//! Tail loss probes.

use tcp::{Config, Congestion, Flags, Recovery};

use crate::net::{CLIENT, Fate, MS, Net, SECOND, SERVER};

fn probing() -> Config {
    Config {
        mss: 1000,
        recovery: Recovery::Sack,
        congestion: Congestion::Reno,
        timestamps: true,
        tail_loss_probe: true,
        min_rto: SECOND,
        initial_window: 10,
        ..Config::ns2()
    }
}

/// Ten segments at 20 ms, of which these are lost.
fn ten(config: Config, lost: &'static [usize]) -> Net {
    let mut net = Net::losing(config, 10 * MS, lost);
    net.open();
    net.write(CLIENT, 10_000);
    net.run(1000);
    assert_eq!(net.ends[SERVER].received(), 10_000);
    net
}

#[test]
fn a_lost_tail_costs_two_round_trips_instead_of_a_timeout() {
    let net = ten(probing(), &[9]);
    // The acknowledgment of 8 at 40 ms, and two smoothed round trips of 20 ms, and the
    // 200 ms that a delayed acknowledgment of a single segment may take.
    assert_eq!(net.again(CLIENT), [(280, 9)]);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.tail_probes, stats.timeouts, stats.rescue_retransmissions), (1, 0, 1));
    // The loss counts: the window is reduced.
    assert_eq!(stats.fast_retransmits, 1);
    let without = ten(Config { tail_loss_probe: false, ..probing() }, &[9]);
    assert_eq!(without.again(CLIENT), [(1040, 9)]);
}

#[test]
fn the_probe_starts_recovery_where_more_than_the_last_is_lost() {
    let net = ten(probing(), &[6, 7, 8, 9]);
    // The probe repeats 9; its SACK shows that 6 to 8 are lost.
    assert_eq!(net.again(CLIENT)[0], (80, 9));
    assert_eq!(net.again(CLIENT)[1].0, 100);
    assert_eq!(net.again(CLIENT).len(), 4);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.tail_probes, stats.timeouts, stats.fast_retransmits), (1, 0, 1));
}

#[test]
fn a_probe_for_nothing_reduces_nothing() {
    // The acknowledgments are late by 100 ms.
    let mut net = Net::of(probing(), 10 * MS);
    net.fate = Box::new(|s| {
        if s.from == SERVER && s.number > 0 { Fate::Late(100 * MS) } else { Fate::Arrive }
    });
    net.open();
    net.write(CLIENT, 10_000);
    net.run(1000);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.tail_probes, stats.fast_retransmits, stats.timeouts), (1, 0, 0));
    assert_eq!(net.again(CLIENT), [(60, 9)]);
    assert_eq!(net.ends[SERVER].stats().duplicates_received, 1);
    assert_eq!(net.ends[CLIENT].congestion_window(), 20_000);
}

#[test]
fn a_probe_is_new_data_where_there_is_some() {
    // A window of 10 is lost entirely but there is more to send.
    let lost: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let mut net = Net::losing(probing(), 10 * MS, lost);
    net.open();
    net.write(CLIENT, 20_000);
    net.run(1000);
    assert_eq!(net.data(CLIENT)[10], (60, 10));
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.tail_probes, stats.timeouts, stats.rescue_retransmissions), (1, 0, 0));
    assert_eq!(net.ends[SERVER].received(), 20_000);
}

#[test]
fn a_lost_probe_leaves_it_to_the_timeout() {
    // Data segment 10 is the probe.
    let net = ten(probing(), &[9, 10]);
    assert_eq!(net.again(CLIENT), [(280, 9), (1280, 9)]);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.tail_probes, stats.timeouts), (1, 1));
}

#[test]
fn a_probe_takes_the_place_of_an_earlier_timeout() {
    // A single segment: two round trips and 200 ms are 240 ms, the timeout is 220. The second
    // timeout is that of the timer.
    let run = |lost| {
        let mut net = Net::losing(Config { mss: 1000, ..Config::linux() }, 10 * MS, lost);
        net.open();
        net.write(CLIENT, 1000);
        net.run(1000);
        let stats = net.ends[CLIENT].stats();
        (net.again(CLIENT), stats.tail_probes, stats.timeouts)
    };
    assert_eq!(run(&[0]), (vec![(240, 0)], 1, 0));
    assert_eq!(run(&[0, 1]), (vec![(240, 0), (460, 0)], 1, 1));
}

#[test]
fn a_first_flight_has_a_probe_too() {
    // The first of the four starts the timer as a single segment would, the others restart it.
    let mut net = Net::of(Config { mss: 1000, ..Config::linux() }, 50 * MS);
    net.fate = Box::new(|sent| {
        if sent.from == CLIENT && sent.has_data() && sent.data_number < 4 {
            Fate::Lost
        } else {
            Fate::Arrive
        }
    });
    net.open();
    net.write(CLIENT, 4000);
    net.run(1000);
    // Two round trips of 100 ms after it was sent at 100 ms.
    assert_eq!(net.again(CLIENT)[0], (300, 3));
    assert_eq!(net.ends[CLIENT].stats().timeouts, 0);
}

#[test]
fn a_fin_that_was_sent_alone_is_probed_for_alone() {
    let probed = |alone: bool| {
        let mut net = Net::of(probing(), 10 * MS);
        net.fate = Box::new(|sent| {
            let hit = sent.from == CLIENT && sent.has_data() && sent.data_number < 3;
            if hit { Fate::Lost } else { Fate::Arrive }
        });
        net.open();
        net.ends[CLIENT].write(2000);
        if alone {
            net.flush(CLIENT);
        }
        net.close(CLIENT);
        net.run(1000);
        let again = net.sent_by(CLIENT).find(|sent| sent.segment.is_retransmission()).unwrap();
        (again.segment.seq, again.segment.len, again.segment.flags.has(Flags::FIN))
    };
    assert_eq!((probed(true), probed(false)), ((2001, 0, true), (1001, 1000, true)));
}

#[test]
fn there_is_no_probe_where_something_is_sacked() {
    // 6 waits for its acknowledgment, which comes with the SACK of 8: too few for recovery.
    let net = ten(Config { ack_every: 2, ..probing() }, &[7]);
    assert_eq!(net.again(CLIENT), [(1040, 7)]);
    let stats = net.ends[CLIENT].stats();
    assert_eq!((stats.tail_probes, stats.timeouts), (0, 1));
}
