// SPDX-License-Identifier: GPL-2.0-only
//! Distributions of times.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest time told apart from longer ones: 1,000 s.
const MAX_NS: u64 = 1_000_000_000_000;
/// Significant digits: a bucket is at most 1 % of its value wide, as in the
/// simulator.
const DIGITS: u8 = 2;

/// A distribution of times: mean and longest are exact, quantiles good to 1 %.
#[derive(Debug, Clone)]
pub struct Times {
    /// `None` only if the library refused its constants.
    histogram: Option<Histogram<u64>>,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, MAX_NS, DIGITS).ok(),
            sum_ns: 0,
            max_ns: 0,
        }
    }
}

/// A distribution in figures. Microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TimesSummary {
    /// How many.
    pub count: u64,
    /// Arithmetic mean, exact.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90 % take no longer.
    pub p90_us: f64,
    /// 99 % take no longer.
    pub p99_us: f64,
    /// The longest, exact.
    pub max_us: f64,
}

/// A point of a cumulative distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// So long. Microseconds.
    pub us: f64,
    /// This share takes no longer, 0 to 1.
    pub share: f64,
}

impl Times {
    /// Adds a time.
    pub fn record(&mut self, ns: u64) {
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        if let Some(h) = &mut self.histogram {
            h.saturating_record(ns);
        }
    }

    /// Adds the times of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        if let (Some(mine), Some(theirs)) = (&mut self.histogram, &other.histogram) {
            // Both have the same bounds: it cannot fail.
            let _ = mine.add(theirs);
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// All together. Nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// In figures.
    pub fn summary(&self) -> TimesSummary {
        let Some(h) = self.histogram.as_ref().filter(|h| !h.is_empty()) else {
            return TimesSummary::default();
        };
        let us = |ns: u64| ns as f64 / 1e3;
        TimesSummary {
            count: h.len(),
            mean_us: self.sum_ns as f64 / h.len() as f64 / 1e3,
            p50_us: us(h.value_at_quantile(0.5)),
            p90_us: us(h.value_at_quantile(0.9)),
            p99_us: us(h.value_at_quantile(0.99)),
            max_us: us(self.max_ns),
        }
    }

    /// The cumulative distribution: a point for each bucket that is not empty.
    pub fn cdf(&self) -> Vec<Point> {
        let Some(h) = &self.histogram else {
            return Vec::new();
        };
        let total = h.len() as f64;
        let mut seen = 0;
        let points = h.iter_recorded().map(|bucket| {
            seen += bucket.count_since_last_iteration();
            Point {
                us: bucket.value_iterated_to() as f64 / 1e3,
                share: seen as f64 / total,
            }
        });
        points.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Times;

    #[test]
    fn figures_are_those_of_the_times() {
        let mut times = Times::default();
        for us in 1..=1000 {
            times.record(us * 1000);
        }
        let s = times.summary();
        assert_eq!((s.count, times.sum_ns()), (1000, 500_500_000));
        assert!((s.mean_us - 500.5).abs() < 1e-9);
        assert!((s.p50_us / 500.0 - 1.0).abs() < 0.01, "{}", s.p50_us);
        assert!((s.p99_us / 990.0 - 1.0).abs() < 0.01, "{}", s.p99_us);
        let cdf = times.cdf();
        assert!(cdf.is_sorted_by(|a, b| a.us < b.us && a.share <= b.share));
        assert!(cdf.last().is_some_and(|p| (p.share - 1.0).abs() < 1e-9));
    }

    #[test]
    fn nothing_has_no_figures() {
        let times = Times::default();
        assert_eq!(times.summary(), super::TimesSummary::default());
        assert!(times.cdf().is_empty());
    }
}
