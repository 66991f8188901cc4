//! The three-way handshake.

use crate::config::Config;
use crate::endpoint::{Endpoint, Failure, Stage};
use crate::receiver::Due;
use crate::segment::{Flags, Segment};
use units::Nanos;

impl Endpoint {
    /// SYN or SYN-ACK, for the first time or again.
    pub(crate) fn send_syn(&mut self, config: &Config, now: Nanos) {
        let timeout = config.syn_timeout * (1 << self.syns.min(32));
        self.syn_due = true;
        self.syns += 1;
        if self.syns == 1 {
            self.sender.rtt.time(1, now);
        } else {
            self.sender.rtt.stop_timing();
        }
        self.sender.rto_at = now + timeout;
    }

    pub(crate) fn on_syn_timeout(&mut self, config: &Config, now: Nanos) {
        if u32::from(self.syns) >= config.syn_tries {
            self.fail(Failure::Handshake);
            return;
        }
        self.stats.syn_timeouts += 1;
        self.send_syn(config, now);
    }

    #[cold]
    pub(crate) fn on_handshake_segment(
        &mut self,
        config: &Config,
        segment: &Segment,
        ce: bool,
        now: Nanos,
    ) {
        let syn = segment.flags.has(Flags::SYN);
        let ack = segment.flags.has(Flags::ACK);
        match self.stage {
            Stage::Listen if syn && !ack => {
                self.negotiate(config, segment, Flags::ECE.with(Flags::CWR));
                self.receiver.on_syn(segment);
                self.stage = Stage::SynReceived;
                self.send_syn(config, now);
            }
            Stage::SynSent if syn && ack && segment.ack == 1 => {
                self.negotiate(config, segment, Flags::ECE);
                self.receiver.on_syn(segment);
                self.receiver.due = Due::Alone;
                self.establish(config, segment, now);
            }
            // The peer has not seen our SYN-ACK.
            Stage::SynReceived if syn && !ack => self.syn_due = true,
            Stage::SynReceived if ack && segment.ack == 1 => {
                self.establish(config, segment, now);
                self.on_open_segment(config, segment, ce, now);
            }
            _ => self.stats.refused += 1,
        }
    }

    /// Options count if both ends have them.
    fn negotiate(&mut self, config: &Config, segment: &Segment, ecn: Flags) {
        self.sender.sack = config.has_sack() && segment.flags.has(Flags::SACK_PERMITTED);
        self.sender.rtt.timestamps = config.timestamps && segment.flags.has(Flags::TIMESTAMPS);
        self.ecn = config.ecn && segment.flags.has(ecn);
    }

    fn establish(&mut self, config: &Config, segment: &Segment, now: Nanos) {
        let has_echo = self.sender.rtt.timestamps && segment.flags.has(Flags::TIMESTAMPS);
        let timed = self.sender.rtt.timed(1, now);
        let rtt = if has_echo { Some(now.since(segment.echo)) } else { timed };
        if let Some(rtt) = rtt {
            self.sender.rtt.sample(rtt);
        }
        self.sender.establish(config, segment.window, self.syns.into(), now);
        self.syn_due = false;
        self.stage = Stage::Open;
    }

    pub(crate) fn poll_handshake(&mut self, config: &Config, now: Nanos) -> Option<Segment> {
        if !std::mem::take(&mut self.syn_due) {
            return None;
        }
        let reply = self.stage == Stage::SynReceived;
        let again = self.stats.segments_sent > 0;
        self.stats.segments_sent += 1;
        // A client offers what it has, a server agrees to what both have.
        let (sack, timestamps, ecn) = if reply {
            (self.sender.sack, self.sender.rtt.timestamps, self.ecn)
        } else {
            (config.has_sack(), config.timestamps, config.ecn)
        };
        let flags = Flags::SYN
            .with_if(reply, Flags::ACK)
            .with_if(again, Flags::RETRANSMISSION)
            .with_if(sack, Flags::SACK_PERMITTED)
            .with_if(timestamps, Flags::TIMESTAMPS)
            .with_if(ecn, Flags::ECE)
            .with_if(ecn && !reply, Flags::CWR);
        Some(Segment {
            ack: self.receiver.nxt(),
            timestamp: if timestamps { now } else { Nanos::ZERO },
            echo: if timestamps { self.receiver.recent_timestamp } else { Nanos::ZERO },
            window: config.receive_window,
            flags,
            ..Segment::default()
        })
    }
}
