// SPDX-License-Identifier: GPL-2.0-only
//! VMs as they were set up: found in /proc, whatever the VMM.

use super::pv::{self, Pv};
use crate::root::Root;
use crate::vms;
use corun_events::account::Account;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A limit on a VM's CPU time (`cpu.max`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuLimit {
    /// The cgroup that has it.
    pub cgroup: String,
    /// pCPUs' worth of time.
    pub cpus: f64,
}

/// One VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VmReport {
    /// Name from the VMM's command line, else `pid-<VMM's pid>`.
    pub name: String,
    /// Process of the VMM.
    pub pid: i32,
    /// vCPUs.
    pub vcpus: usize,
    /// pCPUs that its vCPUs may use, together; `None` when they cannot be told.
    pub cpus: Option<BTreeSet<u32>>,
    /// Weight of its cgroup.
    pub weight: u32,
    /// Limits on it and on the cgroups above and below it.
    pub limits: Vec<CpuLimit>,
    /// Paravirtual features, where the command line tells.
    pub pv: Option<Pv>,
    /// What it did while it was watched, all vCPUs together.
    pub account: Option<Account>,
    /// Threads that run vCPUs, with the vCPU's number.
    #[serde(skip)]
    pub(super) threads: BTreeMap<i32, u32>,
}

/// VMs, and how many processes could not be looked into.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) vms: Vec<VmReport>,
    pub(super) closed_processes: usize,
}

/// Finds the VMs. A process whose descriptors may not be read counts as one when its
/// threads are named like vCPUs.
pub(super) fn find(root: &Root) -> Found {
    let mut found = Found::default();
    for pid in root.processes() {
        let threads = vcpu_threads(root, pid);
        let vcpus = match root.descriptors(pid) {
            Ok(open) => {
                let named = |prefix: &str| {
                    let matching = open
                        .iter()
                        .filter(|f| f.to_string_lossy().starts_with(prefix));
                    matching.collect::<BTreeSet<_>>().len()
                };
                (named("anon_inode:kvm-vm") > 0).then(|| named("anon_inode:kvm-vcpu:"))
            }
            // It ended meanwhile.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(_) => {
                found.closed_processes += 1;
                (!threads.is_empty()).then_some(threads.len())
            }
        };
        if let Some(vcpus) = vcpus {
            found.vms.push(describe(root, pid, vcpus, threads));
        }
    }
    found
}

/// Threads of a process that are named as VMMs name their vCPUs'.
fn vcpu_threads(root: &Root, pid: i32) -> BTreeMap<i32, u32> {
    let threads = root.threads(pid).into_iter();
    threads
        .filter_map(|tid| {
            let comm = root.line(&format!("proc/{pid}/task/{tid}/comm"))?;
            Some((tid, vcpu_number(&comm)?))
        })
        .collect()
}

/// `CPU 3/KVM` (QEMU), `fc_vcpu 3` (Firecracker), `vcpu3` (Cloud Hypervisor).
fn vcpu_number(comm: &str) -> Option<u32> {
    let number = comm
        .strip_prefix("CPU ")
        .and_then(|rest| rest.strip_suffix("/KVM"))
        .or_else(|| comm.strip_prefix("fc_vcpu "))
        .or_else(|| comm.strip_prefix("vcpu"))?;
    number.parse().ok()
}

fn describe(root: &Root, pid: i32, vcpus: usize, threads: BTreeMap<i32, u32>) -> VmReport {
    let process = pid.unsigned_abs();
    VmReport {
        name: vms::name_of(root, process),
        pid,
        vcpus,
        cpus: allowed_cpus(root, pid, &threads),
        weight: vms::weight_of(root, process),
        limits: limits(root, pid, &threads),
        pv: pv::of_command_line(&vms::arguments_of(root, process)),
        account: None,
        threads,
    }
}

/// pCPUs that at least one of the vCPUs may use.
fn allowed_cpus(root: &Root, pid: i32, threads: &BTreeMap<i32, u32>) -> Option<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for tid in threads.keys() {
        all.extend(vms::allowed_cpus(root, &format!("proc/{pid}/task/{tid}"))?);
    }
    (!all.is_empty()).then_some(all)
}

/// `cpu.max` of the cgroups of the VM's threads and all above them.
fn limits(root: &Root, pid: i32, threads: &BTreeMap<i32, u32>) -> Vec<CpuLimit> {
    let own = std::iter::once(format!("proc/{pid}"));
    let all = own.chain(threads.keys().map(|tid| format!("proc/{pid}/task/{tid}")));
    let mut groups = BTreeSet::new();
    for leaf in all.filter_map(|of| vms::unified_cgroup(root, &of)) {
        let mut group = leaf.as_str();
        while !group.is_empty() && group != "/" {
            groups.insert(group.to_owned());
            group = group.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }
    groups
        .into_iter()
        .filter_map(|cgroup| {
            let line = root.line(&vms::cgroup_file(&cgroup, "cpu.max"))?;
            let (quota, period) = line.split_once(' ')?;
            let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
            let cpus = quota / period;
            cpus.is_finite().then_some(CpuLimit { cgroup, cpus })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tree::Tree;

    #[test]
    fn a_vm_is_known_by_its_descriptors() {
        let tree = Tree::kvm_host();
        tree.process(7, "bash", &["/dev/kvm", "/etc/passwd"]);
        tree.vm(100, "web", 4, "0-1", "host,-kvm-pv-tlb-flush");
        let found = find(&tree.root);
        assert_eq!(found.vms.len(), 1);
        let vm = &found.vms[0];
        assert_eq!((vm.name.as_str(), vm.pid, vm.vcpus), ("web", 100, 4));
        assert_eq!(vm.cpus, Some([0, 1].into()));
        assert_eq!(vm.threads.len(), 4);
        assert!(vm.pv.as_ref().is_some_and(|pv| !pv.has("kvm-pv-tlb-flush")));
    }

    #[test]
    fn limits_of_the_vm_and_above_it_are_found() {
        let tree = Tree::kvm_host();
        tree.vm(100, "web", 1, "0", "host");
        tree.put("sys/fs/cgroup/machine/web/cpu.max", "max 100000");
        assert!(find(&tree.root).vms[0].limits.is_empty());
        tree.put("sys/fs/cgroup/machine/cpu.max", "150000 100000");
        let limits = &find(&tree.root).vms[0].limits;
        assert_eq!(limits.len(), 1);
        assert_eq!(limits[0].cgroup, "/machine");
        assert!((limits[0].cpus - 1.5).abs() < 1e-9);
    }

    #[test]
    fn vmms_name_their_vcpus_in_their_ways() {
        assert_eq!(vcpu_number("CPU 12/KVM"), Some(12));
        assert_eq!(vcpu_number("fc_vcpu 0"), Some(0));
        assert_eq!(vcpu_number("vcpu3"), Some(3));
        assert_eq!(vcpu_number("CPU 0/TCG"), None);
        assert_eq!(vcpu_number("worker"), None);
    }
}
