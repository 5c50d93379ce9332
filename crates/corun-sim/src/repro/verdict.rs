// SPDX-License-Identifier: GPL-2.0-only
//! When a simulated value counts as the published one.

use serde::{Deserialize, Serialize};

/// What a published value was used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Parameters may be fitted to it: it describes an uncontended run, or is
    /// on DESIGN.md's list.
    Fit,
    /// Nothing was fitted to it.
    Predicted,
}

impl Kind {
    /// Largest factor between simulated and published, either way.
    pub fn tolerance(self) -> f64 {
        match self {
            Self::Fit => 1.25,
            Self::Predicted => 1.40,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Predicted => "predicted",
        }
    }
}

/// The published value, ready to compare: a number or a range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Target {
    /// Least.
    pub low: f64,
    /// Most.
    pub high: f64,
}

impl Target {
    /// The value of it that is nearest to `simulated`.
    pub fn nearest(self, simulated: f64) -> f64 {
        simulated.clamp(self.low, self.high)
    }
}

/// Simulated by published; `None` when one of them has no logarithm.
pub(super) fn ratio(simulated: f64, target: Target) -> Option<f64> {
    let published = target.nearest(simulated);
    let ratio = simulated / published;
    (simulated > 0.0 && published > 0.0 && ratio.is_finite()).then_some(ratio)
}

/// Whether `simulated` is near enough. `within` is an absolute distance for
/// values published as about zero, where no ratio makes sense.
pub(super) fn passes(simulated: f64, target: Target, kind: Kind, within: Option<f64>) -> bool {
    if let Some(within) = within {
        return (simulated - target.nearest(simulated)).abs() <= within;
    }
    // A hair more than the limit, so that 1.25 itself passes in floating point.
    let limit = kind.tolerance().ln() + 1e-9;
    ratio(simulated, target).is_some_and(|r| r.ln().abs() <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: f64) -> Target {
        Target {
            low: value,
            high: value,
        }
    }

    #[test]
    fn the_tolerance_is_a_factor_either_way() {
        let pass = |value, kind| passes(value, number(100.0), kind, None);
        assert!(pass(125.0, Kind::Fit) && pass(80.0, Kind::Fit));
        assert!(!pass(125.1, Kind::Fit) && !pass(79.9, Kind::Fit));
        assert!(pass(140.0, Kind::Predicted) && pass(71.5, Kind::Predicted));
        assert!(!pass(140.1, Kind::Predicted) && !pass(71.4, Kind::Predicted));
    }

    #[test]
    fn nothing_below_zero_passes() {
        for value in [0.0, -100.0, f64::NAN, f64::INFINITY] {
            assert!(
                !passes(value, number(100.0), Kind::Predicted, None),
                "{value}"
            );
        }
    }

    #[test]
    fn ranges_count_from_their_nearer_end() {
        let range = Target {
            low: 10.0,
            high: 15.0,
        };
        assert_eq!(ratio(12.0, range), Some(1.0));
        assert_eq!(ratio(30.0, range), Some(2.0));
        assert_eq!(ratio(5.0, range), Some(0.5));
    }

    #[test]
    fn about_zero_is_judged_by_distance() {
        assert!(passes(0.004, number(0.0), Kind::Fit, Some(0.005)));
        assert!(!passes(0.006, number(0.0), Kind::Fit, Some(0.005)));
        assert!(!passes(0.0, number(0.0), Kind::Fit, None));
    }
}
