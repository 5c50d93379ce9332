// SPDX-License-Identifier: GPL-2.0-only
//! What `corun run` can be told.

use corun_policy::Tunables;
use std::time::Duration;

/// Options of the scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Longest time a task runs before others are considered, unscaled.
    /// 100 us to 1 s.
    pub slice: Duration,
    /// Factor for every time constant, for emulated hosts (1.0 on hardware).
    pub time_scale: f64,
    /// Honour KVM's directed yields.
    pub directed_yield: bool,
    /// Print counters this often.
    pub stats: Option<Duration>,
    /// Print JSON lines instead of text.
    pub json: bool,
    /// Names of hazards that the user takes responsibility for.
    pub ignored_hazards: Vec<String>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            slice: Duration::from_nanos(Tunables::default().slice_ns),
            time_scale: 1.0,
            directed_yield: true,
            stats: None,
            json: false,
            ignored_hazards: Vec::new(),
        }
    }
}

/// An option out of its range.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum OptionError {
    /// The slice.
    #[error("--slice-us {0}: must be between 100 and 1000000 (0.1 ms to 1 s)")]
    Slice(u128),
    /// The factor.
    #[error("--time-scale {0}: must be between 1 and 1000")]
    TimeScale(f64),
}

impl RunOptions {
    /// Checks ranges and derives the policy's tunables.
    pub fn tunables(&self) -> Result<Tunables, OptionError> {
        let slice_us = self.slice.as_micros();
        if !(100..=1_000_000).contains(&slice_us) {
            return Err(OptionError::Slice(slice_us));
        }
        if !(1.0..=1000.0).contains(&self.time_scale) {
            return Err(OptionError::TimeScale(self.time_scale));
        }
        let unscaled = Tunables::default();
        let slice_ns = self.scale(u64::try_from(self.slice.as_nanos()).unwrap_or(u64::MAX));
        Ok(Tunables {
            slice_ns,
            wakeup_gran_ns: self.scale(unscaled.wakeup_gran_ns).min(slice_ns),
            sleeper_credit_ns: slice_ns,
            hint_max_age_ns: 2 * slice_ns,
            yield_min_slice_ns: self.scale(unscaled.yield_min_slice_ns).min(slice_ns),
        })
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 1 s times 1000, and positive"
    )]
    fn scale(&self, time_ns: u64) -> u64 {
        (time_ns as f64 * self.time_scale) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_options_the_policys_defaults_hold() {
        assert_eq!(RunOptions::default().tunables(), Ok(Tunables::default()));
    }

    #[test]
    fn the_time_scale_applies_to_every_constant() {
        let t = RunOptions {
            time_scale: 100.0,
            ..RunOptions::default()
        }
        .tunables()
        .unwrap();
        assert_eq!(t.slice_ns, 300_000_000);
        assert_eq!(t.wakeup_gran_ns, 100_000_000);
        assert_eq!(t.yield_min_slice_ns, 10_000_000);
    }

    #[test]
    fn no_constant_exceeds_a_short_slice() {
        let options = RunOptions {
            slice: Duration::from_micros(100),
            ..RunOptions::default()
        };
        let t = options.tunables().unwrap();
        assert_eq!(t.wakeup_gran_ns, 100_000);
        assert_eq!(t.yield_min_slice_ns, 100_000);
    }

    #[test]
    fn ranges_are_refused_by_name() {
        let options = RunOptions {
            slice: Duration::from_micros(99),
            ..RunOptions::default()
        };
        assert_eq!(options.tunables(), Err(OptionError::Slice(99)));
        let options = RunOptions {
            time_scale: 0.5,
            ..RunOptions::default()
        };
        assert_eq!(options.tunables(), Err(OptionError::TimeScale(0.5)));
        let options = RunOptions {
            time_scale: f64::NAN,
            ..RunOptions::default()
        };
        assert!(options.tunables().is_err());
    }
}
