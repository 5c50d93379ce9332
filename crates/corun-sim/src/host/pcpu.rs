// SPDX-License-Identifier: GPL-2.0-only
//! pCPUs: what they do, for how long, and on whose account.

use crate::host::sched::{CpuId, TaskState};
use crate::machine::Machine;
use crate::machine::slots::Event;
use crate::machine::state::{FOREVER, Mode, Place, Seg, Then};
use crate::machine::stats::{counter, hist};
use crate::outcome::Account;
use crate::trace::{Kind, exit};

impl Machine<'_> {
    /// Books the time since the pCPU's interval began, and begins a new one.
    pub(crate) fn elapse(&mut self, p: usize) {
        let dt_ns = self.now_ns - self.pcpus[p].since_ns;
        self.pcpus[p].since_ns = self.now_ns;
        if dt_ns == 0 {
            return;
        }
        let vm = self.cpus[p].current.map(|v| self.vcpus[v as usize].vm);
        match self.pcpus[p].mode {
            Mode::Idle => self.book(p, None, Account::Idle, dt_ns),
            Mode::Poll => self.book(p, vm, Account::Poll, dt_ns),
            Mode::Guest => self.elapse_guest(p, dt_ns),
            Mode::Host => {
                let exit_ns = dt_ns.min(self.pcpus[p].exit_left_ns);
                let host_ns = dt_ns - exit_ns;
                self.pcpus[p].exit_left_ns -= exit_ns;
                self.pcpus[p].host_left_ns = self.pcpus[p].host_left_ns.saturating_sub(host_ns);
                self.book(p, vm, Account::Exit, exit_ns);
                self.book(p, vm, Account::Host, host_ns);
            }
        }
    }

    fn book(&mut self, p: usize, vm: Option<usize>, account: Account, ns: u64) {
        self.pcpus[p].accounts[account as usize] += ns;
        if let Some(vm) = vm {
            self.stats[vm].accounts[account as usize] += ns;
        }
    }

    fn elapse_guest(&mut self, p: usize, dt_ns: u64) {
        let Some(v) = self.current(p) else { return };
        let done_ns = dt_ns * self.pcpus[p].speed_pm / 1000;
        let seg = *self.top(v);
        let vm = self.vcpus[v].vm;
        self.book(p, Some(vm), seg.account, dt_ns);
        if let Some(t) = self.vcpus[v].thread {
            self.threads[t].vruntime += dt_ns;
        }
        if self.spins(v) {
            self.spun(v, dt_ns, done_ns);
            return;
        }
        self.pcpus[p].touched_ns += dt_ns;
        if seg.left_ns != FOREVER {
            // Misses are met where the code goes: until the caches are warm, it
            // runs at half speed.
            let cold_ns = (done_ns / 2).min(self.vcpus[v].cold_ns);
            self.vcpus[v].cold_ns -= cold_ns;
            let top = self.top_mut(v);
            top.left_ns = top.left_ns.saturating_sub(done_ns - cold_ns);
        }
    }

    /// The vCPU that has `p`.
    pub(crate) fn current(&self, p: usize) -> Option<usize> {
        self.cpus[p].current.map(|v| v as usize)
    }

    /// The stretch that vCPU `v` runs or would run.
    pub(crate) fn top(&self, v: usize) -> &Seg {
        let vcpu = &self.vcpus[v];
        if let Some((_, seg)) = &vcpu.irq {
            return seg;
        }
        if let Some(seg) = &vcpu.soft {
            return seg;
        }
        vcpu.thread.map_or(&vcpu.idle, |t| &self.threads[t].seg)
    }

    pub(crate) fn top_mut(&mut self, v: usize) -> &mut Seg {
        let vcpu = &mut self.vcpus[v];
        if let Some((_, seg)) = &mut vcpu.irq {
            return seg;
        }
        if let Some(seg) = &mut vcpu.soft {
            return seg;
        }
        match vcpu.thread {
            Some(t) => &mut self.threads[t].seg,
            None => &mut vcpu.idle,
        }
    }

    /// The host works on `p`: so long for exits, so long for the rest.
    pub(crate) fn busy(&mut self, p: usize, exit_ns: u64, host_ns: u64, then: Then) {
        debug_assert_eq!(self.pcpus[p].since_ns, self.now_ns);
        self.set_mode(p, Mode::Host);
        let pcpu = &mut self.pcpus[p];
        pcpu.exit_left_ns = exit_ns;
        pcpu.host_left_ns = host_ns;
        pcpu.then = then;
        self.arm(Event::Work(p), self.now_ns + exit_ns + host_ns);
    }

    /// Changes the mode; the other hardware thread's speed may change with it.
    pub(crate) fn set_mode(&mut self, p: usize, mode: Mode) {
        let was_busy = self.pcpus[p].mode != Mode::Idle;
        self.pcpus[p].mode = mode;
        let busy = mode != Mode::Idle;
        if busy == was_busy {
            return;
        }
        if !busy {
            self.pcpus[p].idle_from_ns = self.now_ns;
        }
        let Some(sibling) = self.pcpus[p].sibling else {
            return;
        };
        self.elapse(sibling);
        self.pcpus[sibling].speed_pm = if busy { self.costs.smt_speed_pm } else { 1000 };
        if self.pcpus[sibling].mode == Mode::Guest {
            self.arm_work(sibling);
        }
    }

    /// How long guest code takes on `p` that takes `full_ns` at full speed.
    pub(crate) fn takes_ns(&self, p: usize, full_ns: u64) -> u64 {
        (full_ns * 1000).div_ceil(self.pcpus[p].speed_pm)
    }

    /// Fires when the guest stretch on `p` ends.
    pub(crate) fn arm_work(&mut self, p: usize) {
        let Some(v) = self.current(p) else { return };
        let left_ns = if self.spins(v) {
            self.spin_left_ns(v, p)
        } else {
            let left_ns = self.top(v).left_ns;
            if left_ns == FOREVER {
                FOREVER
            } else {
                self.takes_ns(p, left_ns + left_ns.min(self.vcpus[v].cold_ns))
            }
        };
        if left_ns == FOREVER {
            self.cancel(Event::Work(p));
        } else {
            self.arm(Event::Work(p), self.now_ns + left_ns);
        }
    }

    /// The pCPU's current work is done.
    pub(crate) fn work_done(&mut self, p: usize) {
        self.elapse(p);
        self.pcpus[p].yielding = false;
        match self.pcpus[p].mode {
            Mode::Idle => {}
            Mode::Guest => self.run_guest(p),
            Mode::Poll => self.poll_times_out(p),
            Mode::Host => match self.pcpus[p].then {
                Then::Enter => self.enter(p),
                Then::Schedule => self.schedule(p, true),
                Then::Halt => self.halt(p),
                Then::Nap(ns) => self.nap(p, ns),
            },
        }
    }

    /// `p` is asked to pick again.
    pub(crate) fn resched(&mut self, p: usize) {
        self.elapse(p);
        match self.pcpus[p].mode {
            Mode::Idle => self.schedule(p, false),
            Mode::Host => self.pcpus[p].need_resched = true,
            Mode::Guest => self.busy(p, self.costs.exit_ns, 0, Then::Schedule),
            Mode::Poll => self.poll_times_out(p),
        }
    }

    pub(crate) fn kick_arrives(&mut self, p: usize) {
        self.cpus[p].kicked = false;
        self.resched(p);
    }

    /// Tells the scheduler what its task on `p` ran since it was told last.
    pub(crate) fn charge(&mut self, p: usize) {
        let Some(task) = self.cpus[p].current else {
            return;
        };
        let ran_ns = self.now_ns - self.cpus[p].charged_ns;
        self.cpus[p].charged_ns = self.now_ns;
        if ran_ns > 0 {
            self.with_sched(|s, host| s.charge(host, p as CpuId, task, ran_ns));
        }
    }

    pub(crate) fn sched_timer(&mut self, p: usize) {
        let Some(task) = self.cpus[p].current else {
            return;
        };
        self.charge(p);
        let again = self.with_sched(|s, host| s.timer(host, p as CpuId, task));
        self.grant_requests(Some(p));
        // A tick leaves the guest, so that who was to preempt it lazily does.
        if again || self.pcpus[p].need_resched {
            self.resched(p);
        }
    }

    /// `p` picks its next task. The accounts are up to date; the current task,
    /// if there is one, `stays` runnable or has been blocked.
    pub(crate) fn schedule(&mut self, p: usize, stays: bool) {
        self.pcpus[p].need_resched = false;
        let prev = if stays { self.cpus[p].current } else { None };
        if let Some(task) = prev {
            self.charge(p);
            self.see_guest(task as usize);
        }
        let next = self.with_sched(|s, host| s.pick(host, p as CpuId, prev));
        if let Some(task) = prev
            && next != prev
        {
            self.put_back(p, task as usize);
        }
        match next {
            None => self.nobody_runs(p),
            Some(task) if next == prev => {
                self.grant_requests(Some(p));
                let host_ns = self.costs.pick_ns + self.hook_ns(self.costs.hook_pick_ns);
                self.busy(p, self.costs.entry_ns, host_ns, Then::Enter);
                self.note(Kind::SwitchIn, task as usize, 0);
                return;
            }
            Some(task) => self.switch_in(p, task as usize),
        }
        self.grant_requests(Some(p));
    }

    /// No vCPU wants `p`: threads of the host's that wait for it do their work.
    fn nobody_runs(&mut self, p: usize) {
        self.cpus[p].current = None;
        match std::mem::take(&mut self.pcpus[p].noise_due_ns) {
            0 => {
                self.set_mode(p, Mode::Idle);
                self.cancel(Event::Work(p));
            }
            ns => {
                self.pcpus[p].stolen_until_ns = self.now_ns + ns;
                self.busy(p, 0, ns, Then::Schedule);
            }
        }
    }

    /// `ns` when the scheduler has hooks, which take that long.
    pub(crate) fn hook_ns(&self, ns: u64) -> u64 {
        if self.sched.has_hooks() { ns } else { 0 }
    }

    /// Where the guest of `v` is now, for the host scheduler.
    pub(crate) fn see_guest(&mut self, v: usize) {
        self.tasks[v].region = self.symbols.region(self.top(v).symbol);
        self.tasks[v].in_kernel = self.in_kernel(v);
    }

    /// `v` lost `p` and waits for another turn.
    fn put_back(&mut self, p: usize, v: usize) {
        self.note(Kind::SwitchOut, v, 1);
        self.tasks[v].state = TaskState::Queued;
        self.cpus[p].current = None;
        let locked = self.holds_spinlock(v);
        self.tasks[v].critical = self.is_critical(v);
        let vcpu = &mut self.vcpus[v];
        vcpu.place = Place::Ready;
        vcpu.since_ns = self.now_ns;
        vcpu.preempted = true;
        vcpu.left_touched_ns = self.pcpus[p].touched_ns;
        self.pcpus[p].last = Some(v);
        let vm = vcpu.vm;
        self.stats[vm].count(counter::PREEMPTED);
        if locked {
            self.stats[vm].count(counter::PREEMPTED_LOCKED);
        }
    }

    /// Others of its VM may wait for `v`: it is inside a function that seed 004
    /// calls critical, or it has an IPI to answer.
    fn is_critical(&self, v: usize) -> bool {
        let waited_for = !self.vcpus[v].calls.is_empty();
        waited_for
            || self.holds_spinlock(v)
            || self.symbols.region(self.top(v).symbol).is_critical()
    }

    fn switch_in(&mut self, p: usize, v: usize) {
        let moved = self.tasks[v].cpu != p as CpuId;
        self.tasks[v].state = TaskState::Running;
        self.tasks[v].cpu = p as CpuId;
        self.cpus[p].current = Some(v as u32);
        self.cpus[p].charged_ns = self.now_ns;
        let cold = moved || self.pcpus[p].last != Some(v);
        let mut host_ns = if cold { self.costs.switch_ns } else { 0 };
        host_ns += std::mem::take(&mut self.pcpus[p].noise_due_ns);
        host_ns += self.hook_ns(self.costs.hook_pick_ns + self.costs.hook_switch_ns);
        let vcpu = &mut self.vcpus[v];
        let waited_ns = self.now_ns - vcpu.since_ns;
        let vm = vcpu.vm;
        vcpu.place = Place::On(p);
        vcpu.ipi_from = 0;
        vcpu.since_ns = self.now_ns;
        vcpu.preempted = false;
        self.tasks[v].critical = false;
        let vcpu = &mut self.vcpus[v];
        let halted = std::mem::take(&mut vcpu.halted);
        if halted {
            host_ns += self.costs.halt_return_ns;
        }
        if cold {
            self.cool_down(p, v, moved);
            self.shrink_ple_window(v);
        }
        self.stats[vm].record(hist::READY, waited_ns);
        self.steering.waited(waited_ns);
        self.busy(p, self.costs.entry_ns, host_ns, Then::Enter);
        self.note(Kind::SwitchIn, v, 0);
        if halted {
            self.show(Kind::HaltEnd, v, 1);
        }
    }

    /// What `v` finds of its caches on `p`. What others displaced takes at most
    /// as long to fetch again as they ran, and spinning displaces nothing.
    fn cool_down(&mut self, p: usize, v: usize, moved: bool) {
        let touched_ns = self.pcpus[p].touched_ns;
        let vcpu = &mut self.vcpus[v];
        let lost_ns = if moved {
            FOREVER
        } else {
            touched_ns - vcpu.left_touched_ns
        };
        vcpu.cold_ns = vcpu
            .cold_ns
            .saturating_add(lost_ns)
            .min(self.costs.warmup_ns);
    }

    /// The current task of `p`, charged or not, sleeps; another is picked.
    pub(crate) fn block(&mut self, p: usize, v: usize) {
        self.charge(p);
        self.note(Kind::SwitchOut, v, 0);
        self.with_sched(|s, host| s.block(host, p as CpuId, v as u32));
        self.tasks[v].state = TaskState::Blocked;
        self.cpus[p].current = None;
        self.pcpus[p].last = Some(v);
        let vcpu = &mut self.vcpus[v];
        vcpu.place = Place::Blocked;
        vcpu.since_ns = self.now_ns;
        vcpu.halted = true;
        vcpu.left_touched_ns = self.pcpus[p].touched_ns;
        self.schedule(p, false);
    }

    /// A blocked vCPU becomes runnable; `by_sibling`: by an interrupt of another one.
    pub(crate) fn wake_vcpu(&mut self, v: usize, by_sibling: bool) {
        debug_assert_eq!(self.vcpus[v].place, Place::Blocked);
        self.note(Kind::Wake, v, 0);
        self.with_sched(|s, host| s.wake(host, v as u32, by_sibling));
        self.tasks[v].state = TaskState::Queued;
        let vcpu = &mut self.vcpus[v];
        // In the hypercall in which a paravirtual lock waits, and now holds it.
        self.tasks[v].critical = vcpu.pv_wait;
        vcpu.place = Place::Ready;
        vcpu.since_ns = self.now_ns;
        vcpu.preempted = false;
        self.grant_requests(None);
    }

    /// Does what the scheduler asked for. `here` is the pCPU that called it.
    pub(crate) fn grant_requests(&mut self, here: Option<usize>) {
        let mut i = 0;
        while i < self.requests.timers.len() {
            let (cpu, at_ns) = self.requests.timers[i];
            i += 1;
            if at_ns == FOREVER {
                self.cancel(Event::Sched(cpu as usize));
            } else {
                self.arm(Event::Sched(cpu as usize), at_ns.max(self.now_ns));
            }
        }
        self.requests.timers.clear();
        let mut i = 0;
        while i < self.requests.kicks.len() {
            let p = self.requests.kicks[i] as usize;
            i += 1;
            if std::mem::replace(&mut self.cpus[p].kicked, true) {
                continue;
            }
            let latency_ns = if self.cpus[p].current.is_none() {
                self.costs.wake_idle_ns + self.deep_idle_ns(p)
            } else if here == Some(p) {
                0
            } else {
                self.costs.host_ipi_ns
            };
            self.arm(Event::Kick(p), self.now_ns + latency_ns);
        }
        self.requests.kicks.clear();
        let mut i = 0;
        while i < self.requests.lazy_kicks.len() {
            let p = self.requests.lazy_kicks[i] as usize;
            i += 1;
            match self.pcpus[p].mode {
                Mode::Guest | Mode::Host => self.pcpus[p].need_resched = true,
                // Somebody waits: KVM polls no more.
                Mode::Idle | Mode::Poll => self.arm(Event::Kick(p), self.now_ns),
            }
        }
        self.requests.lazy_kicks.clear();
    }

    /// What it takes longer to wake `p`, which is idle, than from a shallow idle state.
    pub(crate) fn deep_idle_ns(&self, p: usize) -> u64 {
        let idle_ns = self.now_ns - self.pcpus[p].idle_from_ns;
        let after_ns = self.costs.deep_idle_after_ns;
        if after_ns == 0 || idle_ns < after_ns {
            return 0;
        }
        self.costs.deep_idle_ns
    }

    pub(crate) fn next_noise(&mut self, p: usize) {
        if self.costs.noise_every_ns == 0 {
            return;
        }
        let gap = crate::engine::dist::Dist::Exp(self.costs.noise_every_ns);
        let at_ns = self.now_ns + gap.sample(&mut self.pcpus[p].noise);
        self.arm(Event::Noise(p), at_ns);
    }

    /// The host has work of its own for `p`: an interrupt, a kernel thread, a
    /// thread of a VMM. It takes the pCPU from the guest for a while.
    pub(crate) fn noise(&mut self, p: usize) {
        let length = crate::engine::dist::Dist::Exp(self.costs.noise_ns);
        let ns = length.sample(&mut self.pcpus[p].noise);
        self.next_noise(p);
        self.elapse(p);
        if self.costs.noise_waits {
            self.pcpus[p].noise_due_ns += ns;
            if self.pcpus[p].mode == Mode::Idle {
                self.schedule(p, false);
            }
            return;
        }
        self.pcpus[p].stolen_until_ns = self.now_ns + ns;
        if let Some(v) = self.current(p)
            && self.pcpus[p].mode == Mode::Guest
        {
            self.count_exit(v, exit::EXTERNAL);
        }
        match self.pcpus[p].mode {
            // The pCPU had nothing better to do.
            Mode::Idle | Mode::Poll => {}
            Mode::Guest => {
                let exit_ns = self.costs.exit_ns + self.costs.entry_ns;
                self.busy(p, exit_ns, ns, Then::Enter);
            }
            Mode::Host => {
                let (exit_ns, host_ns) = (self.pcpus[p].exit_left_ns, self.pcpus[p].host_left_ns);
                let then = self.pcpus[p].then;
                self.busy(p, exit_ns, host_ns + ns, then);
            }
        }
    }
}
