// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's functions and tracepoints that corun's programs attach to, and
//! what is lost on a kernel that lacks one: asked, not told by version.

use crate::error::{During, Result};
use std::collections::BTreeSet;

/// A place to attach to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name: a function's or a tracepoint's.
    pub(crate) name: &'static str,
    /// The symbol by which it is known to be there. A tracepoint's own symbol is
    /// data, which not all kernels list.
    symbol: &'static str,
    /// It is part of kvm.
    pub(crate) of_kvm: bool,
    /// What is lost without it, for people.
    lost: &'static str,
}

macro_rules! symbol {
    (function $name:literal) => {
        $name
    };
    (tracepoint $name:literal) => {
        concat!("__traceiter_", $name)
    };
}

/// Makes a constant of each, and the list of all.
macro_rules! events {
    ($($constant:ident: $kind:tt $name:literal of $of:ident, $lost:literal;)*) => {
        $(pub(crate) const $constant: Event = Event {
            name: $name,
            symbol: symbol!($kind $name),
            of_kvm: matches!(Part::$of, Part::Kvm),
            lost: $lost,
        };)*
        /// All; a test compares them with the sources in `bpf/`.
        pub(crate) const ALL: &[Event] = &[$($constant),*];
    };
}

/// What of the kernel an event is part of.
enum Part {
    Core,
    Kvm,
}

events! {
    SCHED_SWITCH: tracepoint "sched_switch" of Core,
        "nothing is known of waiting times";
    SCHED_WAKEUP: tracepoint "sched_wakeup" of Core,
        "wake-up delays are not known";
    SCHED_WAKING: tracepoint "sched_waking" of Core,
        "traces do not tell who woke whom";
    YIELD_TO: function "yield_to" of Core,
        "directed yields are not seen";
    YIELD_TO_FAIR: function "yield_to_task_fair" of Core,
        "traces do not tell which directed yields EEVDF took";
    YIELD_TO_SCX: function "yield_to_task_scx" of Core,
        "traces do not tell which directed yields sched_ext took";
    VCPU_LOAD: function "kvm_arch_vcpu_load" of Kvm,
        "VMs are not discovered";
    VCPU_PUT: function "kvm_arch_vcpu_put" of Kvm,
        "critical sections of guests are not seen; preempted guests count as outside of KVM";
    VCPU_DESTROY: function "kvm_arch_vcpu_destroy" of Kvm,
        "vCPUs that went keep their place";
    DESTROY_VM: function "kvm_arch_destroy_vm" of Kvm,
        "of VMs that end only the end of their process is seen";
    SPIN: function "kvm_vcpu_on_spin" of Kvm,
        "spinning vCPUs are not noticed";
    HALT: function "kvm_vcpu_halt" of Kvm,
        "halts are not seen: halted time counts as blocked, polling as run";
    HALT_END: tracepoint "kvm_vcpu_wakeup" of Kvm,
        "ends of halts are not seen: halted time counts as blocked, polling as run";
    HYPERCALL: tracepoint "kvm_hypercall" of Kvm,
        "paravirtual yields are not counted";
    IPI_SENT: tracepoint "kvm_apic_accept_irq" of Kvm,
        "IPIs and shootdowns are not seen; device interrupts include IPIs and timers";
    IPI_ACCEPTED: function "__apic_accept_irq" of Kvm,
        "IPIs are noted before they are delivered, which is later for it";
    INJECTED: tracepoint "kvm_inj_virq" of Kvm,
        "interrupts that guests take are not seen: no IPI delays, no device interrupts";
    ENTRY: tracepoint "kvm_entry" of Kvm,
        "traces do not tell when guests are entered";
    EXIT: tracepoint "kvm_exit" of Kvm,
        "exits are not counted by reason; traces do not tell where guests were";
}

/// The names of all, in order of the alphabet.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = ALL.iter().map(|event| event.name).collect();
    names.sort_unstable();
    names
}

impl Event {
    /// True for a tracepoint, false for a function.
    #[cfg(test)]
    pub(crate) fn is_tracepoint(&self) -> bool {
        self.symbol != self.name
    }

    /// That it is missing, for people.
    pub(crate) fn missing(&self) -> String {
        format!("{}: {}", self.name, self.lost)
    }
}

/// The events that a kernel has.
#[derive(Debug)]
pub(crate) struct Present(BTreeSet<&'static str>);

impl Present {
    /// Looks through a kernel's symbols, the text of `/proc/kallsyms`.
    pub(crate) fn of(kallsyms: &str) -> Self {
        let wanted: BTreeSet<&'static str> = ALL.iter().map(|e| e.symbol).collect();
        let names = kallsyms.lines().filter_map(|l| l.split_whitespace().nth(2));
        Self(names.filter_map(|n| wanted.get(n).copied()).collect())
    }

    /// Looks through the running kernel's.
    pub(crate) fn here() -> Result<Self> {
        let symbols = std::fs::read_to_string("/proc/kallsyms");
        Ok(Self::of(&symbols.during("reading /proc/kallsyms")?))
    }

    /// The same without those named.
    pub(crate) fn without(mut self, names: &[String]) -> Self {
        let hidden = ALL.iter().filter(|e| names.iter().any(|n| n == e.name));
        for event in hidden {
            self.0.remove(event.symbol);
        }
        self
    }

    /// True when the kernel has `event`.
    pub(crate) fn has(&self, event: &Event) -> bool {
        self.0.contains(event.symbol)
    }
}

/// What `/proc/kallsyms` says of a kernel that has all but `absent`.
#[cfg(test)]
pub(crate) fn kallsyms_without(absent: &[&Event]) -> String {
    let there = ALL.iter().filter(|event| !absent.contains(event));
    let lines = there.map(|event| format!("0000000000000000 t {}\t[kvm]", event.symbol));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// `SEC("?tp_btf/kvm_exit")` in the sources, as (is a tracepoint, name).
    fn in_sources() -> BTreeSet<(bool, String)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
        let mut found = BTreeSet::new();
        for file in std::fs::read_dir(folder).expect("bpf/").flatten() {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            for part in text.split("SEC(\"").skip(1) {
                let section = part.split('"').next().unwrap_or("").trim_start_matches('?');
                let Some((kind, target)) = section.split_once('/') else {
                    continue;
                };
                // `tp/` has the group between.
                let name = target.rsplit('/').next().unwrap_or(target);
                let tracepoint = matches!(kind, "tp" | "tp_btf" | "raw_tp");
                if tracepoint || matches!(kind, "fentry" | "fexit") {
                    found.insert((tracepoint, name.to_owned()));
                }
            }
        }
        found
    }

    #[test]
    fn programs_in_bpf_and_events_are_the_same() {
        let listed = ALL.iter().map(|e| (e.is_tracepoint(), e.name.to_owned()));
        assert_eq!(in_sources(), listed.collect());
    }

    #[test]
    fn what_a_kernel_has_is_known_by_its_symbols() {
        let present = Present::of(&kallsyms_without(&[&EXIT, &SPIN]));
        let absent: Vec<&str> = ALL
            .iter()
            .filter(|event| !present.has(event))
            .map(|event| event.name)
            .collect();
        assert_eq!(absent, ["kvm_vcpu_on_spin", "kvm_exit"]);
        assert!(!Present::of("0 t kvm_exit\n0 t\n\n").has(&EXIT));
    }

    #[test]
    fn kvms_are_told_from_the_rest() {
        for event in ALL {
            let is_named_so = event.name.starts_with("kvm_") || *event == IPI_ACCEPTED;
            assert_eq!(event.of_kvm, is_named_so, "{}", event.name);
        }
    }
}
