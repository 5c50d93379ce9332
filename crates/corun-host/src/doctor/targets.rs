// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's functions and tracepoints that corun's programs attach to.

use super::report::{Finding, Notes, Severity};
use crate::events::{ALL, Event, Present};
use crate::root::Root;

/// Looks for all; of kvm's only once kvm is there.
pub(super) fn check(root: &Root, notes: &mut Notes) {
    let symbols = root.text("proc/kallsyms").unwrap_or_default();
    if symbols.is_empty() {
        notes.unknown(
            "the kernel's functions and tracepoints",
            "/proc/kallsyms cannot be read",
        );
        return;
    }
    let present = Present::of(&symbols);
    let kvm = root.kvm_is_loaded();
    let missing: Vec<&Event> = ALL
        .iter()
        .filter(|event| (kvm || !event.of_kvm) && !present.has(event))
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
            ALL.len()
        ),
        "nothing; to see all, use a kernel with CONFIG_FTRACE=y whose compiler did not inline them",
    );
    for event in missing {
        finding = finding.seen(event.missing());
    }
    notes.find(finding);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tree::Tree;
    use crate::events::{EXIT, kallsyms_without};

    #[test]
    fn what_is_missing_is_named_and_kvms_only_with_kvm() {
        let tree = Tree::kvm_host();
        let findings = |tree: &Tree| {
            let mut notes = Notes::default();
            check(&tree.root, &mut notes);
            notes.findings
        };
        assert!(findings(&tree).is_empty());
        tree.put("proc/kallsyms", &kallsyms_without(&[&EXIT]));
        let found = findings(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].evidence, [EXIT.missing()]);
        tree.remove("sys/module/kvm");
        tree.remove("sys/kernel/btf/kvm");
        assert!(findings(&tree).is_empty());
    }
}
