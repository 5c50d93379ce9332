// SPDX-License-Identifier: GPL-2.0-only
//! Where events come from: which of the kernel's functions and tracepoints this
//! host has, and what is lost without those that it lacks.

use crate::skel::trace::{OpenTraceProgs, TraceProgs};
use libbpf_rs::Link;
use std::collections::BTreeSet;

/// A source of events.
struct Source {
    /// The function that shows that the kernel has it.
    symbol: &'static str,
    /// What its events tell, for people.
    tells: &'static str,
}

/// Without these there is no recording at all.
const REQUIRED: [&str; 2] = ["kvm_arch_vcpu_load", "__traceiter_sched_switch"];

/// Calls a macro with all optional programs: the BPF program, the symbol that
/// shows that the kernel can carry it, what it tells.
macro_rules! optional {
    ($each:ident) => {
        $each! {
            trace_destroy_vm, "kvm_arch_destroy_vm", "ends of VMs";
            trace_exit, "__traceiter_kvm_exit", "exits and where the guest was";
            trace_enter, "__traceiter_kvm_entry", "entries into guests";
            trace_ipi_send, "__traceiter_kvm_apic_accept_irq", "IPIs that are sent";
            trace_ipi_take, "__traceiter_kvm_inj_virq", "interrupts that are taken";
            trace_halt, "kvm_vcpu_halt", "halts: polling looks like running";
            trace_halt_end, "__traceiter_kvm_vcpu_wakeup", "ends of halts";
            trace_spin, "kvm_vcpu_on_spin", "spinning that no exit tells of";
            trace_yield_to, "yield_to", "directed yields";
            trace_yield_fair, "yield_to_task_fair", "yields that the kernel's scheduler granted";
            trace_yield_scx, "yield_to_task_scx", "yields that a BPF scheduler granted";
            trace_waking, "__traceiter_sched_waking", "who wakes whom";
        }
    };
}

macro_rules! table {
    ($($prog:ident, $symbol:literal, $tells:literal;)*) => {
        const OPTIONAL: &[Source] = &[$(Source { symbol: $symbol, tells: $tells }),*];
    };
}
optional!(table);

/// What the running kernel has of the sources.
pub(super) struct Sources {
    present: BTreeSet<&'static str>,
}

impl Sources {
    /// Looks through the kernel's symbols (`/proc/kallsyms`).
    pub(super) fn of_kernel(kallsyms: &str) -> Self {
        let wanted: BTreeSet<&'static str> =
            OPTIONAL.iter().map(|s| s.symbol).chain(REQUIRED).collect();
        let names = kallsyms.lines().filter_map(|l| l.split_whitespace().nth(2));
        let present = names.filter_map(|name| wanted.get(name).copied()).collect();
        Self { present }
    }

    /// The first of the required sources that is missing.
    pub(super) fn lacks_required(&self) -> Option<&'static str> {
        REQUIRED
            .into_iter()
            .find(|symbol| !self.present.contains(symbol))
    }

    /// What cannot be recorded, for people.
    pub(super) fn missing(&self) -> Vec<String> {
        let absent = OPTIONAL.iter().filter(|s| !self.present.contains(s.symbol));
        // A kernel without BPF schedulers has none that grant yields.
        let absent = absent.filter(|s| s.symbol != "yield_to_task_scx");
        absent.map(Source::describe).collect()
    }

    /// Chooses which programs are loaded.
    pub(super) fn choose(&self, progs: &mut OpenTraceProgs<'_>) {
        macro_rules! choose {
            ($($prog:ident, $symbol:literal, $tells:literal;)*) => {
                $(progs.$prog.set_autoload(self.present.contains($symbol));)*
            };
        }
        progs.trace_vcpu_load.set_autoload(true);
        optional!(choose);
    }

    /// Attaches what was loaded; what cannot be attached joins `missing`.
    pub(super) fn attach(
        &self,
        progs: &TraceProgs<'_>,
        missing: &mut Vec<String>,
    ) -> libbpf_rs::Result<Vec<Link>> {
        let mut links = vec![
            progs.trace_switch.attach()?,
            progs.trace_wakeup.attach()?,
            progs.trace_vcpu_load.attach()?,
        ];
        macro_rules! attach {
            ($($prog:ident, $symbol:literal, $tells:literal;)*) => {
                $(if self.present.contains($symbol) {
                    match progs.$prog.attach() {
                        Ok(link) => links.push(link),
                        Err(error) => missing.push(format!("{} ({error})", $tells)),
                    }
                })*
            };
        }
        optional!(attach);
        Ok(links)
    }
}

impl Source {
    fn describe(&self) -> String {
        let name = self.symbol.trim_start_matches("__traceiter_");
        format!("{} (the kernel has no {name})", self.tells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel_without(absent: &str) -> Sources {
        let all = OPTIONAL.iter().map(|s| s.symbol).chain(REQUIRED);
        let lines = all
            .filter(|s| *s != absent)
            .map(|s| format!("0000000000000000 t {s}\t[kvm]\n"));
        Sources::of_kernel(&lines.collect::<String>())
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(kernel_without("").missing().is_empty());
        let missing = kernel_without("__traceiter_kvm_inj_virq").missing();
        assert_eq!(
            missing,
            ["interrupts that are taken (the kernel has no kvm_inj_virq)"]
        );
        assert!(kernel_without("yield_to_task_scx").missing().is_empty());
    }

    #[test]
    fn without_kvm_there_is_no_recording() {
        assert_eq!(kernel_without("").lacks_required(), None);
        let lacks = kernel_without("kvm_arch_vcpu_load").lacks_required();
        assert_eq!(lacks, Some("kvm_arch_vcpu_load"));
    }
}
