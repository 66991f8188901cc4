use alloc::format;
use alloc::vec::Vec;

use super::*;
use crate::interface::Event;
use crate::interface::{Ecn, FlowId};
use crate::testkit::{Bench, Random};

const MS: u64 = 1_000_000;

fn law(spec: &str) -> Law {
    Law::new(spec.parse::<crate::spec::Spec>().unwrap().params())
}

#[test]
fn spacing_is_the_interval_by_the_root_of_the_count() {
    let codel = law("codel");
    let spacing: Vec<_> = [1, 2, 3, 4, 100].map(|n| codel.spacing(n).0).into();
    assert_eq!(spacing, [100_000_000, 70_710_678, 57_735_026, 50_000_000, 10_000_000]);
    // The square of a minute takes more than 64 bits.
    assert_eq!(law("codel:interval=60s").spacing(1), Nanos::from_secs(60));
    assert_eq!(law("codel:interval=60s").spacing(4), Nanos::from_secs(30));
    assert_eq!(law("codel:interval=1us").spacing(u32::MAX), Nanos(0));
}

/// A standing queue, one departure every millisecond: when packets are dropped or marked.
fn signals(ecn: Ecn, spec: &str) -> (Vec<u64>, Vec<u64>) {
    let mut codel = Bench::new(spec);
    for _ in 0..900 {
        codel.offer(Packet::new(FlowId::new(1), 1500).with_ecn(ecn));
    }
    let (mut drops, mut marks) = (Vec::new(), Vec::new());
    let mut next = 0;
    for ms in 0..480 {
        codel.now = Nanos(ms * MS);
        let answer = codel.qdisc.dequeue(codel.now, &mut codel.log);
        let Dequeue::Packet { packet, mark } = answer else { panic!("{ms} ms: {answer:?}") };
        for (id, reason) in codel.take_drops() {
            assert_eq!((id, reason), (next, DropReason::Congested), "from the head, in order");
            next += 1;
            drops.push(ms);
        }
        assert_eq!(packet.id, next);
        next += 1;
        if mark {
            marks.push(ms);
        }
    }
    (drops, marks)
}

/// Above target from 5 ms on, so the first drop is at 105 ms. The next are due 100,
/// 100/sqrt(2), 100/sqrt(3) .. ms later: at 205, 275.7, 333.4, 383.4, 428.2, 469.0.
const DUE: [u64; 7] = [105, 205, 276, 334, 384, 429, 469];

#[test]
fn drops_come_after_an_interval_and_then_ever_faster() {
    assert_eq!(signals(Ecn::NotEct, "codel"), (DUE.to_vec(), Vec::new()));
    assert_eq!(signals(Ecn::Ect0, "codel").0, DUE, "ecn is off unless asked for");
}

#[test]
fn ecn_marks_where_it_would_drop() {
    assert_eq!(signals(Ecn::Ect0, "codel:ecn=yes"), (Vec::new(), DUE.to_vec()));
    assert_eq!(signals(Ecn::Ect1, "codel:ecn=yes").1, DUE);
    assert_eq!(signals(Ecn::NotEct, "codel:ecn=yes").0, DUE);
}

#[test]
fn late_departures_catch_up_with_the_drops_that_were_due() {
    let mut codel = Bench::new("codel");
    for _ in 0..20 {
        codel.enqueue(1, 1500);
    }
    codel.now = Nanos(5 * MS);
    assert_eq!(codel.depart(1), [0]);
    codel.now = Nanos(105 * MS);
    assert_eq!(codel.depart(1), [2], "1 is dropped");
    // Due at 205 and 275.7 ms; then 333.4.
    codel.now = Nanos(300 * MS);
    assert_eq!(codel.depart(1), [5]);
    assert_eq!(codel.take_drops().len(), 3);
    // Marking stops at the first packet that carries it.
    let mut codel = Bench::new("codel:ecn=yes");
    for _ in 0..20 {
        codel.offer(Packet::new(FlowId::new(1), 1500).with_ecn(Ecn::Ect0));
    }
    for ms in [5, 105, 300] {
        codel.now = Nanos(ms * MS);
        codel.dequeue();
    }
    let is_mark = |event: &&Event| matches!(event, Event::Marked { .. });
    assert_eq!(codel.log.events.iter().filter(is_mark).count(), 2);
}

#[test]
fn a_packet_with_no_more_than_an_mtu_behind_it_is_not_dropped() {
    let mut codel = Bench::new("codel");
    for second in 0..100 {
        codel.now = Nanos::from_secs(second);
        codel.enqueue(1, 1500);
        if second > 0 {
            assert_eq!(codel.depart(1), [second - 1], "waited for a second, 1500 B behind");
        }
    }
    assert_eq!(codel.take_drops(), []);
}

/// A queue whose every packet has waited for `sojourn`.
struct Waiting {
    sojourn: Nanos,
    now: Nanos,
    dropped: u32,
    head: Packet,
}

impl HeadQueue for Waiting {
    fn head(&self) -> Option<(&Packet, Nanos)> {
        Some((&self.head, self.now - self.sojourn))
    }
    fn bytes(&self) -> u64 {
        1 << 20
    }
    fn drop_head(&mut self, _now: Nanos) {
        self.dropped += 1;
    }
}

/// Departures every millisecond between two times; returns the times of drops.
fn run(control: &mut Control, ms: core::ops::Range<u64>, sojourn: u64) -> Vec<u64> {
    let head = Packet::new(FlowId::new(1), 1500);
    let sojourn = Nanos(sojourn * MS);
    ms.filter(|ms| {
        let now = Nanos(ms * MS);
        let mut queue = Waiting { sojourn, now, dropped: 0, head };
        control.before_departure(&law("codel"), now, &mut queue);
        queue.dropped > 0
    })
    .collect()
}

#[test]
fn a_second_run_of_drops_starts_where_the_first_succeeded() {
    let mut control = Control::default();
    assert_eq!(run(&mut control, 1000..1350, 50), [1100, 1200, 1271, 1329]);
    assert_eq!(run(&mut control, 1350..1400, 1), [], "below target");
    assert!(!control.watch.dropping);
    // Four drops, of which the first was counted when the run began: it resumes at three.
    assert_eq!(run(&mut control, 1400..1700, 50), [1500, 1558, 1608, 1653, 1694]);
    assert_eq!((control.course.count, control.course.last_count), (7, 3));
    // After more than 16 intervals the past is forgotten.
    assert_eq!(run(&mut control, 1700..1701, 1), []);
    assert_eq!(run(&mut control, 4000..4250, 50), [4100, 4200]);
    assert_eq!((control.course.count, control.course.last_count), (2, 1));
}

#[test]
fn one_packet_below_target_begins_the_interval_anew() {
    let mut control = Control::default();
    assert_eq!(run(&mut control, 1000..1099, 50), []);
    assert_eq!(run(&mut control, 1099..1100, 4), []);
    assert_eq!(run(&mut control, 1100..1201, 5), [1200]);
}

#[test]
fn with_no_target_it_is_a_fifo() {
    let mut random = Random(4);
    let mut codel = Bench::new("codel:target=inf,limit=20packets");
    let mut fifo = Bench::new("fifo:limit=20packets");
    for _ in 0..20_000 {
        codel.advance(Nanos(random.below(50 * MS)));
        if random.below(100) < 53 {
            let size = 1 + random.below(1500) as u32;
            codel.enqueue(1 + random.below(3), size);
            fifo.enqueue(1, size);
        } else {
            assert_eq!(codel.dequeue().map(|p| p.id), fifo.dequeue().map(|p| p.id));
        }
        assert_eq!(codel.log.drops, fifo.log.drops);
    }
}

#[test]
fn a_backlog_always_yields_a_packet() {
    for seed in 0..50 {
        let mut random = Random(seed);
        let mtu = random.below(3) * 1000;
        let mut codel =
            Bench::new(&format!("codel:target=0s,interval=1us,limit=30packets,mtu={mtu}b"));
        for _ in 0..2000 {
            codel.advance(Nanos(random.below(10 * MS)));
            if random.below(2) == 0 {
                codel.enqueue(1, random.below(3000) as u32);
            } else {
                let backlog = codel.qdisc.backlog().packets;
                assert_eq!(codel.dequeue().is_some(), backlog > 0);
            }
        }
    }
}
