// SPDX-License-Identifier: GPL-2.0-only
//! Which of KVM's events are attached to: only those that a mechanism needs.

use crate::error::{During, Result};
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
    /// IPIs and device interrupts.
    Interrupt,
    /// Where vCPUs are stopped.
    VcpuPut,
    /// Where vCPUs halt: evidence of which kernel a guest runs.
    Halt,
}

const HOOKS: [Hook; 7] = [
    Hook::VcpuLoad,
    Hook::DestroyVm,
    Hook::Spin,
    Hook::Hypercall,
    Hook::Interrupt,
    Hook::VcpuPut,
    Hook::Halt,
];

/// What decides which hooks are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// What is switched on.
    pub(crate) mechanisms: Mechanisms,
    /// The kvm module is loaded: without it there is nothing to attach to.
    pub(crate) kvm: bool,
    /// The user gave guests' symbols.
    pub(crate) symbols: bool,
}

impl Wanted {
    fn wants(self, hook: Hook) -> bool {
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
                Hook::VcpuPut => any(&[Mechanisms::STRICT, Mechanisms::SYMBOLS]),
                Hook::Halt => self.symbols && any(&[Mechanisms::SYMBOLS]),
            }
    }

    /// Sets which programs are loaded.
    pub(crate) fn choose(self, progs: &mut OpenCorunProgs<'_>) {
        for hook in HOOKS {
            let prog = match hook {
                Hook::VcpuLoad => &mut progs.on_vcpu_load,
                Hook::DestroyVm => &mut progs.on_destroy_vm,
                Hook::Spin => &mut progs.on_spin,
                Hook::Hypercall => &mut progs.on_hypercall,
                Hook::Interrupt => &mut progs.on_interrupt,
                Hook::VcpuPut => &mut progs.on_vcpu_put,
                Hook::Halt => &mut progs.on_halt,
            };
            prog.set_autoload(self.wants(hook));
        }
    }

    /// Attaches those that were loaded.
    pub(crate) fn attach(self, progs: &CorunProgs<'_>) -> Result<Vec<Link>> {
        let attach = |hook| match hook {
            Hook::VcpuLoad => progs.on_vcpu_load.attach(),
            Hook::DestroyVm => progs.on_destroy_vm.attach(),
            Hook::Spin => progs.on_spin.attach(),
            Hook::Hypercall => progs.on_hypercall.attach(),
            Hook::Interrupt => progs.on_interrupt.attach(),
            Hook::VcpuPut => progs.on_vcpu_put.attach(),
            Hook::Halt => progs.on_halt.attach(),
        };
        HOOKS
            .into_iter()
            .filter(|hook| self.wants(*hook))
            .map(|hook| attach(hook).during("attaching to KVM's events"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(mechanisms: Mechanisms, kvm: bool, symbols: bool) -> Vec<Hook> {
        let wanted = Wanted {
            mechanisms,
            kvm,
            symbols,
        };
        HOOKS.into_iter().filter(|h| wanted.wants(*h)).collect()
    }

    #[test]
    fn only_what_is_needed_is_attached() {
        use Hook::{DestroyVm, Hypercall, Interrupt, VcpuLoad};
        assert_eq!(wanted(Mechanisms::NONE, true, true), [VcpuLoad, DestroyVm]);
        assert_eq!(
            wanted(Mechanisms::YIELD, true, true),
            [VcpuLoad, DestroyVm, Hypercall]
        );
        assert_eq!(
            wanted(Mechanisms::IPI, true, true),
            [VcpuLoad, DestroyVm, Interrupt]
        );
        assert_eq!(wanted(Mechanisms::ALL, true, true), HOOKS);
        assert!(!wanted(Mechanisms::ALL, true, false).contains(&Hook::Halt));
    }

    #[test]
    fn without_kvm_there_is_nothing_to_attach_to() {
        assert!(wanted(Mechanisms::ALL, false, true).is_empty());
    }
}
