//! One end of a connection.

use crate::config::Config;
use crate::push::Push;
use crate::receiver::{Due, Receiver};
use crate::recovery::{Acknowledgment, Phase};
use crate::scoreboard::Outstanding;
use crate::segment::{Flags, SackBlocks, Segment};
use crate::sender::{NEVER, Piece, Sender};
use crate::stats::Stats;
use units::Nanos;

/// States of RFC 9293.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not yet connected, or closed by both sides.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has received a SYN and sent its own.
    SynReceived,
    /// Open in both directions.
    Established,
    /// Has sent a FIN.
    FinWait1,
    /// Its FIN is acknowledged.
    FinWait2,
    /// Both have sent a FIN, its own is not acknowledged.
    Closing,
    /// All is done; only a FIN that the peer repeats is still answered. It may be forgotten at
    /// once if [`Segment::reply_after_close`] answers in its place.
    TimeWait,
    /// The peer has sent a FIN.
    CloseWait,
    /// So has this end, which is not acknowledged.
    LastAck,
    /// Gave up.
    Failed,
}

/// Why an endpoint gave up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// `syn_tries` SYNs or SYN-ACKs were not answered.
    Handshake,
    /// The same data was sent again `data_tries` times and not acknowledged.
    Data,
}

/// Where the connection stands; FINs are the halves' own business.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Idle,
    Listen,
    SynSent,
    SynReceived,
    Open,
    Failed(Failure),
}

/// One end of a connection: takes segments, times and what the application wants, and says which
/// segments to send and when to be woken. After each call to [`connect`](Self::connect),
/// [`write`](Self::write), [`close`](Self::close), [`on_segment`](Self::on_segment) and
/// [`on_timer`](Self::on_timer), call [`poll_transmit`](Self::poll_transmit) until it has nothing
/// more, then look at [`next_timer`](Self::next_timer).
///
/// Every call takes the configuration the endpoint was made with, and times that never decrease.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) stats: Stats,
    pub(crate) stage: Stage,
    push: Push,
    pub(crate) syn_due: bool,
    /// SYNs or SYN-ACKs by the timer.
    pub(crate) syns: u8,
    pub(crate) ecn: bool,
    /// The peer's FIN came before ours was sent.
    closed_second: bool,
}

impl Endpoint {
    /// The end that will [`connect`](Self::connect).
    #[must_use]
    pub fn client(config: &Config) -> Self {
        Self::new(config, Stage::Idle)
    }

    /// The end that waits for a connection.
    #[must_use]
    pub fn server(config: &Config) -> Self {
        Self::new(config, Stage::Listen)
    }

    fn new(config: &Config, stage: Stage) -> Self {
        Self {
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            stats: Stats::default(),
            stage,
            push: Push::new(),
            syn_due: false,
            syns: 0,
            ecn: false,
            closed_second: false,
        }
    }

    /// Sends the SYN. Of a client, and once; otherwise nothing happens.
    pub fn connect(&mut self, config: &Config, now: Nanos) {
        if self.stage == Stage::Idle {
            self.stage = Stage::SynSent;
            self.send_syn(config, now);
        }
    }

    /// The application has `bytes` more to send; `u64::MAX / 2` has no end. Ignored after
    /// [`close`](Self::close).
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// FIN after what was written. The other direction stays open until the peer closes it.
    pub fn close(&mut self) {
        self.sender.close();
    }

    /// A segment has arrived, in a packet marked "congestion experienced" if `ce`.
    #[inline]
    pub fn on_segment(&mut self, config: &Config, segment: &Segment, ce: bool, now: Nanos) {
        if self.stage == Stage::Open {
            self.on_open_segment(config, segment, ce, now);
        } else {
            self.on_handshake_segment(config, segment, ce, now);
        }
    }

    /// Does whatever is due at `now`, if anything is.
    pub fn on_timer(&mut self, config: &Config, now: Nanos) {
        if now >= self.sender.reordering_at() {
            self.sender.on_reordering_timer(config, now, &mut self.stats);
        }
        if now >= self.sender.rto_at {
            match self.stage {
                Stage::SynSent | Stage::SynReceived => self.on_syn_timeout(config, now),
                _ => {
                    if !self.sender.on_timeout(config, now, &mut self.stats) {
                        self.fail(Failure::Data);
                    }
                }
            }
        }
        if now >= self.receiver.ack_at {
            self.receiver.on_ack_timer(config, &self.sender.rtt);
        }
    }

    /// The next segment to send now, if there is one.
    #[inline]
    pub fn poll_transmit(&mut self, config: &Config, now: Nanos) -> Option<Segment> {
        if self.stage != Stage::Open {
            return self.poll_handshake(config, now);
        }
        if self.receiver.due == Due::Alone {
            return Some(self.bare_ack(config, now));
        }
        if let Some(piece) = self.sender.next(config, now, &mut self.stats) {
            return Some(self.data_segment(config, piece, now));
        }
        (self.receiver.due != Due::No).then(|| self.bare_ack(config, now))
    }

    /// The time at which [`on_timer`](Self::on_timer) must be called next. It may well move to
    /// later times; a call that comes early does no harm.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<Nanos> {
        let sender = self.sender.rto_at.min(self.sender.pace_at()).min(self.sender.reordering_at());
        let next = sender.min(self.receiver.ack_at);
        (next != NEVER).then_some(next)
    }

    /// Data bytes received in order; the application has read them.
    #[inline]
    #[must_use]
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Data bytes sent and acknowledged.
    #[inline]
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.sender.acked()
    }

    /// Data bytes written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.sender.written()
    }

    /// The state, in the words of RFC 9293.
    #[must_use]
    pub fn state(&self) -> State {
        match self.stage {
            Stage::Idle => return State::Closed,
            Stage::Listen => return State::Listen,
            Stage::SynSent => return State::SynSent,
            Stage::SynReceived => return State::SynReceived,
            Stage::Failed(_) => return State::Failed,
            Stage::Open => {}
        }
        let (sent, acked) = (self.sender.fin_sent(), self.sender.fin_acked());
        match (sent, acked, self.receiver.finished()) {
            (false, _, false) => State::Established,
            (false, _, true) => State::CloseWait,
            (true, false, false) => State::FinWait1,
            (true, true, false) => State::FinWait2,
            (true, false, true) if self.closed_second => State::LastAck,
            (true, false, true) => State::Closing,
            (true, true, true) if self.closed_second => State::Closed,
            (true, true, true) => State::TimeWait,
        }
    }

    /// Nothing will come of this endpoint any more: both FINs are acknowledged and nothing waits
    /// to be sent, or it gave up.
    #[inline]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self.stage {
            Stage::Open => {
                self.sender.fin_acked()
                    && self.receiver.finished()
                    && self.receiver.due == Due::No
                    && self.receiver.ack_at == NEVER
            }
            Stage::Failed(_) => true,
            _ => false,
        }
    }

    /// Why it gave up, if it did. Nobody tells the peer, which may wait for ever.
    #[must_use]
    pub fn failed(&self) -> Option<Failure> {
        match self.stage {
            Stage::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The congestion window, in bytes.
    #[must_use]
    pub fn congestion_window(&self) -> u32 {
        self.sender.control.cwnd
    }

    /// The slow start threshold, in bytes.
    #[must_use]
    pub fn slow_start_threshold(&self) -> u32 {
        self.sender.control.ssthresh
    }

    /// Bytes thought to be in the network (RFC 6675, pipe).
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.sender.board.pipe()
    }

    /// Where the sender is between losses.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.sender.phase
    }

    /// What was sent and is not acknowledged, by what is thought to have become of it.
    #[must_use]
    pub fn outstanding(&self) -> Outstanding {
        self.sender.board.outstanding()
    }

    /// What was counted.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The smoothed round-trip time, once there is one.
    #[must_use]
    pub fn srtt(&self) -> Option<Nanos> {
        Some(self.sender.rtt.srtt()).filter(|&rtt| rtt != Nanos::ZERO)
    }

    /// The least round-trip time seen.
    #[must_use]
    pub fn min_rtt(&self) -> Option<Nanos> {
        self.srtt().map(|_| self.sender.rtt.min())
    }

    #[inline]
    pub(crate) fn on_open_segment(
        &mut self,
        config: &Config,
        segment: &Segment,
        ce: bool,
        now: Nanos,
    ) {
        if segment.flags.has(Flags::SYN) || !segment.flags.has(Flags::ACK) {
            // Our last acknowledgment of the handshake was lost, or nonsense arrived.
            self.receiver.due = Due::Alone;
            return;
        }
        if segment.ack > self.sender.board.nxt() {
            // Whoever acknowledges what was never sent is not the peer: none of it counts.
            self.stats.refused += 1;
            return;
        }
        let mut echo = None;
        if self.sender.rtt.timestamps && segment.flags.has(Flags::TIMESTAMPS) {
            self.receiver.note_timestamp(segment);
            echo = Some(segment.echo);
        }
        if self.ecn && (ce || segment.flags.has(Flags::CWR)) {
            self.receiver.ece = ce;
        }
        let ece = self.ecn && segment.flags.has(Flags::ECE);
        let arrival = Acknowledgment { segment, echo, ece, now };
        self.sender.on_ack(config, &arrival, &mut self.stats);
        if segment.len > 0 || segment.flags.has(Flags::FIN) {
            self.receiver.on_data(config, segment, &self.sender.rtt, now, &mut self.stats);
        }
    }

    #[inline]
    fn data_segment(&mut self, config: &Config, piece: Piece, now: Nanos) -> Segment {
        if piece.fin && !piece.retransmission {
            self.closed_second = self.receiver.finished();
        }
        let window = self.sender.control.cwnd;
        let is_new = !piece.retransmission && piece.len > 0;
        let pushes = is_new
            && (self.push.is_due(|| window / config.mss)
                || piece.seq + u64::from(piece.len) > self.sender.written());
        let flags = Flags::NONE
            .with_if(piece.fin, Flags::FIN)
            .with_if(pushes, Flags::PSH)
            .with_if(piece.retransmission, Flags::RETRANSMISSION)
            .with_if(self.ecn && is_new, Flags::ECT)
            .with_if(self.ecn && piece.cwr, Flags::CWR);
        self.segment(config, piece.seq, piece.len, flags, now)
    }

    fn bare_ack(&mut self, config: &Config, now: Nanos) -> Segment {
        self.segment(config, self.sender.board.nxt(), 0, Flags::NONE, now)
    }

    #[inline]
    fn segment(
        &mut self,
        config: &Config,
        seq: u64,
        len: u32,
        flags: Flags,
        now: Nanos,
    ) -> Segment {
        self.stats.segments_sent += 1;
        let flags = flags
            .with(Flags::ACK)
            .with_if(self.receiver.ece, Flags::ECE)
            .with_if(self.sender.rtt.timestamps, Flags::TIMESTAMPS);
        let sack =
            if self.sender.sack { self.receiver.sack_blocks() } else { SackBlocks::default() };
        self.receiver.acknowledged(config);
        Segment {
            seq,
            ack: self.receiver.nxt(),
            timestamp: if self.sender.rtt.timestamps { now } else { Nanos::ZERO },
            echo: if self.sender.rtt.timestamps {
                self.receiver.recent_timestamp
            } else {
                Nanos::ZERO
            },
            len,
            window: config.receive_window,
            sack,
            flags,
        }
    }

    pub(crate) fn fail(&mut self, failure: Failure) {
        self.stage = Stage::Failed(failure);
        self.sender.stop();
        self.receiver.ack_at = NEVER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_endpoints_fit_in_432_megabytes() {
        assert!(size_of::<Endpoint>() <= 432, "{}", size_of::<Endpoint>());
    }
}
