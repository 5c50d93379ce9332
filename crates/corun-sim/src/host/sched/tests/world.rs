// SPDX-License-Identifier: GPL-2.0-only
//! The smallest machine that a scheduler can run on: tasks that compute, or
//! compute and sleep in turns; kicks and timers; nothing costs time.

use super::kinds::Kind;
use crate::host::sched::build::{CorunOptions, build};
use crate::host::sched::{
    CpuId, Host, HostCpu, HostScheduler, HostTask, Requests, TaskId, TaskState,
};

/// Latency of a kick. Nanoseconds.
const KICK_NS: u64 = 2_000;
/// When guests are left that nobody interrupts: at the host's ticks. Nanoseconds.
pub(super) const TICK_NS: u64 = 4_000_000;

/// What a task does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Life {
    /// Computes for ever.
    Burn,
    /// Computes and sleeps in turns. Nanoseconds.
    Naps { run_ns: u64, sleep_ns: u64 },
    /// Sleeps until the test wakes it.
    Sleeps,
}

/// A task for [`World::new`].
pub(super) fn task(vm: u32, life: Life) -> (HostTask, Life) {
    let task = HostTask {
        vm,
        vm_weight: 100,
        pinned: None,
        state: TaskState::Blocked,
        cpu: 0,
        critical: false,
        region: corun_policy::Region::Unknown,
        in_kernel: false,
    };
    (task, life)
}

/// `counts[vm]` burning tasks for each VM.
pub(super) fn burners(counts: &[usize]) -> Vec<(HostTask, Life)> {
    let vms = (0..).zip(counts);
    vms.flat_map(|(vm, &n)| (0..n).map(move |_| task(vm, Life::Burn)))
        .collect()
}

/// The machine.
pub(super) struct World {
    pub(super) now_ns: u64,
    pub(super) tasks: Vec<HostTask>,
    pub(super) cpus: Vec<HostCpu>,
    pub(super) used_ns: Vec<u64>,
    pub(super) idle_ns: u64,
    lives: Vec<Life>,
    left_ns: Vec<u64>,
    wake_at_ns: Vec<u64>,
    timer_at_ns: Vec<u64>,
    kick_at_ns: Vec<u64>,
    requests: Requests,
    sched: Box<dyn HostScheduler>,
    waste_ns: Option<u64>,
    /// Since when a pCPU idles although someone waits for it.
    wasting_since_ns: Option<u64>,
    name: &'static str,
}

impl World {
    /// All tasks that do not sleep are woken at the start.
    pub(super) fn new(kind: &Kind, nr_cpus: u32, tasks: Vec<(HostTask, Life)>) -> Self {
        Self::with_options(kind, nr_cpus, tasks, CorunOptions::default())
    }

    pub(super) fn with_options(
        kind: &Kind,
        nr_cpus: u32,
        tasks: Vec<(HostTask, Life)>,
        options: CorunOptions,
    ) -> Self {
        let (tasks, lives): (Vec<_>, Vec<_>) = tasks.into_iter().unzip();
        let cpu = |n| HostCpu {
            current: None,
            charged_ns: 0,
            core: n,
            llc: n / 4,
            kicked: false,
        };
        let nr = nr_cpus as usize;
        let left = |life: &Life| match life {
            Life::Naps { run_ns, .. } => *run_ns,
            Life::Burn | Life::Sleeps => u64::MAX,
        };
        let first_wake = |life: &Life| match life {
            Life::Sleeps => u64::MAX,
            Life::Burn | Life::Naps { .. } => 0,
        };
        Self {
            now_ns: 0,
            sched: build(kind.scheduler, &kind.settings, options, nr, &tasks),
            cpus: (0..nr_cpus).map(cpu).collect(),
            used_ns: vec![0; tasks.len()],
            idle_ns: 0,
            left_ns: lives.iter().map(left).collect(),
            wake_at_ns: lives.iter().map(first_wake).collect(),
            tasks,
            lives,
            timer_at_ns: vec![u64::MAX; nr],
            kick_at_ns: vec![u64::MAX; nr],
            requests: Requests::default(),
            waste_ns: kind.waste_ns,
            wasting_since_ns: None,
            name: kind.name,
        }
    }

    fn call<R>(&mut self, f: impl FnOnce(&mut dyn HostScheduler, &mut Host<'_>) -> R) -> R {
        let mut host = Host {
            now_ns: self.now_ns,
            tasks: &self.tasks,
            cpus: &self.cpus,
            requests: &mut self.requests,
        };
        f(self.sched.as_mut(), &mut host)
    }

    /// Does what the scheduler asked for, once the machine is up to date.
    fn drain(&mut self) {
        for cpu in self.requests.kicks.drain(..) {
            let at_ns = &mut self.kick_at_ns[cpu as usize];
            *at_ns = (self.now_ns + KICK_NS).min(*at_ns);
            self.cpus[cpu as usize].kicked = true;
        }
        for cpu in self.requests.lazy_kicks.drain(..) {
            let at_ns = &mut self.kick_at_ns[cpu as usize];
            *at_ns = (self.now_ns + 1).next_multiple_of(TICK_NS).min(*at_ns);
        }
        for (cpu, at_ns) in self.requests.timers.drain(..) {
            self.timer_at_ns[cpu as usize] = at_ns;
        }
    }

    /// The task that runs on `cpu`.
    pub(super) fn current(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu as usize].current
    }

    fn charge(&mut self, cpu: CpuId) -> Option<TaskId> {
        let task = self.current(cpu)?;
        let ran_ns = self.now_ns - self.cpus[cpu as usize].charged_ns;
        self.call(|sched, host| sched.charge(host, cpu, task, ran_ns));
        self.used_ns[task as usize] += ran_ns;
        self.cpus[cpu as usize].charged_ns = self.now_ns;
        self.drain();
        Some(task)
    }

    /// `cpu` picks again.
    pub(super) fn resched(&mut self, cpu: CpuId) {
        let prev = self.charge(cpu);
        let next = self.call(|sched, host| sched.pick(host, cpu, prev));
        if let Some(prev) = prev {
            self.tasks[prev as usize].state = TaskState::Queued;
        }
        if let Some(next) = next {
            let task = &mut self.tasks[next as usize];
            assert_eq!(task.state, TaskState::Queued, "task {next} was not waiting");
            assert!(task.pinned.is_none_or(|p| p == cpu), "task {next} is bound");
            task.state = TaskState::Running;
            task.cpu = cpu;
        }
        let c = &mut self.cpus[cpu as usize];
        c.current = next;
        c.charged_ns = self.now_ns;
        c.kicked = false;
        self.kick_at_ns[cpu as usize] = u64::MAX;
        self.drain();
    }

    /// Wakes `task`, if it sleeps, by a timer.
    pub(super) fn wake(&mut self, task: TaskId) {
        self.wake_for(task, false);
    }

    /// Wakes `task`, if it sleeps: for a sibling's interrupt, or by a timer.
    pub(super) fn wake_for(&mut self, task: TaskId, by_sibling: bool) {
        self.wake_at_ns[task as usize] = u64::MAX;
        if self.tasks[task as usize].state == TaskState::Blocked {
            self.call(|sched, host| sched.wake(host, task, by_sibling));
            self.tasks[task as usize].state = TaskState::Queued;
            self.drain();
        }
    }

    /// What runs on `cpu` sleeps, until the test wakes it.
    pub(super) fn block(&mut self, cpu: CpuId) {
        if let Some(task) = self.charge(cpu) {
            self.call(|sched, host| sched.block(host, cpu, task));
            self.tasks[task as usize].state = TaskState::Blocked;
            self.cpus[cpu as usize].current = None;
            self.drain();
            self.resched(cpu);
        }
    }

    /// What runs on `cpu` yields to `to`.
    pub(super) fn yield_to(&mut self, cpu: CpuId, to: TaskId, force: bool) -> bool {
        let Some(from) = self.charge(cpu).filter(|&from| from != to) else {
            return false;
        };
        let accepted = self.call(|sched, host| sched.yield_to(host, cpu, from, to, force));
        self.drain();
        if accepted {
            self.resched(cpu);
        }
        accepted
    }

    /// What runs on `cpu` yields to anyone.
    pub(super) fn yield_any(&mut self, cpu: CpuId) {
        if let Some(task) = self.charge(cpu) {
            self.call(|sched, host| sched.yield_any(host, cpu, task));
            self.drain();
            self.resched(cpu);
        }
    }

    /// KVM finds what runs on `cpu` spinning.
    pub(super) fn spin(&mut self, cpu: CpuId) {
        if let Some(task) = self.charge(cpu) {
            let again = self.call(|sched, host| sched.spins(host, cpu, task));
            self.drain();
            if again {
                self.resched(cpu);
            }
        }
    }

    /// What runs on `cpu` asks by hypercall that its sibling `to` runs.
    pub(super) fn guest_yield(&mut self, cpu: CpuId, to: TaskId) {
        let Some(from) = self.charge(cpu).filter(|&from| from != to) else {
            return;
        };
        if self.tasks[from as usize].vm != self.tasks[to as usize].vm {
            return;
        }
        let again = self.call(|sched, host| sched.guest_yields(host, cpu, to));
        self.drain();
        if again {
            self.resched(cpu);
        }
    }

    /// A device's interrupt comes for `to`.
    pub(super) fn device_interrupt(&mut self, to: TaskId) {
        if self.tasks[to as usize].state == TaskState::Queued {
            self.call(|sched, host| sched.device_interrupt(host, to));
            self.drain();
        }
    }

    pub(super) fn ipi(&mut self, from: TaskId, to: TaskId) {
        self.call(|sched, host| sched.ipi(host, from, to));
        self.drain();
    }

    pub(super) fn has_waiting(&mut self, cpu: CpuId) -> bool {
        self.call(|sched, host| sched.has_waiting(host, cpu))
    }

    fn timer(&mut self, cpu: CpuId) {
        self.timer_at_ns[cpu as usize] = u64::MAX;
        if let Some(task) = self.charge(cpu) {
            let again = self.call(|sched, host| sched.timer(host, cpu, task));
            self.drain();
            if again {
                self.resched(cpu);
            }
        }
    }

    /// When what runs on `cpu` has computed enough.
    fn done_at_ns(&self, cpu: CpuId) -> u64 {
        let c = &self.cpus[cpu as usize];
        let left = c
            .current
            .map(|t| self.left_ns[t as usize] - self.used_ns[t as usize]);
        left.map_or(u64::MAX, |ns| c.charged_ns.saturating_add(ns))
    }

    /// What runs on `cpu` takes its nap.
    fn nap(&mut self, cpu: CpuId) {
        let Some(task) = self.current(cpu) else {
            return;
        };
        if let Life::Naps { run_ns, sleep_ns } = self.lives[task as usize] {
            self.block(cpu);
            self.wake_at_ns[task as usize] = self.now_ns + sleep_ns;
            self.left_ns[task as usize] += run_ns;
        }
    }

    fn next_event_ns(&self) -> u64 {
        let cpus = (0..).zip(&self.cpus).map(|(cpu, _)| self.done_at_ns(cpu));
        let set = [&self.wake_at_ns, &self.timer_at_ns, &self.kick_at_ns];
        let first = set.into_iter().flatten().copied().chain(cpus).min();
        first.unwrap_or(u64::MAX)
    }

    /// Handles what is due now: wake-ups, ends of work, kicks, timers.
    fn handle(&mut self) {
        for task in (0..).take(self.tasks.len()) {
            if self.wake_at_ns[task as usize] <= self.now_ns {
                self.wake(task);
            }
        }
        for cpu in (0..).take(self.cpus.len()) {
            if self.done_at_ns(cpu) <= self.now_ns {
                self.nap(cpu);
            }
            if self.kick_at_ns[cpu as usize] <= self.now_ns {
                self.resched(cpu);
            }
            if self.timer_at_ns[cpu as usize] <= self.now_ns {
                self.timer(cpu);
            }
        }
    }

    /// Runs until `until_ns`, with all checks after each event.
    pub(super) fn run(&mut self, until_ns: u64) {
        self.run_checked(until_ns, |_| ());
    }

    /// Runs in steps of 10 us until `done`, at most until `until_ns`.
    pub(super) fn run_until(&mut self, until_ns: u64, done: impl Fn(&Self) -> bool) {
        while self.now_ns < until_ns && !done(self) {
            self.run(self.now_ns + 10_000);
        }
    }

    pub(super) fn run_checked(&mut self, until_ns: u64, check: impl Fn(&Self)) {
        // The test may have changed everything since the last run.
        self.wasting_since_ns = None;
        loop {
            let next_ns = self.next_event_ns().max(self.now_ns).min(until_ns);
            let idle = self.cpus.iter().filter(|c| c.current.is_none()).count();
            self.idle_ns += idle as u64 * (next_ns - self.now_ns);
            self.now_ns = next_ns;
            if next_ns == until_ns {
                break;
            }
            self.handle();
            self.check_tasks();
            if self.kick_at_ns.iter().all(|&at_ns| at_ns == u64::MAX) {
                self.check_conservation();
                check(self);
            }
        }
        for cpu in (0..).take(self.cpus.len()) {
            self.charge(cpu);
        }
    }

    /// Every task is in one place, and in the right one.
    pub(super) fn check_tasks(&self) {
        for (id, task) in (0..).zip(&self.tasks) {
            let queued = u32::from(task.state == TaskState::Queued);
            assert_eq!(self.sched.queued(id), queued, "task {id}: {task:?}");
            let running = self.cpus.iter().filter(|c| c.current == Some(id)).count();
            let expected = usize::from(task.state == TaskState::Running);
            assert_eq!(running, expected, "task {id}: {task:?}");
        }
    }

    /// CFS and EEVDF find a task for an idle pCPU at a tick at the latest.
    fn check_conservation(&mut self) {
        let wastes = (0..).take(self.cpus.len()).any(|cpu| {
            let waits = if self.name == "strict" {
                // Only the gang of this turn counts; the scheduler knows it.
                self.has_waiting(cpu)
            } else {
                let waiting = self.tasks.iter().filter(|t| t.state == TaskState::Queued);
                { waiting }.any(|t| t.pinned.is_none_or(|p| p == cpu))
            };
            waits && self.current(cpu).is_none()
        });
        let since_ns = wastes.then(|| self.wasting_since_ns.unwrap_or(self.now_ns));
        // The kick comes on top of the tick.
        let limit_ns = self.waste_ns.map_or(u64::MAX, |ns| ns + 2 * KICK_NS);
        let for_ns = since_ns.map_or(0, |ns| self.now_ns - ns);
        assert!(
            for_ns <= limit_ns,
            "{} wastes time at {} ns",
            self.name,
            self.now_ns
        );
        self.wasting_since_ns = since_ns;
    }

    /// CPU time of a VM's tasks.
    pub(super) fn used_by_vm_ns(&self, vm: u32) -> u64 {
        let tasks = self.tasks.iter().zip(&self.used_ns);
        tasks.filter(|(t, _)| t.vm == vm).map(|(_, ns)| ns).sum()
    }

    /// A VM's part of all CPU time that was used. Percent.
    pub(super) fn percent(&self, vm: u32) -> u64 {
        let all: u64 = self.used_ns.iter().sum();
        (self.used_by_vm_ns(vm) * 100 + all / 2) / all
    }
}
