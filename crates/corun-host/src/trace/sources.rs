// SPDX-License-Identifier: GPL-2.0-only
//! Which of the recorder's programs this host can carry.

use crate::events::{self, Event, Present};
use crate::skel::trace::{OpenTraceProgs, TraceProgs};
use crate::skipped;
use libbpf_rs::Link;
use std::os::fd::AsFd as _;

/// Without these there is no recording at all.
const REQUIRED: [Event; 2] = [events::VCPU_LOAD, events::SCHED_SWITCH];

/// Calls a macro with all optional programs, each with the event that it is on.
macro_rules! optional {
    ($each:ident) => {
        $each! {
            trace_destroy_vm: DESTROY_VM,
            trace_exit: EXIT,
            trace_enter: ENTRY,
            trace_ipi_send: IPI_SENT,
            trace_ipi_take: INJECTED,
            trace_halt: HALT,
            trace_halt_end: HALT_END,
            trace_spin: SPIN,
            trace_yield_to: YIELD_TO,
            trace_yield_fair: YIELD_TO_FAIR,
            trace_yield_scx: YIELD_TO_SCX,
            trace_waking: SCHED_WAKING,
        }
    };
}

macro_rules! table {
    ($($prog:ident: $event:ident,)*) => {
        const OPTIONAL: &[Event] = &[$(events::$event),*];
    };
}
optional!(table);

/// What the running kernel has of the sources.
pub(super) struct Sources {
    present: Present,
}

impl Sources {
    /// Looks through the kernel's symbols (`/proc/kallsyms`).
    pub(super) fn of_kernel(kallsyms: &str) -> Self {
        Self {
            present: Present::of(kallsyms),
        }
    }

    /// The first of the required sources that is missing.
    pub(super) fn lacks_required(&self) -> Option<&'static str> {
        let lacking = REQUIRED.iter().find(|event| !self.present.has(event));
        lacking.map(|event| event.name)
    }

    /// What cannot be recorded, for people.
    pub(super) fn missing(&self) -> Vec<String> {
        let absent = OPTIONAL.iter().filter(|event| !self.present.has(event));
        // A kernel without BPF schedulers has none that grant yields.
        let absent = absent.filter(|event| **event != events::YIELD_TO_SCX);
        absent.map(Event::missing).collect()
    }

    /// Chooses which programs are loaded.
    pub(super) fn choose(&self, progs: &mut OpenTraceProgs<'_>) {
        macro_rules! choose {
            ($($prog:ident: $event:ident,)*) => {
                $(progs.$prog.set_autoload(self.present.has(&events::$event));)*
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
            ($($prog:ident: $event:ident,)*) => {
                $(if self.present.has(&events::$event) {
                    match progs.$prog.attach() {
                        Ok(link) => links.push(link),
                        Err(error) => missing.push(format!("{} ({error})", events::$event.missing())),
                    }
                })*
            };
        }
        optional!(attach);
        Ok(links)
    }

    /// Events that are in no recording because a program on them was preempted,
    /// for people.
    pub(super) fn skipped(&self, progs: &TraceProgs<'_>) -> Vec<String> {
        let mut lost = Vec::new();
        macro_rules! look {
            ($($prog:ident: $event:ident,)*) => {
                $(if self.present.has(&events::$event) {
                    let count = skipped::runs(progs.$prog.as_fd());
                    lost.extend(skipped::said(events::$event.name, count));
                })*
            };
        }
        optional!(look);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::kallsyms_without;

    fn kernel_without(absent: &[&Event]) -> Sources {
        Sources::of_kernel(&kallsyms_without(absent))
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(kernel_without(&[]).missing().is_empty());
        let missing = kernel_without(&[&events::INJECTED]).missing();
        assert_eq!(missing, [events::INJECTED.missing()]);
        assert!(missing[0].starts_with("kvm_inj_virq: "), "{missing:?}");
        let missing = kernel_without(&[&events::YIELD_TO_SCX]).missing();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn without_kvm_there_is_no_recording() {
        assert_eq!(kernel_without(&[]).lacks_required(), None);
        let lacks = kernel_without(&[&events::VCPU_LOAD]).lacks_required();
        assert_eq!(lacks, Some("kvm_arch_vcpu_load"));
    }
}
