// SPDX-License-Identifier: GPL-2.0-only
//! Which of KVM's events are attached to: only those that a mechanism needs, of those
//! that the kernel has.

use crate::error::{During, Result};
use crate::events::{
    DESTROY_VM, Event, HALT, HYPERCALL, IPI_ACCEPTED, IPI_SENT, Present, SPIN, VCPU_LOAD, VCPU_PUT,
};
use crate::skel::corun::{CorunProgs, OpenCorunProgs};
use corun_policy::Mechanisms;
use libbpf_rs::Link;

/// A BPF program on an event of KVM's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hook {
    /// A thread takes up a vCPU: discovery.
    VcpuLoad,
    /// A VM ends: discovery.
    DestroyVm,
    /// Who spins, and the strict choice of its target.
    Spin,
    /// Guests' own requests to yield.
    Hypercall,
    /// IPIs and device interrupts, delivered.
    Interrupt,
    /// The same before they are delivered, where the other cannot be.
    InterruptEarly,
    /// Where vCPUs are stopped.
    VcpuPut,
    /// Where vCPUs halt: evidence of which kernel a guest runs.
    Halt,
}

const HOOKS: [Hook; 8] = [
    Hook::VcpuLoad,
    Hook::DestroyVm,
    Hook::Spin,
    Hook::Hypercall,
    Hook::Interrupt,
    Hook::InterruptEarly,
    Hook::VcpuPut,
    Hook::Halt,
];

impl Hook {
    fn event(self) -> Event {
        match self {
            Self::VcpuLoad => VCPU_LOAD,
            Self::DestroyVm => DESTROY_VM,
            Self::Spin => SPIN,
            Self::Hypercall => HYPERCALL,
            Self::Interrupt => IPI_ACCEPTED,
            Self::InterruptEarly => IPI_SENT,
            Self::VcpuPut => VCPU_PUT,
            Self::Halt => HALT,
        }
    }
}

/// What decides which hooks are wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// What is switched on.
    pub(crate) mechanisms: Mechanisms,
    /// The kvm module is loaded: without it there is nothing to attach to.
    pub(crate) kvm: bool,
    /// The user gave guests' symbols.
    pub(crate) symbols: bool,
    /// What the kernel has.
    pub(crate) present: Present,
}

impl Wanted {
    fn wants(&self, hook: Hook) -> bool {
        let any = |these: &[Mechanisms]| these.iter().any(|m| self.mechanisms.has(*m));
        self.kvm
            && match hook {
                Hook::VcpuLoad | Hook::DestroyVm => true,
                Hook::Spin => any(&[Mechanisms::STRICT, Mechanisms::GANG]),
                Hook::Hypercall => any(&[Mechanisms::YIELD]),
                Hook::Interrupt => any(&[
                    Mechanisms::STRICT,
                    Mechanisms::IPI,
                    Mechanisms::IO,
                    Mechanisms::GANG,
                ]),
                Hook::InterruptEarly => {
                    self.wants(Hook::Interrupt) && !self.present.has(&IPI_ACCEPTED)
                }
                Hook::VcpuPut => any(&[Mechanisms::STRICT, Mechanisms::SYMBOLS]),
                Hook::Halt => self.symbols && any(&[Mechanisms::SYMBOLS]),
            }
    }

    fn loads(&self, hook: Hook) -> bool {
        self.wants(hook) && self.present.has(&hook.event())
    }

    /// What is wanted and not there, and what is lost without it, for people.
    pub(crate) fn missing(&self) -> Vec<String> {
        let missing = |hook: &Hook| self.wants(*hook) && !self.loads(*hook);
        let hooks = HOOKS.into_iter().filter(missing);
        hooks.map(|hook| hook.event().missing()).collect()
    }

    /// Sets which programs are loaded.
    pub(crate) fn choose(&self, progs: &mut OpenCorunProgs<'_>) {
        for hook in HOOKS {
            let prog = match hook {
                Hook::VcpuLoad => &mut progs.on_vcpu_load,
                Hook::DestroyVm => &mut progs.on_destroy_vm,
                Hook::Spin => &mut progs.on_spin,
                Hook::Hypercall => &mut progs.on_hypercall,
                Hook::Interrupt => &mut progs.on_interrupt,
                Hook::InterruptEarly => &mut progs.on_interrupt_early,
                Hook::VcpuPut => &mut progs.on_vcpu_put,
                Hook::Halt => &mut progs.on_halt,
            };
            prog.set_autoload(self.loads(hook));
        }
    }

    /// Attaches those that were loaded.
    pub(crate) fn attach(&self, progs: &CorunProgs<'_>) -> Result<Vec<Link>> {
        let attach = |hook| match hook {
            Hook::VcpuLoad => progs.on_vcpu_load.attach(),
            Hook::DestroyVm => progs.on_destroy_vm.attach(),
            Hook::Spin => progs.on_spin.attach(),
            Hook::Hypercall => progs.on_hypercall.attach(),
            Hook::Interrupt => progs.on_interrupt.attach(),
            Hook::InterruptEarly => progs.on_interrupt_early.attach(),
            Hook::VcpuPut => progs.on_vcpu_put.attach(),
            Hook::Halt => progs.on_halt.attach(),
        };
        HOOKS
            .into_iter()
            .filter(|hook| self.loads(*hook))
            .map(|hook| attach(hook).during("attaching to KVM's events"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::kallsyms_without;

    fn wanted(mechanisms: Mechanisms, kvm: bool, symbols: bool, absent: &[&Event]) -> Wanted {
        Wanted {
            mechanisms,
            kvm,
            symbols,
            present: Present::of(&kallsyms_without(absent)),
        }
    }

    fn loaded(wanted: &Wanted) -> Vec<Hook> {
        HOOKS.into_iter().filter(|h| wanted.loads(*h)).collect()
    }

    #[test]
    fn only_what_is_needed_is_attached() {
        use Hook::{DestroyVm, Hypercall, Interrupt, VcpuLoad};
        let of = |mechanisms| loaded(&wanted(mechanisms, true, true, &[]));
        assert_eq!(of(Mechanisms::NONE), [VcpuLoad, DestroyVm]);
        assert_eq!(of(Mechanisms::YIELD), [VcpuLoad, DestroyVm, Hypercall]);
        assert_eq!(of(Mechanisms::IPI), [VcpuLoad, DestroyVm, Interrupt]);
        let all = HOOKS.into_iter().filter(|h| *h != Hook::InterruptEarly);
        assert_eq!(of(Mechanisms::ALL), all.collect::<Vec<_>>());
        let without = wanted(Mechanisms::ALL, true, false, &[]);
        assert!(!without.loads(Hook::Halt));
        assert!(without.missing().is_empty());
    }

    #[test]
    fn without_kvm_there_is_nothing_to_attach_to() {
        let wanted = wanted(Mechanisms::ALL, false, true, &[&SPIN]);
        assert!(loaded(&wanted).is_empty());
        assert!(wanted.missing().is_empty());
    }

    #[test]
    fn what_the_kernel_lacks_is_told_and_replaced_where_it_can_be() {
        let without = |absent: &[&Event]| wanted(Mechanisms::ALL, true, true, absent);
        let early = without(&[&IPI_ACCEPTED]);
        assert!(early.loads(Hook::InterruptEarly) && !early.loads(Hook::Interrupt));
        assert_eq!(early.missing(), [IPI_ACCEPTED.missing()]);
        let none = without(&[&IPI_ACCEPTED, &IPI_SENT, &SPIN]);
        assert!(!none.loads(Hook::InterruptEarly) && !none.loads(Hook::Spin));
        let missing = [&SPIN, &IPI_ACCEPTED, &IPI_SENT].map(Event::missing);
        assert_eq!(none.missing(), missing);
    }

    #[test]
    fn events_are_taken_away_by_name() {
        let present = Present::of(&kallsyms_without(&[]));
        let present = present.without(&["kvm_vcpu_on_spin".to_owned()]);
        assert!(!present.has(&SPIN) && present.has(&HALT));
    }
}
