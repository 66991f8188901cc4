//! The half of an endpoint that receives data: reassembly, and when to acknowledge.

use crate::config::Config;
use crate::delayed_ack::DelayedAck;
use crate::ranges::Ranges;
use crate::right_sizing::RightSizing;
use crate::rtt::Rtt;
use crate::segment::{Flags, SackBlocks, Segment};
use crate::sender::NEVER;
use crate::stats::Stats;
use units::Nanos;

/// Whether an acknowledgment is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    No,
    /// At once, on the next data segment or alone.
    Now,
    /// At once and alone: a duplicate that carries data does not count as one.
    Alone,
}

/// What was received out of order.
#[derive(Clone, Debug, Default)]
struct Reassembly {
    ranges: Ranges,
    /// A number in each of the blocks reported last, the newest first.
    recent: [u64; 3],
}

/// State of the receiving half.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// The next number expected.
    nxt: u64,
    /// The number of the peer's FIN.
    fin: u64,
    reassembly: Option<Box<Reassembly>>,
    /// The timestamp to echo (RFC 7323, TS.Recent).
    pub(crate) recent_timestamp: Nanos,
    pub(crate) ack_at: Nanos,
    pub(crate) due: Due,
    /// Echo congestion until the peer says it has reduced its window.
    pub(crate) ece: bool,
    /// Segments and bytes received since the last acknowledgment.
    unacked: u16,
    unacked_bytes: u32,
    delayed: DelayedAck,
    window: RightSizing,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            nxt: 0,
            fin: u64::MAX,
            reassembly: None,
            recent_timestamp: Nanos::ZERO,
            ack_at: NEVER,
            due: Due::No,
            ece: false,
            unacked: 0,
            unacked_bytes: 0,
            delayed: DelayedAck::new(config),
            window: RightSizing::new(config),
        }
    }

    #[inline]
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Data bytes received in order.
    #[inline]
    pub(crate) fn received(&self) -> u64 {
        self.nxt.min(self.fin).saturating_sub(1)
    }

    /// The peer's FIN, and all before it, has arrived.
    #[inline]
    pub(crate) fn finished(&self) -> bool {
        self.nxt > self.fin
    }

    /// The peer's SYN has arrived.
    pub(crate) fn on_syn(&mut self, segment: &Segment) {
        self.nxt = 1;
        self.recent_timestamp = segment.timestamp;
    }

    /// Takes in data, FIN, or both; `rtt` is what this end knows of round trips.
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        config: &Config,
        segment: &Segment,
        rtt: &Rtt,
        now: Nanos,
        stats: &mut Stats,
    ) {
        let (start, end) = (segment.seq, segment.end());
        let has_fin = segment.flags.has(Flags::FIN);
        if end <= self.nxt {
            stats.duplicates_received += 1;
            self.due = Due::Alone;
            if config.adaptive_acks {
                self.delayed.on_duplicate(config);
            }
            return;
        }
        if end - u64::from(has_fin) > self.nxt + u64::from(config.receive_window) {
            stats.refused += 1;
            self.due = Due::Alone;
            return;
        }
        if has_fin && self.fin == u64::MAX {
            self.fin = end - 1;
        }
        if start > self.nxt {
            stats.out_of_order_received += 1;
            self.keep(start, end);
            if config.adaptive_acks {
                self.window.hold(segment.len);
            }
            self.due = Due::Alone;
            return;
        }
        let before = self.nxt;
        self.nxt = end;
        if self.reassembly.is_some() {
            self.reassemble();
            self.due = self.due.max(Due::Now);
        }
        // Not more than a window, which has 30 bits.
        let bytes = (self.nxt - before) as u32;
        self.unacked_bytes = self.unacked_bytes.saturating_add(bytes);
        let mut at_once = self.finished();
        if config.adaptive_acks {
            self.delayed.on_data(config, rtt, now);
            if self.window.on_data(config, segment, bytes, now) {
                self.delayed.on_growth();
            }
            at_once |= segment.flags.has(Flags::PSH);
        }
        at_once |= self.delayed.is_quick();
        self.unacked = self.unacked.saturating_add(1);
        if at_once || u32::from(self.unacked) >= config.ack_every {
            self.due = self.due.max(Due::Now);
        } else if self.ack_at == NEVER {
            self.ack_at = now + self.delayed.delay(config, rtt);
        }
    }

    /// The delay of an acknowledgment is over.
    pub(crate) fn on_ack_timer(&mut self, config: &Config, rtt: &Rtt) {
        self.delayed.on_timer(config, rtt);
        self.ack_at = NEVER;
        self.due = self.due.max(Due::Now);
    }

    #[cold]
    fn keep(&mut self, start: u64, end: u64) {
        let reassembly = self.reassembly.get_or_insert_default();
        reassembly.ranges.insert(start, end, |_, _| {});
        let [first, second, _] = reassembly.recent;
        reassembly.recent = [start, first, second];
    }

    #[cold]
    fn reassemble(&mut self) {
        let Some(reassembly) = &mut self.reassembly else { return };
        if let Some((_, end)) = reassembly.ranges.containing(self.nxt) {
            self.nxt = end;
        }
        reassembly.ranges.remove_below(self.nxt, |_, _| {});
        if reassembly.ranges.is_empty() {
            self.reassembly = None;
        }
    }

    /// A segment with an acknowledgment leaves: none is due any more.
    #[inline]
    pub(crate) fn acknowledged(&mut self, config: &Config) {
        if self.due != Due::No || self.ack_at != NEVER {
            self.delayed.acknowledged(config);
        }
        self.due = Due::No;
        self.ack_at = NEVER;
        self.unacked = 0;
        self.unacked_bytes = 0;
    }

    /// Remembers the timestamp to echo: that of the segment which the last acknowledgment waited
    /// for (RFC 7323, section 4.3), so that delayed acknowledgments are part of the measurement.
    #[inline]
    pub(crate) fn note_timestamp(&mut self, segment: &Segment) {
        if segment.seq <= self.nxt.saturating_sub(self.unacked_bytes.into())
            && segment.timestamp >= self.recent_timestamp
        {
            self.recent_timestamp = segment.timestamp;
        }
    }

    /// The blocks to report: those of the segments that came last, then the highest.
    #[inline]
    pub(crate) fn sack_blocks(&mut self) -> SackBlocks {
        match &mut self.reassembly {
            None => SackBlocks::default(),
            Some(reassembly) => reassembly.blocks(self.nxt),
        }
    }
}

impl Reassembly {
    #[cold]
    fn blocks(&mut self, nxt: u64) -> SackBlocks {
        let mut chosen = [(0, 0); 3];
        let mut count = 0;
        let recent = self.recent.iter().filter_map(|&at| self.ranges.containing(at));
        let highest = self.ranges.backwards().take(3);
        for block in recent.chain(highest) {
            if count < 3 && !chosen[..count].contains(&block) {
                chosen[count] = block;
                count += 1;
            }
        }
        let chosen = &chosen[..count];
        for (recent, block) in self.recent.iter_mut().zip(chosen) {
            *recent = block.0;
        }
        // Blocks lie within the window, which has 30 bits.
        chosen.iter().map(|&(start, end)| ((start - nxt) as u32, (end - nxt) as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver that has seen the SYN, and what it reports after each of these segments.
    fn reports(segments: &[(u64, u32)]) -> Vec<Vec<(u32, u32)>> {
        let config = Config::default();
        let mut receiver = Receiver::new(&config);
        receiver.on_syn(&Segment::default());
        let mut stats = Stats::default();
        let report = |&(seq, len): &(u64, u32)| {
            let segment = Segment { seq, len, flags: Flags::ACK, ..Segment::default() };
            receiver.on_data(&config, &segment, &Rtt::new(), Nanos::ZERO, &mut stats);
            receiver.sack_blocks().as_slice().to_vec()
        };
        segments.iter().map(report).collect()
    }

    #[test]
    fn the_newest_block_comes_first_and_the_last_ones_are_repeated() {
        let reports = reports(&[
            (101, 100),
            (301, 100),
            (501, 100),
            (701, 100),
            // Joins the first two.
            (201, 100),
            // Old.
            (501, 100),
            // Fills the first gap.
            (1, 100),
        ]);
        assert_eq!(reports[0], [(100, 200)]);
        assert_eq!(reports[1], [(300, 400), (100, 200)]);
        assert_eq!(reports[2], [(500, 600), (300, 400), (100, 200)]);
        assert_eq!(reports[3], [(700, 800), (500, 600), (300, 400)]);
        assert_eq!(reports[4], [(100, 400), (700, 800), (500, 600)]);
        assert_eq!(reports[5], [(500, 600), (100, 400), (700, 800)]);
        // Now 401 is acknowledged, and the rest is 100 beyond that.
        assert_eq!(reports[6], [(100, 200), (300, 400)]);
    }

    #[test]
    fn what_lies_beyond_the_window_is_refused() {
        let config = Config { receive_window: 1448, ..Config::default() };
        let mut receiver = Receiver::new(&config);
        receiver.on_syn(&Segment::default());
        let mut stats = Stats::default();
        let mut receive = |seq, len, flags| {
            let segment = Segment { seq, len, flags, ..Segment::default() };
            receiver.on_data(&config, &segment, &Rtt::new(), Nanos::ZERO, &mut stats);
            (receiver.received(), receiver.finished())
        };
        assert_eq!(receive(1449, 1, Flags::ACK), (0, false));
        assert_eq!(receive(u64::MAX, u32::MAX, Flags::FIN), (0, false));
        // FIN is no data: it fits where the window ends.
        assert_eq!(receive(1, 1448, Flags::FIN), (1448, true));
        assert_eq!(stats.refused, 2);
    }
}
