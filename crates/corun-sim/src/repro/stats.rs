// SPDX-License-Identifier: GPL-2.0-only
//! Means with confidence intervals.

use serde::Serialize;

/// A mean over seeds and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Mean.
    pub mean: f64,
    /// Half of the 95 % confidence interval; none with one seed.
    pub half: Option<f64>,
    /// Seeds.
    pub n: usize,
}

/// 97.5 % quantiles of Student's t distribution for 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The 97.5 % quantile for `df` degrees of freedom.
fn t_975(df: usize) -> f64 {
    match df {
        0 => f64::INFINITY,
        1..=30 => T_975[df - 1],
        // Within 0.2 % from here on (Cornish-Fisher's first term).
        _ => 1.960 + 2.372 / df as f64,
    }
}

impl Interval {
    /// Of `values`, one a seed; `None` when there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let half = (n > 1).then(|| {
            let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
            let deviation = (squares / (n - 1) as f64).sqrt();
            t_975(n - 1) * deviation / (n as f64).sqrt()
        });
        Some(Self { mean, half, n })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_seeds_use_two_degrees_of_freedom() {
        let i = Interval::of(&[1.0, 2.0, 3.0]).expect("three values");
        assert!((i.mean - 2.0).abs() < 1e-12);
        // s = 1, so 4.303 / sqrt(3).
        let half = i.half.expect("more than one value");
        assert!((half - 2.484_3).abs() < 1e-3, "{half}");
    }

    #[test]
    fn one_seed_has_no_interval_and_none_no_mean() {
        let one = Interval::of(&[5.0]).expect("one value");
        assert_eq!((one.mean, one.half), (5.0, None));
        assert_eq!(Interval::of(&[]), None);
    }

    #[test]
    fn quantiles_fall_towards_the_normal_distribution() {
        let all: Vec<f64> = (1..200).map(t_975).collect();
        assert!(all.windows(2).all(|w| w[0] > w[1]), "{all:?}");
        assert!((t_975(60) - 2.000).abs() < 2e-3);
    }
}
