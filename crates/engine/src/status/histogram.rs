//! How long packets were queued, in buckets.

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
    /// All times together, in nanoseconds. It begins anew at 2^64, as the kernel's does: after
    /// months of a busy link with a long queue.
    pub sum_ns: u64,
}

impl Histogram {
    /// Counts a time.
    #[inline]
    pub fn count(&mut self, ns: u64) {
        let bits = (u64::BITS - ns.leading_zeros()) as usize;
        self.counts[bits.saturating_sub(FIRST_BOUND).min(BUCKETS - 1)] += 1;
        self.sum_ns = self.sum_ns.wrapping_add(ns);
    }

    /// What the times in a bucket are below, in nanoseconds; none for the open one.
    #[must_use]
    pub const fn bound_ns(bucket: usize) -> Option<u64> {
        if bucket + 1 < BUCKETS { Some(1 << (bucket + FIRST_BOUND)) } else { None }
    }

    /// Packets in all.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A time that this part of the packets stayed below, in nanoseconds; 0 without packets,
    /// `u64::MAX` for the open bucket.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> u64 {
        let wanted = (self.packets() as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= wanted {
                return Self::bound_ns(bucket).unwrap_or(u64::MAX);
            }
        }
        0
    }

    /// Their mean, in nanoseconds; 0 without packets.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.packets()).unwrap_or(0)
    }

    /// What has been counted since an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = std::array::from_fn(|bucket| {
            self.counts[bucket].saturating_sub(earlier.counts[bucket])
        });
        Self { counts, sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns) }
    }
}

/// The document has the buckets that packets are in, by their bounds.
#[derive(Serialize, Deserialize)]
struct Written {
    buckets: Vec<Bucket>,
    sum_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct Bucket {
    below_ns: Option<u64>,
    packets: u64,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let occupied = self.counts.iter().enumerate().filter(|(_, packets)| **packets > 0);
        let bucket = |(at, packets): (usize, &u64)| Bucket {
            below_ns: Self::bound_ns(at),
            packets: *packets,
        };
        Written { buckets: occupied.map(bucket).collect(), sum_ns: self.sum_ns }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { buckets, sum_ns } = Written::deserialize(deserializer)?;
        let mut histogram = Self { sum_ns, ..Self::default() };
        for Bucket { below_ns, packets } in buckets {
            let at = (0..BUCKETS).find(|bucket| Self::bound_ns(*bucket) == below_ns);
            let unknown = || serde::de::Error::custom("a bucket that is none of a histogram's");
            histogram.counts[at.ok_or_else(unknown)?] += packets;
        }
        Ok(histogram)
    }
}
