//! Commands to a running direction: report, change, drain.

use sched::{Dequeue, Nanos, Rate, Spec};

use super::Direction;
use crate::datapath::clock;
use crate::datapath::command::{Command, Snapshot};
use crate::datapath::observe::Observer;
use crate::datapath::shaper::Pacing;

/// With frames passing by themselves: how long the engine goes on with those it has, at most, and
/// for how long none has to come for it to end.
const LAST_FRAMES: Nanos = Nanos::from_millis(500);
const SILENCE: Nanos = Nanos::from_millis(20);

impl<O: Observer> Direction<O> {
    /// Does what the control thread asks for.
    pub(super) fn obey(&mut self, now: Nanos) {
        let command = self.parts.commands.as_ref().and_then(|commands| commands.try_recv().ok());
        match command {
            // Whoever asked may have lost patience.
            Some(Command::Status(answer)) => drop(answer.send(Box::new(self.snapshot(now)))),
            Some(Command::Change(params, pacing, answer)) => {
                let changed = self.parts.qdisc.change(&params);
                if changed.is_ok() {
                    self.shaper.change(pacing, now);
                    self.parts.pacing = pacing;
                }
                drop(answer.send(changed));
            }
            Some(Command::Replace(spec, seed, pacing, answer)) => {
                self.replace(&spec, seed, now);
                self.shaper.change(pacing, now);
                self.parts.pacing = pacing;
                let _ = answer.send(());
            }
            None => {}
        }
    }

    /// Another discipline takes over. What the old one holds joins it in the order in which it
    /// would have left, as far as there is room.
    pub(super) fn replace(&mut self, spec: &Spec, seed: u64, now: Nanos) {
        let mut old = std::mem::replace(&mut self.parts.qdisc, spec.build(seed));
        self.parts.needs = spec.info().needs;
        self.parts.observer.moving(true);
        let mut at = now;
        loop {
            match old.dequeue(at, &mut self.parts.observer) {
                Dequeue::Packet { packet, mark } => {
                    let buffer = packet.id as u32;
                    self.mark(buffer, mark);
                    let parsed = self.parse(buffer, packet.segments);
                    self.parts.qdisc.enqueue(parsed.packet, now, &mut self.parts.observer);
                }
                // The old discipline's wait is over: it is drained.
                Dequeue::Wait(until) => at = until.max(at + Nanos(1000)),
                Dequeue::Empty => break,
            }
        }
        self.parts.observer.moving(false);
    }

    fn snapshot(&mut self, now: Nanos) -> Snapshot {
        let mut seen = self.parts.observer.seen(now);
        seen.look_up(|flow| self.parts.qdisc.standing(flow, now));
        Snapshot {
            report: self.counted(),
            seen,
            flows: self.parts.qdisc.flows() as u64,
            paced: self.shaper.paced(),
            nat_revealed: self.parts.input.reveals(),
        }
    }

    /// Lets frames pass by themselves, if the input can, so that none is lost or falls behind:
    /// what is queued goes at once, in the order of the discipline, and what has come meanwhile
    /// follows.
    pub(super) fn hand_over(&mut self) {
        let end = clock::now() + LAST_FRAMES;
        if !self.parts.input.let_pass() {
            return;
        }
        let pacing = Pacing { rate: Rate::UNLIMITED, ..self.parts.pacing };
        self.shaper.change(pacing, clock::now());
        self.parts.delay = Nanos::ZERO;
        let mut last = clock::now();
        loop {
            self.link.iter_mut().for_each(|frame| frame.release = Nanos::ZERO);
            let now = clock::now();
            let Ok(received) = self.pass_on(clock::now) else { return };
            if received > 0 {
                last = now;
            }
            let is_empty = !self.waiting && self.link.is_empty();
            if now >= end || is_empty && now - last >= SILENCE {
                return;
            }
            if received == 0 {
                self.sleep();
            }
        }
    }
}
