//! The sending half of an endpoint: windows, retransmission, timers.

use crate::config::{Config, Congestion};
use crate::control::Control;
use crate::prr::Prr;
use crate::recovery::Phase;
use crate::rtt::Rtt;
use crate::scoreboard::{Cut, Scoreboard};
use crate::stats::Stats;
use units::Nanos;

/// A timer that is not running.
pub(crate) const NEVER: Nanos = Nanos::MAX;

/// Sequence numbers written to: far from where additions could overflow.
const LAST: u64 = 1 << 62;

/// A piece of the stream that is to be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    pub(crate) retransmission: bool,
    /// Tell the peer that the window was reduced (ECN).
    pub(crate) cwr: bool,
}

/// Why a piece is the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    New,
    /// NextSeg rules 1 and 3.
    Hole,
    /// NextSeg rule 4, and probes that repeat data: leaves the scoreboard alone.
    Rescue,
}

/// Where a tail loss probe is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(crate) enum Probe {
    None,
    /// The timer is that of a probe.
    Timed,
    /// To be sent next.
    Due,
    /// It was new data.
    New,
    /// It repeated the last segment.
    Again,
}

/// Whether a FIN follows the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fin {
    No,
    Follows,
    /// It does, and has gone out in a segment of its own.
    SentAlone,
}

/// State of the sending half. Sequence number 0 is the SYN, data starts at 1.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) board: Scoreboard,
    pub(crate) control: Control,
    pub(crate) rtt: Rtt,
    /// The number after the last byte written.
    end: u64,
    /// The first number beyond the peer's window.
    pub(crate) edge: u64,

    pub(crate) phase: Phase,
    /// The peer understands SACK, and so do we.
    pub(crate) sack: bool,
    fin: Fin,
    /// The next retransmission goes out whatever the window.
    pub(crate) force: bool,
    /// Recovery: no partial acknowledgment yet.
    pub(crate) first_partial: bool,
    /// Recovery: the rescue retransmission is still to be had.
    pub(crate) may_rescue: bool,
    pub(crate) probe: Probe,
    /// Bytes to be acknowledged until the probe is.
    pub(crate) probe_left: u32,
    /// The next new data carries CWR.
    pub(crate) cwr_due: bool,
    /// The window was the limit, as of the round that ends at `usage_end`.
    limited: bool,
    /// A piece waits for `pace_from`.
    pub(crate) paced: bool,
    max_flight: u32,
    usage_end: u64,
    pub(crate) dup_acks: u8,
    /// Timeouts since data was last acknowledged.
    pub(crate) tries: u8,
    /// What was sent when recovery, or the last timeout or ECN reduction, began.
    pub(crate) recovery_point: u64,
    pub(crate) prr: Prr,

    pub(crate) last_sent: Nanos,
    pub(crate) rto_at: Nanos,
    /// The earliest time of the next piece.
    pub(crate) pace_from: Nanos,
}

impl Sender {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            board: Scoreboard::default(),
            control: Control::new(config),
            rtt: Rtt::new(),
            end: 1,
            edge: 0,
            phase: Phase::Open,
            sack: false,
            fin: Fin::No,
            force: false,
            first_partial: false,
            may_rescue: false,
            probe: Probe::None,
            probe_left: 0,
            cwr_due: false,
            limited: false,
            paced: false,
            max_flight: 0,
            usage_end: 0,
            dup_acks: 0,
            tries: 0,
            recovery_point: 0,
            prr: Prr::default(),
            last_sent: Nanos::ZERO,
            rto_at: NEVER,
            pace_from: Nanos::ZERO,
        }
    }

    pub(crate) fn write(&mut self, bytes: u64) {
        if self.fin == Fin::No {
            self.note_gap();
            self.end = self.end.saturating_add(bytes).min(LAST);
        }
    }

    pub(crate) fn close(&mut self) {
        if self.fin == Fin::No {
            self.fin = Fin::Follows;
        }
    }

    pub(crate) fn written(&self) -> u64 {
        self.end - 1
    }

    /// Data bytes that were cumulatively acknowledged.
    #[inline]
    pub(crate) fn acked(&self) -> u64 {
        self.board.una().clamp(1, self.end) - 1
    }

    pub(crate) fn fin_sent(&self) -> bool {
        self.board.nxt() > self.end
    }

    pub(crate) fn fin_acked(&self) -> bool {
        self.board.una() > self.end
    }

    /// The handshake is over: one of so many SYNs is acknowledged.
    pub(crate) fn establish(&mut self, config: &Config, window: u32, syns: u32, now: Nanos) {
        self.board.sent(1);
        self.board.advance(1);
        let models = config.congestion == Congestion::Bbr;
        if self.sack && (config.rack || models) {
            self.board.use_rack(models);
        }
        self.edge = 1 + u64::from(window);
        self.rto_at = NEVER;
        if syns > config.trusted_syns {
            self.control.cwnd = config.mss;
        }
        if syns > 1 {
            self.rtt.be_cautious();
        }
        if models {
            self.begin_model(config, now);
        }
    }

    /// The next piece to send, if one may be sent now.
    #[inline]
    pub(crate) fn next(&mut self, config: &Config, now: Nanos, stats: &mut Stats) -> Option<Piece> {
        let Some((seq, end, why)) = self.candidate(config, now) else {
            self.paced = false;
            return None;
        };
        if now < self.pace_from && !self.control.model().is_some_and(|model| model.in_burst(now)) {
            self.paced = true;
            return None;
        }
        self.paced = false;
        Some(self.send(config, seq, end, why, now, stats))
    }

    /// What would be sent next, were it not for pacing.
    #[inline]
    fn candidate(&mut self, config: &Config, now: Nanos) -> Option<(u64, u64, Why)> {
        if self.probe == Probe::Due {
            return self.probe(config, now);
        }
        let repairing = self.phase != Phase::Open || self.board.has_unrepaired();
        if repairing && let Some((seq, end)) = self.board.next_lost(self.cut(config)) {
            if self.force || self.fits(config, seq, end) {
                return Some((seq, end, Why::Hole));
            }
            self.note_usage(config, true);
            return None;
        }
        if let Some((seq, end)) = self.new_data(config, now) {
            if self.fits(config, seq, end) {
                return Some((seq, end, Why::New));
            }
            self.note_usage(config, true);
            return None;
        }
        // A window that is full was the limit, whatever comes next.
        let full = self.board.pipe() + u64::from(config.mss) > self.control.cwnd.into();
        self.note_usage(config, full);
        let doubts = self.phase == Phase::Recovery && self.sack && self.board.rack().is_none();
        if doubts { self.doubtful(config) } else { None }
    }

    /// Where nothing is known to be lost and nothing new can be sent: NextSeg rules 3 and 4.
    #[cold]
    fn doubtful(&mut self, config: &Config) -> Option<(u64, u64, Why)> {
        let cut = self.cut(config);
        if let Some((seq, end)) = self.board.next_doubtful(cut, config.ns3_recovery) {
            return self.fits(config, seq, end).then_some((seq, end, Why::Hole));
        }
        if !(config.rescue && self.may_rescue) {
            return None;
        }
        let (seq, end) = self.board.last_hole(cut)?;
        self.may_rescue = !self.fits(config, seq, end);
        (!self.may_rescue).then_some((seq, end, Why::Rescue))
    }

    fn cut(&self, config: &Config) -> Cut {
        Cut { most: config.mss.into(), fin: if self.fin_sent() { self.end } else { u64::MAX } }
    }

    /// New data if there is some, else the last segment again (RFC 8985, section 7.3).
    #[cold]
    fn probe(&mut self, config: &Config, now: Nanos) -> Option<(u64, u64, Why)> {
        let new = self.new_data(config, now).map(|(seq, end)| (seq, end, Why::New));
        new.or_else(|| {
            let Some((seq, end)) = self.board.last_hole(self.cut(config)) else {
                self.probe = Probe::None;
                return None;
            };
            let seq = if self.fin == Fin::SentAlone && end > self.end { self.end } else { seq };
            Some((seq, end, Why::Rescue))
        })
    }

    /// Whether the congestion window has room for a piece. With nothing in the network there
    /// always is: nothing else would ever make room. FIN is no data and takes none.
    #[inline]
    fn fits(&self, config: &Config, seq: u64, end: u64) -> bool {
        let len = end.min(self.end).saturating_sub(seq);
        let mut pipe = self.board.pipe().saturating_sub(u64::from(self.fin_sent()));
        if self.phase == Phase::Open && !config.limited_transmit {
            // What duplicates say has arrived makes no room.
            pipe += u64::from(self.board.sacked());
        }
        pipe + len <= self.control.cwnd.into() || pipe == 0
    }

    /// One segment of what was never sent, if the peer's window and our buffer allow.
    #[inline]
    fn new_data(&mut self, config: &Config, now: Nanos) -> Option<(u64, u64)> {
        let nxt = self.board.nxt();
        let fin = u64::from(self.fin != Fin::No);
        if nxt >= self.end + fin {
            return None;
        }
        let flight = self.board.flight();
        if flight == 0 {
            self.on_start(config, now);
        }
        let edge = self.edge.min(self.board.una() + u64::from(config.send_buffer));
        let room = edge.saturating_sub(nxt);
        let mut len = self.end.saturating_sub(nxt).min(config.mss.into());
        if len > room {
            // No silly windows: less than a segment only if nothing will open the window.
            if flight > 0 || room == 0 {
                return None;
            }
            len = room;
        }
        let end = nxt + len;
        Some((nxt, end + if end == self.end { fin } else { 0 }))
    }

    /// The first data after an idle time.
    fn on_start(&mut self, config: &Config, now: Nanos) {
        let idle = now.since(self.last_sent);
        if self.last_sent != Nanos::ZERO && idle != Nanos::ZERO {
            self.control.on_idle(config, idle, idle > self.rtt.timeout(config), now);
            self.restart_model(now);
            self.last_sent = now;
        }
    }

    /// Keeps what [`Self::window_is_limit`] asks for (as Linux's tcp_cwnd_validate).
    #[inline]
    fn note_usage(&mut self, config: &Config, limited: bool) {
        if !config.validate_window {
            return;
        }
        let flight = self.board.flight() as u32;
        if self.board.una() >= self.usage_end
            || limited
            || (!self.limited && flight > self.max_flight)
        {
            self.limited = limited;
            self.max_flight = flight;
            self.usage_end = self.board.nxt();
        }
    }

    /// Whether the congestion window has lately been what limited the sender: entirely, or in slow
    /// start at least half of it.
    #[inline]
    pub(crate) fn window_is_limit(&self, config: &Config) -> bool {
        !config.validate_window
            || self.limited
            || (self.control.in_slow_start() && self.control.cwnd / 2 < self.max_flight)
    }

    #[inline]
    fn send(
        &mut self,
        config: &Config,
        seq: u64,
        end: u64,
        why: Why,
        now: Nanos,
        stats: &mut Stats,
    ) -> Piece {
        let fin = end > self.end;
        let len = (end - seq) as u32 - u32::from(fin);
        let new = why == Why::New;
        let restarts = config.restart_with_repair && seq == self.board.una();
        let mut cwr = false;
        if new {
            self.board.sent(end);
            if let Some(rack) = self.board.rack_mut() {
                rack.sent(end, now);
            }
            self.rtt.time(end, now);
            cwr = std::mem::take(&mut self.cwr_due);
            if fin && len == 0 {
                self.fin = Fin::SentAlone;
            }
        } else {
            self.note_retransmission(end, len, why, now, stats);
        }
        stats.data_segments += 1;
        if matches!(self.phase, Phase::Recovery | Phase::Cwr) {
            self.prr.sent(len);
        }
        self.force = false;
        if self.probe == Probe::Due {
            self.probe = if new { Probe::New } else { Probe::Again };
            self.probe_left = self.board.flight() as u32;
            stats.tail_probes += 1;
        } else if self.rto_at == NEVER || self.probe == Probe::Timed || (restarts && !new) {
            self.start_timer(config, now);
        }
        if config.pacing.is_some() || self.control.has_model() {
            self.pace(config, len, now);
        }
        self.last_sent = now;
        Piece { seq, len, fin, retransmission: !new, cwr }
    }

    #[cold]
    fn note_retransmission(&mut self, end: u64, len: u32, why: Why, now: Nanos, stats: &mut Stats) {
        if let Some(rack) = self.board.rack_mut() {
            rack.sent_again(end, now, why == Why::Hole);
        }
        if why == Why::Rescue {
            stats.rescue_retransmissions += 1;
        } else if self.board.rack().is_none() {
            self.board.retransmitted(end);
        }
        self.rtt.stop_timing();
        stats.retransmissions += 1;
        stats.bytes_retransmitted += u64::from(len);
        stats.retransmissions_after_timeout += u32::from(self.phase == Phase::Loss);
    }
}
