// SPDX-License-Identifier: GPL-2.0-only
//! From histograms to curves on one axis.

use crate::model::{Curve, Plot};
use hdrhistogram::Histogram;

/// Places of a curve. Times span 3 to 7 decades, so a step is 4 to 8 %.
const PLACES: usize = 200;

/// The distributions as curves; `None` when all are empty.
pub(crate) fn cdf(named: &[(String, &Histogram<u64>)]) -> Option<Plot> {
    let full = || named.iter().filter(|(_, h)| !h.is_empty());
    // A logarithmic axis has no place for 0.
    let low = full().map(|(_, h)| h.min().max(1)).min()? as f64;
    let high = full().map(|(_, h)| h.max().max(2)).max()? as f64;
    // A share of 0 at the left end, unless there is no room for it.
    let low = (low * 0.9).max(1.0);
    let step = (high / low).powf(1.0 / (PLACES - 1) as f64);
    let mut at_ns: Vec<f64> = (0..PLACES).map(|i| low * step.powi(exponent(i))).collect();
    if let Some(last) = at_ns.last_mut() {
        *last = high;
    }
    Some(Plot::Cdf {
        curves: full().map(|(name, h)| curve(name, h, &at_ns)).collect(),
        at_ns: at_ns.into_iter().map(f64::round).collect(),
    })
}

fn exponent(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

fn curve(name: &str, h: &Histogram<u64>, at_ns: &[f64]) -> Curve {
    let total = h.len() as f64;
    let mut shares = Vec::with_capacity(at_ns.len());
    let mut steps = h.iter_recorded().peekable();
    let mut sum = 0_u64;
    for at in at_ns {
        while let Some(step) = steps.next_if(|s| s.value_iterated_to() as f64 <= at.ceil()) {
            sum += step.count_at_value();
        }
        shares.push(round(sum as f64 / total));
    }
    // The last bucket's upper end lies beyond the largest sample.
    if let Some(last) = shares.last_mut() {
        *last = 1.0;
    }
    Curve {
        name: name.to_owned(),
        shares,
        count: Some(h.len()),
        mean_ns: h.mean().round(),
        p50_ns: h.value_at_quantile(0.5),
        p90_ns: h.value_at_quantile(0.9),
        p99_ns: h.value_at_quantile(0.99),
        max_ns: h.max(),
    }
}

/// Five digits: finer than a pixel.
pub(crate) fn round(share: f64) -> f64 {
    (share * 1e5).round() / 1e5
}

/// Adds `one` to `sum`, whatever its range.
pub(crate) fn add(sum: &mut Histogram<u64>, one: &Histogram<u64>) {
    sum.auto(true);
    // Cannot fail: it resizes itself, and counts have 64 bits.
    let _ = sum.add(one);
}

/// Good to 1 %, of any times: it resizes itself.
pub(crate) fn empty() -> Histogram<u64> {
    Histogram::new(2).unwrap_or_else(|_| unreachable!("2 digits are valid"))
}

#[cfg(test)]
pub(crate) fn of(values: &[u64]) -> Histogram<u64> {
    let mut h = Histogram::new(3).expect("valid");
    for value in values {
        h.record(*value).expect("resizes");
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(named: &[(String, &Histogram<u64>)]) -> (Vec<f64>, Vec<Curve>) {
        match cdf(named) {
            Some(Plot::Cdf { at_ns, curves }) => (at_ns, curves),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn curves_rise_from_nothing_to_all() {
        let (fast, slow) = (of(&[100, 200, 300, 400]), of(&[1_000_000]));
        let (at, curves) = curves(&[("fast".to_owned(), &fast), ("slow".to_owned(), &slow)]);
        assert_eq!((at.len(), curves.len()), (PLACES, 2));
        assert!(at.is_sorted() && curves[0].shares.is_sorted());
        assert_eq!((curves[0].shares[0], curves[1].shares[0]), (0.0, 0.0));
        let before = |limit: f64| at.iter().rposition(|ns| *ns < limit).expect("one");
        let half = curves[0].shares[before(290.0)];
        assert!((half - 0.5).abs() < 1e-9, "{half}");
        assert!(curves[1].shares[before(900_000.0)] < 1e-9);
        assert_eq!(curves[1].shares.last(), Some(&1.0));
        assert_eq!(curves[0].max_ns, 400);
    }

    #[test]
    fn empty_and_zero_are_no_trouble() {
        let (empty, zero) = (of(&[]), of(&[0, 0]));
        assert_eq!(cdf(&[("e".to_owned(), &empty)]), None);
        let (at, curves) = curves(&[("e".to_owned(), &empty), ("z".to_owned(), &zero)]);
        assert_eq!(curves.len(), 1);
        assert!(at.iter().all(|ns| ns.is_finite() && *ns >= 1.0));
        assert_eq!((curves[0].shares[0], curves[0].p99_ns), (1.0, 0));
    }
}
