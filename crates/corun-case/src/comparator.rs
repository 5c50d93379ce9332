// SPDX-License-Identifier: GPL-2.0-only
//! Other people's sched_ext schedulers that the lab compares corun with.
//!
//! Each is a program from the Rust registry, of one version: what its options are called
//! and what they are by default was read in that version's source. The lab scales
//! those that are time constants, as it does corun's; what a scheduler has built
//! in cannot be scaled, and every result says so.

use crate::SchedulerKind;

/// A scheduler that is built from the Rust registry.
#[derive(Debug, PartialEq, Eq)]
pub struct Comparator {
    /// Name of the crate, and of its program.
    pub program: &'static str,
    /// Version of the crate.
    pub version: &'static str,
    /// What the kernel calls it: how `/sys/kernel/sched_ext/root/ops` begins.
    pub ops: &'static str,
    /// Options that are time constants.
    pub times: &'static [TimeOption],
    /// Time constants that no option sets, for people.
    pub fixed: &'static str,
}

/// An option that takes microseconds.
#[derive(Debug, PartialEq, Eq)]
pub struct TimeOption {
    /// The option, dashes included.
    pub flag: &'static str,
    /// What it is by default. Microseconds.
    pub default_us: u64,
}

const BPFLAND: Comparator = Comparator {
    program: "scx_bpfland",
    version: "1.1.4",
    ops: "bpfland",
    times: &[
        TimeOption {
            flag: "--slice-us",
            default_us: 1_000,
        },
        TimeOption {
            flag: "--slice-us-lag",
            default_us: 40_000,
        },
    ],
    fixed: "starvation threshold 500 ms, period of wake-up rates 100 ms, watchdog 5 s",
};

const LAVD: Comparator = Comparator {
    program: "scx_lavd",
    version: "1.1.4",
    ops: "lavd",
    times: &[
        TimeOption {
            flag: "--slice-max-us",
            default_us: 5_000,
        },
        TimeOption {
            flag: "--slice-min-us",
            default_us: 500,
        },
        TimeOption {
            flag: "--pinned-slice-us",
            default_us: 5_000,
        },
    ],
    fixed: "targeted latency and load statistics 10 ms, boosted slice 500 ms, greatest lag 500 ms, \
            half-life of averages 128 ms, watchdog 30 s",
};

impl SchedulerKind {
    /// The program from the Rust registry that this kind is; `None` for the others.
    pub fn comparator(self) -> Option<&'static Comparator> {
        match self {
            Self::ScxBpfland => Some(&BPFLAND),
            Self::ScxLavd => Some(&LAVD),
            Self::Kernel | Self::Corun | Self::Cfs | Self::Eevdf | Self::Credit | Self::Cosched => {
                None
            }
        }
    }
}

impl Comparator {
    /// The arguments that multiply its time constants by `factor`; none at 1,
    /// where it runs as its authors meant it.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most 12 s.
    pub fn scaled_arguments(&self, factor: f64) -> Vec<String> {
        if (factor - 1.0).abs() <= f64::EPSILON {
            return Vec::new();
        }
        let scaled = |t: &TimeOption| {
            let us = (t.default_us as f64 * factor).round() as u64;
            [t.flag.to_owned(), us.to_string()]
        };
        self.times.iter().flat_map(scaled).collect()
    }

    /// The time option that `option` sets, if any: that is the lab's to set.
    pub(crate) fn time_option(&self, option: &str) -> Option<&'static TimeOption> {
        let name = option.split('=').next().unwrap_or_default();
        self.times.iter().find(|t| t.flag == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_constants_are_scaled_and_left_alone_at_one() {
        assert_eq!(
            BPFLAND.scaled_arguments(60.0).join(" "),
            "--slice-us 60000 --slice-us-lag 2400000"
        );
        assert!(BPFLAND.scaled_arguments(1.0).is_empty());
        assert_eq!(
            LAVD.scaled_arguments(2.5).join(" "),
            "--slice-max-us 12500 --slice-min-us 1250 --pinned-slice-us 12500"
        );
    }

    #[test]
    fn names_in_cases_are_the_programs_names() {
        for kind in [SchedulerKind::ScxBpfland, SchedulerKind::ScxLavd] {
            let name = serde_json::to_value(kind).expect("encodes");
            assert_eq!(kind.comparator().map(|c| c.program), name.as_str());
        }
    }
}
