//! RACK (RFC 8985, section 6): a segment is lost if one that was sent after it has arrived, and
//! the time that reordering may take is over.
//!
//! It needs to know of each segment when it was sent last. So there is one entry for each between
//! `una` and the next new number, in order; what was lost is sent again in the same segments. There
//! are no DSACKs, hence no growth of the reordering window (section 6.2, step 4).

use std::collections::VecDeque;

use crate::rate::Rates;
use crate::scoreboard::Outstanding;
use crate::sender::NEVER;
use units::Nanos;

/// What became of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// Nothing is known.
    Out,
    /// Lost, and to be sent again.
    Lost,
    /// Lost and sent again.
    Repaired,
    Sacked,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    /// When it was sent last.
    at: Nanos,
    fate: Fate,
    /// Sent more than once.
    again: bool,
}

/// What an acknowledgment says about time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Nanos,
    /// The timestamp that it answers.
    pub(crate) echo: Option<Nanos>,
    /// The least round-trip time so far.
    pub(crate) min_rtt: Nanos,
}

/// The segments of one sender, and what RACK knows of them.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    segments: VecDeque<Sent>,
    una: u64,
    /// Nothing below this waits to be sent again.
    first_lost: u64,
    /// Bytes that do.
    waiting: u64,
    /// Segments lost, sent again or not.
    lost: u32,
    /// Segments SACKed.
    sacked: u32,
    /// RACK.xmit_ts and RACK.end_seq: of those that have arrived, when the last was sent.
    latest: (Nanos, u64),
    /// RACK.rtt: how long that took.
    rtt: Nanos,
    /// RACK.fack: the highest number that has arrived, now and before this acknowledgment.
    fack: u64,
    fack_before: u64,
    reordering_seen: bool,
    /// The last detection found that a repair is lost.
    lost_again: bool,
    arrival: Arrival,
    /// The longest round trip of what this acknowledgment SACKs, if that was sent once.
    sacked_rtt: Option<Nanos>,
    /// When the reordering timer is due.
    pub(crate) timer: Nanos,
    /// How fast segments are delivered, if that is asked for. Its segments are these.
    pub(crate) rates: Option<Box<Rates>>,
}

impl Rack {
    /// Nothing is outstanding, everything below `una` is acknowledged.
    pub(crate) fn new(una: u64, rates: bool) -> Self {
        Self {
            rates: rates.then(Box::default),
            segments: VecDeque::new(),
            una,
            first_lost: una,
            waiting: 0,
            lost: 0,
            sacked: 0,
            latest: (Nanos::ZERO, 0),
            rtt: Nanos::ZERO,
            fack: una,
            fack_before: una,
            reordering_seen: false,
            lost_again: false,
            arrival: Arrival { now: Nanos::ZERO, echo: None, min_rtt: Nanos::MAX },
            sacked_rtt: None,
            timer: NEVER,
        }
    }

    /// Bytes that are lost and were not sent again.
    #[inline]
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    pub(crate) fn has_losses(&self) -> bool {
        self.lost > 0
    }

    /// Segments that were SACKed (RACK.segs_sacked).
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    pub(crate) fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// The round trip that this acknowledgment's SACK measures, and whether what it is of was sent
    /// before the first segment outstanding was sent last.
    pub(crate) fn sacked_rtt(&self) -> Option<(Nanos, bool)> {
        let rtt = self.sacked_rtt?;
        let first = self.segments.front()?;
        Some((rtt, self.arrival.now.since(first.at) < rtt))
    }

    /// Whether the last detection found that what had been sent again is lost.
    pub(crate) fn lost_again(&self) -> bool {
        self.lost_again
    }

    /// `all` and `sacked` are those of the scoreboard.
    pub(crate) fn outstanding(&self, all: u64, sacked: u64) -> Outstanding {
        let bytes = |fate| {
            let of_fate = (0..self.segments.len()).filter(|&i| self.segments[i].fate == fate);
            of_fate.map(|i| self.segments[i].end - self.start(i)).sum::<u64>()
        };
        let sent_again = bytes(Fate::Repaired);
        Outstanding { all, sacked, lost: self.waiting + sent_again, sent_again }
    }

    fn start(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(self.una, |before| self.segments[before].end)
    }

    /// A new segment up to `end` was sent.
    #[inline]
    pub(crate) fn sent(&mut self, end: u64, at: Nanos) {
        self.segments.push_back(Sent { end, at, fate: Fate::Out, again: false });
        if let Some(rates) = &mut self.rates {
            rates.sent(at);
        }
    }

    /// The segment that ends at `end` was sent again; as a repair, not as a probe, if it was lost.
    pub(crate) fn sent_again(&mut self, end: u64, at: Nanos, repair: bool) {
        let index = self.segments.partition_point(|sent| sent.end < end);
        let Some(sent) = self.segments.get_mut(index) else { return };
        sent.at = at;
        sent.again = true;
        if let Some(rates) = &mut self.rates {
            rates.sent_again(index);
        }
        if repair {
            self.set(index, Fate::Repaired);
            // Losses are repaired from the left.
            self.first_lost = end;
        }
    }

    /// The first segment that waits to be sent again.
    pub(crate) fn next_lost(&self) -> Option<(u64, u64)> {
        if self.waiting == 0 {
            return None;
        }
        let from = self.segments.partition_point(|sent| sent.end <= self.first_lost);
        let index = (from..self.segments.len()).find(|&i| self.segments[i].fate == Fate::Lost)?;
        Some((self.start(index), self.segments[index].end))
    }

    /// The last segment that was not SACKed.
    pub(crate) fn last_hole(&self) -> Option<(u64, u64)> {
        let index = self.segments.iter().rposition(|sent| sent.fate != Fate::Sacked)?;
        Some((self.start(index), self.segments[index].end))
    }

    fn set(&mut self, index: usize, fate: Fate) {
        let start = self.start(index);
        let Some(sent) = self.segments.get_mut(index) else { return };
        let len = sent.end - start;
        match std::mem::replace(&mut sent.fate, fate) {
            Fate::Out => {}
            Fate::Lost => {
                self.waiting -= len;
                self.lost -= 1;
            }
            Fate::Repaired => self.lost -= 1,
            Fate::Sacked => self.sacked -= 1,
        }
        match fate {
            Fate::Out => {}
            Fate::Lost => {
                self.waiting += len;
                self.lost += 1;
                self.first_lost = self.first_lost.min(start);
                if let Some(rates) = &mut self.rates {
                    rates.lose(len);
                }
            }
            Fate::Repaired => self.lost += 1,
            Fate::Sacked => self.sacked += 1,
        }
    }

    /// What comes next is from this acknowledgment.
    #[inline]
    pub(crate) fn arrives(&mut self, arrival: Arrival) {
        self.arrival = arrival;
        self.fack_before = self.fack;
        self.sacked_rtt = None;
    }

    /// The segments within `start..end` were SACKed; part of a segment does not count, as in Linux.
    /// Returns the bytes that are new.
    pub(crate) fn sack(&mut self, start: u64, end: u64) -> u32 {
        let mut new = 0;
        let mut index = self.segments.partition_point(|sent| sent.end <= start);
        while let Some(&sent) = self.segments.get(index)
            && sent.end <= end
        {
            let from = self.start(index);
            if sent.fate != Fate::Sacked && from >= start {
                new += (sent.end - from) as u32;
                self.set(index, Fate::Sacked);
                self.has_arrived(sent, false);
                if let Some(rates) = &mut self.rates {
                    rates.arrived(index, sent.end - from, sent.at, sent.again);
                }
                if !sent.again {
                    let rtt = self.arrival.now.since(sent.at);
                    self.sacked_rtt = Some(self.sacked_rtt.unwrap_or_default().max(rtt));
                }
            }
            index += 1;
        }
        new
    }

    /// Everything below `ack` is acknowledged; returns the bytes among them that were SACKed.
    #[inline]
    pub(crate) fn advance(&mut self, ack: u64) -> u32 {
        let mut sacked = 0;
        while let Some(&sent) = self.segments.front()
            && sent.end <= ack
        {
            self.set(0, Fate::Out);
            self.segments.pop_front();
            if let Some(rates) = &mut self.rates {
                if sent.fate != Fate::Sacked {
                    rates.arrived(0, sent.end - self.una, sent.at, sent.again);
                }
                rates.forget_first();
            }
            if sent.fate == Fate::Sacked {
                sacked += sent.end - self.una;
            } else {
                self.has_arrived(sent, true);
            }
            self.una = sent.end;
        }
        match self.segments.front().map(|sent| sent.fate) {
            Some(Fate::Lost) => self.waiting -= ack - self.una,
            Some(Fate::Sacked) => sacked += ack - self.una,
            _ => {}
        }
        self.una = ack;
        sacked as u32
    }

    /// RFC 8985, section 6.2, steps 2 and 3.
    #[inline]
    fn has_arrived(&mut self, sent: Sent, cumulatively: bool) {
        let Arrival { now, echo, min_rtt } = self.arrival;
        self.fack = self.fack.max(sent.end);
        self.reordering_seen |= sent.end < self.fack_before && !sent.again;
        let rtt = now.since(sent.at);
        if sent.again {
            // It may be the first copy that has arrived. The timestamp is that of what fills a
            // hole, and says nothing of what was SACKed above one.
            let older = cumulatively && echo.is_some_and(|echo| echo < sent.at);
            if older || rtt < min_rtt {
                return;
            }
        }
        self.rtt = rtt;
        self.latest = self.latest.max((sent.at, sent.end));
    }

    /// Declares lost what was sent before the latest that has arrived, a round trip and `window`
    /// ago; where less time has passed, the timer is to look again (section 6.2, step 5). Whether
    /// there was something.
    pub(crate) fn detect(&mut self, now: Nanos, window: Nanos) -> bool {
        let (mut wait, mut found) = (Nanos::ZERO, false);
        self.lost_again = false;
        for index in 0..self.segments.len() {
            let Sent { end, at, fate, again } = self.segments[index];
            if matches!(fate, Fate::Lost | Fate::Sacked) {
                continue;
            }
            if (at, end) >= self.latest {
                if again {
                    continue;
                }
                // What follows was sent later still, all of it.
                break;
            }
            let due = at + self.rtt + window;
            if due <= now {
                self.set(index, Fate::Lost);
                found = true;
                self.lost_again |= fate == Fate::Repaired;
            } else {
                wait = wait.max(due.since(now));
            }
        }
        self.timer = if wait == Nanos::ZERO { NEVER } else { now + wait };
        found
    }

    /// A timeout: the first segment is lost, and what was sent a round trip and `window` ago
    /// (section 6.3). If the first was SACKed, the peer has reneged: all are lost, and it is `true`.
    pub(crate) fn on_timeout(&mut self, now: Nanos, window: Nanos) -> bool {
        let reneged = self.segments.front().is_some_and(|sent| sent.fate == Fate::Sacked);
        for index in 0..self.segments.len() {
            let sent = self.segments[index];
            let old = index == 0 || sent.at + self.rtt + window <= now;
            if reneged || (old && sent.fate != Fate::Sacked) {
                self.set(index, Fate::Lost);
            }
        }
        self.timer = NEVER;
        reneged
    }

    /// No timer runs any more.
    pub(crate) fn stop(&mut self) {
        self.timer = NEVER;
    }
}

#[cfg(test)]
mod tests;
