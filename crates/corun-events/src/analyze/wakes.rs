// SPDX-License-Identifier: GPL-2.0-only
//! How long it takes to wake a halted vCPU, in the stages that a host sees (seed
//! 003, "KVM HLT Internals"): the sender's exit, the wake-up, the scheduler, the
//! way back into the guest. What the guest itself does before its exit and after
//! its entry is not visible from outside.

use crate::state::{Follower, State};
use crate::{Event, Header, Kind, Times, TimesSummary, interrupt};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Wake-ups of a VM, in stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Wakes {
    /// Sender's exit until its interrupt is accepted for the target.
    pub exit_to_send: TimesSummary,
    /// Accepted until the target's thread is woken.
    pub send_to_wake: TimesSummary,
    /// Woken until it has a pCPU: the scheduler.
    pub wake_to_run: TimesSummary,
    /// Has a pCPU until it enters the guest.
    pub run_to_enter: TimesSummary,
    /// Accepted until it enters the guest.
    pub send_to_enter: TimesSummary,
    /// Woken until it enters the guest, by the first interrupt that it takes there
    /// ([`interrupt_name`]).
    pub wake_to_enter: BTreeMap<&'static str, TimesSummary>,
    /// Wake-ups by what caused them: a sibling's IPI, or another thing (a timer,
    /// a device, the VMM).
    pub causes: BTreeMap<&'static str, u64>,
}

/// When a wake-up on its way reached which stage. Nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    send: Option<u64>,
    wake: Option<u64>,
    run: Option<u64>,
    /// What it woke for.
    takes: Option<&'static str>,
}

/// Interrupts by what Linux uses their vectors for, or the simulator its bits.
fn interrupt_name(event: &Event) -> &'static str {
    match (event.vector(), event.arg) {
        // LOCAL_TIMER_VECTOR
        (0xec, _) | (0, interrupt::TICK | interrupt::TIMER) => "timer",
        // RESCHEDULE_VECTOR
        (0xfd, _) | (0, interrupt::RESCHED) => "reschedule",
        // CALL_FUNCTION_VECTOR, CALL_FUNCTION_SINGLE_VECTOR
        (0xfb | 0xfc, _) | (0, interrupt::CALL) => "function call",
        _ => "other",
    }
}

#[derive(Debug, Default)]
struct OfVm {
    exit_to_send: Times,
    send_to_wake: Times,
    wake_to_run: Times,
    run_to_enter: Times,
    send_to_enter: Times,
    wake_to_enter: BTreeMap<&'static str, Times>,
    by_ipi: u64,
    by_other: u64,
}

/// Collects wake-ups.
#[derive(Debug)]
pub(super) struct Collector {
    follower: Follower,
    steps: HashMap<(u32, u32), Step>,
    exits: HashMap<(u32, u32), u64>,
    vms: BTreeMap<u32, OfVm>,
}

impl Collector {
    pub(super) fn new(header: &Header) -> Self {
        Self {
            follower: Follower::new(header),
            steps: HashMap::new(),
            exits: HashMap::new(),
            vms: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, event: &Event) {
        let own = (event.vm, event.vcpu);
        match event.kind {
            Kind::Exit => {
                self.exits.insert(own, event.at_ns);
            }
            Kind::IpiSend => self.sent(event),
            Kind::Wake if self.follower.state(event.vm, event.vcpu) == State::Halted => {
                self.woken(event);
            }
            Kind::SwitchIn => {
                if let Some(step) = self.steps.get_mut(&own).filter(|s| s.wake.is_some()) {
                    step.run.get_or_insert(event.at_ns);
                }
            }
            Kind::IpiTake => {
                if let Some(step) = self.steps.get_mut(&own).filter(|s| s.run.is_some()) {
                    step.takes.get_or_insert(interrupt_name(event));
                }
            }
            // Preempted on its way: the rest is no longer the wake-up's.
            Kind::SwitchOut => {
                self.steps.remove(&own);
            }
            Kind::Enter => self.entered(event),
            _ => {}
        }
        self.follower.take(event);
    }

    fn sent(&mut self, event: &Event) {
        let target = (event.vm, event.target());
        if self.follower.state(target.0, target.1) != State::Halted {
            return;
        }
        let step = self.steps.entry(target).or_default();
        if step.send.is_some() {
            return;
        }
        step.send = Some(event.at_ns);
        if let Some(exit_ns) = self.exits.get(&(event.vm, event.vcpu)) {
            let vm = self.vms.entry(event.vm).or_default();
            vm.exit_to_send.record(event.at_ns.saturating_sub(*exit_ns));
        }
    }

    fn woken(&mut self, event: &Event) {
        let step = self.steps.entry((event.vm, event.vcpu)).or_default();
        step.wake = Some(event.at_ns);
        let vm = self.vms.entry(event.vm).or_default();
        match step.send {
            Some(send_ns) => {
                vm.by_ipi += 1;
                vm.send_to_wake.record(event.at_ns.saturating_sub(send_ns));
            }
            None => vm.by_other += 1,
        }
    }

    fn entered(&mut self, event: &Event) {
        self.exits.remove(&(event.vm, event.vcpu));
        let Some(step) = self.steps.remove(&(event.vm, event.vcpu)) else {
            return;
        };
        let (Some(wake_ns), Some(run_ns)) = (step.wake, step.run) else {
            return;
        };
        let vm = self.vms.entry(event.vm).or_default();
        vm.wake_to_run.record(run_ns.saturating_sub(wake_ns));
        vm.run_to_enter.record(event.at_ns.saturating_sub(run_ns));
        if let Some(name) = step.takes {
            let times = vm.wake_to_enter.entry(name).or_default();
            times.record(event.at_ns.saturating_sub(wake_ns));
        }
        if let Some(send_ns) = step.send {
            vm.send_to_enter.record(event.at_ns.saturating_sub(send_ns));
        }
    }

    pub(super) fn of(&self, vm: u32) -> Wakes {
        let Some(of) = self.vms.get(&vm) else {
            return Wakes::default();
        };
        Wakes {
            exit_to_send: of.exit_to_send.summary(),
            send_to_wake: of.send_to_wake.summary(),
            wake_to_run: of.wake_to_run.summary(),
            run_to_enter: of.run_to_enter.summary(),
            send_to_enter: of.send_to_enter.summary(),
            wake_to_enter: of
                .wake_to_enter
                .iter()
                .map(|(name, times)| (*name, times.summary()))
                .collect(),
            causes: BTreeMap::from([("ipi", of.by_ipi), ("other", of.by_other)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{at, header};
    use super::*;
    use crate::out;

    fn wakes(events: &[Event]) -> Wakes {
        let mut collector = Collector::new(&header());
        for event in events {
            collector.take(event);
        }
        collector.of(0)
    }

    #[test]
    fn the_stages_of_a_wake_up_add_up() {
        let w = wakes(&[
            at(0, 1, Kind::SwitchOut, out::BLOCKED),
            at(10, 0, Kind::Exit, 0),
            at(12, 0, Kind::IpiSend, 1),
            at(13, 1, Kind::Wake, 1),
            at(20, 1, Kind::SwitchIn, 0),
            at(22, 1, Kind::IpiTake, 0xfd << 32),
            at(23, 1, Kind::IpiTake, 0xec << 32),
            at(24, 1, Kind::Enter, 0),
        ]);
        let means = [
            &w.exit_to_send,
            &w.send_to_wake,
            &w.wake_to_run,
            &w.run_to_enter,
        ];
        assert_eq!(
            means.map(|m| (m.count, m.mean_us)),
            [(1, 2.0), (1, 1.0), (1, 7.0), (1, 4.0)]
        );
        assert!((w.send_to_enter.mean_us - 12.0).abs() < 1e-9);
        assert_eq!((w.causes["ipi"], w.causes["other"]), (1, 0));
        let woken_for = w.wake_to_enter.iter().map(|(name, t)| (*name, t.mean_us));
        assert_eq!(woken_for.collect::<Vec<_>>(), [("reschedule", 11.0)]);
    }

    #[test]
    fn timers_wake_too_and_a_preempted_one_is_left_out() {
        let w = wakes(&[
            at(0, 1, Kind::SwitchOut, out::BLOCKED),
            at(5, 1, Kind::Wake, 0),
            at(9, 1, Kind::SwitchIn, 0),
            at(10, 1, Kind::SwitchOut, out::PREEMPTED),
            at(50, 1, Kind::SwitchIn, 0),
            at(51, 1, Kind::Enter, 0),
        ]);
        assert_eq!((w.causes["ipi"], w.causes["other"]), (0, 1));
        assert_eq!(w.run_to_enter.count, 0);
    }
}
