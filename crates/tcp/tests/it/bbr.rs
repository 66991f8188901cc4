//! BBR on a path whose bandwidth and round trip are known.

use tcp::{Config, Congestion, Nanos, Recovery};

use crate::net::{CLIENT, Fate, MS, Net, SECOND, SERVER, Sent};

const RATE: u64 = 10_000_000;
/// What such a path holds, in bytes.
const PRODUCT: u64 = RATE / 8 / 1000 * 40;

fn linux(congestion: Congestion) -> Config {
    Config { congestion, ..Config::linux() }
}

/// A path of 10 Mbit/s and 40 ms there and back.
fn path(config: Config) -> Net {
    let mut net = Net::of(config, 20 * MS);
    net.rate = Some(RATE);
    net.open();
    net
}

/// The part of the link that was used for data between these times.
fn used(net: &mut Net, from: Nanos, until: Nanos) -> f64 {
    net.run_until(from);
    let before = net.ends[SERVER].received();
    net.run_until(until);
    let bytes = net.ends[SERVER].received() - before;
    let room = RATE as f64 / 8.0 * 1448.0 / 1500.0 * until.since(from).0 as f64 / 1e9;
    bytes as f64 / room
}

#[test]
fn it_fills_the_link_and_not_the_queue() {
    let mut net = path(linux(Congestion::Bbr));
    net.write(CLIENT, u64::MAX / 2);
    let part = used(&mut net, 2 * SECOND, 9 * SECOND);
    assert!((0.95..=1.001).contains(&part), "{part}");
    let late = net.sent_by(CLIENT).filter(|sent| sent.at > 2 * SECOND);
    let pipes: Vec<u64> = late.map(|sent| sent.pipe).collect();
    let mean = pipes.iter().sum::<u64>() / pipes.len() as u64;
    // A quarter more in one phase of eight, a quarter less in the next.
    assert!(mean < PRODUCT * 5 / 4, "{mean} of {PRODUCT}");
    // Reno fills whatever queue there is.
    let mut net = path(linux(Congestion::Reno));
    net.write(CLIENT, u64::MAX / 2);
    net.run_until(9 * SECOND);
    assert!(net.ends[CLIENT].in_flight() > 4 * PRODUCT);
}

#[test]
fn losses_by_chance_do_not_slow_it_down() {
    let part = |congestion| {
        let mut net = path(linux(congestion));
        // One in fifty.
        net.fate = Box::new(|sent: &Sent| {
            let hit = sent.from == CLIENT && sent.has_data() && sent.data_number % 50 == 49;
            if hit { Fate::Lost } else { Fate::Arrive }
        });
        net.write(CLIENT, u64::MAX / 2);
        used(&mut net, 2 * SECOND, 9 * SECOND)
    };
    let (bbr, cubic) = (part(Congestion::Bbr), part(Congestion::Cubic));
    assert!(bbr > 0.9 && cubic < 0.5, "{bbr}, {cubic}");
}

#[test]
fn every_ten_seconds_the_queue_is_emptied_to_see_the_round_trip() {
    let mut net = path(linux(Congestion::Bbr));
    net.write(CLIENT, u64::MAX / 2);
    net.run_until(12 * SECOND);
    let small: Vec<Nanos> = net
        .sent_by(CLIENT)
        .filter(|sent| sent.at > SECOND && sent.cwnd <= 4 * 1448)
        .map(|sent| sent.at)
        .collect();
    let (first, last) = (small[0], small[small.len() - 1]);
    assert!(first > 9 * SECOND, "{first}");
    let time = last.since(first);
    assert!(time > 150 * MS && time < 400 * MS, "{time}");
}

/// What an application asks for one after the other tells nothing about the path.
#[test]
fn requests_do_not_lower_the_estimate() {
    let mut net = path(linux(Congestion::Bbr));
    net.write(CLIENT, 4_000_000);
    net.run_until(5 * SECOND);
    for request in 0..30 {
        net.write(CLIENT, 2000);
        net.run_until(5 * SECOND + request * 100 * MS);
    }
    net.write(CLIENT, u64::MAX / 2);
    let part = used(&mut net, 8 * SECOND + 200 * MS, 9 * SECOND);
    assert!(part > 0.9, "{part}");
}

#[test]
fn it_follows_a_link_that_becomes_slower() {
    let mut net = path(linux(Congestion::Bbr));
    net.write(CLIENT, u64::MAX / 2);
    net.run_until(3 * SECOND);
    net.rate = Some(RATE / 4);
    net.run_until(8 * SECOND);
    let pipe = net.ends[CLIENT].in_flight();
    assert!(pipe < PRODUCT, "{pipe}");
}

#[test]
fn without_sack_it_is_reno() {
    let log = |congestion| {
        let peer = Config { recovery: Recovery::NewReno, ..Config::linux() };
        let mut net = Net::new(linux(congestion), peer, 20 * MS);
        net.rate = Some(RATE);
        net.queue_limit = Some(50 * MS);
        net.open();
        net.write(CLIENT, 2_000_000);
        net.run_until(5 * SECOND);
        net.data(CLIENT)
    };
    assert_eq!(log(Congestion::Bbr), log(Congestion::Reno));
}

#[test]
fn a_dead_path_that_comes_back_is_found_again() {
    let mut net = path(linux(Congestion::Bbr));
    net.fate = Box::new(|sent: &Sent| {
        let dead = sent.at > 2 * SECOND && sent.at < 4 * SECOND;
        if dead { Fate::Lost } else { Fate::Arrive }
    });
    net.write(CLIENT, u64::MAX / 2);
    let part = used(&mut net, 7 * SECOND, 9 * SECOND);
    assert!(part > 0.9, "{part}");
}
