//! What came of a round, measured or simulated.

use crate::case::{Case, Work};

/// What came of a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Data received of each flow without end in the measured time, in bit/s.
    pub goodput_bps: Vec<f64>,
    /// Packets in the queue towards the client, on average over the measured time.
    pub queue_packets: f64,
    /// Packets dropped there, of those that arrived in the whole round.
    pub loss: f64,
    /// Segments that all flows without end sent again in the whole round.
    pub retransmissions: f64,
    /// Their retransmission timeouts.
    pub timeouts: f64,
    /// Packets that came from the client in the whole round, for each one sent towards it: how
    /// often it acknowledges.
    pub acks: f64,
    /// Completion time of each transfer in ms; `None` if incomplete.
    pub completion_ms: Vec<Option<f64>>,
}

impl Outcome {
    /// Bits per second of `bytes` received in the measured time.
    #[must_use]
    pub fn rate_bps(case: &Case, bytes: u64) -> f64 {
        bytes as f64 * 8e9 / case.measured.since(case.warm_up).0.max(1) as f64
    }

    /// As names and values. A transfer's name has its size, so that values read from a file fit
    /// the list they were measured with or are noticed.
    #[must_use]
    pub fn values(&self, work: &Work) -> Vec<(String, Option<f64>)> {
        let flows = self.goodput_bps.iter().enumerate();
        let mut values: Vec<_> =
            flows.map(|(flow, bps)| (format!("goodput {flow}"), Some(*bps))).collect();
        for (name, value) in [
            ("queue", self.queue_packets),
            ("loss", self.loss),
            ("retransmissions", self.retransmissions),
            ("timeouts", self.timeouts),
            ("acks", self.acks),
        ] {
            values.push((name.to_owned(), Some(value)));
        }
        let transfers = work.transfers.transfers().iter().zip(&self.completion_ms);
        values.extend(transfers.enumerate().map(|(index, (transfer, ms))| {
            (format!("transfer {index} of {} bytes", transfer.size_bytes), *ms)
        }));
        values
    }

    /// The opposite of [`values`](Self::values).
    ///
    /// # Errors
    /// If a value is missing.
    pub fn from_values(
        work: &Work,
        value: impl Fn(&str) -> Option<Option<f64>>,
    ) -> Result<Self, String> {
        let long = 1 + usize::from(work.far.is_some());
        let mut outcome = Self {
            goodput_bps: vec![0.0; long],
            completion_ms: vec![None; work.transfers.transfers().len()],
            ..Self::default()
        };
        let mut read = Vec::new();
        for (name, _) in outcome.values(work) {
            read.push(value(&name).ok_or_else(|| format!("there is no '{name}'"))?);
        }
        let mut read = read.into_iter();
        let mut next = || read.next().flatten();
        for bps in &mut outcome.goodput_bps {
            *bps = next().unwrap_or_default();
        }
        for field in [
            &mut outcome.queue_packets,
            &mut outcome.loss,
            &mut outcome.retransmissions,
            &mut outcome.timeouts,
            &mut outcome.acks,
        ] {
            *field = next().unwrap_or_default();
        }
        outcome.completion_ms.iter_mut().for_each(|ms| *ms = next());
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn an_outcome_survives_as_names_and_values() {
        let case = Case::all().pop().expect("the last case has transfers");
        let work = case.work(1);
        let transfers = work.transfers.transfers().len();
        let mut completion_ms = vec![Some(3.5); transfers];
        completion_ms[1] = None;
        let outcome = Outcome {
            goodput_bps: vec![9e6],
            queue_packets: 12.5,
            loss: 0.01,
            retransmissions: 8.0,
            timeouts: 1.0,
            acks: 0.5,
            completion_ms,
        };
        let values: HashMap<_, _> = outcome.values(&work).into_iter().collect();
        let read = Outcome::from_values(&work, |name| values.get(name).copied());
        assert_eq!(read, Ok(outcome));
        let missing = Outcome::from_values(&work, |name| {
            values.get(name).copied().filter(|_| name != "loss")
        });
        assert_eq!(missing, Err("there is no 'loss'".to_owned()));
    }
}
