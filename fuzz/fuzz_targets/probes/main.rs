//! Any bytes as answers to the probes of `--rate auto`, beside true ones: an answer counts only if
//! its probe was sent, with the token, and has not been answered; what it took is the time from the
//! probe's own departure to its own answer; and the rate stays within its bounds.
//!
//! The first byte is the IP version, then come operations ([`Operation`]).

#![forbid(unsafe_code)]
#![no_main]

mod model;

use autorate::{Bounds, Controller, Load, View};
use engine::Rate;
use engine::control::harness::Probes;
use libfuzzer_sys::fuzz_target;
use sched::Nanos;

use self::model::Model;

const TOKEN: [u8; 8] = *b"a secret";
/// Bytes of an ICMP header and of what a probe has behind it.
const PROBE: usize = 8 + 24;
const FLOOR: Rate = Rate(2_000_000);
const BASE: Rate = Rate(20_000_000);
const CEILING: Rate = Rate(100_000_000);

fuzz_target!(|bytes: &[u8]| {
    let Some((version, mut rest)) = bytes.split_first() else { return };
    let mut run = Run::new(version % 2 == 0);
    while let Some(operation) = Operation::read(&mut rest) {
        run.does(&operation);
        run.check();
    }
});

/// What happens, by the low three bits of a byte.
enum Operation<'a> {
    /// 0: so many probes are sent (1 byte), and leave at once if bit 3 is set.
    Send { probes: u8, leave: bool },
    /// 1: one of them leaves (1 byte: how many were sent after it).
    Leave { back: u8 },
    /// 2: one of them is answered (1 byte, likewise), or one of them that was not sent yet if bit 3
    /// is set. Bits 4 and 5 are [`Way`], bit 6 that it is read late.
    Answer { back: i32, way: Way, late: bool },
    /// 3: the same, but a byte of the answer is another one (2 bytes: which, and what is changed).
    Broken { back: i32, at: u8, change: u8, way: Way, late: bool },
    /// 4: bytes come (1 byte: how many).
    Bytes { bytes: &'a [u8], way: Way, late: bool },
    /// 5 to 7: time passes, 16 bits of us shifted by bits 3 to 6; or the clock that packets are
    /// stamped by goes back by that, if bit 7 is set.
    Pass { time: Nanos, back: bool },
}

/// Who sees an answer.
#[derive(Clone, Copy)]
struct Way {
    /// The engine, as it passes.
    passes: bool,
    /// The socket.
    is_heard: bool,
}

impl<'a> Operation<'a> {
    fn read(rest: &mut &'a [u8]) -> Option<Self> {
        let [kind] = *take::<1>(rest)?;
        let way = Way { passes: kind & 16 == 0, is_heard: kind & 32 == 0 };
        let late = kind & 64 != 0;
        let back = |back: u8| if kind & 8 == 0 { i32::from(back) } else { -1 - i32::from(back) };
        Some(match kind & 7 {
            0 => Self::Send { probes: take::<1>(rest)?[0] % 160, leave: kind & 8 != 0 },
            1 => Self::Leave { back: take::<1>(rest)?[0] },
            2 => Self::Answer { back: back(take::<1>(rest)?[0]), way, late },
            3 => {
                let [which, at, change] = *take::<3>(rest)?;
                Self::Broken { back: back(which), at, change, way, late }
            }
            4 => {
                let length = usize::from(take::<1>(rest)?[0]);
                let (bytes, remaining) = rest.split_at(length.min(rest.len()));
                *rest = remaining;
                Self::Bytes { bytes, way, late }
            }
            _ => {
                let time = u64::from(u16::from_le_bytes(*take(rest)?)) << (kind >> 3 & 15);
                Self::Pass { time: Nanos(time * 1_000), back: kind & 128 != 0 }
            }
        })
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, remaining) = rest.split_first_chunk()?;
    *rest = remaining;
    Some(taken)
}

/// The probes, and what has to be known of them.
struct Run {
    is_ipv4: bool,
    probes: Probes,
    model: Model,
    controller: Controller,
    now: Nanos,
    /// How much earlier packets are stamped.
    behind: Nanos,
}

impl Run {
    fn new(is_ipv4: bool) -> Self {
        let bounds = Bounds::new(FLOOR, BASE, CEILING).expect("in order");
        Self {
            is_ipv4,
            probes: Probes::new(TOKEN, is_ipv4),
            model: Model::default(),
            controller: Controller::new(bounds, Nanos::ZERO),
            now: Nanos::from_secs(100_000),
            behind: Nanos::ZERO,
        }
    }

    fn stamp(&self) -> Nanos {
        self.now - self.behind
    }

    fn does(&mut self, operation: &Operation<'_>) {
        match *operation {
            Operation::Send { probes, leave } => {
                for _ in 0..probes {
                    let (number, message) = self.probes.send();
                    self.model.send(number, message);
                    if leave {
                        self.leave(number);
                    }
                }
            }
            Operation::Leave { back } => {
                if let Some(number) = self.model.sent().checked_sub(1 + u32::from(back)) {
                    self.leave(number);
                }
            }
            Operation::Answer { back, way, late } => {
                let answer = self.answer(back);
                self.come(&answer, way, late);
            }
            Operation::Broken { back, at, change, way, late } => {
                let mut answer = self.answer(back);
                let at = usize::from(at) % answer.len();
                answer[at] ^= change;
                self.come(&answer, way, late);
            }
            Operation::Bytes { bytes, way, late } => self.come(bytes, way, late),
            Operation::Pass { time, back: false } => self.now += time,
            Operation::Pass { time, back: true } => self.behind = time,
        }
    }

    fn leave(&mut self, number: u32) {
        let Some(message) = self.model.message(number) else { return };
        let frame = [&[2; 14][..], &self.ip(), message].concat();
        self.probes.leaves(&frame, self.stamp());
        self.model.leave(number, self.stamp());
    }

    /// An IP header, or what is as long.
    fn ip(&self) -> Vec<u8> {
        if self.is_ipv4 {
            [&[0x45][..], &[0; 19]].concat()
        } else {
            [&[0x60][..], &[0; 39]].concat()
        }
    }

    /// The packet that answers one that was sent so many before the last one.
    fn answer(&self, back: i32) -> Vec<u8> {
        let number = self.model.sent().wrapping_sub(1).wrapping_add_signed(-back);
        let mut message = vec![0; PROBE];
        message[0] = if self.is_ipv4 { 0 } else { 129 };
        message[16..24].copy_from_slice(&TOKEN);
        message[24..28].copy_from_slice(&number.to_be_bytes());
        [self.ip(), message].concat()
    }

    /// A packet comes from the link.
    fn come(&mut self, packet: &[u8], way: Way, late: bool) {
        let answered = model::answered(packet, &TOKEN, self.is_ipv4);
        if way.passes {
            self.probes.comes(&[&[2; 14][..], packet].concat(), self.stamp());
            if let Some(number) = model::marked(packet, &TOKEN) {
                self.model.come(number, self.stamp());
            }
        }
        if way.is_heard {
            // A raw socket of ICMPv6 has no IP header in front.
            let front = if self.is_ipv4 { 0 } else { packet.len().min(40) };
            assert_eq!(self.probes.hear(&packet[front..], self.now, late), answered);
            if let Some(number) = answered {
                self.model.hear(number, (!late).then_some(self.now));
            }
        }
    }

    /// What is known of the path is what the answers tell.
    fn check(&mut self) {
        let view = self.probes.look(self.now);
        assert_eq!(self.probes.is_unanswered(), self.model.is_unanswered());
        self.model.check(&view);
        self.steer(&view);
    }

    fn steer(&mut self, view: &View) {
        let load = Load { sent: self.now.0 / 100, delivered: view.passed, other_busier: false };
        self.controller.decide(view, &load, self.now);
        let rate = self.controller.rate();
        assert!((FLOOR..=CEILING).contains(&rate), "{rate}");
        assert!(!view.blind || rate == BASE, "{rate}, blind");
    }
}
