// SPDX-License-Identifier: GPL-2.0-only
//! A distribution of times as the kernel counts it (`bpf/distribution.bpf.h`).

use super::additive::Additive;
use serde::{Deserialize, Serialize};

/// Bits below the leading one that tell buckets of one power of two apart.
const SUB_BITS: u32 = 3;
/// Longest time told apart from longer ones: 2^40 ns, 18 minutes.
const TOP_BIT: u32 = 40;

/// A distribution of times. A bucket is at most 1/8 of its value wide, so
/// quantiles are good to 6 %; count and sum are exact, and the largest, too,
/// but in the difference of two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Samples.
    pub count: u64,
    /// All samples together. Nanoseconds.
    pub sum_ns: u64,
    /// Largest sample. Nanoseconds.
    pub max_ns: u64,
    /// Samples by bucket, up to the last one that has any.
    #[serde(with = "sparse")]
    buckets: Vec<u64>,
}

impl Histogram {
    /// Buckets of one.
    pub const BUCKETS: usize = ((TOP_BIT - SUB_BITS + 1) << SUB_BITS) as usize;

    /// The distribution that the kernel counted.
    pub fn new(
        count: u64,
        sum_ns: u64,
        max_ns: u64,
        buckets: impl IntoIterator<Item = u64>,
    ) -> Self {
        let mut histogram = Self {
            count,
            sum_ns,
            max_ns,
            buckets: buckets.into_iter().take(Self::BUCKETS).collect(),
        };
        histogram.trim();
        histogram
    }

    /// The distribution of `samples` in nanoseconds.
    pub fn of(samples: &[u64]) -> Self {
        let mut histogram = Self::default();
        for sample in samples {
            histogram.record(*sample);
        }
        histogram
    }

    /// Adds one sample in nanoseconds.
    pub fn record(&mut self, ns: u64) {
        let at = bucket(ns);
        if self.buckets.len() <= at {
            self.buckets.resize(at + 1, 0);
        }
        self.buckets[at] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        let longest = self.buckets.len().max(other.buckets.len());
        self.buckets.resize(longest, 0);
        for (sum, n) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += n;
        }
    }

    /// Arithmetic mean, 0 without samples. Nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum_ns as f64 / self.count as f64
    }

    /// A value that a share `quantile` (0 to 1) of the samples do not exceed: the
    /// middle of its bucket, never more than the largest sample. Nanoseconds;
    /// 0 without samples.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let total: u64 = self.buckets.iter().sum();
        let wanted = total as f64 * quantile;
        let mut seen = 0;
        for (value_ns, count) in self.samples() {
            seen += count;
            if seen as f64 >= wanted {
                return value_ns;
            }
        }
        0
    }

    /// All samples as pairs of a value in nanoseconds and how many have it: each
    /// bucket stands for its middle, and the largest sample for itself.
    pub fn samples(&self) -> impl Iterator<Item = (u64, u64)> {
        let filled = self.filled();
        let last = filled.clone().last().map(|(index, _)| index);
        filled.flat_map(move |(index, count)| {
            let top = u64::from(Some(index) == last);
            let middle_ns = middle_ns(index).min(self.max_ns);
            [(middle_ns, count - top), (self.max_ns, top)]
                .into_iter()
                .filter(|(_, n)| *n > 0)
        })
    }

    /// Buckets that have samples: the largest time that each holds, in nanoseconds, and
    /// how many samples it has. In rising order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.filled().map(|(index, n)| (last_ns(index), n))
    }

    fn filled(&self) -> impl Iterator<Item = (u32, u64)> + Clone {
        let all = self.buckets.iter().zip(0_u32..);
        all.filter(|(n, _)| **n > 0).map(|(n, index)| (index, *n))
    }

    fn trim(&mut self) {
        let len = self
            .buckets
            .iter()
            .rposition(|n| *n > 0)
            .map_or(0, |i| i + 1);
        self.buckets.truncate(len);
    }
}

impl Additive for Histogram {
    fn add(&mut self, other: &Self) {
        self.merge(other);
    }

    /// The largest of the difference is not known but by its bucket.
    fn subtract(&mut self, before: &Self) {
        self.count.subtract(&before.count);
        self.sum_ns.subtract(&before.sum_ns);
        for (now, then) in self.buckets.iter_mut().zip(&before.buckets) {
            now.subtract(then);
        }
        self.trim();
        let last = self.filled().last().map_or(0, |(index, _)| last_ns(index));
        self.max_ns = self.max_ns.min(last);
    }
}

/// The bucket of a time, as the kernel's code chooses it.
fn bucket(ns: u64) -> usize {
    let index = match ns.checked_ilog2() {
        Some(top) if top >= TOP_BIT => return Histogram::BUCKETS - 1,
        Some(top) if top >= SUB_BITS => {
            let shift = top - SUB_BITS;
            (u64::from(shift) << SUB_BITS) + (ns >> shift)
        }
        _ => ns,
    };
    usize::try_from(index).unwrap_or(Histogram::BUCKETS - 1)
}

/// First value of bucket `index`, and how many values it holds.
fn bounds(index: u32) -> (u64, u64) {
    let group = index >> SUB_BITS;
    let Some(shift) = group.checked_sub(1) else {
        return (u64::from(index), 1);
    };
    let leading = index - (shift << SUB_BITS);
    (u64::from(leading) << shift, 1 << shift)
}

fn middle_ns(index: u32) -> u64 {
    let (first, width) = bounds(index);
    first + width / 2
}

fn last_ns(index: u32) -> u64 {
    let (first, width) = bounds(index);
    first + width - 1
}

/// Buckets as `[index, count]` pairs of those that have samples.
mod sparse {
    use super::Histogram;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(buckets: &[u64], out: S) -> Result<S::Ok, S::Error> {
        let filled = buckets.iter().enumerate().filter(|(_, n)| **n > 0);
        out.collect_seq(filled)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u64>, D::Error> {
        let filled = Vec::<(usize, u64)>::deserialize(input)?;
        let mut buckets = Vec::new();
        for (index, n) in filled {
            if index >= Histogram::BUCKETS {
                return Err(D::Error::custom(format!(
                    "bucket {index}: expected less than {}",
                    Histogram::BUCKETS
                )));
            }
            if buckets.len() <= index {
                buckets.resize(index + 1, 0);
            }
            buckets[index] = n;
        }
        Ok(buckets)
    }
}

#[cfg(test)]
mod tests;
