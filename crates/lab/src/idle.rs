//! Completion times on an idle link, the reference of slowdown.

use std::sync::atomic::AtomicBool;

use units::Nanos;

use crate::block::{self, BlockError};
use crate::config::{AgentProgram, Bottleneck, Ends, PAYLOAD_BYTES, Round};
use crate::scheduler::{self, Engine, Scheduler};
use crate::traffic::{Tcp, Transfer};

/// Completion times on the idle link, by size.
#[derive(Clone, Debug, Default)]
pub struct IdleTimes(Vec<(u64, Nanos)>);

/// Sizes to measure, in packets, as far as the largest transfer of the workload goes.
const PACKETS: [u64; 9] = [1, 3, 6, 12, 25, 60, 150, 400, 1000];

impl IdleTimes {
    /// Measures single transfers one after another, up to `largest` bytes, through a FIFO.
    ///
    /// # Errors
    /// If something could not be set up or did not last, or `stop` was set.
    pub fn measure(
        largest: u64,
        tcp: Tcp,
        link: &Bottleneck,
        program: &AgentProgram,
        stop: &AtomicBool,
    ) -> Result<Self, BlockError> {
        let mut plan = Ends::default().plan(0, 0);
        let mut at = Nanos::ZERO;
        for (id, packets) in (0..).zip(PACKETS) {
            let size_bytes = packets * PAYLOAD_BYTES;
            plan.transfers.push(Transfer { id, start: at, size_bytes, tcp });
            at += generous_time(size_bytes, link);
            if size_bytes >= largest {
                break;
            }
        }
        (plan.arrivals_end, plan.drain_end) = (at, at);
        let fifo = sched::Spec::named("fifo").expect("the baseline is in the registry");
        let fifo = match link.engine {
            Engine::Userspace => Scheduler::Ours(fifo),
            Engine::Kernel => scheduler::in_kernel(&fifo)
                .map_err(|error| BlockError::Engine(error.to_string()))?,
        };
        let round = Round { plans: vec![plan.clone()], ..Round::default() };
        let outcome = block::run(
            round,
            &fifo,
            0,
            &Bottleneck { up_scheduler: None, ends: Ends::default(), ..link.clone() },
            program,
            stop,
        )?;
        let times = plan.transfers.iter().zip(&outcome.seen[0].client.transfers);
        let times = times.filter_map(|(t, seen)| Some((t.size_bytes, seen.completion()?)));
        Ok(Self(times.collect()))
    }

    /// The time of a transfer of `size` bytes: linear between measured sizes, and on along the
    /// last stretch beyond them. `None` where too little was measured.
    #[must_use]
    pub fn of(&self, size: u64) -> Option<Nanos> {
        let after = self.0.iter().position(|(bytes, _)| *bytes >= size).unwrap_or(self.0.len());
        if after == 0 {
            return self.0.first().map(|(_, time)| *time);
        }
        let right = after.min(self.0.len() - 1);
        let (left_size, left) = *self.0.get(right.checked_sub(1)?)?;
        let (right_size, right) = self.0[right];
        let per_byte = (right.0 as f64 - left.0 as f64) / (right_size - left_size) as f64;
        Some(Nanos((left.0 as f64 + per_byte * (size - left_size) as f64) as u64))
    }
}

/// Twice the time at full rate, twice the round trips of slow start, and some for the machine.
fn generous_time(size_bytes: u64, link: &Bottleneck) -> Nanos {
    let sending = size_bytes as f64 * 8e9 / link.rate.0 as f64;
    let round_trips = 3 + 2 * u64::from((size_bytes / PAYLOAD_BYTES).max(1).ilog2());
    Nanos((2.0 * sending) as u64) + round_trips * link.rtt + Nanos::from_millis(50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_linear_between_and_beyond_what_was_measured() {
        let idle = IdleTimes(vec![(1000, Nanos(40)), (2000, Nanos(60)), (4000, Nanos(160))]);
        for (size, time) in [(500, 40), (1000, 40), (1500, 50), (3000, 110), (6000, 260)] {
            assert_eq!(idle.of(size), Some(Nanos(time)));
        }
        assert_eq!(IdleTimes::default().of(10), None);
    }
}
