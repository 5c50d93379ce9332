// SPDX-License-Identifier: GPL-2.0-only
//! The policy's constants.

/// `struct corun_tunables`: all times in nanoseconds; the header has ranges and
/// reasons.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "documented where they are defined, in policy/corun/types.h"
)]
pub struct Tunables {
    pub slice_ns: u64,
    pub wakeup_gran_ns: u64,
    /// A number of pCPUs.
    pub cpu_looks: u64,
    pub sleeper_credit_ns: u64,
    pub hint_max_age_ns: u64,
    pub yield_min_slice_ns: u64,
    pub urgent_slice_ns: u64,
    pub urgent_gap_ns: u64,
    pub boost_debt_ns: u64,
    pub boost_cost_ns: u64,
    pub defer_ns: u64,
    /// A number of times.
    pub defer_max: u64,
    pub window_ns: u64,
    pub gang_event_gap_ns: u64,
    pub gang_min_run_ns: u64,
    /// A switch, not a time.
    pub gang_blind: u64,
}

impl Default for Tunables {
    fn default() -> Self {
        Self {
            slice_ns: 3_000_000,
            wakeup_gran_ns: 1_000_000,
            cpu_looks: 32,
            sleeper_credit_ns: 3_000_000,
            hint_max_age_ns: 6_000_000,
            yield_min_slice_ns: 100_000,
            urgent_slice_ns: 100_000,
            urgent_gap_ns: 200_000,
            boost_debt_ns: 6_000_000,
            boost_cost_ns: 10_000,
            defer_ns: 50_000,
            defer_max: 2,
            window_ns: 10_000_000,
            gang_event_gap_ns: 2_000_000,
            gang_min_run_ns: 1_000_000,
            gang_blind: 0,
        }
    }
}

impl Tunables {
    /// The constants for slices of `slice_ns` (100 us to 1 s, unscaled), with every
    /// time multiplied by `factor` (1 to 1000): on an emulated host, where switches
    /// cost more. What follows the slice follows it; nothing within it exceeds it.
    pub fn scaled(slice_ns: u64, factor: f64) -> Self {
        let unscaled = Self::default();
        let slice_ns = scale(slice_ns, factor);
        let within = |time_ns: u64| scale(time_ns, factor).min(slice_ns);
        Self {
            slice_ns,
            wakeup_gran_ns: within(unscaled.wakeup_gran_ns),
            cpu_looks: unscaled.cpu_looks,
            sleeper_credit_ns: slice_ns,
            hint_max_age_ns: 2 * slice_ns,
            yield_min_slice_ns: within(unscaled.yield_min_slice_ns),
            urgent_slice_ns: within(unscaled.urgent_slice_ns),
            urgent_gap_ns: scale(unscaled.urgent_gap_ns, factor),
            boost_debt_ns: 2 * slice_ns,
            boost_cost_ns: scale(unscaled.boost_cost_ns, factor),
            defer_ns: within(unscaled.defer_ns),
            defer_max: unscaled.defer_max,
            window_ns: scale(unscaled.window_ns, factor),
            gang_event_gap_ns: scale(unscaled.gang_event_gap_ns, factor),
            gang_min_run_ns: within(unscaled.gang_min_run_ns),
            gang_blind: unscaled.gang_blind,
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most seconds times 1000, and positive"
)]
fn scale(time_ns: u64, factor: f64) -> u64 {
    (time_ns as f64 * factor) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unscaled_they_are_the_defaults() {
        let default = Tunables::default();
        assert_eq!(Tunables::scaled(default.slice_ns, 1.0), default);
    }

    #[test]
    fn the_factor_applies_to_every_time() {
        let (one, scaled) = (Tunables::default(), Tunables::scaled(3_000_000, 100.0));
        assert_eq!(scaled.slice_ns, 300_000_000);
        assert_eq!(scaled.wakeup_gran_ns, 100_000_000);
        assert_eq!(scaled.yield_min_slice_ns, 10_000_000);
        assert_eq!(scaled.urgent_slice_ns, one.urgent_slice_ns * 100);
        assert_eq!(scaled.boost_debt_ns, one.boost_debt_ns * 100);
        assert_eq!(scaled.window_ns, one.window_ns * 100);
        assert_eq!(scaled.defer_max, one.defer_max);
    }

    #[test]
    fn nothing_within_a_slice_exceeds_a_short_one() {
        let t = Tunables::scaled(100_000, 1.0);
        assert_eq!(t.wakeup_gran_ns, 100_000);
        assert_eq!(t.yield_min_slice_ns, 100_000);
        assert_eq!(t.gang_min_run_ns, 100_000);
    }
}
