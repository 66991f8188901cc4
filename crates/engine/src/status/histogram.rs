//! How long packets were queued, in buckets.

use sched::Nanos;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Buckets of a [`Histogram`].
pub const BUCKETS: usize = 28;
/// The first bucket's bound is 2 to the power of this, in nanoseconds.
const FIRST_BOUND: usize = 10;

/// How long packets were queued, in buckets that double: the first one has those below 1024 ns,
/// the last one is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Packets, by bucket.
    pub counts: [u64; BUCKETS],
    /// All times together. It begins anew at 2^64 ns, as the kernel's does: after months of a busy
    /// link with a long queue.
    pub sum: Nanos,
}

impl Histogram {
    /// Counts a time.
    #[inline]
    pub fn count(&mut self, time: Nanos) {
        let bits = (u64::BITS - time.0.leading_zeros()) as usize;
        self.counts[bits.saturating_sub(FIRST_BOUND).min(BUCKETS - 1)] += 1;
        self.sum = Nanos(self.sum.0.wrapping_add(time.0));
    }

    /// What the times in a bucket are below; [`Nanos::MAX`] for the open one.
    #[must_use]
    pub const fn bound(bucket: usize) -> Nanos {
        if bucket + 1 < BUCKETS { Nanos(1 << (bucket + FIRST_BOUND)) } else { Nanos::MAX }
    }

    /// Packets in all.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A time that this part of the packets stayed below: a bucket's bound; 0 without packets.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Nanos {
        let wanted = (self.packets() as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= wanted {
                return Self::bound(bucket);
            }
        }
        Nanos::ZERO
    }

    /// Their mean; 0 without packets.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        Nanos(self.sum.0.checked_div(self.packets()).unwrap_or(0))
    }

    /// What has been counted since an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = std::array::from_fn(|bucket| {
            self.counts[bucket].saturating_sub(earlier.counts[bucket])
        });
        Self { counts, sum: self.sum.since(earlier.sum) }
    }
}

/// The document has the buckets that packets are in, by their bounds.
#[derive(Serialize, Deserialize)]
struct Written {
    buckets: Vec<Bucket>,
    #[serde(rename = "sum_ns")]
    sum: Nanos,
}

#[derive(Serialize, Deserialize)]
struct Bucket {
    #[serde(rename = "below_ns")]
    below: Option<Nanos>,
    packets: u64,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let occupied = self.counts.iter().enumerate().filter(|(_, packets)| **packets > 0);
        let bucket = |(at, packets): (usize, &u64)| Bucket {
            below: Some(Self::bound(at)).filter(|bound| *bound < Nanos::MAX),
            packets: *packets,
        };
        Written { buckets: occupied.map(bucket).collect(), sum: self.sum }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { buckets, sum } = Written::deserialize(deserializer)?;
        let mut histogram = Self { sum, ..Self::default() };
        for Bucket { below, packets } in buckets {
            let bound = below.unwrap_or(Nanos::MAX);
            let at = (0..BUCKETS).find(|bucket| Self::bound(*bucket) == bound);
            let unknown = || serde::de::Error::custom("a bucket that is none of a histogram's");
            histogram.counts[at.ok_or_else(unknown)?] += packets;
        }
        Ok(histogram)
    }
}
