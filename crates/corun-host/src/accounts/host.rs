// SPDX-License-Identifier: GPL-2.0-only
//! What the host's pCPUs do, from /proc/stat.

use crate::error::{During, Result};
use crate::{counters, host_info};
use corun_events::account::Host;
use nix::unistd::{SysconfVar, sysconf};

/// The host now.
pub(super) fn read() -> Result<Host> {
    let stat = std::fs::read_to_string("/proc/stat").during("reading /proc/stat")?;
    let mut host = parse(&stat, ticks_a_second());
    host.pcpus = pcpus();
    host.scheduler = host_info::loaded_scheduler().unwrap_or_else(|| "kernel".to_owned());
    // Counters come and go with the scheduler: absent is none.
    if let Ok(Some(counters)) = counters::of_running_scheduler() {
        host.corun = counters;
    }
    Ok(host)
}

/// pCPUs online.
pub(super) fn pcpus() -> u32 {
    let online = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
    online.and_then(|n| u32::try_from(n).ok()).unwrap_or(1)
}

fn ticks_a_second() -> u64 {
    let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    ticks.and_then(|n| u64::try_from(n).ok()).unwrap_or(100)
}

/// From the first line: user, nice, system, idle, iowait, irq, softirq, steal,
/// guest, guest nice; guests are in user and nice, too.
fn parse(stat: &str, ticks_a_second: u64) -> Host {
    let line = stat.lines().next().unwrap_or("");
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let ns = |fields: &[usize]| {
        let sum: u64 = fields.iter().filter_map(|i| ticks.get(*i)).sum();
        sum * (1_000_000_000 / ticks_a_second)
    };
    let guest_ns = ns(&[8, 9]);
    Host {
        guest_ns,
        host_ns: ns(&[0, 1, 2, 5, 6]).saturating_sub(guest_ns),
        idle_ns: ns(&[3, 4]),
        stolen_ns: ns(&[7]),
        ..Host::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_not_counted_twice() {
        let host = parse("cpu  100 10 20 1000 5 3 2 7 60 4\ncpu0 1 2\n", 100);
        assert_eq!(host.guest_ns, 640_000_000);
        assert_eq!(host.host_ns, (100 + 10 + 20 + 3 + 2 - 64) * 10_000_000);
        assert_eq!(host.idle_ns, 10_050_000_000);
        assert_eq!(host.stolen_ns, 70_000_000);
    }

    #[test]
    fn old_kernels_short_lines_are_read() {
        let host = parse("cpu 1 0 1 8\n", 100);
        assert_eq!((host.host_ns, host.stolen_ns), (20_000_000, 0));
        assert_eq!(parse("", 100), Host::default());
    }
}
