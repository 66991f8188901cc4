//! Lists of transfers: when each starts and how much it carries.

use units::{Nanos, Rate};

use crate::law::SizeLaw;
use crate::random::Random;

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When it starts, from the start of the run on.
    pub start: Nanos,
    /// Application bytes.
    pub size_bytes: u64,
}

/// How much traffic transfers offer to a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offered {
    /// Application bytes offered as a fraction of what the rate carries; above 1 in overload.
    pub load: f64,
    /// A link's rate for headers aside: pass what is left for payload.
    pub rate: Rate,
    /// Transfers start within this time.
    pub duration: Nanos,
}

/// Why a list was refused: what was found, and what is accepted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TransferError {
    /// No load, a negative one, or one beyond reason.
    #[error("load {found} is not accepted; a load lies above 0 and is at most 5")]
    Load {
        /// The load that was given.
        found: f64,
    },
    /// A rate of 0, or without bound.
    #[error("rate {} bit/s is not accepted; a rate is 1 bit/s to 1 Tbit/s", .found.0)]
    Rate {
        /// The rate that was given.
        found: Rate,
    },
    /// A duration of 0, or without bound.
    #[error("duration {} ns is not accepted; a duration is 1 ns to 30 days", .found.0)]
    Duration {
        /// The duration that was given.
        found: Nanos,
    },
    /// More transfers than a list holds.
    #[error("{found:.0} transfers are more than a list holds; at most {} are accepted", MOST)]
    TooMany {
        /// How many there would be.
        found: f64,
    },
}

const MOST: u64 = 10_000_000;
const LONGEST: Nanos = Nanos::from_secs(30 * 86_400);
const FASTEST: Rate = Rate(1_000_000_000_000);

impl Offered {
    fn check(&self) -> Result<(), TransferError> {
        if !(self.load > 0.0 && self.load <= 5.0) {
            return Err(TransferError::Load { found: self.load });
        }
        if !(Rate(1)..=FASTEST).contains(&self.rate) {
            return Err(TransferError::Rate { found: self.rate });
        }
        if !(Nanos(1)..=LONGEST).contains(&self.duration) {
            return Err(TransferError::Duration { found: self.duration });
        }
        Ok(())
    }

    /// Application bytes in all.
    fn bytes(&self) -> f64 {
        self.load * self.rate.0 as f64 / 8.0 * (self.duration.0 as f64 / 1e9)
    }
}

/// Transfers in the order of their starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferList(Vec<Transfer>);

impl TransferList {
    /// Draws a list: as many transfers as offer the load if sizes have their mean, at least one.
    ///
    /// Starts are a Poisson process given its number of points: independent and uniform. Sizes
    /// are stratified: of `n`, one falls into each `n`th part of the law, in random order, so
    /// that a heavy tail does not make one seed's list twice another's.
    ///
    /// # Errors
    /// If load, rate or duration is out of range, or the list would be too long.
    pub fn generate(law: &SizeLaw, offered: &Offered, seed: u64) -> Result<Self, TransferError> {
        offered.check()?;
        let n = libm::round(offered.bytes() / law.mean()).max(1.0);
        if n > MOST as f64 {
            return Err(TransferError::TooMany { found: n });
        }
        let mut random = Random::new(seed);
        Ok(Self::stratified(law, n as u64, offered.duration, &mut random))
    }

    /// Draws a list of `n` transfers in `[0, duration)`, starts and sizes as
    /// [`TransferList::generate`] does.
    #[must_use]
    pub fn stratified(law: &SizeLaw, n: u64, duration: Nanos, random: &mut Random) -> Self {
        let starts = poisson_starts(n, duration, random);
        let sizes = stratified_sizes(law, n, random);
        let transfers = starts.into_iter().zip(sizes);
        Self(transfers.map(|(start, size_bytes)| Transfer { start, size_bytes }).collect())
    }

    /// Draws a list without stratification: a Poisson process, and independent sizes. Its load
    /// differs from seed to seed, as queueing theory has it; it may be empty.
    ///
    /// # Errors
    /// If load, rate or duration is out of range, or the list would be too long.
    pub fn poisson(
        law: &SizeLaw,
        offered: &Offered,
        random: &mut Random,
    ) -> Result<Self, TransferError> {
        offered.check()?;
        let expected = offered.bytes() / law.mean();
        if expected > MOST as f64 {
            return Err(TransferError::TooMany { found: expected });
        }
        let gap = offered.duration.0 as f64 / expected;
        let mut transfers = Vec::with_capacity(expected as usize);
        let mut time = 0.0;
        loop {
            time += random.exponential(gap);
            if time >= offered.duration.0 as f64 {
                return Ok(Self(transfers));
            }
            let size_bytes = law.sample(random);
            transfers.push(Transfer { start: Nanos(time as u64), size_bytes });
        }
    }

    /// Transfers of one size, `at_once` of them at `from` and every `every` after it, before
    /// `until`; once if `every` is 0.
    #[must_use]
    pub fn periodic(
        size_bytes: u64,
        at_once: u64,
        every: Nanos,
        from: Nanos,
        until: Nanos,
    ) -> Self {
        let rounds = match (until - from).0 {
            0 => 0,
            _ if every == Nanos::ZERO => 1,
            span => span.div_ceil(every.0),
        };
        let starts = (0..rounds).map(|round| from + round * every);
        let round = |start| (0..at_once).map(move |_| Transfer { start, size_bytes });
        Self(starts.flat_map(round).collect())
    }

    /// `count` transfers of one size, the first at `from`, each `spacing` after the last.
    #[must_use]
    pub fn staggered(size_bytes: u64, count: u64, spacing: Nanos, from: Nanos) -> Self {
        Self((0..count).map(|i| Transfer { start: from + i * spacing, size_bytes }).collect())
    }

    /// Puts transfers in the order of their starts; those that start together stay in order.
    #[must_use]
    pub fn new(mut transfers: Vec<Transfer>) -> Self {
        transfers.sort_by_key(|transfer| transfer.start);
        Self(transfers)
    }

    /// The transfers, in the order of their starts.
    #[must_use]
    pub fn transfers(&self) -> &[Transfer] {
        &self.0
    }

    /// Application bytes in all.
    #[must_use]
    pub fn bytes(&self) -> u128 {
        self.0.iter().map(|transfer| u128::from(transfer.size_bytes)).sum()
    }

    /// The load that the list really offers to a rate over a duration.
    #[must_use]
    pub fn load(&self, rate: Rate, duration: Nanos) -> f64 {
        self.bytes() as f64 * 8.0 / (rate.0 as f64 * (duration.0 as f64 / 1e9))
    }
}

fn poisson_starts(n: u64, duration: Nanos, random: &mut Random) -> Vec<Nanos> {
    let mut starts: Vec<_> = (0..n).map(|_| Nanos(random.below(duration.0))).collect();
    starts.sort_unstable();
    starts
}

fn stratified_sizes(law: &SizeLaw, n: u64, random: &mut Random) -> Vec<u64> {
    let mut size_of_stratum = |i: u64| law.quantile((i as f64 + random.unit()) / n as f64);
    let mut sizes: Vec<u64> = (0..n).map(&mut size_of_stratum).collect();
    random.shuffle(&mut sizes);
    sizes
}
