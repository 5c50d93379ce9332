// SPDX-License-Identifier: GPL-2.0-only
//! Which of the kernel's events there are to listen to: asked, not told by version.

use crate::error::{During, Result};
use crate::skel::accounts::OpenAccountsProgs;
use libbpf_rs::OpenProgramMut;
use std::collections::BTreeSet;

/// An event that a kernel may lack.
struct Event {
    /// Its name: a function's or a tracepoint's.
    name: &'static str,
    /// A symbol that is there with it.
    symbol: &'static str,
    /// What is lost without it.
    lost: &'static str,
}

const HALT: Event = Event {
    name: "kvm_vcpu_halt",
    symbol: "kvm_vcpu_halt",
    lost: "halted counts as blocked, polling as run; no halts",
};
const HALT_END: Event = Event {
    name: "kvm_vcpu_wakeup",
    symbol: "__traceiter_kvm_vcpu_wakeup",
    lost: "halted counts as blocked, polling as run; no halts",
};
const PUT: Event = Event {
    name: "kvm_arch_vcpu_put",
    symbol: "kvm_arch_vcpu_put",
    lost: "preemptions in user and kernel mode count as outside of KVM",
};
const EXIT: Event = Event {
    name: "kvm_exit",
    symbol: "__traceiter_kvm_exit",
    lost: "no exits by reason",
};
const IPI_SENT: Event = Event {
    name: "kvm_apic_accept_irq",
    symbol: "__traceiter_kvm_apic_accept_irq",
    lost: "no IPIs and shootdowns; device interrupts include IPIs and timers",
};
const INJECTED: Event = Event {
    name: "kvm_inj_virq",
    symbol: "__traceiter_kvm_inj_virq",
    lost: "no IPIs received, no IPI latency, no device interrupts",
};
const SPIN: Event = Event {
    name: "kvm_vcpu_on_spin",
    symbol: "kvm_vcpu_on_spin",
    lost: "no spins",
};
const YIELD_TO: Event = Event {
    name: "yield_to",
    symbol: "yield_to",
    lost: "no directed yields",
};

/// Chooses the programs to load; tells of each event that is not there. The others must be:
/// without them there are no accounts.
pub(super) fn choose(progs: &mut OpenAccountsProgs<'_>) -> Result<Vec<String>> {
    let symbols = std::fs::read_to_string("/proc/kallsyms").during("reading /proc/kallsyms")?;
    Ok(choose_by(progs, &names(&symbols)))
}

fn choose_by(progs: &mut OpenAccountsProgs<'_>, there: &BTreeSet<&str>) -> Vec<String> {
    for prog in [
        &mut progs.acct_vcpu_load,
        &mut progs.acct_vcpu_destroy,
        &mut progs.acct_destroy_vm,
    ] {
        prog.set_autoload(true);
    }
    // A helper of scx's headers that nothing here uses.
    progs.scx_lib_init_probe.set_autoload(false);
    let optional: [(Event, &mut OpenProgramMut<'_>); 8] = [
        (HALT, &mut progs.acct_halt),
        (HALT_END, &mut progs.acct_halt_end),
        (PUT, &mut progs.acct_vcpu_put),
        (EXIT, &mut progs.acct_exit),
        (IPI_SENT, &mut progs.acct_ipi_sent),
        (INJECTED, &mut progs.acct_injected),
        (SPIN, &mut progs.acct_spin),
        (YIELD_TO, &mut progs.acct_yield_to),
    ];
    let mut missing = Vec::new();
    // Half of a halt would never end.
    let halts = there.contains(HALT.symbol) && there.contains(HALT_END.symbol);
    for (event, prog) in optional {
        let is_there = there.contains(event.symbol);
        let is_halt = [HALT.name, HALT_END.name].contains(&event.name);
        prog.set_autoload(is_there && (halts || !is_halt));
        if !is_there {
            missing.push(format!("{}: {}", event.name, event.lost));
        }
    }
    missing
}

/// The symbols of a kallsyms text that are asked for.
fn names(kallsyms: &str) -> BTreeSet<&str> {
    let wanted = [
        HALT, HALT_END, PUT, EXIT, IPI_SENT, INJECTED, SPIN, YIELD_TO,
    ];
    let wanted: BTreeSet<&str> = wanted.iter().map(|e| e.symbol).collect();
    kallsyms
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| wanted.contains(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skel::accounts::AccountsSkelBuilder;
    use libbpf_rs::skel::SkelBuilder;
    use std::mem::MaybeUninit;

    const ALL: &str = "\
        0 T yield_to\n0 t other\n0 t kvm_vcpu_halt\t[kvm]\n0 T kvm_arch_vcpu_put\t[kvm]\n\
        0 t __traceiter_kvm_exit\t[kvm]\n0 t __traceiter_kvm_inj_virq\t[kvm]\n\
        0 t __traceiter_kvm_apic_accept_irq\t[kvm]\n0 t kvm_vcpu_on_spin\t[kvm]\n\
        0 t __traceiter_kvm_vcpu_wakeup\t[kvm]\n";

    /// What is missing, and which of the programs are loaded.
    fn chosen(kallsyms: &str) -> (Vec<String>, Vec<String>) {
        let mut object = MaybeUninit::uninit();
        let mut open = AccountsSkelBuilder::default()
            .open(&mut object)
            .expect("opens");
        let missing = choose_by(&mut open.progs, &names(kallsyms));
        let object = libbpf_rs::skel::OpenSkel::open_object(&open);
        let loaded = object.progs().filter(libbpf_rs::OpenProgram::autoload);
        (
            missing,
            loaded
                .map(|p| p.name().to_string_lossy().into_owned())
                .collect(),
        )
    }

    #[test]
    fn all_is_loaded_where_all_is_there() {
        let (missing, loaded) = chosen(ALL);
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(loaded.len(), 13, "{loaded:?}");
    }

    #[test]
    fn what_is_not_there_is_told_and_not_loaded() {
        let without = ALL.replace("__traceiter_kvm_exit", "x");
        let (missing, loaded) = chosen(&without);
        assert_eq!(missing, ["kvm_exit: no exits by reason"]);
        assert!(!loaded.contains(&"acct_exit".to_owned()));
        assert_eq!(loaded.len(), 12);
    }

    #[test]
    fn halts_need_both_their_ends() {
        let (missing, loaded) = chosen(&ALL.replace("__traceiter_kvm_vcpu_wakeup", "x"));
        assert_eq!(missing.len(), 1);
        assert!(!loaded.contains(&"acct_halt".to_owned()), "{loaded:?}");
    }
}
