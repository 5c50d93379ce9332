// SPDX-License-Identifier: GPL-2.0-only
//! Interrupts to vCPUs: sending, arrival, delivery (`__apic_accept_irq`,
//! `kvm_vcpu_kick`).

use crate::machine::Machine;
use crate::machine::slots::Event;
use crate::machine::state::{Mode, Place, Then, irq};
use crate::trace::{Kind, exit};

impl Machine<'_> {
    /// vCPU `from` sends an IPI of `kind` to `to` of the same VM, `after_ns` from
    /// now (the place in a multicast). The exit is not counted here.
    pub(crate) fn send_ipi(&mut self, from: usize, to: usize, kind: u32, after_ns: u64) {
        let mut latency_ns =
            self.costs.exit_ns + self.costs.icr_ns + after_ns + self.costs.host_ipi_ns;
        if self.vcpus[to].place == Place::Blocked {
            let hook_ns = self.hook_ns(self.costs.hook_wake_ns);
            self.vcpus[from].exit_debt_ns += hook_ns;
            latency_ns += hook_ns;
        }
        self.mark_ipi_receiver(from, to);
        self.note(Kind::IpiSend, from, self.vcpus[to].index as u64);
        if self.vcpus[to].ipi_sent_ns == 0 {
            self.vcpus[to].ipi_sent_ns = self.now_ns;
        }
        self.send_interrupt(to, latency_ns, kind);
        self.with_sched(|s, host| s.ipi(host, from as u32, to as u32));
        let here = match self.vcpus[from].place {
            Place::On(p) => Some(p),
            Place::Blocked | Place::Ready => None,
        };
        self.grant_requests(here);
    }

    /// An IPI to one vCPU, with its exit.
    pub(crate) fn send_one_ipi(&mut self, from: usize, to: usize, kind: u32) {
        self.send_ipi(from, to, kind, 0);
        self.owe_exit(from, exit::ICR, self.costs.icr_ns);
    }

    /// `kind` reaches vCPU `v` after `latency_ns`.
    pub(crate) fn send_interrupt(&mut self, v: usize, latency_ns: u64, kind: u32) {
        let at_ns = self.now_ns + latency_ns;
        let arriving = &mut self.vcpus[v].arriving;
        let place = arriving.partition_point(|(at, _)| *at <= at_ns);
        arriving.insert(place, (at_ns, kind));
        if place == 0 {
            self.arm(Event::Arrival(v), at_ns);
        }
    }

    pub(crate) fn interrupt_arrives(&mut self, v: usize) {
        let mut kinds = 0;
        while let Some((at_ns, kind)) = self.vcpus[v].arriving.front().copied() {
            if at_ns > self.now_ns {
                self.arm(Event::Arrival(v), at_ns);
                break;
            }
            kinds |= kind;
            self.vcpus[v].arriving.pop_front();
        }
        self.raise(v, kinds);
    }

    /// `kinds` are pending for `v` from now on; wakes it or makes it exit.
    pub(crate) fn raise(&mut self, v: usize, kinds: u32) {
        self.vcpus[v].pending |= kinds;
        if kinds & irq::NET != 0 && self.vcpus[v].place == Place::Ready {
            self.with_sched(|s, host| s.device_interrupt(host, v as u32));
            self.grant_requests(None);
        }
        match self.vcpus[v].place {
            Place::Ready => {}
            Place::Blocked if !self.wakeable(v) => {}
            Place::Blocked => {
                self.halt_ended(v);
                self.steering.woken();
                self.wake_vcpu(v, kinds & irq::SIBLING != 0);
            }
            Place::On(p) => self.interrupt_on(p, v, kinds),
        }
    }

    fn interrupt_on(&mut self, p: usize, v: usize, kinds: u32) {
        match self.pcpus[p].mode {
            Mode::Poll if self.wakeable(v) => self.poll_succeeds(p, v),
            Mode::Idle | Mode::Host | Mode::Poll => {}
            Mode::Guest => {
                self.elapse(p);
                if kinds & irq::GUEST == 0 || !self.takes_interrupts(v) {
                    // Pending until the guest enables interrupts.
                    self.arm_work(p);
                } else if self.kvm.posted_interrupts && kinds & (irq::TICK | irq::TIMER) == 0 {
                    self.run_guest(p);
                } else {
                    let exit_ns = self.costs.exit_ns + self.costs.extint_ns + self.costs.entry_ns;
                    self.count_exit(v, exit::EXTERNAL);
                    self.busy(p, exit_ns, 0, Then::Enter);
                }
            }
        }
    }
}
