//! What acknowledgments say about losses, and what follows from it: fast retransmit and fast
//! recovery (RFC 5681, RFC 6582, RFC 6675), proportional rate reduction (RFC 6937, RFC 9937), ECN
//! (RFC 3168).

use crate::config::{Config, Recovery};
use crate::hystart::Signal;
use crate::rack::{Arrival, Rack};
use crate::segment::{Flags, Segment};
use crate::sender::{Probe, Sender};
use crate::stats::Stats;
use units::Nanos;

/// An acknowledgment that has arrived.
pub(crate) struct Acknowledgment<'a> {
    pub(crate) segment: &'a Segment,
    /// The timestamp that it echoes.
    pub(crate) echo: Option<Nanos>,
    /// It says that the network is congested (ECN).
    pub(crate) ece: bool,
    pub(crate) now: Nanos,
}

/// Where a sender is between losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing is known to be lost. There may be duplicate acknowledgments.
    Open,
    /// The window shrinks because of ECN.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout, until all that was outstanding then is acknowledged.
    Loss,
}

impl Sender {
    /// Takes in an acknowledgment.
    #[inline]
    pub(crate) fn on_ack(&mut self, config: &Config, arrival: &Acknowledgment, stats: &mut Stats) {
        if self.control.has_model() {
            self.take_modelled_ack(config, arrival, stats);
        } else {
            self.take_ack(config, arrival, stats);
        }
    }

    #[cold]
    fn take_modelled_ack(&mut self, config: &Config, arrival: &Acknowledgment, stats: &mut Stats) {
        let before = self.before_ack();
        self.take_ack(config, arrival, stats);
        before.into_iter().for_each(|before| self.after_ack(&before, arrival.now));
    }

    #[inline]
    fn take_ack(&mut self, config: &Config, arrival: &Acknowledgment, stats: &mut Stats) {
        let &Acknowledgment { segment, echo, ece, now } = arrival;
        let ack = segment.ack;
        if let Some(rack) = self.board.rack_mut() {
            rack.arrives(Arrival { now, echo, min_rtt: self.rtt.min() });
        }
        let sacked_before = self.board.sacked();
        if ack < self.board.una() {
            // It was overtaken. What it says has arrived, has (RFC 6675, section 5).
            if self.sack && self.board.sack(ack, &segment.sack) > 0 && self.board.rack().is_some() {
                let (acked, duplicate) = (0, true);
                let t =
                    Trouble { acked, duplicate, sacked_before, rtt: None, echo, ece: false, now };
                self.on_trouble(config, self.board.una(), &t, stats);
            }
            return;
        }
        let edge = ack + u64::from(segment.window);
        let same_window = edge == self.edge;
        self.edge = self.edge.max(edge);

        let acked = ack - self.board.una();
        let newly_sacked = if self.sack && !segment.sack.is_empty() {
            self.board.sack(ack, &segment.sack)
        } else {
            0
        };
        let mut rtt = None;
        let of_sack = self.board.rack().and_then(Rack::sacked_rtt);
        if let (0, Some((rtt, before_first))) = (acked, of_sack) {
            // As in Linux, what is SACKed measures as well.
            self.rtt.sample(rtt);
            if before_first && config.restart_with_repair && self.probe != Probe::Timed {
                self.start_timer(config, now);
            }
        }
        if acked > 0 {
            rtt = match echo {
                Some(echo) => Some(now.since(echo)),
                None => self.rtt.timed(ack, now),
            };
            if let Some(rtt) = rtt {
                self.rtt.sample(rtt);
            } else if !config.karn_backoff {
                self.rtt.forget_backoff();
            }
            let plain = sacked_before == 0 && newly_sacked == 0 && !ece;
            if plain && self.phase == Phase::Open && self.probe <= Probe::Timed {
                self.board.advance(ack);
                self.dup_acks = 0;
                self.grow(config, acked, rtt, now);
                self.restart_timer(config, now);
                return;
            }
        }
        let duplicate = if self.sack {
            newly_sacked > 0
        } else {
            let bare = segment.len == 0 && !segment.flags.has(Flags::FIN);
            acked == 0 && bare && same_window && self.board.flight() > 0
        };
        if acked == 0 && !duplicate && !ece {
            // Data that came the other way.
            return;
        }
        let trouble = Trouble { acked, duplicate, sacked_before, rtt, echo, ece, now };
        self.on_trouble(config, ack, &trouble, stats);
    }

    #[inline]
    fn grow(&mut self, config: &Config, acked: u64, rtt: Option<Nanos>, now: Nanos) {
        let signal = Signal {
            now,
            una: self.board.una(),
            nxt: self.board.nxt(),
            rtt,
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
        };
        let may_grow = self.window_is_limit(config);
        self.control.on_ack(config, acked, may_grow, &signal);
    }

    /// An acknowledgment that is a duplicate, or comes while something is being repaired.
    #[cold]
    fn on_trouble(&mut self, config: &Config, ack: u64, t: &Trouble, stats: &mut Stats) {
        self.board.advance(ack);
        if self.probe > Probe::Timed {
            self.on_probe_ack(config, t, stats);
        }
        match self.phase {
            Phase::Open | Phase::Cwr => self.in_open(config, t, stats),
            Phase::Recovery => self.in_recovery(config, t, stats),
            Phase::Loss => self.in_loss(config, t, stats),
        }
        if t.ece && self.phase == Phase::Open && self.board.una() > self.recovery_point {
            self.on_ecn(config, t, stats);
        }
        if t.acked > 0 {
            self.restart_timer(config, t.now);
            self.first_partial = false;
        }
    }

    fn in_open(&mut self, config: &Config, t: &Trouble, stats: &mut Stats) {
        if t.acked > 0 {
            self.dup_acks = 0;
            if !self.sack {
                self.board.reset_estimate();
            }
        }
        if t.duplicate {
            self.dup_acks = self.dup_acks.saturating_add(1);
            if !self.sack {
                self.board.estimate_arrival(config.mss);
            }
        }
        if self.enter_recovery_if_lost(config, t, stats) {
            return;
        }
        if self.phase == Phase::Cwr {
            if self.board.una() >= self.recovery_point {
                self.phase = Phase::Open;
                self.control.settle();
            } else {
                self.reduce_proportionally(config, t, t.acked > 0);
            }
        } else if t.acked > 0 && !t.ece {
            let worth =
                if config.grow_by_delivered { self.delivered(config, t).into() } else { t.acked };
            self.grow(config, worth, t.rtt, t.now);
        }
    }

    /// An acknowledgment while a tail loss probe is out (RFC 8985, section 7.4). There are no
    /// DSACKs; the echoed timestamp tells whether the probe or what it repeated has arrived.
    fn on_probe_ack(&mut self, config: &Config, t: &Trouble, stats: &mut Stats) {
        if t.duplicate && self.probe != Probe::Due {
            // The probe has arrived and something before it has not. It was sent two round trips
            // later, which is as long as RACK waits; with RACK we see when each was sent.
            if self.board.rack().is_none() {
                self.board.mark_lost_below_last();
            }
            self.probe = Probe::None;
            return;
        }
        self.probe_left = self.probe_left.saturating_sub(t.acked.min(u32::MAX.into()) as u32);
        if self.probe == Probe::Due || self.probe_left > 0 || t.acked == 0 {
            return;
        }
        let repaired = t.echo.is_none_or(|echo| echo >= self.last_sent);
        if self.probe == Probe::Again && repaired && self.phase == Phase::Open {
            // The last segment was lost, which the probe has hidden from recovery.
            stats.fast_retransmits += 1;
            let window = self.control.cwnd.into();
            self.control.reduce(config, window, window);
            self.control.settle();
        }
        self.probe = Probe::None;
    }

    /// Enters fast recovery if enough duplicates or SACKed segments say so, and the losses are
    /// not those of before the last timeout.
    pub(crate) fn enter_recovery_if_lost(
        &mut self,
        config: &Config,
        t: &Trouble,
        stats: &mut Stats,
    ) -> bool {
        if self.sack {
            self.mark_lost(config, t.now);
        }
        let una = self.board.una();
        let is_new = match config.recovery {
            _ if self.phase == Phase::Cwr => true,
            Recovery::Reno => true,
            // The duplicates may be of what was sent twice (RFC 6582, section 3.2, step 1).
            _ if !self.sack && !config.ns3_recovery => una > self.recovery_point,
            _ => una >= self.recovery_point,
        };
        let by_count =
            self.board.rack().is_none() && u32::from(self.dup_acks) >= config.dup_threshold;
        let lost = by_count || self.board.has_losses();
        if !(lost && is_new && self.board.flight() > 0) {
            return false;
        }
        self.enter_recovery(config, t, stats);
        true
    }

    pub(crate) fn enter_recovery(&mut self, config: &Config, t: &Trouble, stats: &mut Stats) {
        stats.fast_retransmits += 1;
        let mut pipe = self.board.pipe();
        if self.board.rack().is_some() {
            // It knows which are lost, and that need not be the first.
        } else if self.sack {
            self.board.mark_head_lost(config.mss);
            pipe = self.board.pipe();
        } else {
            self.board.repair_head_again(config.mss);
        }
        if self.phase != Phase::Cwr {
            // What limited transmit sent beyond the window does not count (RFC 5681, 3.2).
            let flight = self.board.flight().min(self.control.cwnd.into());
            self.control.reduce(config, flight, pipe);
        }
        self.phase = Phase::Recovery;
        self.forget_probe(config, t.now);
        self.recovery_point = self.board.nxt();
        self.first_partial = true;
        self.may_rescue = true;
        self.force = self.board.has_unrepaired();
        self.cwr_due = true;
        self.start_reduction(config, t);
    }

    fn in_recovery(&mut self, config: &Config, t: &Trouble, stats: &mut Stats) {
        let done = self.board.una() >= self.recovery_point
            || (config.recovery == Recovery::Reno && t.acked > 0);
        if done {
            self.phase = Phase::Open;
            self.control.settle();
            self.force = false;
            self.dup_acks = u8::from(t.duplicate);
            if !self.sack {
                self.board.forget_losses();
            }
            if config.ns3_recovery {
                self.grow(config, t.acked, t.rtt, t.now);
            }
            let again = self.enter_recovery_if_lost(config, t, stats);
            if config.grow_by_delivered && !again {
                self.grow(config, self.delivered(config, t).into(), t.rtt, t.now);
            }
            return;
        }
        let mut more_lost = false;
        if self.sack {
            more_lost = self.mark_lost(config, t.now);
        } else if t.acked > 0 {
            // A partial acknowledgment: the next segment is lost too.
            self.board.forget_arrivals(t.acked, config.mss);
            self.board.repair_head_again(config.mss);
            self.force = true;
        } else if t.duplicate {
            self.board.estimate_arrival(config.mss);
        }
        self.reduce_proportionally(config, t, t.acked > 0 && !more_lost);
    }

    /// Declares lost what is, by RFC 6675 or by RACK. Whether there was something.
    fn mark_lost(&mut self, config: &Config, now: Nanos) -> bool {
        if self.board.rack().is_some() {
            return self.detect_losses(config, now);
        }
        let before = self.board.lost_edge();
        self.board.mark_lost(config.dup_threshold, config.mss);
        self.board.lost_edge() != before
    }

    fn in_loss(&mut self, config: &Config, t: &Trouble, stats: &mut Stats) {
        if self.sack {
            self.mark_lost(config, t.now);
        }
        if self.board.rack().is_some_and(Rack::lost_again) {
            // The loss of a repair is a second sign of congestion (RFC 5681, 4.3).
            return self.enter_recovery(config, t, stats);
        }
        if t.acked == 0 {
            return;
        }
        let repaired = self.board.una() >= self.recovery_point;
        let acked = if config.ns3_recovery {
            if repaired { self.board.una() - self.recovery_point } else { t.acked }
        } else if self.sack {
            self.delivered(config, t).into()
        } else {
            // The rest may well have arrived before the timeout (RFC 3465, 2.3).
            t.acked.min(config.mss.into())
        };
        if acked > 0 {
            self.grow(config, acked, t.rtt, t.now);
        }
        if repaired {
            self.phase = Phase::Open;
            self.dup_acks = 0;
            self.enter_recovery_if_lost(config, t, stats);
        }
    }

    /// The network marked a packet: one reduction for each window of data.
    fn on_ecn(&mut self, config: &Config, t: &Trouble, stats: &mut Stats) {
        stats.ecn_reductions += 1;
        self.control.reduce(config, self.board.flight(), self.board.pipe());
        self.recovery_point = self.board.nxt();
        self.cwr_due = true;
        if config.prr && self.board.flight() > 0 {
            self.phase = Phase::Cwr;
            self.start_reduction(config, t);
        } else {
            self.control.settle();
        }
    }
}

/// An acknowledgment that is not plain sailing.
pub(crate) struct Trouble {
    /// Bytes newly acknowledged.
    pub(crate) acked: u64,
    /// It counts as a duplicate.
    pub(crate) duplicate: bool,
    /// Bytes SACKed, or estimated to be, before it.
    pub(crate) sacked_before: u32,
    pub(crate) rtt: Option<Nanos>,
    pub(crate) echo: Option<Nanos>,
    pub(crate) ece: bool,
    pub(crate) now: Nanos,
}
