// SPDX-License-Identifier: GPL-2.0-only
//! Entries and exits (`vcpu_enter_guest`).

use crate::machine::Machine;
use crate::machine::state::{Mode, Seg, Then, irq};
use crate::symbols;
use crate::trace::{Kind, exit};

impl Machine<'_> {
    /// Enters the guest on `p`, unless the host wants the pCPU.
    pub(crate) fn enter(&mut self, p: usize) {
        let Some(v) = self.current(p) else { return };
        if self.pcpus[p].need_resched {
            self.schedule(p, true);
            return;
        }
        let vcpu = &mut self.vcpus[v];
        vcpu.pending &= !irq::KICK;
        vcpu.ipi_from = 0;
        if std::mem::take(&mut vcpu.flush_queued) {
            vcpu.exit_debt_ns += self.costs.host_flush_ns;
        }
        if vcpu.pv_wait {
            vcpu.pv_wait = false;
            self.threads_spin_again(v);
        }
        self.set_mode(p, Mode::Guest);
        self.show(Kind::Enter, v, 0);
        self.run_guest(p);
    }

    /// Runs guest code on `p` until it takes time or leaves the guest.
    pub(crate) fn run_guest(&mut self, p: usize) {
        loop {
            let Some(v) = self.current(p) else { return };
            if self.pcpus[p].mode != Mode::Guest {
                return;
            }
            if self.vcpus[v].exit_debt_ns > 0 {
                let exit_ns = std::mem::take(&mut self.vcpus[v].exit_debt_ns);
                self.busy(p, exit_ns, 0, Then::Enter);
                return;
            }
            if self.vcpus[v].kernel_debt_ns > 0 && self.vcpus[v].irq.is_none() {
                let ns = std::mem::take(&mut self.vcpus[v].kernel_debt_ns);
                self.vcpus[v].irq = Some((0, Seg::kernel(ns, symbols::WAKE)));
                continue;
            }
            if self.vcpus[v].pending & irq::GUEST != 0 && self.takes_interrupts(v) {
                self.take_interrupts(v);
                continue;
            }
            if self.spins(v) {
                if !self.spin_over(v, p) {
                    if self.pcpus[p].mode == Mode::Guest {
                        self.arm_work(p);
                    }
                    return;
                }
                continue;
            }
            if self.top(v).left_ns > 0 {
                self.arm_work(p);
                return;
            }
            self.step(v, p);
        }
    }

    /// The guest code of `v` caused an exit that takes `handler_ns` beyond exit
    /// and entry; it is paid when the current step is done.
    pub(crate) fn owe_exit(&mut self, v: usize, reason: usize, handler_ns: u64) {
        self.vcpus[v].exit_debt_ns += self.costs.exit_ns + handler_ns + self.costs.entry_ns;
        self.count_exit(v, reason);
    }

    pub(crate) fn count_exit(&mut self, v: usize, reason: usize) {
        let vm = self.vcpus[v].vm;
        self.stats[vm].exits[reason] += 1;
        self.note(Kind::Exit, v, reason as u64);
    }

    /// Writes to the APIC's timer: what NOHZ does on the way into the idle loop and
    /// out of it (`hrtimer_cancel`, `hrtimer_start`).
    pub(crate) fn owe_timer_writes(&mut self, v: usize) {
        for _ in 0..self.costs.idle_timer_writes {
            self.owe_exit(v, exit::TIMER_MSR, self.costs.timer_msr_ns);
        }
    }
}
