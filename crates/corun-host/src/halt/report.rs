// SPDX-License-Identifier: GPL-2.0-only
//! CPU time spent polling against wake-ups saved.

use corun_policy::halt::{HaltVerdict, HaltWindow};
use serde::Serialize;

/// Counts since the start of steering; times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct HaltReport {
    /// KVM's `halt_poll_ns` now.
    pub(crate) poll_ns: u64,
    /// What the operator set it to.
    pub(crate) operator_ns: u64,
    /// Windows judged.
    pub(crate) windows: u64,
    /// ... in which others wanted the CPU.
    pub(crate) wanted_windows: u64,
    /// ... but polling paid, or hardly occurred.
    pub(crate) paying_windows: u64,
    /// ... in which too much was polled in vain.
    pub(crate) wasted_windows: u64,
    /// Times that polling was switched off, for others wanted the CPU and it did not pay.
    pub(crate) offs: u64,
    /// Times that it was resumed.
    pub(crate) resumes: u64,
    /// Times that regrets were forgotten, for the guests did something else.
    pub(crate) other_loads: u64,
    /// Times that the value was lowered, not to 0.
    pub(crate) shrinks: u64,
    /// Times that it was raised, not from 0.
    pub(crate) grows: u64,
    /// Times that somebody else set the value.
    pub(crate) adopted: u64,
    /// CPU time that the host had.
    pub(crate) cpu_ns: u64,
    /// Time that runnable tasks waited for a pCPU.
    pub(crate) waiting_ns: u64,
    /// Halts in which KVM polled.
    pub(crate) polls: u64,
    /// Wake-ups saved: halts that ended in the poll.
    pub(crate) saved_wakeups: u64,
    /// CPU time of these polls.
    pub(crate) hit_ns: u64,
    /// CPU time of polls that a sleep followed.
    pub(crate) vain_ns: u64,
}

impl HaltReport {
    pub(super) fn window(&mut self, window: &HaltWindow, verdict: HaltVerdict) {
        self.windows += 1;
        let pays = verdict == HaltVerdict::Pays;
        self.wanted_windows += u64::from(pays || verdict == HaltVerdict::Wanted);
        self.paying_windows += u64::from(pays);
        self.wasted_windows += u64::from(verdict == HaltVerdict::Wasted);
        self.cpu_ns += window.cpu_ns;
        self.waiting_ns += window.waiting_ns;
        self.polls += window.polls;
        self.saved_wakeups += window.hits;
        self.hit_ns += window.hit_ns;
        self.vain_ns += window.vain_ns;
    }

    pub(super) fn changed(&mut self, before_ns: u64, after_ns: u64) {
        self.poll_ns = after_ns;
        match (before_ns, after_ns) {
            (before, after) if before == after => {}
            (_, 0) => self.offs += 1,
            (0, _) => self.resumes += 1,
            (before, after) if after < before => self.shrinks += 1,
            _ => self.grows += 1,
        }
    }

    /// Part of the host's CPU time in percent.
    fn percent(&self, part_ns: u64) -> f64 {
        if self.cpu_ns == 0 {
            return 0.0;
        }
        100.0 * part_ns as f64 / self.cpu_ns as f64
    }
}

impl std::fmt::Display for HaltReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let spent_ns = self.hit_ns + self.vain_ns;
        let each_us = spent_ns as f64 / 1e3 / self.saved_wakeups.max(1) as f64;
        write!(
            f,
            "halt polling: halt_poll_ns {} (operator's {}), off {} times, resumed {}; {:.2} % of \
             the host's CPU time spent, {:.2} % in vain; {} wake-ups saved",
            self.poll_ns,
            self.operator_ns,
            self.offs,
            self.resumes,
            self.percent(spent_ns),
            self.percent(self.vain_ns),
            self.saved_wakeups,
        )?;
        if self.saved_wakeups > 0 {
            write!(f, " at {each_us:.1} us each")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_apart() {
        let mut report = HaltReport::default();
        for (before, after) in [
            (200, 0),
            (0, 200),
            (200, 100),
            (100, 200),
            (200, 200),
            (9, 0),
        ] {
            report.changed(before, after);
        }
        let seen = [report.offs, report.resumes, report.shrinks, report.grows];
        assert_eq!((seen, report.poll_ns), ([2, 1, 1, 1], 0));
    }

    #[test]
    fn spending_is_set_against_wakeups_saved() {
        let mut report = HaltReport::default();
        assert!(report.to_string().ends_with("0 wake-ups saved"), "{report}");
        let window = HaltWindow {
            cpu_ns: 1_000_000,
            polls: 7,
            hits: 5,
            hit_ns: 10_000,
            vain_ns: 5_000,
            ..HaltWindow::default()
        };
        report.window(&window, HaltVerdict::Useful);
        let text = report.to_string();
        assert!(text.contains("1.50 % of"), "{text}");
        assert!(
            text.ends_with("0.50 % in vain; 5 wake-ups saved at 3.0 us each"),
            "{text}"
        );
    }
}
