// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's functions and tracepoints that corun's programs attach to.

use super::report::{Finding, Notes, Severity};
use crate::root::Root;
use std::collections::BTreeSet;

/// One place to attach to.
struct Target {
    /// Function, or tracepoint.
    name: &'static str,
    tracepoint: bool,
    /// Whether it is part of kvm.
    kvm: bool,
    /// What is lost without it.
    lost: &'static str,
}

const fn function(name: &'static str, kvm: bool, lost: &'static str) -> Target {
    Target {
        name,
        tracepoint: false,
        kvm,
        lost,
    }
}

const fn tracepoint(name: &'static str, kvm: bool, lost: &'static str) -> Target {
    Target {
        name,
        tracepoint: true,
        kvm,
        lost,
    }
}

/// All; a test compares them with the sources in `bpf/`.
const TARGETS: [Target; 18] = [
    tracepoint("sched_switch", false, "nothing is known of waiting times"),
    tracepoint("sched_wakeup", false, "wake-up delays are not known"),
    tracepoint("sched_waking", false, "traces do not tell who woke whom"),
    function("yield_to", false, "directed yields are not counted"),
    function(
        "yield_to_task_fair",
        false,
        "traces do not tell which directed yields EEVDF took",
    ),
    function(
        "yield_to_task_scx",
        false,
        "traces do not tell which directed yields sched_ext took",
    ),
    function("kvm_arch_vcpu_load", true, "VMs are not discovered"),
    function(
        "kvm_arch_vcpu_put",
        true,
        "critical sections of guests are not seen",
    ),
    function(
        "kvm_arch_vcpu_destroy",
        true,
        "vCPUs that went keep their place",
    ),
    function(
        "kvm_arch_destroy_vm",
        true,
        "VMs that went keep their place",
    ),
    function("kvm_vcpu_on_spin", true, "spinning vCPUs are not noticed"),
    function("kvm_vcpu_halt", true, "halts and polls are not told apart"),
    tracepoint("kvm_hypercall", true, "paravirtual yields are not counted"),
    tracepoint("kvm_apic_accept_irq", true, "IPIs are not seen"),
    tracepoint("kvm_inj_virq", true, "IPI delays are not known"),
    tracepoint(
        "kvm_entry",
        true,
        "traces do not tell when guests are entered",
    ),
    tracepoint("kvm_exit", true, "exits are not counted by reason"),
    tracepoint(
        "kvm_vcpu_wakeup",
        true,
        "halts and polls are not told apart",
    ),
];

impl Target {
    /// The symbol by which it is known to be there.
    fn symbol(&self) -> String {
        if self.tracepoint {
            // The tracepoint's own symbol is data, which not all kernels list.
            format!("__traceiter_{}", self.name)
        } else {
            self.name.to_owned()
        }
    }
}

/// Looks for all; of kvm's only once kvm is there.
pub(super) fn check(root: &Root, notes: &mut Notes) {
    let Some(symbols) = symbols(root) else {
        notes.unknown(
            "the kernel's functions and tracepoints",
            "/proc/kallsyms cannot be read",
        );
        return;
    };
    let kvm = root.kvm_is_loaded();
    let missing: Vec<&Target> = TARGETS
        .iter()
        .filter(|t| (kvm || !t.kvm) && !symbols.contains(&t.symbol()))
        .collect();
    if missing.is_empty() {
        return;
    }
    let mut finding = Finding::new(
        "missing-events",
        Severity::Note,
        format!(
            "this kernel lacks {} of the {} functions and tracepoints that corun listens to",
            missing.len(),
            TARGETS.len()
        ),
        "nothing; to see all, use a kernel with CONFIG_FTRACE=y whose compiler did not inline them",
    );
    for target in missing {
        finding = finding.seen(format!("{}: {}", target.name, target.lost));
    }
    notes.find(finding);
}

/// The names that matter, as far as the kernel has them; `None` when it does not tell.
fn symbols(root: &Root) -> Option<BTreeSet<String>> {
    let wanted: BTreeSet<String> = TARGETS.iter().map(Target::symbol).collect();
    let text = root.text("proc/kallsyms").ok()?;
    let found = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| wanted.contains(*name))
        .map(str::to_owned)
        .collect();
    (!text.is_empty()).then_some(found)
}

/// What /proc/kallsyms says where nothing is missing.
#[cfg(test)]
pub(super) fn all_as_kallsyms() -> String {
    let lines = TARGETS.map(|t| format!("0000000000000000 T {}", t.symbol()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tree::Tree;
    use std::path::Path;

    /// `SEC("?tp_btf/kvm_exit")` in the sources, as (is a tracepoint, name).
    fn in_sources() -> BTreeSet<(bool, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
        let mut found = BTreeSet::new();
        for file in std::fs::read_dir(folder).expect("bpf/").flatten() {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            for part in text.split("SEC(\"").skip(1) {
                let section = part.split('"').next().unwrap_or("").trim_start_matches('?');
                let Some((kind, name)) = section.split_once('/') else {
                    continue;
                };
                let tracepoint = matches!(kind, "tp_btf" | "raw_tp");
                if tracepoint || matches!(kind, "fentry" | "fexit") {
                    found.insert((tracepoint, name.to_owned()));
                }
            }
        }
        found
    }

    #[test]
    fn every_program_in_bpf_has_its_target_here() {
        for (tracepoint, name) in in_sources() {
            assert!(
                TARGETS
                    .iter()
                    .any(|t| t.name == name && t.tracepoint == tracepoint),
                "{name} is not in TARGETS"
            );
        }
    }

    #[test]
    fn what_is_missing_is_named_and_kvms_only_with_kvm() {
        let tree = Tree::kvm_host();
        let findings = |tree: &Tree| {
            let mut notes = Notes::default();
            check(&tree.root, &mut notes);
            notes.findings
        };
        assert!(findings(&tree).is_empty());
        let without = all_as_kallsyms().replace("__traceiter_kvm_exit", "other");
        tree.put("proc/kallsyms", &without);
        let found = findings(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].evidence,
            ["kvm_exit: exits are not counted by reason"]
        );
        tree.remove("sys/module/kvm");
        tree.remove("sys/kernel/btf/kvm");
        assert!(findings(&tree).is_empty());
    }
}
