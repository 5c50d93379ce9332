// SPDX-License-Identifier: GPL-2.0-only
//! The guest's scheduler: a fair queue on each vCPU, wake-up placement, and
//! pulling when idle. What it does not know is which vCPUs really run.

use crate::machine::Machine;
use crate::machine::slots::Event;
use crate::machine::state::{IdleState, Phase, Seg, Then, ThreadState, Vcpu, irq};
use crate::machine::stats::hist;
use crate::outcome::Account;
use crate::symbols;
use crate::trace::exit;

/// Shortest turn of a guest thread before the tick may end it.
const MIN_SLICE_NS: u64 = 3_000_000;
/// A woken thread preempts one that is ahead of it by more than this.
const WAKEUP_GRAN_NS: u64 = 1_000_000;
/// What a sleeper may be behind when it wakes.
const SLEEPER_CREDIT_NS: u64 = 3_000_000;

impl Machine<'_> {
    /// Takes the next step of what is on top of `v`: its time is up.
    pub(crate) fn step(&mut self, v: usize, p: usize) {
        if self.vcpus[v].irq.is_some() {
            self.irq_done(v);
        } else if self.vcpus[v].soft.is_some() {
            self.soft_done(v);
        } else if let Some(t) = self.vcpus[v].thread {
            self.thread_step(v, t);
        } else {
            self.idle_step(v, p);
        }
    }

    /// The idle loop: run somebody, or stop the tick and halt.
    fn idle_step(&mut self, v: usize, p: usize) {
        let state = self.vcpus[v].idle_state;
        // Who was woken here meanwhile is queued by the handler of an IPI
        // (`ttwu_queue_wakelist`), which interrupts nothing before the HLT.
        if state == IdleState::Entering {
            self.halt_exit(v, p);
        } else if let Some(t) = self.next_thread(v) {
            if state == IdleState::Halted {
                self.owe_timer_writes(v);
                self.threads[t].seg.left_ns += self.costs.guest_idle_exit_ns;
            }
            self.put_on(v, t);
        } else if state == IdleState::Outside {
            self.vcpus[v].idle_state = IdleState::Entering;
            self.vcpus[v].idle = Seg::kernel(self.costs.guest_idle_enter_ns, symbols::IDLE);
            self.cancel(Event::Tick(v));
            self.owe_timer_writes(v);
        } else {
            self.halt_exit(v, p);
        }
    }

    fn halt_exit(&mut self, v: usize, p: usize) {
        self.vcpus[v].idle_state = IdleState::Halted;
        self.count_exit(v, exit::HLT);
        self.busy(p, self.costs.exit_ns, 0, Then::Halt);
    }

    /// The thread that `v` runs next: its own, or one that waits elsewhere.
    fn next_thread(&mut self, v: usize) -> Option<usize> {
        let own = self.best_queued(v);
        let (from, t) = match own {
            Some(t) => (v, t),
            None => self.pull(v)?,
        };
        self.vcpus[from].queue.retain(|q| *q != t);
        let vm = self.vcpus[v].vm;
        self.vms[vm].queued -= 1;
        if from != v {
            let thread = &mut self.threads[t];
            // Keeps its distance to the queue it joins.
            let behind = self.vcpus[from]
                .min_vruntime
                .saturating_sub(thread.vruntime);
            thread.vruntime = self.vcpus[v].min_vruntime.saturating_sub(behind);
            thread.vcpu = v;
        }
        Some(t)
    }

    fn best_queued(&self, v: usize) -> Option<usize> {
        let queue = self.vcpus[v].queue.iter().copied();
        queue.min_by_key(|t| (self.threads[*t].vruntime, *t))
    }

    /// New-idle balancing: the next vCPU with a thread to spare.
    fn pull(&self, v: usize) -> Option<(usize, usize)> {
        let vm = &self.vms[self.vcpus[v].vm];
        if vm.queued == 0 {
            return None;
        }
        let own = self.vcpus[v].index;
        (1..vm.vcpus)
            .map(|i| vm.first_vcpu + (own + i) % vm.vcpus)
            .filter(|from| self.vcpus[*from].thread.is_some() || self.vcpus[*from].queue.len() > 1)
            .find_map(|from| {
                let queue = self.vcpus[from].queue.iter().copied();
                let mut free = queue.rev().filter(|t| !self.threads[*t].pinned);
                free.next().map(|t| (from, t))
            })
    }

    /// `t` runs on `v` from now on.
    fn put_on(&mut self, v: usize, t: usize) {
        let woken_ns = std::mem::take(&mut self.threads[t].woken_ns);
        let vm = self.vcpus[v].vm;
        if woken_ns > 0 {
            self.stats[vm].record(hist::WAKE, self.now_ns - woken_ns);
        }
        let vcpu = &mut self.vcpus[v];
        vcpu.thread = Some(t);
        vcpu.need_resched = false;
        vcpu.idle_state = IdleState::Outside;
        let thread = &mut self.threads[t];
        vcpu.min_vruntime = vcpu.min_vruntime.max(thread.vruntime);
        vcpu.mm = thread.mm;
        thread.state = ThreadState::Running;
        thread.vcpu = v;
        thread.slice_start = thread.vruntime;
        thread.seg.left_ns += self.costs.guest_switch_ns;
        self.arm_tick(v);
    }

    /// Puts `t` into the queue of `v`.
    pub(crate) fn enqueue(&mut self, v: usize, t: usize) {
        self.threads[t].state = ThreadState::Queued;
        self.threads[t].vcpu = v;
        self.vcpus[v].queue.push(t);
        let vm = self.vcpus[v].vm;
        self.vms[vm].queued += 1;
    }

    /// The running thread of `v` sleeps; another one, or the idle loop, goes on.
    pub(crate) fn switch_away(&mut self, v: usize) {
        self.vcpus[v].thread = None;
        self.vcpus[v].need_resched = false;
        self.vcpus[v].idle = Vcpu::idle_seg();
        self.vcpus[v].idle_state = IdleState::Outside;
    }

    /// Switches to another thread if the running one has to go and can.
    pub(crate) fn preempt_if_due(&mut self, v: usize) {
        let Some(t) = self.vcpus[v].thread else {
            return;
        };
        let thread = &self.threads[t];
        let preemptible = thread.phase == Phase::Fetch && thread.seg.account == Account::User;
        if preemptible {
            self.preempt(v, t);
        }
    }

    /// At a point where `t` can give way: does it have to?
    pub(crate) fn preempt(&mut self, v: usize, t: usize) -> bool {
        if !std::mem::take(&mut self.vcpus[v].need_resched) || self.vcpus[v].queue.is_empty() {
            return false;
        }
        self.switch_away(v);
        self.enqueue(v, t);
        true
    }

    /// The tick: has the running thread had its turn?
    pub(crate) fn tick_preempts(&mut self, v: usize) {
        let Some(t) = self.vcpus[v].thread else {
            return;
        };
        let Some(best) = self.best_queued(v) else {
            return;
        };
        let thread = &self.threads[t];
        if thread.vruntime - thread.slice_start >= MIN_SLICE_NS
            && self.threads[best].vruntime < thread.vruntime
        {
            self.vcpus[v].need_resched = true;
        }
    }

    /// The tick of a vCPU where threads wait asks an idle one to pull
    /// (`nohz_balancer_kick`).
    pub(crate) fn kick_idle_vcpu(&mut self, v: usize) {
        let free = |t: &usize| !self.threads[*t].pinned;
        if !self.vcpus[v].queue.iter().any(free) {
            return;
        }
        let vm = &self.vms[self.vcpus[v].vm];
        let own = self.vcpus[v].index;
        let idle = (1..vm.vcpus)
            .map(|i| vm.first_vcpu + (own + i) % vm.vcpus)
            .find(|to| {
                let to = &self.vcpus[*to];
                to.thread.is_none() && to.queue.is_empty() && to.pending & irq::RESCHED == 0
            });
        if let Some(idle) = idle {
            self.send_one_ipi(v, idle, irq::RESCHED);
        }
    }

    /// Wakes thread `t`; `by` is the vCPU that does it.
    pub(crate) fn wake_thread(&mut self, t: usize, by: Option<usize>) {
        if self.threads[t].state != ThreadState::Asleep {
            // Still on its way to sleep: it will not.
            self.threads[t].granted = true;
            return;
        }
        let v = self.choose_vcpu(t);
        let idle = self.vcpus[v].thread.is_none();
        let first = self.vcpus[v].queue.is_empty();
        let floor = self.vcpus[v].min_vruntime.saturating_sub(SLEEPER_CREDIT_NS);
        let now_ns = self.now_ns;
        let thread = &mut self.threads[t];
        thread.vruntime = thread.vruntime.max(floor);
        thread.woken_ns = now_ns;
        let vruntime = thread.vruntime;
        self.enqueue(v, t);
        if let Some(by) = by {
            self.owe_kernel(by, self.costs.guest_wake_ns);
        }
        let preempts = self.vcpus[v]
            .thread
            .is_some_and(|c| vruntime + WAKEUP_GRAN_NS < self.threads[c].vruntime);
        if preempts {
            self.vcpus[v].need_resched = true;
        }
        match by {
            Some(by) if by == v => {}
            Some(by) if idle && first || preempts => {
                self.send_one_ipi(by, v, irq::RESCHED);
            }
            _ => {}
        }
    }

    /// Wake-up placement: where it ran, if that is idle; an idle sibling; where
    /// it ran (`select_idle_sibling`).
    fn choose_vcpu(&self, t: usize) -> usize {
        let thread = &self.threads[t];
        let prev = thread.vcpu;
        let idle = |v: usize| self.vcpus[v].thread.is_none() && self.vcpus[v].queue.is_empty();
        if thread.pinned || idle(prev) {
            return prev;
        }
        let vm = &self.vms[thread.vm];
        let own = self.vcpus[prev].index;
        (1..vm.vcpus)
            .map(|i| vm.first_vcpu + (own + i) % vm.vcpus)
            .find(|v| idle(*v))
            .unwrap_or(prev)
    }
}
