// SPDX-License-Identifier: GPL-2.0-only
//! A median and its spread.

use serde::{Deserialize, Serialize};

/// Median, smallest and largest of some values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median; of an even number of values, the mean of the middle two.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// How many values.
    pub count: usize,
}

impl Spread {
    /// The spread of `values`; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self {
            median,
            min,
            max,
            count: sorted.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(values: &[f64], median: f64, min: f64, max: f64) {
        let s = Spread::of(values).expect("has values");
        assert_eq!(
            (s.median, s.min, s.max, s.count),
            (median, min, max, values.len())
        );
    }

    #[test]
    fn medians_of_odd_and_even_numbers() {
        is(&[3.0], 3.0, 3.0, 3.0);
        is(&[9.0, 1.0, 2.0], 2.0, 1.0, 9.0);
        is(&[4.0, 1.0, 2.0, 9.0], 3.0, 1.0, 9.0);
        assert_eq!(Spread::of(&[]), None);
    }
}
