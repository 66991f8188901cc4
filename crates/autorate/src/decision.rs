//! A decision, and why.

use core::fmt;

use units::{Nanos, Rate};

/// Another rate, with the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub at: Nanos,
    /// The rate before.
    pub from: Rate,
    /// The rate from now on.
    pub to: Rate,
    /// Why.
    pub reason: Reason,
}

/// Why a rate is decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A queue beyond this machine.
    Queue {
        /// The extra delay of the fastest of the latest probes.
        extra: Nanos,
        /// The round-trip time without a queue.
        baseline: Nanos,
        /// What extra delay had to exceed.
        threshold: Nanos,
        /// Bit/s that got through; none if that is not known.
        delivered: Option<Rate>,
    },
    /// The queue that was found before is gone.
    Drained {
        /// The extra delay now.
        extra: Nanos,
        /// What the link carried as it had the queue.
        capacity: Rate,
    },
    /// The delay stayed though the rate was lowered for it: it is no queue of this link.
    Stayed {
        /// The extra delay now.
        extra: Nanos,
        /// What extra delay has to exceed from now on.
        threshold: Nanos,
        /// What the link carried.
        capacity: Rate,
    },
    /// The rate was used fully without a queue beyond.
    Room {
        /// The extra delay.
        extra: Nanos,
        /// Bit/s that were sent.
        sent: Rate,
    },
    /// Next to nothing was sent, so that nothing is known of the link: towards the base.
    Idle {
        /// For how long.
        time: Nanos,
    },
    /// No probe is answered: to the base.
    Blind,
}

impl Reason {
    /// Its name in documents.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Queue { .. } => "queue",
            Self::Drained { .. } => "drained",
            Self::Stayed { .. } => "stayed",
            Self::Room { .. } => "room",
            Self::Idle { .. } => "idle",
            Self::Blind => "blind",
        }
    }
}

/// In whole milliseconds.
struct Ms(Nanos);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0.0 / 1_000_000)
    }
}

/// In kbit/s: three digits or more.
struct Kbit(Rate);

impl fmt::Display for Kbit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}kbit", self.0.0 / 1_000)
    }
}

/// One line.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}: ", Kbit(self.from), Kbit(self.to))?;
        match self.reason {
            Reason::Queue { extra, baseline, threshold, delivered } => {
                let (extra, baseline, threshold) = (Ms(extra), Ms(baseline), Ms(threshold));
                write!(
                    f,
                    "queue of {extra} over a round trip of {baseline} (above {threshold}), "
                )?;
                match delivered {
                    Some(rate) => write!(f, "{} got through", Kbit(rate)),
                    None => f.write_str("no answers to tell what got through"),
                }
            }
            Reason::Drained { extra, capacity } => {
                write!(f, "queue gone ({}), the link carried {}", Ms(extra), Kbit(capacity))
            }
            Reason::Stayed { extra, threshold, capacity } => write!(
                f,
                "delay stayed ({}) at the lower rate, not a queue of this link (now above {}), \
                 which carried {}",
                Ms(extra),
                Ms(threshold),
                Kbit(capacity)
            ),
            Reason::Room { extra, sent } => {
                write!(f, "{} sent, no queue ({})", Kbit(sent), Ms(extra))
            }
            Reason::Idle { time } => write!(f, "idle for {} s", time.0 / 1_000_000_000),
            Reason::Blind => f.write_str("no probe is answered"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_decision_is_one_line_with_its_evidence() {
        let reason = Reason::Queue {
            extra: Nanos(92_300_000),
            baseline: Nanos::from_millis(20),
            threshold: Nanos::from_millis(15),
            delivered: Some(Rate(5_010_000)),
        };
        let (from, to) = (Rate(20_000_000), Rate(3_430_000));
        let decision = Decision { at: Nanos::ZERO, from, to, reason };
        assert_eq!(
            decision.to_string(),
            "20000kbit -> 3430kbit: queue of 92 ms over a round trip of 20 ms (above 15 ms), \
             5010kbit got through"
        );
    }
}
