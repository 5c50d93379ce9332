// SPDX-License-Identifier: GPL-2.0-only
//! What `corun run` can be told.

use corun_policy::halt::HaltTunables;
use corun_policy::{Mechanisms, Tunables};
use std::time::Duration;

/// Options of the scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOptions {
    /// Longest time a task runs before others are considered, unscaled.
    /// 100 us to 1 s.
    pub slice: Duration,
    /// Factor for every time constant, for emulated hosts (1.0 on hardware).
    pub time_scale: f64,
    /// What is switched on.
    pub mechanisms: Mechanisms,
    /// Maps of guest kernels' symbols.
    pub symbols: Vec<corun_symbols::Source>,
    /// Count what the BPF programs cost, and print it with the counters.
    pub hook_costs: bool,
    /// Print counters this often.
    pub stats: Option<Duration>,
    /// Print JSON lines instead of text.
    pub json: bool,
    /// Names of hazards that the user takes responsibility for.
    pub ignored_hazards: Vec<String>,
    /// Events of the kernel that are not to be made use of, by name.
    pub without_events: Vec<String>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            slice: Duration::from_nanos(Tunables::default().slice_ns),
            time_scale: 1.0,
            mechanisms: Mechanisms::ALL,
            symbols: Vec::new(),
            hook_costs: false,
            stats: None,
            json: false,
            ignored_hazards: Vec::new(),
            without_events: Vec::new(),
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
        let slice_ns = u64::try_from(self.slice.as_nanos()).unwrap_or(u64::MAX);
        Ok(Tunables::scaled(slice_ns, self.time_scale))
    }

    /// Tunables of halt polling. Windows are not scaled: they are made of what
    /// KVM counts, not of its costs.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 1 s times 1000, and positive"
    )]
    pub(crate) fn halt_tunables(&self) -> HaltTunables {
        let scale = |time_ns: u64| (time_ns as f64 * self.time_scale) as u64;
        let unscaled = HaltTunables::default();
        HaltTunables {
            max_ns: scale(unscaled.max_ns),
            floor_ns: scale(unscaled.floor_ns),
            sleep_ns: scale(unscaled.sleep_ns),
            ..unscaled
        }
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
    fn lengths_of_polls_are_scaled_and_windows_are_not() {
        let unscaled = HaltTunables::default();
        let t = RunOptions {
            time_scale: 10.0,
            ..RunOptions::default()
        }
        .halt_tunables();
        let scaled = (t.max_ns, t.floor_ns, t.sleep_ns);
        assert_eq!(scaled, (2_000_000, 100_000, 100_000));
        assert_eq!(t.calm_windows, unscaled.calm_windows);
        assert_eq!(RunOptions::default().halt_tunables(), unscaled);
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
