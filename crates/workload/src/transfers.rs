//! Lists of transfers: when each starts and how much it carries.

use crate::law::SizeLaw;
use crate::random::Random;

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When it starts, in nanoseconds from the start of the run.
    pub start_ns: u64,
    /// Application bytes.
    pub size_bytes: u64,
}

/// How much traffic transfers offer to a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offered {
    /// Application bytes offered as a fraction of what the rate carries; above 1 in overload.
    pub load: f64,
    /// The rate in bit/s. A link's rate for headers aside: pass what is left for payload.
    pub rate_bps: u64,
    /// Transfers start within this time.
    pub duration_ns: u64,
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
    #[error("rate {found} bit/s is not accepted; a rate is 1 bit/s to 1 Tbit/s")]
    Rate {
        /// The rate that was given.
        found: u64,
    },
    /// A duration of 0, or without bound.
    #[error("duration {found} ns is not accepted; a duration is 1 ns to 30 days")]
    Duration {
        /// The duration that was given.
        found: u64,
    },
    /// More transfers than a list holds.
    #[error("{found:.0} transfers are more than a list holds; at most {} are accepted", MOST)]
    TooMany {
        /// How many there would be.
        found: f64,
    },
}

const MOST: u64 = 10_000_000;
const LONGEST_NS: u64 = 30 * 86_400 * 1_000_000_000;
const FASTEST_BPS: u64 = 1_000_000_000_000;

impl Offered {
    fn check(&self) -> Result<(), TransferError> {
        if !(self.load > 0.0 && self.load <= 5.0) {
            return Err(TransferError::Load { found: self.load });
        }
        if !(1..=FASTEST_BPS).contains(&self.rate_bps) {
            return Err(TransferError::Rate { found: self.rate_bps });
        }
        if !(1..=LONGEST_NS).contains(&self.duration_ns) {
            return Err(TransferError::Duration { found: self.duration_ns });
        }
        Ok(())
    }

    /// Application bytes in all.
    fn bytes(&self) -> f64 {
        self.load * self.rate_bps as f64 / 8.0 * (self.duration_ns as f64 / 1e9)
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
        Ok(Self::stratified(law, n as u64, offered.duration_ns, &mut random))
    }

    /// Draws a list of `n` transfers in `[0, duration_ns)`, starts and sizes as
    /// [`TransferList::generate`] does.
    #[must_use]
    pub fn stratified(law: &SizeLaw, n: u64, duration_ns: u64, random: &mut Random) -> Self {
        let starts = poisson_starts(n, duration_ns, random);
        let sizes = stratified_sizes(law, n, random);
        let transfers = starts.into_iter().zip(sizes);
        Self(transfers.map(|(start_ns, size_bytes)| Transfer { start_ns, size_bytes }).collect())
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
        let gap = offered.duration_ns as f64 / expected;
        let mut transfers = Vec::with_capacity(expected as usize);
        let mut time = 0.0;
        loop {
            time += random.exponential(gap);
            if time >= offered.duration_ns as f64 {
                return Ok(Self(transfers));
            }
            let size_bytes = law.sample(random);
            transfers.push(Transfer { start_ns: time as u64, size_bytes });
        }
    }

    /// Transfers of one size, `at_once` of them at `from_ns` and every `every_ns` after it, before
    /// `until_ns`; once if `every_ns` is 0.
    #[must_use]
    pub fn periodic(
        size_bytes: u64,
        at_once: u64,
        every_ns: u64,
        from_ns: u64,
        until_ns: u64,
    ) -> Self {
        let rounds = match until_ns.saturating_sub(from_ns) {
            0 => 0,
            _ if every_ns == 0 => 1,
            span => span.div_ceil(every_ns),
        };
        let starts = (0..rounds).map(|round| from_ns + round * every_ns);
        let round = |start_ns| (0..at_once).map(move |_| Transfer { start_ns, size_bytes });
        Self(starts.flat_map(round).collect())
    }

    /// `count` transfers of one size, the first at `from_ns`, each `spacing_ns` after the last.
    #[must_use]
    pub fn staggered(size_bytes: u64, count: u64, spacing_ns: u64, from_ns: u64) -> Self {
        let start_ns = |i: u64| from_ns.saturating_add(i.saturating_mul(spacing_ns));
        Self((0..count).map(|i| Transfer { start_ns: start_ns(i), size_bytes }).collect())
    }

    /// Puts transfers in the order of their starts; those that start together stay in order.
    #[must_use]
    pub fn new(mut transfers: Vec<Transfer>) -> Self {
        transfers.sort_by_key(|transfer| transfer.start_ns);
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

    /// The load that the list really offers to `rate_bps` over `duration_ns`.
    #[must_use]
    pub fn load(&self, rate_bps: u64, duration_ns: u64) -> f64 {
        self.bytes() as f64 * 8.0 / (rate_bps as f64 * (duration_ns as f64 / 1e9))
    }
}

fn poisson_starts(n: u64, duration_ns: u64, random: &mut Random) -> Vec<u64> {
    let mut starts: Vec<u64> = (0..n).map(|_| random.below(duration_ns)).collect();
    starts.sort_unstable();
    starts
}

fn stratified_sizes(law: &SizeLaw, n: u64, random: &mut Random) -> Vec<u64> {
    let mut size_of_stratum = |i: u64| law.quantile((i as f64 + random.unit()) / n as f64);
    let mut sizes: Vec<u64> = (0..n).map(&mut size_of_stratum).collect();
    random.shuffle(&mut sizes);
    sizes
}
