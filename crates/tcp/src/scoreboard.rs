//! The SACK scoreboard: data between `una` and `nxt` that are acknowledged, lost or sent again.
//!
//! RFC 6675 asks of each octet whether it was SACKed, is lost, was retransmitted. Losses are
//! declared from the left and holes are filled from the left, so two edges answer the last two:
//! what is not SACKed is lost below `lost_edge`, and was retransmitted below `high_rxt`. With the
//! SACKed bytes below each edge counted, `pipe` is a sum.
//!
//! Without SACK, `sacked` is the estimate that each duplicate acknowledgment stands for one
//! segment; there are no ranges. This makes the window inflation of RFC 6582 the same sum.
//!
//! With RACK it is each segment that is lost or was sent again, so [`Rack`] answers instead of the
//! edges, which then stay at `una`.

use crate::rack::Rack;
use crate::ranges::Ranges;
use crate::segment::SackBlocks;
use units::Nanos;

/// How holes are cut into segments: up to `most` bytes, and the FIN, if it has been sent, on the
/// last of them.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) most: u64,
    /// Its number; [`u64::MAX`] if it was not sent.
    pub(crate) fin: u64,
}

impl Cut {
    fn first(self, start: u64, end: u64) -> u64 {
        let cut = end.min(start + self.most);
        if cut == self.fin { end } else { cut }
    }

    fn last(self, start: u64, end: u64) -> u64 {
        start.max(end.saturating_sub(self.most + u64::from(end > self.fin)))
    }
}

/// Bytes that were sent and are not acknowledged: all, and those of which more is known. What was
/// lost and sent again counts as both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outstanding {
    /// All of them.
    pub all: u64,
    /// Selectively acknowledged; without SACK, as many as duplicates stand for.
    pub sacked: u64,
    /// Declared lost.
    pub lost: u64,
    /// Sent again.
    pub sent_again: u64,
}

/// What is known of data between `una` and `nxt`.
#[derive(Clone, Debug)]
enum Marks {
    /// The ranges that were SACKed.
    Sacked(Ranges),
    /// All, by segment.
    Rack(Rack),
}

/// The scoreboard of one sender. `una <= lost_edge <= nxt` and `una <= high_rxt <= nxt`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    una: u64,
    nxt: u64,
    lost_edge: u64,
    high_rxt: u64,
    /// Which data; not allocated until some is SACKed, or for as long as there is RACK.
    marks: Option<Box<Marks>>,
    sacked: u32,
    sacked_below_lost_edge: u32,
    sacked_below_high_rxt: u32,
}

impl Scoreboard {
    /// From now on losses are found by time, and, if `rates`, delivery rates are measured. Nothing
    /// is outstanding.
    pub(crate) fn use_rack(&mut self, rates: bool) {
        self.marks = Some(Box::new(Marks::Rack(Rack::new(self.una, rates))));
    }

    #[inline]
    pub(crate) fn rack(&self) -> Option<&Rack> {
        match self.marks.as_deref() {
            Some(Marks::Rack(rack)) => Some(rack),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn rack_mut(&mut self) -> Option<&mut Rack> {
        match self.marks.as_deref_mut() {
            Some(Marks::Rack(rack)) => Some(rack),
            _ => None,
        }
    }

    #[inline]
    fn ranges(&self) -> Option<&Ranges> {
        match self.marks.as_deref() {
            Some(Marks::Sacked(ranges)) => Some(ranges),
            _ => None,
        }
    }

    /// The first number that is not acknowledged.
    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// The next number that was never sent.
    #[inline]
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Sent and not cumulatively acknowledged.
    #[inline]
    pub(crate) fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// RFC 6675's estimate of what is in the network.
    #[inline]
    pub(crate) fn pipe(&self) -> u64 {
        if let Some(rack) = self.rack() {
            return self.flight().saturating_sub(u64::from(self.sacked) + rack.waiting());
        }
        let sent = (self.nxt - self.lost_edge)
            + (self.high_rxt - self.una)
            + u64::from(self.sacked_below_lost_edge);
        sent.saturating_sub(u64::from(self.sacked) + u64::from(self.sacked_below_high_rxt))
    }

    pub(crate) fn outstanding(&self) -> Outstanding {
        if let Some(rack) = self.rack() {
            return rack.outstanding(self.flight(), self.sacked.into());
        }
        let lost = self.lost_edge - self.una;
        let sent_again = self.high_rxt - self.una;
        Outstanding {
            all: self.flight(),
            sacked: self.sacked.into(),
            lost: lost.saturating_sub(self.sacked_below_lost_edge.into()),
            sent_again: sent_again.saturating_sub(self.sacked_below_high_rxt.into()),
        }
    }

    #[inline]
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Whether anything between `una` and `nxt` is thought to be lost.
    #[inline]
    pub(crate) fn has_losses(&self) -> bool {
        self.rack().map_or(self.lost_edge > self.una, Rack::has_losses)
    }

    /// All that is not SACKed below this is lost.
    pub(crate) fn lost_edge(&self) -> u64 {
        self.lost_edge
    }

    /// Whether something lost waits to be sent again.
    #[inline]
    pub(crate) fn has_unrepaired(&self) -> bool {
        self.rack().map_or(self.high_rxt < self.lost_edge, |rack| rack.waiting() > 0)
    }

    /// New data up to `end` was sent.
    #[inline]
    pub(crate) fn sent(&mut self, end: u64) {
        debug_assert!(end >= self.nxt);
        self.nxt = end;
    }

    /// Everything below `ack`, at most `nxt`, is acknowledged.
    #[inline]
    pub(crate) fn advance(&mut self, ack: u64) {
        debug_assert!(self.una <= ack && ack <= self.nxt);
        match self.marks.as_deref_mut() {
            None => {}
            Some(Marks::Sacked(_)) => self.forget_below(ack),
            Some(Marks::Rack(rack)) => self.sacked -= rack.advance(ack),
        }
        self.una = ack;
        self.lost_edge = self.lost_edge.max(ack);
        self.high_rxt = self.high_rxt.max(ack);
    }

    #[cold]
    fn forget_below(&mut self, ack: u64) {
        let Some(Marks::Sacked(ranges)) = self.marks.as_deref_mut() else { return };
        ranges.remove_below(ack, |start, end| {
            self.sacked -= (end - start) as u32;
            self.sacked_below_lost_edge -= below(start, end, self.lost_edge);
            self.sacked_below_high_rxt -= below(start, end, self.high_rxt);
        });
        if ranges.is_empty() {
            self.marks = None;
        }
    }

    /// Takes in the blocks of an acknowledgment of `ack`; returns the bytes that are new.
    #[cold]
    pub(crate) fn sack(&mut self, ack: u64, blocks: &SackBlocks) -> u32 {
        let before = self.sacked;
        for &(start, end) in blocks.as_slice() {
            let start = ack.saturating_add(start.into()).max(self.una);
            let end = ack.saturating_add(end.into()).min(self.nxt);
            if start >= end {
                continue;
            }
            let none = || Box::new(Marks::Sacked(Ranges::default()));
            match &mut **self.marks.get_or_insert_with(none) {
                Marks::Sacked(ranges) => ranges.insert(start, end, |start, end| {
                    self.sacked += (end - start) as u32;
                    self.sacked_below_lost_edge += below(start, end, self.lost_edge);
                    self.sacked_below_high_rxt += below(start, end, self.high_rxt);
                }),
                Marks::Rack(rack) => self.sacked += rack.sack(start, end),
            }
        }
        self.sacked - before
    }

    /// Declares lost what RFC 6675's IsLost does: below `dup_threshold` separate SACKed ranges, or
    /// below more than `dup_threshold - 1` segments of SACKed bytes.
    pub(crate) fn mark_lost(&mut self, dup_threshold: u32, mss: u32) {
        let Some(ranges) = self.ranges() else { return };
        let (mut count, mut bytes) = (0u32, 0u64);
        for (start, end) in ranges.backwards() {
            if start <= self.lost_edge {
                return;
            }
            count += 1;
            bytes += end - start;
            if count >= dup_threshold || bytes > u64::from(dup_threshold - 1) * u64::from(mss) {
                self.lost_edge = start;
                self.sacked_below_lost_edge = self.sacked - bytes as u32;
                return;
            }
        }
    }

    /// Declares lost all that lies below the last SACKed range.
    pub(crate) fn mark_lost_below_last(&mut self) {
        let Some((start, end)) = self.ranges().and_then(Ranges::last) else { return };
        if start > self.lost_edge {
            self.lost_edge = start;
            self.sacked_below_lost_edge = self.sacked - (end - start) as u32;
        }
    }

    /// Declares the first segment lost, whatever the scoreboard says.
    pub(crate) fn mark_head_lost(&mut self, mss: u32) {
        let mut end = (self.una + u64::from(mss)).min(self.nxt);
        if let Some(first) = self.ranges().and_then(Ranges::first) {
            end = end.min(first.0);
        }
        // Nothing SACKed lies below that, so no count changes.
        self.lost_edge = self.lost_edge.max(end);
    }

    /// The first segment is to be sent again even if it was before (a partial acknowledgment
    /// of a NewReno sender).
    pub(crate) fn repair_head_again(&mut self, mss: u32) {
        self.high_rxt = self.una;
        self.sacked_below_high_rxt = 0;
        self.mark_head_lost(mss);
    }

    /// After a timeout all that is not SACKed is lost, retransmissions too. If the peer has
    /// SACKed what it now refuses to acknowledge, it has reneged (RFC 2018, section 8), and
    /// nothing of what it SACKed is believed.
    pub(crate) fn mark_all_lost(&mut self) {
        let reneged = self.ranges().is_some_and(|r| r.containing(self.una).is_some());
        if reneged || self.ranges().is_none() {
            self.marks = None;
            self.sacked = 0;
        }
        self.lost_edge = self.nxt;
        self.sacked_below_lost_edge = self.sacked;
        self.high_rxt = self.una;
        self.sacked_below_high_rxt = 0;
    }

    /// The same with RACK, which spares what was sent less than a round trip and `window` ago.
    pub(crate) fn mark_old_lost(&mut self, now: Nanos, window: Nanos) {
        if self.rack_mut().is_some_and(|rack| rack.on_timeout(now, window)) {
            self.sacked = 0;
        }
    }

    /// The next lost range that was not sent again, cut to a segment (NextSeg rule 1).
    pub(crate) fn next_lost(&self, cut: Cut) -> Option<(u64, u64)> {
        if let Some(rack) = self.rack() {
            return rack.next_lost();
        }
        self.hole(self.lost_edge, cut)
    }

    /// The next range below the highest SACKed number that was not sent again (NextSeg rule 3), or
    /// the next range of any kind if `beyond`.
    pub(crate) fn next_doubtful(&self, cut: Cut, beyond: bool) -> Option<(u64, u64)> {
        let highest = self.ranges().and_then(Ranges::last);
        let edge = if beyond { self.nxt } else { highest?.1 };
        self.hole(edge, cut)
    }

    /// The last range that is not SACKed (NextSeg rule 4).
    pub(crate) fn last_hole(&self, cut: Cut) -> Option<(u64, u64)> {
        if let Some(rack) = self.rack() {
            return rack.last_hole();
        }
        let (mut start, mut end) = (self.una, self.nxt);
        for range in self.ranges().into_iter().flat_map(Ranges::backwards) {
            if range.1 < end {
                start = range.1;
                break;
            }
            end = range.0;
        }
        let start = cut.last(start, end);
        (start < end).then_some((start, end))
    }

    /// The first range from `high_rxt` on that is not SACKed, below `edge`.
    fn hole(&self, edge: u64, cut: Cut) -> Option<(u64, u64)> {
        let mut start = self.high_rxt;
        let mut end = edge;
        if let Some(ranges) = self.ranges() {
            start = ranges.containing(start).map_or(start, |r| r.1);
            end = ranges.ending_after(start).map_or(edge, |next| edge.min(next.0));
        }
        (start < end).then(|| (start, cut.first(start, end)))
    }

    /// The hole that ends at `end` was sent again.
    pub(crate) fn retransmitted(&mut self, end: u64) {
        if let Some(ranges) = self.ranges()
            && let Some((start, past)) = ranges.containing(self.high_rxt)
            && past < end
        {
            debug_assert!(start <= self.high_rxt);
            self.sacked_below_high_rxt += (past - self.high_rxt) as u32;
        }
        self.high_rxt = end;
    }

    /// Without SACK: a duplicate acknowledgment means that one segment has arrived.
    pub(crate) fn estimate_arrival(&mut self, mss: u32) {
        let most = self.flight().saturating_sub(mss.into()) as u32;
        self.sacked = self.sacked.saturating_add(mss).min(most);
    }

    /// Without SACK: `acked` bytes were acknowledged, of which one segment had not been
    /// estimated before.
    pub(crate) fn forget_arrivals(&mut self, acked: u64, mss: u32) {
        let estimated = acked.saturating_sub(mss.into()).min(self.sacked.into());
        self.sacked -= estimated as u32;
        // What is in flight now may be less than the estimate was.
        self.sacked = self.sacked.min(self.flight().saturating_sub(mss.into()) as u32);
    }

    /// Without SACK: the estimate starts anew.
    pub(crate) fn reset_estimate(&mut self) {
        self.sacked = 0;
    }

    /// Without SACK: nothing is lost any more.
    pub(crate) fn forget_losses(&mut self) {
        self.sacked = 0;
        self.lost_edge = self.una;
        self.high_rxt = self.una;
    }
}

/// How much of `start..end` lies below `edge`.
fn below(start: u64, end: u64, edge: u64) -> u32 {
    edge.clamp(start, end).wrapping_sub(start) as u32
}

#[cfg(test)]
mod tests;
