//! What a direction has passed on and lost, as its report tells it.

use sched::Nanos;

use super::Direction;
use crate::datapath::observe::{Observer, drop_counts};
use crate::datapath::report::{DirectionReport, DropCount, Loss, Tally};

/// What one direction counts.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) arrived: u64,
    pub(super) received: Tally,
    pub(super) sent: Tally,
    pub(super) marked: u64,
    pub(super) losses: [Tally; Loss::ALL.len()],
    pub(super) peak_flows: u64,
}

impl<O: Observer> Direction<O> {
    pub(super) fn count_loss(&mut self, buffer: u32, loss: Loss) {
        self.counts.losses[loss as usize].count(self.buffers.wire_len(buffer));
    }

    pub(super) fn report(mut self, duration: Nanos) -> DirectionReport {
        let counted = self.counted();
        let observed = self.parts.observer.finish();
        DirectionReport { duration, observed, ..counted }
    }

    /// What has been counted so far.
    pub(crate) fn counted(&mut self) -> DirectionReport {
        // An interface that is gone has nothing more to tell.
        self.counts.arrived += self.parts.input.arrived().unwrap_or(0);
        let backlog = self.parts.qdisc.backlog();
        let in_flight = self.link.iter().fold(Tally::default(), |mut sum, frame| {
            sum.count(self.buffers.wire_len(frame.buffer));
            sum
        });
        let mut drops = drop_counts(self.parts.observer.dropped_so_far());
        let losses = Loss::ALL.iter().zip(self.counts.losses);
        drops.extend(
            losses.filter(|(_, count)| count.packets > 0).map(|(loss, count)| DropCount {
                reason: loss.name().to_owned(),
                lane: None,
                count,
            }),
        );
        DirectionReport {
            from: String::new(),
            to: String::new(),
            scheduler: String::new(),
            duration: Nanos::ZERO,
            received: self.counts.received,
            sent: self.counts.sent,
            queued: Tally { packets: backlog.packets, bytes: backlog.bytes },
            in_flight,
            drops,
            lost_in_kernel: self.counts.arrived.saturating_sub(self.counts.received.packets),
            passed: self.parts.input.passed(),
            marked: self.counts.marked,
            realtime: self.priority.is_granted(),
            punctuality: self.shaper.punctuality(),
            peak_flows: self.counts.peak_flows,
            observed: None,
        }
    }
}
