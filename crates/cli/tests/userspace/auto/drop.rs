//! How long packets are late for after the link's rate drops, as measurements.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use super::line::{AUTO, END, Line, Way};
use super::{CAKE, HTB, KERNEL, USERSPACE};

/// Round-trip times of small UDP packets, when each came back; none if it was lost.
fn round_trips(line: &Line, for_this_long: Duration, drop_at: Duration) -> Vec<(Duration, f64)> {
    let end = line.end.run(|| UdpSocket::bind((END, 7)).unwrap()).unwrap();
    end.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let here = line.path.here.run(|| UdpSocket::bind("10.9.0.1:0").unwrap()).unwrap();
    here.connect((END, 7)).unwrap();
    here.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let begin = Instant::now();
    let over = || begin.elapsed() > for_this_long;
    let count = for_this_long.as_millis() as usize / 5 + 1;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over() {
                let mut packet = [0; 8];
                if let Ok((8, from)) = end.recv_from(&mut packet) {
                    let _ = end.send_to(&packet, from);
                }
            }
        });
        scope.spawn(|| {
            for number in 0..count as u64 {
                let due = Duration::from_millis(5 * number);
                thread::sleep(due.saturating_sub(begin.elapsed()));
                let sent = begin.elapsed().as_nanos() as u64;
                let _ = here.send(&sent.to_be_bytes());
            }
        });
        scope.spawn(|| {
            thread::sleep(drop_at.saturating_sub(begin.elapsed()));
            line.carries(5);
        });
        let mut times = Vec::new();
        while !over() {
            let mut packet = [0; 8];
            if let Ok(8) = here.recv(&mut packet) {
                let sent = Duration::from_nanos(u64::from_be_bytes(packet));
                times.push((sent, (begin.elapsed() - sent).as_secs_f64() * 1e3));
            }
        }
        times
    })
}

/// Measures, and prints: how long after a drop from 20 to 5 Mbit/s small packets are late for.
#[test]
#[ignore = "a measurement"]
fn after_a_drop() {
    measure_a_drop(USERSPACE);
}

#[test]
#[ignore = "a measurement"]
fn after_a_drop_in_front_of_htb() {
    measure_a_drop(HTB);
}

#[test]
#[ignore = "a measurement"]
fn after_a_drop_in_front_of_cake() {
    measure_a_drop(CAKE);
}

#[test]
#[ignore = "a measurement"]
fn after_a_drop_in_the_kernel() {
    measure_a_drop(KERNEL);
}

fn measure_a_drop(engine: &str) {
    let Some(line) = Line::with(engine) else { return };
    for way in [Way::Up, Way::Down] {
        for auto in [true, false] {
            let mut took = Vec::new();
            for _ in 0..if auto { 10 } else { 3 } {
                line.carries(20);
                let rate = if auto { format!("{AUTO} --probe {END}") } else { "20mbit".into() };
                let ingress = if auto { AUTO } else { "20mbit" };
                let attach = format!("attach t0 --ingress {ingress} --rate {rate}");
                line.path.succeed(&format!("{attach} {engine}"));
                let drop_at = Duration::from_secs(5);
                let mut times = Vec::new();
                line.under_load(way, || {
                    times = round_trips(&line, Duration::from_secs(8), drop_at);
                });
                line.path.succeed("detach t0");
                let least = times.iter().map(|(_, ms)| *ms).fold(f64::MAX, f64::min);
                let after = times.iter().filter(|(sent, _)| *sent >= drop_at);
                // The last that was late for more than it takes to look again for a rate.
                let late: Vec<&(Duration, f64)> =
                    after.filter(|(_, ms)| *ms >= least + 30.0).collect();
                let first_spell = late
                    .windows(2)
                    .position(|pair| pair[1].0 - pair[0].0 > Duration::from_millis(200));
                let last = first_spell.map_or(late.last(), |at| late.get(at));
                let over =
                    last.map_or(0.0, |(sent, ms)| (*sent - drop_at).as_secs_f64() * 1e3 + ms);
                let most = late.iter().map(|(_, ms)| *ms - least).fold(0.0, f64::max);
                took.push((over, most));
            }
            took.sort_by(|a, b| a.0.total_cmp(&b.0));
            let ms: Vec<String> = took.iter().map(|(ms, _)| format!("{ms:.0}")).collect();
            let mut most: Vec<f64> = took.iter().map(|(_, most)| *most).collect();
            most.sort_by(f64::total_cmp);
            println!(
                "{engine}, {way:?}, {}: late for {} ms; median of the most extra delay {:.0} ms",
                if auto { "auto" } else { "fixed" },
                ms.join(", "),
                most[most.len() / 2]
            );
        }
    }
}
