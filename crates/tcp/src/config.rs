//! The configuration of an endpoint.

use units::Nanos;

pub(crate) const MILLISECOND: Nanos = Nanos::from_millis(1);
pub(crate) const SECOND: Nanos = Nanos::from_secs(1);

/// The largest window, congestion window or buffer: TCP's own limit (RFC 7323, section 2.3).
pub const MAX_WINDOW: u32 = 1 << 30;

/// How losses are repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// Fast retransmit and fast recovery, left with the first new acknowledgment (RFC 5681).
    Reno,
    /// One loss in each round trip (RFC 6582).
    NewReno,
    /// Selective acknowledgments (RFC 2018, RFC 6675) if the peer understands them, else NewReno.
    Sack,
}

/// How the congestion window grows and shrinks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// BBR version 1, as in Linux. It takes SACK, finds losses as with `rack`, and paces by
    /// itself. Where the peer has no SACK, it is Reno.
    Bbr,
}

/// What an acknowledgment is worth to the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// One segment at most in slow start and its share of one in avoidance, however much was
    /// acknowledged (RFC 5681, ns-3's TcpNewReno). Cubic counts bytes in avoidance all the same.
    PerAck,
    /// As many bytes as were acknowledged, in slow start up to so many segments for each
    /// acknowledgment (RFC 3465, its `L`). Linux counts without limit.
    PerByte {
        /// `L`, in segments.
        limit: u32,
    },
}

/// The amount that a loss reduces to half (Reno) or to 0.7 (Cubic).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReduceFrom {
    /// Everything sent and not yet acknowledged (RFC 5681).
    Flight,
    /// What is thought to be in the network: without what was lost or selectively acknowledged
    /// (ns-3 with Reno).
    Pipe,
    /// The congestion window (Linux; ns-3 with Cubic).
    Window,
    /// The congestion window, but no more than the sender's buffer lets it use (BSD, by the
    /// receiver's window).
    UsedWindow,
}

/// What the least retransmission timeout applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtoFloor {
    /// `max(srtt + max(G, 4 rttvar), min)` (RFC 6298, ns-3).
    Total,
    /// `srtt + max(min, 4 rttvar)` (Linux).
    Variation,
}

/// How slow start ends before there is a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlowStartExit {
    /// It does not.
    Loss,
    /// HyStart as in Linux and ns-3: trains of acknowledgments, and rising delay. It is part of
    /// their Cubic, and Reno has none.
    HyStart(HyStartLaw),
    /// HyStart++ (RFC 9406).
    HyStartPlusPlus,
}

/// Where implementations of HyStart differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HyStartLaw {
    /// A train as long as the least round-trip time divided by this ends slow start.
    pub train_divisor: u32,
    /// So does a delay above the least by itself divided by this,
    pub delay_divisor: u32,
    /// but by no less than this,
    pub delay_min: Nanos,
    /// and no more than this.
    pub delay_max: Nanos,
    /// The acknowledgment that ends a round belongs to it (ns-3, Linux before 5.5), not to the
    /// next one.
    pub late_rounds: bool,
    /// An acknowledgment is judged before the window grows, which then does not as in slow start;
    /// rounds begin once windows are no longer low; and the least delay of a round is that of all
    /// its samples, not of the first eight (Linux since 5.8).
    pub before_growth: bool,
    /// Delays are the smoothed round-trip time (ns-3), not its samples.
    pub smoothed: bool,
}

impl HyStartLaw {
    /// As in Linux's cubic.
    pub const LINUX: Self = Self {
        train_divisor: 2,
        delay_divisor: 8,
        delay_min: Nanos::from_millis(4),
        delay_max: Nanos::from_millis(16),
        late_rounds: false,
        before_growth: true,
        smoothed: false,
    };
    /// As in ns-3's TcpCubic.
    pub const NS3: Self = Self {
        train_divisor: 1,
        delay_divisor: 1,
        delay_min: Nanos::from_millis(4),
        delay_max: SECOND,
        late_rounds: true,
        before_growth: false,
        smoothed: true,
    };
}

/// Spreads segments over the round trip instead of sending bursts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// Rate in slow start, in percent of window per round-trip time.
    pub slow_start_percent: u32,
    /// Rate in congestion avoidance and recovery.
    pub avoidance_percent: u32,
}

impl Pacing {
    /// As in Linux.
    pub const LINUX: Self = Self { slow_start_percent: 200, avoidance_percent: 120 };
}

/// Everything that may be chosen. Many endpoints share one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Most data in a segment, in bytes.
    pub mss: u32,
    /// Header bytes of every segment on the wire, for whoever counts them.
    pub header_bytes: u32,
    /// Initial window in segments (RFC 6928).
    pub initial_window: u32,
    /// Initial slow start threshold in bytes.
    pub initial_ssthresh: u32,
    /// What the receiver advertises, in bytes. The application always reads at once, so it
    /// never shrinks.
    pub receive_window: u32,
    /// Most bytes sent and not acknowledged, whatever the peer advertises.
    pub send_buffer: u32,

    /// How losses are repaired.
    pub recovery: Recovery,
    /// How the congestion window grows and shrinks.
    pub congestion: Congestion,
    /// What an acknowledgment is worth.
    pub growth: Growth,
    /// An acknowledgment that advances is worth what it says was delivered, what it newly SACKs
    /// included, and so is the one that ends recovery (Linux).
    pub grow_by_delivered: bool,
    /// What a loss reduces.
    pub reduce_from: ReduceFrom,
    /// Cubic: never slower than Reno would be (RFC 9438, section 4.3).
    pub cubic_friendly: bool,
    /// Cubic: give way to newer flows (RFC 9438, section 4.7).
    pub cubic_fast_convergence: bool,
    /// Cubic: computes in whole segments as Linux and ns-3 do, so that small windows grow faster
    /// than the curve.
    pub cubic_in_segments: bool,
    /// How slow start ends.
    pub slow_start_exit: SlowStartExit,
    /// The window grows only where it was the limit (RFC 9438, section 5.8; Linux).
    pub validate_window: bool,
    /// After an idle retransmission timeout, start from the initial window (RFC 5681, 4.1).
    pub restart_after_idle: bool,
    /// Duplicate acknowledgments that mean a loss.
    pub dup_threshold: u32,
    /// New data on the duplicate acknowledgments before that (RFC 3042).
    pub limited_transmit: bool,
    /// Proportional rate reduction (RFC 6937, RFC 9937) instead of halving at once.
    pub prr: bool,
    /// Retransmit the last segment once where nothing else can be sent (RFC 6675, NextSeg rule 4).
    pub rescue: bool,
    /// Recovery with the deviations of ns-3.37:
    /// * with nothing new to send, whatever is not SACKed is sent again, not just what lies below
    ///   something that is (NextSeg rule 3);
    /// * PRR spreads the reduction over all that was outstanding, not just over what had not been
    ///   SACKed; below the threshold only the acknowledgment of a retransmission lets it catch up;
    ///   without SACK a duplicate lets one segment go, until there are no more of them;
    /// * without SACK, duplicates that a timeout has caused start recovery;
    /// * the acknowledgment that ends recovery makes the window grow, by all that it covers;
    /// * after a timeout the window grows by all that is acknowledged, but by nothing of what was
    ///   outstanding then on the acknowledgment that covers all of that.
    pub ns3_recovery: bool,
    /// Only the first partial acknowledgment restarts the retransmission timer (RFC 6582,
    /// "impatient"; ns-3).
    pub impatient: bool,
    /// Every timeout reduces the threshold (ns-3), not just the first for the same data (RFC 5681).
    pub reduce_on_every_timeout: bool,
    /// With SACK, a segment is lost if one that was sent later has arrived, by the time that
    /// reordering may take (RACK, RFC 8985, section 6). Then `dup_threshold` only ends that time.
    pub rack: bool,
    /// Probe for a lost tail after two round-trip times (RFC 8985, section 7).
    pub tail_loss_probe: bool,

    /// Timestamps option, if the peer has it too: every new acknowledgment measures.
    pub timestamps: bool,
    /// Explicit congestion notification, if the peer has it too.
    pub ecn: bool,
    /// Pacing.
    pub pacing: Option<Pacing>,

    /// First timeout of SYN and SYN-ACK; each further one is twice as long.
    pub syn_timeout: Nanos,
    /// SYNs or SYN-ACKs sent before giving up.
    pub syn_tries: u32,
    /// One segment instead of the initial window if more SYNs or SYN-ACKs than this were sent: 1 in
    /// RFC 5681 (3.1), 2 in Linux.
    pub trusted_syns: u32,
    /// Timeout before the first round-trip time sample.
    pub initial_rto: Nanos,
    /// The same if a SYN or SYN-ACK was lost (RFC 6298, 5.7).
    pub rto_after_syn_loss: Nanos,
    /// Least timeout.
    pub min_rto: Nanos,
    /// The retransmission timer starts again when the first segment outstanding is sent again and, with
    /// `rack`, when what was sent before that is SACKed, as in Linux; and not only when something new
    /// is acknowledged (RFC 6298, 5.3).
    pub restart_with_repair: bool,
    /// What the least timeout applies to.
    pub rto_floor: RtoFloor,
    /// Most, with backoff.
    pub max_rto: Nanos,
    /// Clock granularity `G` (RFC 6298).
    pub granularity: Nanos,
    /// Backoff lasts until there is a new sample (Karn), not just until new data is acknowledged.
    pub karn_backoff: bool,
    /// Retransmissions of the same data by timeout before giving up.
    pub data_tries: u32,

    /// Segments for each acknowledgment; 1 acknowledges every segment.
    pub ack_every: u32,
    /// How long an acknowledgment is delayed at most.
    pub ack_delay: Nanos,
    /// So many data segments at the start are acknowledged at once. Gaps, what fills them, and
    /// FIN always are.
    pub quick_acks: u32,
    /// So is, as in Linux, each segment by which the receive window grows, and some after a pause
    /// or a needless retransmission; and delays follow what arrives. It takes timestamps.
    pub adaptive_acks: bool,
}

impl Config {
    /// Refuses what cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let in_range = [
            ("mss", self.mss, 1, 1 << 20),
            ("initial_window", self.initial_window, 1, 1 << 10),
            ("receive_window", self.receive_window, self.mss, MAX_WINDOW),
            ("send_buffer", self.send_buffer, self.mss, MAX_WINDOW),
            ("dup_threshold", self.dup_threshold, 1, 255),
            ("syn_tries", self.syn_tries, 1, 100),
            ("data_tries", self.data_tries, 1, 100),
            ("ack_every", self.ack_every, 1, 1 << 10),
        ];
        for (name, found, least, most) in in_range {
            if found < least || found > most {
                return Err(ConfigError {
                    name,
                    found: found.into(),
                    least: least.into(),
                    most: most.into(),
                });
            }
        }
        let times = [
            ("syn_timeout", self.syn_timeout, Nanos(1)),
            ("initial_rto", self.initial_rto, Nanos(1)),
            ("rto_after_syn_loss", self.rto_after_syn_loss, Nanos(1)),
            ("min_rto", self.min_rto, Nanos(1)),
            ("max_rto", self.max_rto, self.min_rto),
            ("granularity", self.granularity, Nanos::ZERO),
            ("ack_delay", self.ack_delay, Nanos::ZERO),
        ];
        let Nanos(most) = Nanos::from_secs(3600);
        for (name, Nanos(found), Nanos(least)) in times {
            if found < least || found > most {
                return Err(ConfigError { name, found, least, most });
            }
        }
        if let Some(pacing) = self.pacing {
            for (name, percent) in [
                ("pacing.slow_start_percent", pacing.slow_start_percent),
                ("pacing.avoidance_percent", pacing.avoidance_percent),
            ] {
                if !(1..=100_000).contains(&percent) {
                    return Err(ConfigError {
                        name,
                        found: percent.into(),
                        least: 1,
                        most: 100_000,
                    });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn has_sack(&self) -> bool {
        self.recovery == Recovery::Sack
    }
}

/// A setting that cannot work. Times are in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The field of [`Config`].
    pub name: &'static str,
    /// Its value.
    pub found: u64,
    /// The least that is accepted.
    pub least: u64,
    /// The most that is accepted.
    pub most: u64,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, found, least, most } = self;
        write!(f, "tcp {name} is {found}: must be {least} to {most}")
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_named() {
        let config = Config { receive_window: 100, ..Config::default() };
        assert_eq!(
            config.check().unwrap_err().to_string(),
            "tcp receive_window is 100: must be 1448 to 1073741824"
        );
        let config = Config { max_rto: Nanos(1), ..Config::default() };
        assert_eq!(config.check().unwrap_err().name, "max_rto");
    }
}
