// SPDX-License-Identifier: GPL-2.0-only
//! How much of the machine was taken away while a window was measured.

use serde::Serialize;
use std::fs;
use std::io;

/// CPU times of this machine since its boot, in ticks summed over its CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineTimes {
    total: u64,
    idle: u64,
    steal: u64,
    /// Of the processes that this one started: the emulator.
    ours: u64,
}

/// Shares of a window's CPU time, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Disturbance {
    /// Stolen by the machine's own hypervisor.
    pub steal: f64,
    /// Used by other processes of this machine.
    pub foreign: f64,
}

impl MachineTimes {
    /// The times now.
    pub fn now() -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let mut times =
            Self::parse(&stat).ok_or_else(|| io::Error::other("/proc/stat has no cpu line"))?;
        times.ours = children_ticks(std::process::id());
        Ok(times)
    }

    /// user nice system idle iowait irq softirq steal.
    pub(crate) fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
        let fields: Vec<u64> = line
            .split_whitespace()
            .take(8)
            .filter_map(|f| f.parse().ok())
            .collect();
        (fields.len() == 8).then(|| Self {
            total: fields.iter().sum(),
            idle: fields[3] + fields[4],
            steal: fields[7],
            ours: 0,
        })
    }

    /// What was taken away between `self` and `later`.
    pub fn until(&self, later: &Self) -> Disturbance {
        let grown = |a: u64, b: u64| b.saturating_sub(a);
        let total = grown(self.total, later.total).max(1) as f64;
        let steal = grown(self.steal, later.steal);
        let busy = grown(self.total - self.idle, later.total - later.idle);
        let ours = grown(self.ours, later.ours);
        Disturbance {
            steal: steal as f64 / total,
            foreign: busy.saturating_sub(steal + ours) as f64 / total,
        }
    }
}

/// User and system time of all children of process `parent`.
fn children_ticks(parent: u32) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|e| {
            e.file_name()
                .to_string_lossy()
                .bytes()
                .all(|b| b.is_ascii_digit())
        })
        .filter_map(|e| fs::read_to_string(e.path().join("stat")).ok())
        .filter_map(|stat| child_ticks(&stat, parent))
        .sum()
}

fn child_ticks(stat: &str, parent: u32) -> Option<u64> {
    // The name, in parentheses, may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
    (number(1)? == u64::from(parent)).then_some(number(11)? + number(12)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_and_foreign_work_are_told_apart() {
        let mut begin = MachineTimes::parse("cpu  100 0 0 1000 0 0 0 10 0 0\n").expect("parses");
        let mut end = MachineTimes::parse("cpu  160 0 10 1020 0 0 0 20 5 0\n").expect("parses");
        begin.ours = 50;
        end.ours = 100;
        // 100 ticks: 10 stolen, 20 idle, 70 worked, of which 50 ours.
        let d = begin.until(&end);
        assert!((d.steal - 0.10).abs() < 1e-9, "{d:?}");
        assert!((d.foreign - 0.20).abs() < 1e-9, "{d:?}");
        assert_eq!(MachineTimes::parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn names_with_spaces_do_not_confuse() {
        let stat = "77 (a) b (c) S 42 1 1 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0\n";
        assert_eq!(child_ticks(stat, 42), Some(42));
        assert_eq!(child_ticks(stat, 43), None);
    }
}
