// SPDX-License-Identifier: GPL-2.0-only
//! CPU time, context switches and placement of VMM processes, from /proc.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Ticks of /proc/stat per second.
const USER_HZ: u64 = 100;

/// CPU time of all threads of `pid`. Nanoseconds.
pub(super) fn cpu_time_ns(pid: u32) -> io::Result<u64> {
    sum_over_threads(pid, "schedstat", |text| {
        text.split_whitespace().next()?.parse().ok()
    })
}

/// Context switches of all vCPU threads of `pid`.
pub(super) fn vcpu_switches(pid: u32) -> io::Result<u64> {
    let mut sum = 0;
    for tid in vcpu_threads(pid)? {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status"))?;
        sum += switches(&text);
    }
    Ok(sum)
}

fn switches(status: &str) -> u64 {
    status
        .lines()
        .filter_map(|l| l.split_once("ctxt_switches:"))
        .filter_map(|(_, n)| n.trim().parse::<u64>().ok())
        .sum()
}

/// Threads of `pid` that run vCPUs: QEMU names them "CPU n/KVM".
fn vcpu_threads(pid: u32) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?;
        let comm = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if comm.starts_with("CPU ") {
            found.extend(task.file_name().to_string_lossy().parse::<i32>());
        }
    }
    Ok(found)
}

/// Whether some vCPU of `pid` is runnable now and after `wait`, and none that is
/// got any CPU time meanwhile.
pub(super) fn starved(pid: u32, wait: Duration) -> io::Result<bool> {
    let before = runnable(pid)?;
    thread::sleep(wait);
    let after = runnable(pid)?;
    let both: Vec<_> = after
        .iter()
        .filter(|(tid, _)| before.contains_key(tid))
        .collect();
    Ok(!both.is_empty() && both.iter().all(|(tid, used)| before.get(tid) == Some(used)))
}

/// CPU time of each runnable vCPU thread of `pid`.
fn runnable(pid: u32) -> io::Result<BTreeMap<i32, String>> {
    let mut found = BTreeMap::new();
    for tid in vcpu_threads(pid)? {
        let task = format!("/proc/{pid}/task/{tid}");
        if is_runnable(&fs::read_to_string(format!("{task}/stat"))?) {
            let used = fs::read_to_string(format!("{task}/schedstat"))?;
            let used = used.split_whitespace().next().unwrap_or_default();
            found.insert(tid, used.to_owned());
        }
    }
    Ok(found)
}

fn is_runnable(stat: &str) -> bool {
    // The name, in parentheses, may contain anything.
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with('R'))
}

/// Lets the vCPU threads of `pid` run on `cpus` alone.
pub(super) fn pin_vcpus(pid: u32, cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu)?;
    }
    for tid in vcpu_threads(pid)? {
        sched_setaffinity(Pid::from_raw(tid), &set)?;
    }
    Ok(())
}

/// Time of all CPUs of this machine in all states but idle. Nanoseconds.
pub(super) fn busy_ns() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/stat")?;
    busy_of(&text).ok_or_else(|| io::Error::other("/proc/stat has no line for all CPUs"))
}

/// user nice system idle iowait irq softirq steal; guest times are contained in
/// user and nice.
fn busy_of(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .filter_map(|f| f.parse().ok())
        .collect();
    let all: u64 = fields.iter().take(8).sum();
    let idle: u64 = fields.iter().skip(3).take(2).sum();
    Some((all - idle) * (1_000_000_000 / USER_HZ))
}

fn sum_over_threads(pid: u32, file: &str, read: impl Fn(&str) -> Option<u64>) -> io::Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let path: PathBuf = task?.path().join(file);
        // A thread may end between the listing and the reading.
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        sum += read(&text)
            .ok_or_else(|| io::Error::other(format!("{}: cannot read {text:?}", path.display())))?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_all_but_idle_and_iowait() {
        let stat = "cpu  10 1 5 1000 50 2 3 4 7 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_of(stat), Some((10 + 1 + 5 + 2 + 3 + 4) * 10_000_000));
        assert_eq!(busy_of("intr 1\n"), None);
    }

    #[test]
    fn both_kinds_of_switches_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t30\n";
        assert_eq!(switches(status), 42);
    }

    #[test]
    fn the_state_follows_the_name() {
        assert!(is_runnable("7 (CPU 0/KVM) R 1 1\n"));
        assert!(!is_runnable("7 (CPU R) R) S 1 1\n"));
    }

    #[test]
    fn who_has_no_vcpus_is_not_starved() {
        let starved = starved(std::process::id(), Duration::ZERO);
        assert!(!starved.expect("our own process"));
    }

    #[test]
    fn our_own_cpu_time_can_be_read() {
        assert!(cpu_time_ns(std::process::id()).is_ok());
        assert!(cpu_time_ns(u32::MAX).is_err());
    }
}
