// SPDX-License-Identifier: GPL-2.0-only
//! Scales of axes.

/// Maps values to pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    /// From 0 to at least `largest`.
    pub(super) fn linear(largest: f64, from: f64, to: f64) -> Self {
        let step = step(largest);
        let high = (largest / step).ceil().max(1.0) * step;
        Self {
            low: 0.0,
            high,
            log: false,
            from,
            to,
        }
    }

    /// Whole decades around `smallest` and `largest`, which are above 0.
    pub(super) fn log(smallest: f64, largest: f64, from: f64, to: f64) -> Self {
        let low = smallest.log10().floor();
        let high = largest.log10().ceil().max(low + 1.0);
        Self {
            low,
            high,
            log: true,
            from,
            to,
        }
    }

    /// The pixel of `value`; what lies outside is at the edge.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if self.log {
            value.max(f64::MIN_POSITIVE).log10()
        } else {
            value
        };
        let part = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        self.from + part * (self.to - self.from)
    }

    /// Values to label.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        let mut at = self.low;
        let step = if self.log { 1.0 } else { step(self.high) };
        while at <= self.high + step / 1e6 {
            ticks.push(if self.log { 10f64.powf(at) } else { at });
            at += step;
        }
        ticks
    }
}

/// A round step that cuts `largest` into about five.
fn step(largest: f64) -> f64 {
    if largest <= 0.0 {
        return 1.0;
    }
    let rough = largest / 5.0;
    let decade = 10f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].into_iter();
    let fits = nice.map(|n| n * decade).find(|s| *s >= rough * 0.999);
    fits.unwrap_or(decade * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_start_at_zero_and_end_above_the_largest() {
        let axis = Axis::linear(70.6, 200.0, 0.0);
        assert!((axis.at(0.0) - 200.0).abs() < 1e-9);
        assert!(axis.at(70.6) > 0.0);
        assert_eq!(axis.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0]);
    }

    #[test]
    fn logarithmic_axes_have_whole_decades() {
        let axis = Axis::log(22.0, 9_048.0, 0.0, 300.0);
        let ticks: Vec<f64> = axis.ticks().iter().map(|t| t.round()).collect();
        assert_eq!(ticks, [10.0, 100.0, 1_000.0, 10_000.0]);
        assert!((axis.at(100.0) - 100.0).abs() < 1e-9);
        assert!((axis.at(0.0) - 0.0).abs() < 1e-9);
    }
}
