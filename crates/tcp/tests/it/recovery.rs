//! Windows, losses and their repair: segment by segment.

use crate::net::{CLIENT, MS, Net};
use tcp::{Config, Recovery};

fn plain() -> Config {
    Config { mss: 1000, ..Config::ns2() }
}
#[test]
fn look() {
    let mut net = Net::losing(plain(), 10 * MS, &[9]);
    net.open();
    net.write(CLIENT, 40_000);
    net.run(1000);
    println!("{:?}", net.bursts(CLIENT));
    println!("{:?}", net.data(CLIENT));
    println!("{:?}", net.again(CLIENT));
    for r in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        for prr in [false, true] {
            let mut net = Net::losing(
                Config { recovery: r, prr, limited_transmit: prr, ..plain() },
                10 * MS,
                &[14, 16, 17],
            );
            net.open();
            net.write(CLIENT, 60_000);
            net.run(1000);
            println!("{r:?} {prr} {:?}", net.data(CLIENT));
            println!("{:?} {:?} {}", net.again(CLIENT), net.ends[CLIENT].stats(), net.now);
            println!(
                "{:?}",
                net.sent_by(CLIENT)
                    .filter(|s| s.has_data())
                    .map(|s| (s.index(1000), s.cwnd, s.pipe))
                    .collect::<Vec<_>>()
            );
        }
    }
}
