// SPDX-License-Identifier: GPL-2.0-only
//! Interrupts in the guest: handlers, softirqs, the tick.

use crate::machine::Machine;
use crate::machine::slots::Event;
use crate::machine::state::{Seg, irq};
use crate::machine::stats::hist;
use crate::outcome::Account;
use crate::symbols;
use crate::trace::{Kind, exit};

impl Machine<'_> {
    /// True when a pending interrupt would be taken now.
    pub(crate) fn takes_interrupts(&self, v: usize) -> bool {
        let vcpu = &self.vcpus[v];
        vcpu.irq.is_none() && (vcpu.soft.is_some() || !self.irqs_off(v))
    }

    /// `v` takes what is pending: one handler after the other.
    pub(crate) fn take_interrupts(&mut self, v: usize) {
        let vcpu = &mut self.vcpus[v];
        let bits = vcpu.pending & irq::GUEST;
        vcpu.pending &= !bits;
        let inject_ns = self.costs.inject_ns;
        let mut ns = inject_ns + self.costs.guest_irq_ns * u64::from(bits.count_ones());
        if bits & irq::CALL != 0 {
            ns += self.costs.flush_ns * vcpu.calls.len() as u64;
        }
        if bits & irq::TICK != 0 {
            ns += self.costs.guest_tick_ns;
        }
        let (account, symbol) = if bits == irq::CALL {
            (Account::KernelTlb, symbols::FLUSH)
        } else {
            (Account::KernelOther, symbols::IRQ)
        };
        vcpu.irq = Some((bits, Seg::new(ns, account, symbol)));
        let sent_ns = std::mem::take(&mut vcpu.ipi_sent_ns);
        let vm = vcpu.vm;
        if sent_ns > 0 && bits & (irq::RESCHED | irq::CALL) != 0 {
            self.stats[vm].record(hist::IPI, self.now_ns - sent_ns + inject_ns);
        }
        self.note(Kind::IpiTake, v, u64::from(bits));
    }

    /// The handlers are done.
    pub(crate) fn irq_done(&mut self, v: usize) {
        let Some((bits, _)) = self.vcpus[v].irq.take() else {
            return;
        };
        if bits & irq::CALL != 0 {
            self.acknowledge_calls(v);
        }
        if bits & irq::TICK != 0 {
            self.tick(v);
        }
        if bits & irq::TIMER != 0 {
            while let Some(t) = self.vcpus[v].due.pop() {
                self.wake_thread(t, Some(v));
            }
        }
        if bits & irq::NET != 0 && self.vcpus[v].soft.is_none() {
            self.begin_net_rx(v);
        }
        if self.vcpus[v].soft.is_none() {
            self.preempt_if_due(v);
        }
    }

    fn tick(&mut self, v: usize) {
        self.owe_exit(v, exit::TIMER_MSR, self.costs.timer_msr_ns);
        self.arm_tick(v);
        self.tick_preempts(v);
        self.kick_idle_vcpu(v);
    }

    /// The next tick of `v`; none while it is idle (NOHZ).
    pub(crate) fn arm_tick(&mut self, v: usize) {
        if self.vcpus[v].thread.is_some() {
            let tick_ns = self.vms[self.vcpus[v].vm].tick_ns;
            self.arm(Event::Tick(v), self.now_ns + tick_ns);
        }
    }

    /// Kernel work that `v` does at once, with interrupts off.
    pub(crate) fn owe_kernel(&mut self, v: usize, ns: u64) {
        self.vcpus[v].kernel_debt_ns += ns;
    }

    /// A timer of thread `t` went off.
    pub(crate) fn thread_timer(&mut self, t: usize) {
        let v = self.threads[t].vcpu;
        self.vcpus[v].due.push(t);
        self.raise(v, irq::TIMER);
    }
}
