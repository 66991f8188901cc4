//! What a sender tells the model, and takes from it.

use units::Nanos;

use super::{Ack, Bbr};
use crate::config::{Config, Congestion};
use crate::rate::Rates;
use crate::sender::Sender;

/// How things stood before an acknowledgment.
pub(crate) struct Before {
    pipe: u64,
    delivered: u64,
    lost: u64,
}

impl Sender {
    /// The handshake is over: a sender that is to have a model gets one, if the peer has SACK.
    pub(crate) fn begin_model(&mut self, config: &Config, now: Nanos) {
        if config.congestion == Congestion::Bbr && self.sack {
            let rtt = Some(self.rtt.min()).filter(|&rtt| rtt != Nanos::MAX);
            self.control.follow(Bbr::new(config.mss, self.control.cwnd, rtt, now));
        }
    }

    fn rates(&self) -> Option<&Rates> {
        self.board.rack().and_then(|rack| rack.rates.as_deref())
    }

    fn rates_mut(&mut self) -> Option<&mut Rates> {
        self.board.rack_mut().and_then(|rack| rack.rates.as_deref_mut())
    }

    /// To be called before an acknowledgment is taken in, and what it returns with
    /// [`Self::after_ack`].
    #[cold]
    pub(crate) fn before_ack(&self) -> Option<Before> {
        let rates = self.rates()?;
        let (delivered, lost) = (rates.delivered(), rates.lost());
        Some(Before { pipe: self.board.pipe(), delivered, lost })
    }

    /// An acknowledgment was taken in.
    #[cold]
    pub(crate) fn after_ack(&mut self, before: &Before, now: Nanos) {
        let (pipe, min_rtt) = (self.board.pipe(), self.rtt.min());
        let (departs, phase) = (self.pace_from, self.phase);
        let Some(rates) = self.rates_mut() else { return };
        let ack = Ack {
            now,
            sample: rates.sample(before.delivered, min_rtt, now),
            acked: rates.delivered() - before.delivered,
            delivered: rates.delivered(),
            delivered_at: rates.delivered_at(),
            lost: rates.lost() - before.lost,
            pipe_before: before.pipe,
            pipe,
            departs,
            phase,
        };
        let window = self.control.cwnd;
        let Some(model) = self.control.model() else { return };
        let (window, probes) = (model.on_ack(window, &ack), model.probes_rtt());
        self.control.cwnd = window;
        if probes {
            // The small window is the sender's own choice, and says nothing about the path.
            self.rates_mut().into_iter().for_each(|rates| rates.limit(pipe));
        }
    }

    /// The application has more, after everything before was sent: if the window had room
    /// meanwhile, the samples of what is in the network tell less than the network can carry.
    pub(crate) fn note_gap(&mut self) {
        if !self.control.has_model() || self.written() + 1 > self.board.nxt() {
            return;
        }
        let pipe = self.board.pipe();
        if pipe < self.control.cwnd.into() && !self.board.has_unrepaired() {
            self.rates_mut().into_iter().for_each(|rates| rates.limit(pipe));
        }
    }

    /// The first data after nothing was outstanding.
    pub(crate) fn restart_model(&mut self, now: Nanos) {
        let limited = self.rates().is_some_and(Rates::is_limited);
        let window = self.control.cwnd;
        if let Some(model) = self.control.model().filter(|_| limited) {
            self.control.cwnd = model.on_restart(window, now);
        }
    }
}
