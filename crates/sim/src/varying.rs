//! Links whose rate varies: what a radio or a shared segment gives from one moment to the next.

use std::sync::Arc;

use sched::{Nanos, Rate};

/// Work is counted in bits times nanoseconds per second: what a link of 1 bit/s gives in 1 ns.
const WORK_PER_BYTE: u128 = 8_000_000_000;

/// Why a course of rates was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaryingError {
    /// There is nothing to start with.
    #[error("a course of rates begins at 0 ns; the first of these is at {} ns", .0.0)]
    Start(Nanos),
    /// Times that go back, or stand still. The number counts steps from 0.
    #[error("step {}: its time is not later than the one before", .0 + 1)]
    Back(usize),
    /// A link that never sends again.
    #[error("the last rate is 0 and would hold for ever; a course ends with a rate above 0")]
    Stalled,
    /// There are no steps.
    #[error("a course of rates has at least one step")]
    Empty,
}

/// Rates of a link over time. Each holds from its time on until that of the next; the last one
/// holds for ever. A rate of 0 stalls the link: a packet under way goes on when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Varying {
    steps: Arc<[(Nanos, Rate)]>,
}

impl Varying {
    /// A course of these steps: times from 0 on, each later than the one before.
    ///
    /// # Errors
    /// If they are none, begin late, go back, or end in a rate of 0.
    pub fn new(steps: &[(Nanos, Rate)]) -> Result<Self, VaryingError> {
        let (Some((first, _)), Some((_, last))) = (steps.first(), steps.last()) else {
            return Err(VaryingError::Empty);
        };
        if *first != Nanos::ZERO {
            return Err(VaryingError::Start(*first));
        }
        if let Some(before) = steps.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
            return Err(VaryingError::Back(before + 1));
        }
        if last.0 == 0 {
            return Err(VaryingError::Stalled);
        }
        Ok(Self { steps: steps.into() })
    }

    /// The rates, each with the time from which it holds.
    #[must_use]
    pub fn steps(&self) -> &[(Nanos, Rate)] {
        &self.steps
    }

    /// The bits that the link could have sent between two times, rounded down.
    #[must_use]
    pub fn bits(&self, from: Nanos, to: Nanos) -> u64 {
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([Nanos::MAX]);
        let work: u128 = self
            .steps
            .iter()
            .zip(ends)
            .map(|((start, rate), end)| {
                let span = end.min(to).0.saturating_sub(start.0.max(from.0));
                u128::from(span) * u128::from(rate.0)
            })
            .sum();
        u64::try_from(work / 1_000_000_000).unwrap_or(u64::MAX)
    }
}

/// Where a transmitter is in its course. Times never go back.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    rates: Varying,
    /// The step that holds at the end of the last transmission.
    at: usize,
    /// When the last transmission ended, rounded up,
    end: Nanos,
    /// and what the link could have sent from its true end until then.
    spare: u128,
}

impl Course {
    pub(crate) const fn new(rates: Varying) -> Self {
        Self { rates, at: 0, end: Nanos::ZERO, spare: 0 }
    }

    /// Starts a packet that could have started at `ready`, now or at the end of the one before,
    /// and says when its last bit has left.
    // Out of the way of links with a fixed rate.
    #[cold]
    #[inline(never)]
    pub(crate) fn start(&mut self, size: u32, ready: Nanos) -> Nanos {
        if ready > self.end {
            (self.end, self.spare) = (ready, 0);
        }
        let mut work = u128::from(size) * WORK_PER_BYTE;
        if work <= self.spare {
            self.spare -= work;
            return self.end;
        }
        work -= self.spare;
        loop {
            let rate = u128::from(self.rates.steps[self.at].1.0);
            let next = self.rates.steps.get(self.at + 1).map(|step| step.0);
            // The last step, whose rate is above 0, has room for everything.
            let room =
                next.map_or(u128::MAX, |next| u128::from(next.0.saturating_sub(self.end.0)) * rate);
            if work <= room {
                let span = work.div_ceil(rate);
                self.spare = span * rate - work;
                let span = u64::try_from(span).unwrap_or(u64::MAX);
                self.end = Nanos(self.end.0.saturating_add(span));
                return self.end;
            }
            work -= room;
            self.end = self.end.max(next.unwrap_or(self.end));
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_names::{FlowName, FlowNames};
    use crate::port::Port;
    use crate::transmitter::Transmitter;
    use proptest::prelude::*;
    use sched::{DropReason, Packet};

    fn varying(steps: &[(u64, u64)]) -> Varying {
        let steps: Vec<_> = steps.iter().map(|(at, rate)| (Nanos(*at), Rate(*rate))).collect();
        Varying::new(&steps).expect("a course")
    }

    #[test]
    fn a_packet_under_way_takes_the_rates_that_it_meets() {
        // 1000 bytes at 8 Mbit/s take 1 ms: half at full rate, then at half.
        let mut course = Course::new(varying(&[(0, 8_000_000), (500_000, 4_000_000)]));
        assert_eq!(course.start(1000, Nanos::ZERO), Nanos(1_500_000));
        assert_eq!(course.start(1000, Nanos(5_000_000)), Nanos(7_000_000));
    }

    #[test]
    fn a_stall_holds_up_what_is_under_way_and_loses_nothing() {
        let steps = [(0, 8_000_000), (500_000, 0), (3_000_000, 8_000_000)];
        let mut course = Course::new(varying(&steps));
        assert_eq!(course.start(1000, Nanos::ZERO), Nanos(3_500_000));
        assert_eq!(course.start(1000, Nanos::ZERO), Nanos(4_500_000));
        assert_eq!(varying(&steps).bits(Nanos::ZERO, Nanos(4_500_000)), 16_000);
        let mut idle = Course::new(varying(&steps));
        assert_eq!(idle.start(1000, Nanos(1_000_000)), Nanos(4_000_000), "comes in the stall");
    }

    #[test]
    fn what_is_no_course_is_refused() {
        let refused = |steps: &[(u64, u64)]| {
            let steps: Vec<_> = steps.iter().map(|(at, rate)| (Nanos(*at), Rate(*rate))).collect();
            Varying::new(&steps).expect_err("no course")
        };
        assert_eq!(refused(&[]), VaryingError::Empty);
        assert_eq!(refused(&[(5, 1)]), VaryingError::Start(Nanos(5)));
        assert_eq!(refused(&[(0, 1), (9, 1), (9, 2)]), VaryingError::Back(2));
        assert_eq!(refused(&[(0, 1), (9, 0)]), VaryingError::Stalled);
    }

    proptest! {
        #[test]
        fn steps_of_one_rate_are_a_fixed_rate(
            rate in 1_000u64..=1_000_000_000_000,
            spans in proptest::collection::vec(1u64..10_000_000, 0..20),
            trace in proptest::collection::vec((0u64..2_000_000, 1u32..10_000), 1..50),
        ) {
            let mut at = 0;
            let mut steps = vec![(0, rate)];
            for span in spans {
                at += span;
                steps.push((at, rate));
            }
            let mut course = Course::new(varying(&steps));
            let mut fixed = Transmitter::new(Rate(rate));
            let mut now = 0;
            for (gap, size) in trace {
                now += gap;
                prop_assert_eq!(course.start(size, Nanos(now)), fixed.start(size, Nanos(now)));
            }
        }

        /// A busy period ends as soon as its bits have been given, and not a nanosecond before.
        #[test]
        fn a_busy_period_takes_what_the_link_gives(
            rates in some_rates(),
            sizes in proptest::collection::vec(1u32..10_000, 1..50),
        ) {
            let mut course = Course::new(rates.clone());
            let end = sizes.iter().fold(Nanos::ZERO, |_, size| course.start(*size, Nanos::ZERO));
            let bits = sizes.iter().map(|size| u64::from(*size) * 8).sum::<u64>();
            prop_assert!(rates.bits(Nanos::ZERO, end) >= bits);
            prop_assert!(rates.bits(Nanos::ZERO, Nanos(end.0 - 1)) < bits);
        }

        /// From any packet on, no more is sent than the link gives; what is lost, the queue dropped.
        #[test]
        fn a_port_sends_no_more_than_its_link_gives(
            rates in some_rates(),
            arrivals in proptest::collection::vec((0u64..500_000, 1u32..10_000), 1..60),
            limit in 1u64..20,
        ) {
            let names = FlowNames::new(7);
            let spec = format!("fifo:limit={limit}packets").parse().expect("a discipline");
            let mut port = Port::new(&spec, Rate(1_000_000), 1, names, false).varying(rates.clone());
            let mut now = Nanos::ZERO;
            let mut sent = Vec::new();
            for (id, (gap, size)) in (0..).zip(&arrivals) {
                now += Nanos(*gap);
                while let Some(at) = port.next_service().filter(|at| *at <= now) {
                    sent.extend(port.serve(at));
                }
                let flow = names.id(FlowName { slot: id % 3, generation: 0 });
                port.arrive(Packet::new(flow, *size).with_id(u64::from(id)), 0, now);
            }
            while let Some(at) = port.next_service() {
                sent.extend(port.serve(at));
            }
            let lost: Vec<_> = port.take_lost().collect();
            prop_assert!(lost.iter().all(|(_, drop)| drop.reason == DropReason::Full));
            prop_assert_eq!(sent.len() + lost.len(), arrivals.len());
            let mut free = Nanos::ZERO;
            for (first, packet) in sent.iter().enumerate() {
                // Ends are rounded up: the next packet starts a fraction of a nanosecond before.
                let from = Nanos(packet.arrival.max(free).0.saturating_sub(1));
                let mut bits = 0;
                for later in &sent[first..] {
                    bits += u64::from(later.packet.size) * 8;
                    prop_assert!(bits <= rates.bits(from, later.end));
                }
                free = packet.end;
            }
        }
    }

    /// Some steps, stalls among them, and a last rate above 0.
    fn some_rates() -> impl Strategy<Value = Varying> {
        let steps = proptest::collection::vec(
            (1u64..3_000_000, prop_oneof![Just(0), 0u64..1_000_000_000]),
            0..30,
        );
        (steps, 1_000u64..1_000_000_000).prop_map(|(spans, last)| {
            let mut at = 0;
            let mut steps = Vec::new();
            for (span, rate) in spans {
                steps.push((at, rate));
                at += span;
            }
            steps.push((at, last));
            varying(&steps)
        })
    }
}
