// SPDX-License-Identifier: GPL-2.0-only
//! A distribution of times as the kernel counts it (`bpf/distribution.bpf.h`).

use serde::Serialize;

/// Bits below the leading one that tell buckets of one power of two apart.
const SUB_BITS: u32 = 3;

/// A distribution of times. A bucket is at most 1/8 of its value wide, so
/// quantiles are good to 6 %; count, sum and largest are exact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Distribution {
    /// Samples.
    pub count: u64,
    /// All samples together. Nanoseconds.
    pub sum_ns: u64,
    /// Largest sample. Nanoseconds.
    pub max_ns: u64,
    /// Samples by bucket.
    buckets: Vec<u64>,
}

impl Distribution {
    /// The distribution that the kernel counted.
    pub(super) fn new(count: u64, sum_ns: u64, max_ns: u64, buckets: &[u64]) -> Self {
        Self {
            count,
            sum_ns,
            max_ns,
            buckets: buckets.to_vec(),
        }
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
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
        let filled = self.buckets.iter().zip(0_u32..).filter(|(n, _)| **n > 0);
        let last = filled.clone().last().map(|(_, index)| index);
        filled.flat_map(move |(&count, index)| {
            let top = u64::from(Some(index) == last);
            let middle_ns = middle_ns(index).min(self.max_ns);
            [(middle_ns, count - top), (self.max_ns, top)]
                .into_iter()
                .filter(|(_, n)| *n > 0)
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Places samples as the kernel does, by search instead of by arithmetic.
    fn of(samples: &[u64]) -> Distribution {
        let mut buckets = vec![0; 304];
        for s in samples {
            let index = (0..304)
                .find(|i| (bounds(*i).0..bounds(*i).0 + bounds(*i).1).contains(s))
                .expect("has a bucket");
            buckets[index as usize] += 1;
        }
        let max = samples.iter().copied().max().unwrap_or(0);
        let count = u64::try_from(samples.len()).expect("fits");
        Distribution::new(count, samples.iter().sum(), max, &buckets)
    }

    #[test]
    fn buckets_follow_each_other_and_end_where_the_kernels_do() {
        for i in 0..303 {
            let (first, width) = bounds(i);
            assert_eq!(bounds(i + 1).0, first + width, "after bucket {i}");
            assert!(width == 1 || width * 8 <= first, "bucket {i}");
        }
        let (first, width) = bounds(303);
        assert_eq!(first + width, 1 << 40);
    }

    #[test]
    fn quantiles_are_near_the_samples() {
        let all: Vec<u64> = (1..=1000).map(|i| i * 1000).collect();
        let d = of(&all);
        for (q, exact) in [(0.5, 500_000.0), (0.9, 900_000.0), (0.99, 990_000.0)] {
            let found = d.quantile_ns(q) as f64;
            assert!((found / exact - 1.0).abs() < 0.07, "{q}: {found}");
        }
        assert_eq!(d.quantile_ns(1.0), 1_000_000);
        assert!((d.mean_ns() - 500_500.0).abs() < 1e-6);
    }

    #[test]
    fn the_largest_is_exact_and_no_sample_is_lost() {
        let d = of(&[5, 100, 100, 1_000_003]);
        let samples: Vec<_> = d.samples().collect();
        assert_eq!(samples.iter().map(|s| s.1).sum::<u64>(), 4);
        assert_eq!(samples.last(), Some(&(1_000_003, 1)));
        assert_eq!(samples.first(), Some(&(5, 1)));
    }

    #[test]
    fn merging_is_counting_together() {
        let mut a = of(&[1, 2000]);
        a.merge(&of(&[70, 300_000]));
        assert_eq!(a, of(&[1, 2000, 70, 300_000]));
        let mut none = Distribution::default();
        none.merge(&of(&[9]));
        assert_eq!((none.count, none.quantile_ns(0.5)), (1, 9));
        assert_eq!(Distribution::default().quantile_ns(0.5), 0);
    }
}
