//! Simulator over kernel, with intervals over rounds.

use measure::SizeClass;
use measure::stats::{Estimate, ratio_of_sums};

use crate::case::{Case, PAYLOAD_BYTES};
use crate::outcome::Outcome;

/// One round, measured and simulated.
pub struct Round {
    /// Its number.
    pub number: u64,
    /// By the kernel.
    pub kernel: Outcome,
    /// By the simulator.
    pub simulated: Outcome,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Of all flows without end together.
    Goodput,
    /// Of the flow with the longer round-trip time, in both flows' goodput.
    FarShare,
    /// Mean completion time of transfers of a size.
    Completion(SizeClass),
    /// Mean length of the queue.
    Queue,
    /// Part of packets dropped.
    Loss,
}

/// A quantity on both sides.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which.
    pub quantity: Quantity,
    /// Mean over rounds, of the kernel. Completion times: mean over transfers.
    pub kernel: f64,
    /// The same of the simulator.
    pub simulated: f64,
    /// Simulator over kernel; none if either is 0.
    pub ratio: Option<Estimate>,
    /// Transfers complete on both sides, where it is about these.
    pub transfers: Option<usize>,
}

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The ratio is no further from 1 than is accepted.
    Within,
    /// It is, but its interval contains 1.
    Unclear,
    /// The two differ.
    Differs,
}

impl Quantity {
    /// How far a ratio may be from 1.
    #[must_use]
    pub const fn tolerance(self) -> f64 {
        match self {
            Self::Queue | Self::Loss => 0.15,
            _ => 0.10,
        }
    }

    /// In tables, with its unit.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Goodput => "throughput, Mbit/s".into(),
            Self::FarShare => "share of the farther flow, %".into(),
            Self::Completion(class) => {
                format!("completion, {} packets, ms", class.name().replace('-', " to "))
            }
            Self::Queue => "queue, packets".into(),
            Self::Loss => "loss, %".into(),
        }
    }

    /// Of one round; the second number is what the first is a sum over.
    fn of(self, outcome: &Outcome) -> f64 {
        let goodput: f64 = outcome.goodput_bps.iter().sum();
        match self {
            Self::Goodput => goodput / 1e6,
            Self::FarShare => 100.0 * outcome.goodput_bps.get(1).unwrap_or(&0.0) / goodput,
            Self::Queue => outcome.queue_packets,
            Self::Loss => 100.0 * outcome.loss,
            Self::Completion(_) => 0.0,
        }
    }
}

impl Row {
    /// What it says.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.ratio {
            Some(ratio) if (ratio.value - 1.0).abs() <= self.quantity.tolerance() => {
                Verdict::Within
            }
            Some(ratio) if ratio.is_below(1.0) || ratio.is_above(1.0) => Verdict::Differs,
            Some(_) => Verdict::Unclear,
            None if self.kernel == self.simulated => Verdict::Within,
            None => Verdict::Differs,
        }
    }
}

/// All quantities of a case.
#[must_use]
pub fn rows(case: &Case, rounds: &[Round]) -> Vec<Row> {
    use crate::case::Kind;
    let plain = |quantity| plain(quantity, rounds);
    let mut rows = vec![plain(Quantity::Goodput)];
    match case.kind {
        Kind::Endless => {}
        Kind::Shares { .. } => rows.push(plain(Quantity::FarShare)),
        Kind::Transfers { .. } => {
            rows.extend(SizeClass::ALL.iter().filter_map(|class| completion(*class, case, rounds)));
        }
    }
    rows.extend([Quantity::Queue, Quantity::Loss].map(plain));
    rows
}

fn plain(quantity: Quantity, rounds: &[Round]) -> Row {
    let both = |round: &Round| (quantity.of(&round.simulated), quantity.of(&round.kernel));
    let pairs: Vec<(f64, f64)> = rounds.iter().map(both).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let (simulated, kernel) = (mean(|pair| pair.0), mean(|pair| pair.1));
    Row { quantity, kernel, simulated, ratio: ratio_of_sums(&pairs), transfers: None }
}

/// Fewer transfers than this say nothing.
const LEAST_TRANSFERS: usize = 20;

/// Of the transfers of a class that are complete on both sides; none if they are too few.
fn completion(class: SizeClass, case: &Case, rounds: &[Round]) -> Option<Row> {
    let mut sums = Vec::new();
    let mut count = 0;
    for round in rounds {
        let list = case.work(round.number).transfers;
        let times = round.simulated.completion_ms.iter().zip(&round.kernel.completion_ms);
        let mut sum = (0.0, 0.0);
        for (transfer, times) in list.transfers().iter().zip(times) {
            let of_class =
                SizeClass::of_bytes(transfer.size_bytes, u64::from(PAYLOAD_BYTES)) == class;
            if let (true, (Some(simulated), Some(kernel))) = (of_class, times) {
                sum = (sum.0 + simulated, sum.1 + kernel);
                count += 1;
            }
        }
        sums.push(sum);
    }
    let mean = |of: fn(&(f64, f64)) -> f64| sums.iter().map(of).sum::<f64>() / count as f64;
    (count >= LEAST_TRANSFERS).then(|| Row {
        quantity: Quantity::Completion(class),
        kernel: mean(|sum| sum.1),
        simulated: mean(|sum| sum.0),
        ratio: ratio_of_sums(&sums),
        transfers: Some(count),
    })
}

/// Transfers that are incomplete in the simulator, and with the kernel.
#[must_use]
pub fn incomplete(rounds: &[Round]) -> (usize, usize) {
    let missing =
        |outcome: &Outcome| outcome.completion_ms.iter().filter(|ms| ms.is_none()).count();
    let sum = |side: fn(&Round) -> &Outcome| rounds.iter().map(side).map(missing).sum();
    (sum(|round| &round.simulated), sum(|round| &round.kernel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Kind;

    fn flows(goodput_bps: &[f64], loss: f64) -> Outcome {
        Outcome { goodput_bps: goodput_bps.to_vec(), loss, ..Outcome::default() }
    }

    fn round(number: u64, kernel: Outcome, simulated: Outcome) -> Round {
        Round { number, kernel, simulated }
    }

    #[test]
    fn a_share_is_that_of_the_farther_flow_and_ratios_are_simulator_over_kernel() {
        let cases = Case::all();
        let case = cases.iter().find(|case| matches!(case.kind, Kind::Shares { .. }));
        let rounds: Vec<Round> = (0..8)
            .map(|n| {
                let wobble = 1e4 * n as f64;
                let kernel = flows(&[6e6 + wobble, 3e6], 0.01);
                round(n, kernel, flows(&[7e6, 2e6 + wobble], 0.0))
            })
            .collect();
        let rows = rows(case.expect("there is one"), &rounds);
        let [goodput, share, queue, loss] = &rows[..] else { panic!("four rows: {rows:?}") };
        assert!((goodput.kernel - 9.035).abs() < 1e-9, "{goodput:?}");
        assert_eq!(goodput.verdict(), Verdict::Within);
        assert!((share.kernel - 33.2).abs() < 0.1 && (share.simulated - 22.5).abs() < 0.1);
        let ratio = share.ratio.expect("a ratio");
        assert!((ratio.value - 0.677).abs() < 0.005 && ratio.is_below(0.7), "{ratio:?}");
        assert_eq!(share.verdict(), Verdict::Differs);
        // Nothing queued on either side; loss on one side alone.
        assert_eq!((queue.ratio, queue.verdict()), (None, Verdict::Within));
        assert_eq!((loss.ratio, loss.verdict()), (None, Verdict::Differs));
    }

    #[test]
    fn a_ratio_that_noise_can_explain_is_unclear() {
        let case = &Case::all()[0];
        let rounds: Vec<Round> = [9e6, 5e6, 8e6, 1e6]
            .iter()
            .zip(0..)
            .map(|(bps, n)| round(n, flows(&[*bps], 0.1), flows(&[9.5e6 - bps / 3.0], 0.1)))
            .collect();
        assert_eq!(rows(case, &rounds)[0].verdict(), Verdict::Unclear);
    }

    #[test]
    fn completion_times_are_of_transfers_complete_on_both_sides() {
        let cases = Case::all();
        let case = cases.iter().find(|case| matches!(case.kind, Kind::Transfers { .. }));
        let case = case.expect("there is one");
        let rounds: Vec<Round> = (0..3)
            .map(|n| {
                let transfers = case.work(n).transfers.transfers().len();
                let with = |ms, first| {
                    let mut completion_ms = vec![Some(ms); transfers];
                    completion_ms[0] = first;
                    Outcome { completion_ms, ..flows(&[5e6], 0.1) }
                };
                round(n, with(50.0, None), with(60.0 + n as f64, Some(1e9)))
            })
            .collect();
        let completions: Vec<Row> = rows(case, &rounds)
            .into_iter()
            .filter(|row| matches!(row.quantity, Quantity::Completion(_)))
            .collect();
        let transfers: usize = completions.iter().filter_map(|row| row.transfers).sum();
        let all: usize = (0..3).map(|n| case.work(n).transfers.transfers().len()).sum();
        let shown = |class: SizeClass| !matches!(class, SizeClass::Over1000);
        let list = |n| case.work(n).transfers;
        let class = |bytes| SizeClass::of_bytes(bytes, u64::from(PAYLOAD_BYTES));
        let too_few = (0..3).flat_map(|n| list(n).transfers()[1..].to_vec());
        let too_few = too_few.filter(|t| !shown(class(t.size_bytes))).count();
        assert!(too_few < LEAST_TRANSFERS);
        assert_eq!(transfers, all - 3 - too_few);
        assert!(completions.iter().all(|row| (1.2..1.25).contains(&row.ratio.unwrap().value)));
        assert_eq!(incomplete(&rounds), (0, 3));
    }
}
