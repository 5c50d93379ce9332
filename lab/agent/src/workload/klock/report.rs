// SPDX-License-Identifier: GPL-2.0-only
//! What the module `corun_locks` prints for programs.

use crate::session::{Window, histogram};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What the module says of a run: sums since its start.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    pub(super) refusal: Option<String>,
    pub(super) algorithm: String,
    elapsed_ns: u64,
    acquisitions: u64,
    halts: u64,
    kicks: u64,
    kicks_vain: u64,
    pub(super) kicks_failed: u64,
    timeouts: u64,
    pub(super) overlaps: u64,
    pub(super) lost_updates: u64,
    per_thread: Vec<Thread>,
    /// Least value of a bucket, and how many waits were in it.
    wait_ns: Vec<(u64, u64)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Thread {
    acquisitions: u64,
}

impl Report {
    /// What happened since `before`, which was read at `begin`. Its length is by the
    /// module's clock: this process competes with the threads that it reads of, and
    /// may be late.
    pub(super) fn window(&self, before: &Self, begin: Instant) -> Window {
        let length_ns = self.elapsed_ns.saturating_sub(before.elapsed_ns);
        let mut latency = histogram();
        let counted: BTreeMap<u64, u64> = before.wait_ns.iter().copied().collect();
        for (value_ns, count) in &self.wait_ns {
            let earlier = counted.get(value_ns).copied().unwrap_or(0);
            latency.saturating_record_n(*value_ns, count.saturating_sub(earlier));
        }
        Window {
            begin,
            end: begin + Duration::from_nanos(length_ns),
            work: self.acquisitions.saturating_sub(before.acquisitions) as f64,
            latency,
            module_counts: self.counts(before),
        }
    }

    /// `halts`, `kicks`, `kicks_vain` and `timeouts` as the module counts them;
    /// `min_thread` and `max_thread`, acquisitions of the threads that got least
    /// and most; `jain_permille`, Jain's index of fairness: 1000 when all got the
    /// same, 1000 / threads when one got all.
    fn counts(&self, before: &Self) -> BTreeMap<String, u64> {
        let earlier = before.per_thread.iter().map(|t| t.acquisitions);
        let served: Vec<u64> = self
            .per_thread
            .iter()
            .zip(earlier.chain(std::iter::repeat(0)))
            .map(|(now, then)| now.acquisitions.saturating_sub(then))
            .collect();
        [
            ("halts", self.halts.saturating_sub(before.halts)),
            ("kicks", self.kicks.saturating_sub(before.kicks)),
            (
                "kicks_vain",
                self.kicks_vain.saturating_sub(before.kicks_vain),
            ),
            ("timeouts", self.timeouts.saturating_sub(before.timeouts)),
            ("min_thread", served.iter().copied().min().unwrap_or(0)),
            ("max_thread", served.iter().copied().max().unwrap_or(0)),
            ("jain_permille", jain_permille(&served)),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .into()
    }
}

/// Jain's index in thousandths; 0 when nobody was served.
fn jain_permille(served: &[u64]) -> u64 {
    let wide = || served.iter().map(|&x| u128::from(x));
    let sum: u128 = wide().sum();
    let squares: u128 = wide().map(|x| x * x).sum();
    let permille = (sum * sum * 1000).checked_div(squares * served.len() as u128);
    permille.and_then(|p| u64::try_from(p).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the module prints it.
    const REPORT: &str = r#"{"algorithm":"pv-ticket","running":true,"threads":2,"cpus":"0-1",
        "hold_ns":1000,"think_ns":1000,"spin_threshold":64,"pmt_timeout":2048,"irqs_off":false,
        "calibration_ns":1000000,"elapsed_ns":5,"acquisitions":40,"min":10,"max":30,
        "jain_permille":800,"halts":7,"kicks":6,"kicks_vain":1,"kicks_failed":0,"timeouts":0,
        "overlaps":0,"lost_updates":0,"wait_max_ns":70,
        "per_thread":[{"cpu":0,"acquisitions":10,"wait_sum_ns":1,"wait_max_ns":1},
                      {"cpu":1,"acquisitions":30,"wait_sum_ns":1,"wait_max_ns":70}],
        "wait_ns":[[5,30],[64,10]]}"#;

    fn report() -> Report {
        serde_json::from_str(REPORT).expect("is what the module prints")
    }

    #[test]
    fn a_window_is_what_came_since() {
        let before = Report {
            elapsed_ns: 1,
            acquisitions: 25,
            halts: 2,
            per_thread: vec![Thread { acquisitions: 10 }, Thread { acquisitions: 15 }],
            wait_ns: vec![(5, 25)],
            ..Report::default()
        };
        let window = report().window(&before, Instant::now());
        assert_eq!((window.end - window.begin).as_nanos(), 4);
        assert!((window.work - 15.0).abs() < f64::EPSILON);
        assert_eq!(window.latency.len(), 15);
        assert_eq!((window.latency.min(), window.latency.max()), (5, 64));
        assert_eq!(window.module_counts["halts"], 5);
        // One thread got all of it.
        assert_eq!(window.module_counts["jain_permille"], 500);
    }

    #[test]
    fn fairness_of_a_whole_run() {
        let counts = report().counts(&Report::default());
        assert_eq!(counts["jain_permille"], 800);
        assert_eq!((counts["min_thread"], counts["max_thread"]), (10, 30));
    }

    #[test]
    fn a_refusal_is_understood() {
        let report: Report = serde_json::from_str(r#"{"refusal":"no pv-unhalt"}"#).expect("valid");
        assert_eq!(report.refusal.as_deref(), Some("no pv-unhalt"));
    }
}
