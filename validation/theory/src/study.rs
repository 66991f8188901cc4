//! Cases, replicates, and what may be said of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use sched::{Nanos, Spec};
use statrs::distribution::{ContinuousCDF, StudentsT};
use workload::{Offered, Random, SizeLaw, TransferList};

use crate::oracle::{Model, Queue};
use crate::trial;

/// The mean size that sizes are compared with, in bytes.
pub const MEAN: f64 = 1e6;

/// How much is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Independent replicates of each case.
    pub replicates: u64,
    /// Jobs of a replicate on average; the first and the last tenth do not count.
    pub jobs: u32,
    /// Packets in a job of mean size, with the smaller packets.
    pub packets: u32,
}

impl Extent {
    /// What the results on file were made with.
    pub const FULL: Self = Self { replicates: 40, jobs: 100_000, packets: 50 };
    /// For a test.
    pub const QUICK: Self = Self { replicates: 8, jobs: 8_000, packets: 20 };
}

/// A law with its classes of sizes, at a load.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The law of sizes.
    pub law: &'static str,
    /// Where classes begin, relative to [`MEAN`]. The last has no end; what lies below the first
    /// counts only among all jobs.
    pub edges: &'static [f64],
    /// The load.
    pub load: f64,
}

const EXPONENTIAL: &str = "exponential:mean=1000000b";
const EXPONENTIAL_EDGES: &[f64] = &[0.1, 0.3, 0.7, 1.5, 3.0];
/// A power tail over two decades. Over three, a mean response time under FIFO takes a hundred
/// million jobs to be known to 1 %: its variance goes with the fourth moment.
const HEAVY: &str = "bounded-pareto:shape=1.5,min=370000b,max=37000000b";
const HEAVY_EDGES: &[f64] = &[0.37, 0.5, 0.8, 1.5, 5.0, 15.0];

/// All cases.
pub const CASES: [Case; 4] = [
    Case { law: EXPONENTIAL, edges: EXPONENTIAL_EDGES, load: 0.5 },
    Case { law: EXPONENTIAL, edges: EXPONENTIAL_EDGES, load: 0.8 },
    Case { law: HEAVY, edges: HEAVY_EDGES, load: 0.5 },
    Case { law: HEAVY, edges: HEAVY_EDGES, load: 0.8 },
];

/// What of a job is in the first level of two, in bytes: a whole number of packets of any size
/// that is used here.
const THRESHOLD: f64 = MEAN;

/// The disciplines under test, with what they are to be like.
pub const MODELS: [Model; 5] = [
    Model::Fifo,
    Model::ProcessorSharing,
    Model::LeastAttained,
    Model::TwoLevels { threshold: THRESHOLD },
    Model::ShortestRemaining,
];

/// The discipline that is to behave like a model, with packets of this size.
#[must_use]
pub fn discipline(model: Model, packet_bytes: u32) -> String {
    let limit = "limit=4000000000packets";
    match model {
        Model::Fifo => format!("fifo:{limit}"),
        Model::ProcessorSharing => format!("drr:quantum={packet_bytes}b,{limit}"),
        Model::LeastAttained => format!("las:{limit}"),
        Model::TwoLevels { threshold } => format!("run2c:threshold={threshold}b,{limit}"),
        Model::ShortestRemaining => format!("srpt:{limit}"),
    }
}

/// A mean response time, simulated and calculated, relative to the time of a job of mean size.
#[derive(Clone, Debug)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// The model.
    pub model: Model,
    /// Sizes from and to, relative to the mean; `None` for all jobs.
    pub class: Option<(f64, f64)>,
    /// Jobs counted.
    pub jobs: u64,
    /// The closed form, averaged over the sizes of the jobs that were simulated.
    pub theory: f64,
    /// What was simulated, extrapolated to packets of no size.
    pub simulated: f64,
    /// The standard error of the difference between the two.
    pub error: f64,
    /// What was taken out by extrapolation: how much packets of the smaller size add.
    pub granularity: f64,
    /// Replicates.
    pub replicates: u64,
}

impl Row {
    /// Half the width of an interval of this confidence.
    #[must_use]
    pub fn reach(&self, confidence: f64) -> f64 {
        let freedom = self.replicates as f64 - 1.0;
        let quantile = StudentsT::new(0.0, 1.0, freedom)
            .map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - (1.0 - confidence) / 2.0));
        quantile * self.error
    }

    /// Whether the theory lies within the interval of this confidence.
    #[must_use]
    pub fn agrees(&self, confidence: f64) -> bool {
        (self.simulated - self.theory).abs() <= self.reach(confidence)
    }
}

/// The confidence of each of `rows` intervals that makes all of them hold together with 95 %
/// (Bonferroni).
#[must_use]
pub fn simultaneous(rows: usize) -> f64 {
    1.0 - 0.05 / rows.max(1) as f64
}

/// Runs all cases on `threads` threads, and says after each replicate how many of how many are
/// done.
///
/// # Errors
/// If a simulation fails: what is wrong with it.
pub fn run(
    extent: &Extent,
    threads: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Row>, String> {
    let tasks: Vec<(usize, u64)> = (0..CASES.len())
        .flat_map(|case| (0..extent.replicates).map(move |replicate| (case, replicate)))
        .collect();
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((case, seed)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = replicate(&CASES[*case], *seed, extent);
                    let mut all = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push((*case, *seed, outcome));
                    progress(all.len(), tasks.len());
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    // In the order of replicates, whatever the order in which they ended.
    outcomes.sort_by_key(|(case, seed, _)| (*case, *seed));
    let mut by_case = vec![Vec::new(); CASES.len()];
    for (case, _, outcome) in outcomes {
        by_case[case].push(outcome?);
    }
    let cases = CASES.iter().zip(&by_case);
    Ok(cases.flat_map(|(case, replicates)| rows(case, replicates)).collect())
}

/// Sums over the jobs of one replicate, by class; the last is that of all jobs.
#[derive(Clone, Debug, Default)]
struct Replicate {
    jobs: Vec<f64>,
    /// By model, then by class.
    theory: Vec<Vec<f64>>,
    fine: Vec<Vec<f64>>,
    coarse: Vec<Vec<f64>>,
}

fn replicate(case: &Case, seed: u64, extent: &Extent) -> Result<Replicate, String> {
    let law: SizeLaw = case.law.parse().map_err(|e| format!("{}: {e}", case.law))?;
    let queue = Queue::new(&law, case.load);
    let duration = Nanos((f64::from(extent.jobs) / queue.rate()) as u64);
    let offered = Offered { load: case.load, rate: trial::RATE, duration };
    let mut random = Random::of(seed, &format!("{} {}", case.law, case.load));
    let list = TransferList::poisson(&law, &offered, &mut random).map_err(|e| e.to_string())?;
    let counted = duration / 10..duration / 10 * 9;
    let classes = case.edges.len() + 1;
    let class_of: Vec<Option<usize>> = list
        .transfers()
        .iter()
        .map(|job| counted.contains(&job.start).then(|| class(case, job.size_bytes)))
        .collect();
    // The first class of a trial is that of jobs below all edges, which become part of the rest.
    let folded = |sums: Vec<f64>| {
        let all = sums.iter().sum();
        sums.into_iter().skip(1).chain([all]).collect::<Vec<f64>>()
    };
    let sum = |of: &dyn Fn(u64) -> f64| {
        let mut sums = vec![0.0; classes];
        for (job, class) in list.transfers().iter().zip(&class_of) {
            if let Some(class) = class {
                sums[*class] += of(job.size_bytes);
            }
        }
        folded(sums)
    };
    let mut outcome = Replicate { jobs: sum(&|_| 1.0), ..Replicate::default() };
    let fine_bytes = MEAN as u32 / extent.packets;
    for model in MODELS {
        let trial = |packet_bytes: u32| {
            let text = discipline(model, packet_bytes);
            let spec: Spec = text.parse().map_err(|e| format!("{text}: {e}"))?;
            trial::run(&list, &class_of, classes, &spec, packet_bytes).map(folded)
        };
        // A FIFO does not care how a job is cut into packets.
        let whole = model == Model::Fifo;
        let fine = trial(if whole { u32::MAX } else { fine_bytes })?;
        let coarse = if whole { fine.clone() } else { trial(2 * fine_bytes)? };
        outcome.fine.push(fine);
        outcome.coarse.push(coarse);
        outcome.theory.push(sum(&|size| queue.response(model, size as f64)));
    }
    Ok(outcome)
}

/// 0 below all edges.
fn class(case: &Case, size: u64) -> usize {
    case.edges.partition_point(|edge| edge * MEAN <= size as f64)
}

fn rows(case: &Case, replicates: &[Replicate]) -> Vec<Row> {
    let n = replicates.len() as f64;
    let mut rows = Vec::new();
    for (place, model) in MODELS.into_iter().enumerate() {
        for class in 0..=case.edges.len() {
            let sum = |of: &dyn Fn(&Replicate) -> f64| replicates.iter().map(of).sum::<f64>();
            let jobs = sum(&|r| r.jobs[class]);
            let mean = |of: &dyn Fn(&Replicate) -> f64| sum(of) / jobs / MEAN;
            let limit = |r: &Replicate| 2.0 * r.fine[place][class] - r.coarse[place][class];
            // Replicates differ in their numbers of jobs: the ratio estimator, and its error.
            let excess = |r: &Replicate| limit(r) - r.theory[place][class];
            let bias = sum(&excess) / jobs;
            let spread = sum(&|r| (excess(r) - bias * r.jobs[class]).powi(2));
            let error = (spread / (n * (n - 1.0))).sqrt() * n / jobs / MEAN;
            rows.push(Row {
                case: *case,
                model,
                class: case.edges.get(class).map(|from| {
                    (*from, case.edges.get(class + 1).copied().unwrap_or(f64::INFINITY))
                }),
                jobs: jobs as u64,
                theory: mean(&|r| r.theory[place][class]),
                simulated: mean(&limit),
                error,
                granularity: mean(&|r| r.coarse[place][class] - r.fine[place][class]),
                replicates: replicates.len() as u64,
            });
        }
    }
    rows
}
