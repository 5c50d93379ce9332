// SPDX-License-Identifier: GPL-2.0-only
//! What the host did: KVM's poll counters, waiting times, online pCPUs.

use super::places::Places;
use std::path::Path;

/// KVM's counters of halt polls, all cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Polls {
    pub(super) attempts: u64,
    pub(super) hits: u64,
    pub(super) hit_ns: u64,
    pub(super) vain_ns: u64,
    pub(super) wakeups: u64,
}

impl Polls {
    /// Reads them; `None` without debugfs, rights or kvm.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let counter = |name: &str| crate::text::first_line(folder.join(name))?.parse().ok();
        Some(Self {
            attempts: counter("halt_attempted_poll")?,
            hits: counter("halt_successful_poll")?,
            hit_ns: counter("halt_poll_success_ns")?,
            vain_ns: counter("halt_poll_fail_ns")?,
            wakeups: counter("halt_wakeup")?,
        })
    }

    /// What was added since `earlier`. KVM sums over living VMs, and anybody may
    /// clear a counter: when one went down, none of them says anything.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        self.checked_since(earlier).unwrap_or_default()
    }

    fn checked_since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            attempts: self.attempts.checked_sub(earlier.attempts)?,
            hits: self.hits.checked_sub(earlier.hits)?,
            hit_ns: self.hit_ns.checked_sub(earlier.hit_ns)?,
            vain_ns: self.vain_ns.checked_sub(earlier.vain_ns)?,
            wakeups: self.wakeups.checked_sub(earlier.wakeups)?,
        })
    }
}

/// Time that tasks waited for a pCPU since boot, summed over tasks, added up when
/// the wait ends; `None` in kernels without `CONFIG_SCHEDSTATS`. Nanoseconds.
pub(super) fn waiting_ns(places: &Places) -> Option<u64> {
    let text = std::fs::read_to_string(places.proc.join("schedstat")).ok()?;
    sum_run_delays(&text)
}

/// Sums `run_delay`, a pCPU's eighth number in versions 15 to 17 of the format.
fn sum_run_delays(schedstat: &str) -> Option<u64> {
    let delays: Vec<u64> = schedstat
        .lines()
        .filter(|line| line.starts_with("cpu"))
        .filter_map(|line| line.split_whitespace().nth(8)?.parse().ok())
        .collect();
    (!delays.is_empty()).then(|| delays.iter().sum())
}

/// How many pCPUs are online; at least 1.
pub(super) fn online_cpus(places: &Places) -> u64 {
    crate::text::first_line(&places.online)
        .and_then(|list| crate::text::cpus_in_list(&list))
        .map_or(1, |cpus| cpus.len() as u64)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_delays_of_all_cpus_are_summed() {
        let text = "version 17\ntimestamp 4295\n\
                    cpu0 0 0 100 50 40 20 7000 300 80\ndomain0 MC 3 1 2 3 4 5 6 7 8\n\
                    cpu1 0 0 100 50 40 20 7000 45 80\n";
        assert_eq!(sum_run_delays(text), Some(345));
        assert_eq!(sum_run_delays("version 17\n"), None);
    }

    #[test]
    fn a_counter_that_went_down_voids_the_window() {
        let earlier = Polls {
            attempts: 10,
            hits: 5,
            hit_ns: 100,
            vain_ns: 100,
            wakeups: 7,
        };
        let more = Polls {
            attempts: 15,
            hits: 9,
            hit_ns: 150,
            vain_ns: 110,
            wakeups: 10,
        };
        let vm_left = Polls { hits: 2, ..more };
        assert_eq!(
            more.since(&earlier),
            Polls {
                attempts: 5,
                hits: 4,
                hit_ns: 50,
                vain_ns: 10,
                wakeups: 3,
            }
        );
        assert_eq!(vm_left.since(&earlier), Polls::default());
    }
}
