// SPDX-License-Identifier: GPL-2.0-only
//! Watching the VMs for some seconds: by BPF where that is allowed, else by what
//! /proc tells anybody, which knows how long vCPUs ran and waited, not for whom.

use super::report::Notes;
use super::vm::VmReport;
use crate::root::Root;
use crate::vms::cgroup_file;
use corun_events::account::{Account, Ready, Snapshot, Times, Vcpu, Vm};
use nix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often somebody who wants to leave is noticed.
const STEP: Duration = Duration::from_millis(50);

/// What happened while the VMs were watched.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// Accounts of the interval.
    pub(super) interval: Snapshot,
    /// Whether they tell who vCPUs waited for.
    pub(super) causes_known: bool,
    /// Limits that were used up.
    pub(super) throttled: Vec<Throttled>,
}

/// How often and how long a cgroup was stopped by its `cpu.max`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Throttled {
    pub(super) cgroup: String,
    pub(super) times: u64,
    /// Summed over pCPUs. Nanoseconds.
    pub(super) length_ns: u64,
}

/// Waits `length`, or until `stop` is set.
pub(super) fn wait(length: Duration, stop: &AtomicBool) {
    let begin = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let left = length.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(STEP));
    }
}

/// What reads the accounts by BPF; an error where it may not.
pub(super) type Accounts<'a> = &'a mut dyn FnMut() -> Result<Snapshot, String>;

/// Watches `vms` while `watch` runs.
pub(super) fn take(
    root: &Root,
    vms: &[VmReport],
    accounts: Accounts<'_>,
    watch: impl FnOnce(),
    notes: &mut Notes,
) -> Option<Sample> {
    let stops = throttled(root, vms);
    let by_bpf = accounts();
    let before = by_proc(root, vms);
    watch();
    let interval = by_bpf.and_then(|before| complete(accounts()?.since(&before)));
    let (interval, causes_known) = match interval {
        Ok(interval) => (interval, true),
        Err(why) => {
            notes.unknown("who vCPUs wait for, and what they do in KVM", why);
            (by_proc(root, vms)?.since(&before?), false)
        }
    };
    let throttled = throttled(root, vms)
        .into_iter()
        .map(|(cgroup, (times, length_ns))| {
            let (times_before, ns_before) = stops.get(&cgroup).copied().unwrap_or_default();
            Throttled {
                times: times.saturating_sub(times_before),
                length_ns: length_ns.saturating_sub(ns_before),
                cgroup,
            }
        })
        .collect();
    Some(Sample {
        interval,
        causes_known,
        throttled,
    })
}

/// An error when BPF could not listen to KVM, so that it saw no vCPU.
fn complete(interval: Snapshot) -> Result<Snapshot, String> {
    if interval.vcpus() == 0 && !interval.missing.is_empty() {
        return Err(interval.missing.join("; "));
    }
    Ok(interval)
}

/// Accounts as far as /proc tells: time on pCPUs and time waiting for one; `None` in a
/// kernel that does not count them.
fn by_proc(root: &Root, vms: &[VmReport]) -> Option<Snapshot> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
    let at_ns = u64::try_from(Duration::from(now).as_nanos()).ok()?;
    let mut snapshot = Snapshot {
        at_ns,
        ..Snapshot::default()
    };
    for (id, vm) in (0_u64..).zip(vms) {
        let threads = vm.threads.iter();
        let vcpus = threads.filter_map(|(&tid, &vcpu)| {
            Some(Vcpu {
                vcpu,
                tid: tid.unsigned_abs(),
                found_ns: 0,
                account: thread_account(root, vm.pid, tid, at_ns)?,
            })
        });
        snapshot.vms.push(Vm {
            id,
            name: vm.name.clone(),
            pid: vm.pid.unsigned_abs(),
            vcpus: vcpus.collect(),
        });
    }
    (snapshot.vcpus() > 0).then_some(snapshot)
}

/// `run_ns wait_ns slices` of a thread (`CONFIG_SCHED_INFO`), since it was created.
fn thread_account(root: &Root, pid: i32, tid: i32, at_ns: u64) -> Option<Account> {
    let line = root.line(&format!("proc/{pid}/task/{tid}/schedstat"))?;
    let mut numbers = line.split_whitespace().map(str::parse::<u64>);
    let (run_ns, wait_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(Account {
        wall_ns: at_ns,
        times: Times {
            run_ns,
            ready: Ready {
                other_ns: wait_ns,
                ..Ready::default()
            },
            blocked_ns: at_ns.saturating_sub(run_ns).saturating_sub(wait_ns),
            ..Times::default()
        },
        ..Account::default()
    })
}

/// By cgroup with a limit: how often and how many nanoseconds it was stopped.
fn throttled(root: &Root, vms: &[VmReport]) -> BTreeMap<String, (u64, u64)> {
    let limits = vms.iter().flat_map(|vm| &vm.limits);
    limits
        .filter_map(|limit| {
            let text = root.text(&cgroup_file(&limit.cgroup, "cpu.stat")).ok()?;
            let value = |key: &str| {
                let line = text.lines().find_map(|l| l.strip_prefix(key))?;
                line.trim().parse::<u64>().ok()
            };
            let length_ns = value("throttled_usec ")?.saturating_mul(1000);
            Some((limit.cgroup.clone(), (value("nr_throttled ")?, length_ns)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tree::Tree;
    use crate::doctor::vm;

    const NO_BPF: &str = "BPF needs root";

    fn no_bpf() -> Result<Snapshot, String> {
        Err(NO_BPF.to_owned())
    }

    #[test]
    fn proc_tells_how_long_vcpus_ran_and_waited() {
        let tree = Tree::kvm_host();
        tree.vm(100, "web", 2, "0-1", "host");
        let vms = vm::find(&tree.root).vms;
        let mut notes = Notes::default();
        let watch = || {
            tree.ran(100, 101, 3_000_000, 2_000_000);
            tree.ran(100, 102, 1_000_000, 0);
        };
        let sample = take(&tree.root, &vms, &mut no_bpf, watch, &mut notes);
        let sample = sample.expect("sampled");
        let total = sample.interval.total();
        assert_eq!(total.times.run_ns, 4_000_000);
        assert_eq!(total.times.ready.total_ns(), 2_000_000);
        assert!(!sample.causes_known);
        assert_eq!(notes.unseen[0].why, NO_BPF);
    }

    #[test]
    fn bpf_goes_before_proc() {
        let tree = Tree::kvm_host();
        tree.vm(100, "web", 1, "0-1", "host");
        let vms = vm::find(&tree.root).vms;
        let mut notes = Notes::default();
        let mut read = || Ok(Snapshot::default());
        let sample = take(&tree.root, &vms, &mut read, || (), &mut notes);
        assert!(sample.is_some_and(|s| s.causes_known));
        assert!(notes.unseen.is_empty());
    }

    #[test]
    fn bpf_that_cannot_listen_to_kvm_leaves_it_to_proc() {
        let tree = Tree::kvm_host();
        tree.vm(100, "web", 1, "0-1", "host");
        let vms = vm::find(&tree.root).vms;
        let mut notes = Notes::default();
        let mut deaf = || {
            Ok(Snapshot {
                missing: vec!["kvm: no type information".to_owned()],
                ..Snapshot::default()
            })
        };
        let sample = take(&tree.root, &vms, &mut deaf, || (), &mut notes);
        assert!(sample.is_some_and(|s| !s.causes_known && s.interval.vcpus() == 1));
        assert_eq!(notes.unseen[0].why, "kvm: no type information");
    }

    #[test]
    fn limits_count_what_was_added() {
        let tree = Tree::kvm_host();
        tree.vm(100, "web", 1, "0-1", "host");
        tree.put("sys/fs/cgroup/machine/web/cpu.max", "50000 100000");
        let stat = |n: u64| format!("usage_usec 9\nnr_throttled {n}\nthrottled_usec {n}000\n");
        tree.put("sys/fs/cgroup/machine/web/cpu.stat", &stat(2));
        let vms = vm::find(&tree.root).vms;
        let watch = || tree.put("sys/fs/cgroup/machine/web/cpu.stat", &stat(5));
        let mut notes = Notes::default();
        let sample = take(&tree.root, &vms, &mut no_bpf, watch, &mut notes);
        let expected = Throttled {
            cgroup: "/machine/web".to_owned(),
            times: 3,
            length_ns: 3_000_000,
        };
        assert_eq!(sample.expect("sampled").throttled, [expected]);
    }

    #[test]
    fn a_vm_that_went_or_a_kernel_that_does_not_count_gives_no_sample() {
        let tree = Tree::kvm_host();
        tree.vm(100, "web", 1, "0-1", "host");
        let vms = vm::find(&tree.root).vms;
        tree.remove("proc/100");
        let mut notes = Notes::default();
        let none = take(&tree.root, &vms, &mut no_bpf, || (), &mut notes);
        assert!(none.is_none());
    }
}
