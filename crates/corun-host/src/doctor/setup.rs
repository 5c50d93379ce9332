// SPDX-License-Identifier: GPL-2.0-only
//! Findings of how VMs were set up; nothing is measured.

use super::pv::{DEDICATED, FEATURES};
use super::report::{Finding, Notes, Severity};
use super::vm::VmReport;
use crate::root::Root;
use crate::text::cpus_in_list;
use std::collections::BTreeSet;

/// pCPUs online; `None` when sysfs does not tell.
pub(super) fn online(root: &Root) -> Option<BTreeSet<u32>> {
    cpus_in_list(&root.line("sys/devices/system/cpu/online")?)
}

/// Looks at all VMs.
pub(super) fn check(vms: &[VmReport], online: Option<&BTreeSet<u32>>, notes: &mut Notes) {
    let pcpus = online.map_or(0, BTreeSet::len);
    let vcpus: usize = vms.iter().map(|vm| vm.vcpus).sum();
    let overcommitted = pcpus > 0 && vcpus > pcpus;
    if overcommitted {
        notes.find(
            Finding::new(
                "overcommit",
                Severity::Note,
                format!(
                    "CPU is overcommitted {:.1} to 1: {vcpus} vCPUs of {} VMs on {pcpus} pCPUs",
                    vcpus as f64 / pcpus as f64,
                    vms.len()
                ),
                "nothing as long as no VM waits; see the findings of VMs",
            )
            .seen(listing(vms)),
        );
    }
    for vm in vms {
        wider_than_its_pcpus(vm, pcpus, notes);
        dedicated_on_shared_cpus(vm, overcommitted, notes);
        pv_features(vm, overcommitted, notes);
    }
}

fn listing(vms: &[VmReport]) -> String {
    let each: Vec<String> = vms
        .iter()
        .map(|vm| format!("{} {}", vm.name, vm.vcpus))
        .collect();
    format!("vCPUs: {}", each.join(", "))
}

fn wider_than_its_pcpus(vm: &VmReport, pcpus: usize, notes: &mut Notes) {
    let allowed = vm.cpus.as_ref().map_or(pcpus, BTreeSet::len);
    if allowed == 0 || vm.vcpus <= allowed {
        return;
    }
    notes.find(
        Finding::new(
            "vm-too-wide",
            Severity::Warning,
            format!(
                "{} has more vCPUs ({}) than pCPUs that it may use ({allowed}): its vCPUs preempt \
                 each other",
                vm.name, vm.vcpus
            ),
            format!("give it at most {allowed} vCPUs, or more pCPUs (cpuset, `virsh vcpupin`)"),
        )
        .seen(match &vm.cpus {
            Some(cpus) => format!("allowed pCPUs: {}", ranges(cpus)),
            None => format!("the host has {pcpus} pCPUs"),
        })
        .of_vm(&vm.name, 0.0),
    );
}

fn dedicated_on_shared_cpus(vm: &VmReport, overcommitted: bool, notes: &mut Notes) {
    if !overcommitted || !vm.pv.as_ref().is_some_and(|pv| pv.has(DEDICATED)) {
        return;
    }
    notes.find(
        Finding::new(
            "dedicated-hint",
            Severity::Warning,
            format!(
                "{} was told that its vCPUs are never preempted, and its pCPUs are shared",
                vm.name
            ),
            format!("start it without `{DEDICATED}=on`, or give it pCPUs of its own"),
        )
        .seen("a Linux guest with this hint uses neither pv spinlocks nor pv TLB flushes")
        .of_vm(&vm.name, 0.0),
    );
}

fn pv_features(vm: &VmReport, overcommitted: bool, notes: &mut Notes) {
    let Some(pv) = &vm.pv else {
        notes.unknown(
            &format!("paravirtual features of {}", vm.name),
            "its command line is not QEMU's, or has no -cpu",
        );
        return;
    };
    let lacks = pv.lacks();
    if !overcommitted || lacks.is_empty() {
        return;
    }
    let options: Vec<String> = lacks.iter().map(|name| format!("{name}=on")).collect();
    notes.find(
        Finding::new(
            "pv-off",
            Severity::Note,
            format!(
                "{} runs without {} of the {} paravirtual features that soften preemption",
                vm.name,
                lacks.len(),
                FEATURES.len()
            ),
            format!(
                "at its next start add `{}` to QEMU's -cpu (libvirt: <feature policy='require'>)",
                options.join(",")
            ),
        )
        .seen(format!("CPU model {}, off: {}", pv.model, lacks.join(", ")))
        .of_vm(&vm.name, 0.0),
    );
}

/// `0-3,8`.
pub(super) fn ranges(cpus: &BTreeSet<u32>) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let text: Vec<String> = parts
        .iter()
        .map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    text.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tree::Tree;
    use crate::doctor::vm;

    fn notes(tree: &Tree) -> Notes {
        let mut notes = Notes::default();
        let vms = vm::find(&tree.root).vms;
        check(&vms, online(&tree.root).as_ref(), &mut notes);
        notes
    }

    fn ids(tree: &Tree) -> Vec<&'static str> {
        notes(tree).findings.iter().map(|f| f.id).collect()
    }

    #[test]
    fn a_vm_that_fits_has_no_findings() {
        let tree = Tree::kvm_host();
        assert!(ids(&tree).is_empty());
        tree.vm(100, "web", 2, "0-1", "qemu64");
        assert!(ids(&tree).is_empty(), "alone, it needs no pv features");
    }

    #[test]
    fn overcommit_is_counted_over_all_vms() {
        let tree = Tree::kvm_host();
        tree.vm(100, "web", 2, "0-1", "host");
        tree.vm(200, "db", 2, "0-1", "host");
        let notes = notes(&tree);
        assert_eq!(notes.findings.len(), 1);
        assert!(notes.findings[0].what.contains("2.0 to 1"));
        assert_eq!(notes.findings[0].evidence, ["vCPUs: web 2, db 2"]);
    }

    #[test]
    fn more_vcpus_than_pcpus_is_a_warning() {
        let tree = Tree::kvm_host();
        tree.vm(100, "web", 2, "1", "host");
        assert_eq!(ids(&tree), ["vm-too-wide"]);
        assert!(notes(&tree).findings[0].evidence[0].ends_with("pCPUs: 1"));
    }

    #[test]
    fn wrong_hints_and_missing_features_are_named_where_they_cost() {
        let tree = Tree::kvm_host();
        tree.vm(100, "web", 2, "0-1", "host,kvm-hint-dedicated=on");
        tree.vm(200, "db", 1, "0-1", "qemu64,kvm-pv-unhalt=on");
        assert_eq!(ids(&tree), ["overcommit", "dedicated-hint", "pv-off"]);
        let next = notes(&tree).findings[2].next_step.clone();
        assert!(next.contains("kvm-pv-tlb-flush=on,kvm-pv-ipi=on"), "{next}");
        assert!(!next.contains("unhalt"), "{next}");
    }

    #[test]
    fn ranges_are_short() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8].into()), "0-2,5,7-8");
        assert_eq!(ranges(&BTreeSet::new()), "");
    }
}
