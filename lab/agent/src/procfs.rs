// SPDX-License-Identifier: GPL-2.0-only
//! The guest's own view of a window: steal time and interrupts.

use std::collections::BTreeMap;
use std::fs;

/// What /proc said at one moment.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    steal_ticks: u64,
    interrupts: BTreeMap<String, u64>,
}

impl Counters {
    /// Reads them now. A file that cannot be read counts as empty: these figures
    /// accompany a result, they are no reason to lose it.
    pub(crate) fn read() -> Self {
        let file = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            steal_ticks: parse_steal(&file("/proc/stat")),
            interrupts: parse_interrupts(&file("/proc/interrupts")),
        }
    }

    /// Steal time since `earlier`, summed over vCPUs, in nanoseconds; its
    /// resolution is that of /proc/stat, mostly 10 ms.
    pub(crate) fn steal_ns_since(&self, earlier: &Self) -> u64 {
        self.steal_ticks.saturating_sub(earlier.steal_ticks) * (1_000_000_000 / user_hz())
    }

    /// Growth of the lines of /proc/interrupts since `earlier`, by label.
    pub(crate) fn interrupts_since(&self, earlier: &Self) -> BTreeMap<String, u64> {
        self.interrupts
            .iter()
            .map(|(label, now)| {
                let before = earlier.interrupts.get(label).copied().unwrap_or(0);
                (label.clone(), now.saturating_sub(before))
            })
            .filter(|(_, growth)| *growth > 0)
            .collect()
    }
}

/// Ticks per second of the times in /proc/stat.
fn user_hz() -> u64 {
    // SAFETY: sysconf takes any number and touches no memory of ours.
    let hz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(hz).ok().filter(|hz| *hz > 0).unwrap_or(100)
}

/// Steal ticks of all vCPUs: the 8th number of the `cpu` line.
fn parse_steal(stat: &str) -> u64 {
    stat.lines()
        .find_map(|line| line.strip_prefix("cpu "))
        .and_then(|times| times.split_whitespace().nth(7))
        .and_then(|steal| steal.parse().ok())
        .unwrap_or(0)
}

/// Sum over vCPUs of each line of /proc/interrupts, by label.
fn parse_interrupts(text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    // The first line has one column head per vCPU; ERR and MIS have one column
    // all the same, and other lines go on with words (which may be digits).
    let cpus = lines
        .next()
        .map_or(0, |head| head.split_whitespace().count());
    lines
        .filter_map(|line| {
            let (label, counts) = line.split_once(':')?;
            let sum = counts
                .split_whitespace()
                .take(cpus)
                .map_while(|word| word.parse::<u64>().ok())
                .sum();
            Some((label.trim().to_owned(), sum))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU1
  4:        100          0   IO-APIC   4-edge      ttyS0
 24:          1          2   PCI-MSI 512 virtio
LOC:       1000       2000   Local timer interrupts
ERR:          7
";

    #[test]
    fn interrupts_are_summed_by_label() {
        let found = parse_interrupts(INTERRUPTS);
        let expected = [("4", 100), ("24", 3), ("LOC", 3000), ("ERR", 7)];
        assert_eq!(found.len(), expected.len());
        for (label, sum) in expected {
            assert_eq!(found[label], sum, "{label}");
        }
    }

    #[test]
    fn no_interrupts_file_is_empty() {
        assert!(parse_interrupts("").is_empty());
    }

    #[test]
    fn steal_is_the_eighth() {
        assert_eq!(
            parse_steal("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n"),
            88
        );
        assert_eq!(parse_steal("cpu  1 2 3\n"), 0);
        assert_eq!(parse_steal(""), 0);
    }

    #[test]
    fn only_growth_is_reported() {
        let map = |list: &[(&str, u64)]| list.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        let a = Counters {
            steal_ticks: 5,
            interrupts: map(&[("LOC", 10), ("RES", 3)]),
        };
        let b = Counters {
            steal_ticks: 7,
            interrupts: map(&[("LOC", 15), ("RES", 3), ("TLB", 2)]),
        };
        assert_eq!(b.interrupts_since(&a), map(&[("LOC", 5), ("TLB", 2)]));
        assert_eq!(b.steal_ns_since(&a), 2 * (1_000_000_000 / user_hz()));
    }
}
