// SPDX-License-Identifier: GPL-2.0-only
//! Strict co-scheduling: Ousterhout's gangs. The VMs take turns with the whole
//! host; a turn's length goes by the VM's weight. pCPUs that the VM of the turn
//! has no vCPU for stay idle (fragmentation).
//!
//! Simplified: the switch of turns is as fast as the kicks that it needs, a
//! vCPU has no fixed pCPU within its gang, and a VM with more vCPUs than there
//! are pCPUs rotates them within its turn. The relaxed kind and balance
//! scheduling are CFS with a rule more: see [`super::cfs::Cfs::with_skew`] and
//! [`super::cfs::Cfs::with_siblings_apart`].

use super::{CpuId, Host, HostScheduler, TaskId, TaskState};
use std::collections::VecDeque;

/// `cpu.weight` that means a turn of the configured length.
const WEIGHT_DEFAULT: u64 = 100;
/// Parts of a turn after which a VM that is larger than the host rotates.
const ROTATIONS: u64 = 4;

/// One VM.
#[derive(Debug, Clone)]
struct Gang {
    waiting: VecDeque<TaskId>,
    /// Waiting and running.
    runnable: u32,
}

/// One pCPU.
#[derive(Debug, Clone, Copy, Default)]
struct Seat {
    curr: Option<TaskId>,
    /// When `curr` gives way to a waiting sibling.
    rotate_ns: u64,
    /// Whom a spinner here asked for.
    wish: Option<TaskId>,
}

/// The strict gang scheduler.
#[derive(Debug)]
pub struct Strict {
    slice_ns: u64,
    gangs: Vec<Gang>,
    seats: Vec<Seat>,
    /// VM of this turn.
    turn: Option<u32>,
    turn_end_ns: u64,
}

impl Strict {
    /// The scheduler with nothing to run yet.
    pub fn new(nr_tasks: usize, nr_vms: usize, nr_cpus: usize, slice_ns: u64) -> Self {
        let gang = || Gang {
            waiting: VecDeque::with_capacity(nr_tasks.min(256)),
            runnable: 0,
        };
        Self {
            slice_ns: slice_ns.max(1),
            gangs: (0..nr_vms).map(|_| gang()).collect(),
            seats: vec![Seat::default(); nr_cpus],
            turn: None,
            turn_end_ns: 0,
        }
    }

    fn gang(&mut self, host: &Host<'_>, task: TaskId) -> &mut Gang {
        &mut self.gangs[host.tasks[task as usize].vm as usize]
    }

    fn seat(&mut self, cpu: CpuId) -> &mut Seat {
        &mut self.seats[cpu as usize]
    }

    fn is_runnable(&self, vm: u32) -> bool {
        self.gangs[vm as usize].runnable > 0
    }

    /// Ends the turn when its time is over or its VM sleeps: the next runnable
    /// VM gets the host, and all other pCPUs are told.
    fn take_turns(&mut self, host: &mut Host<'_>, cpu: Option<CpuId>) {
        let over = host.now_ns >= self.turn_end_ns;
        if self.turn.is_some_and(|vm| self.is_runnable(vm)) && !over {
            return;
        }
        let nr = u32::try_from(self.gangs.len()).unwrap_or(u32::MAX);
        let first = self.turn.map_or(0, |vm| vm + 1);
        let next = (0..nr)
            .map(|i| (first + i) % nr)
            .find(|&vm| self.is_runnable(vm));
        let switches = next != self.turn;
        self.turn = next;
        let Some(vm) = next else {
            return;
        };
        let member = host.tasks.iter().find(|t| t.vm == vm);
        let weight = member.map_or(WEIGHT_DEFAULT, |t| u64::from(t.vm_weight.max(1)));
        self.turn_end_ns = host.now_ns + (self.slice_ns * weight / WEIGHT_DEFAULT).max(1);
        if switches {
            self.tell(host, vm, cpu);
        }
    }

    /// Kicks the pCPUs that run another VM, and an idle one for each that waits.
    fn tell(&self, host: &mut Host<'_>, vm: u32, but: Option<CpuId>) {
        let others = (0..).zip(&self.seats).filter(|&(c, _)| Some(c) != but);
        for (cpu, seat) in others.clone() {
            if seat.curr.is_some_and(|t| host.tasks[t as usize].vm != vm) {
                host.kick(cpu);
            }
        }
        let mut idle = others.filter(|(_, seat)| seat.curr.is_none());
        for &task in &self.gangs[vm as usize].waiting {
            let pinned = host.tasks[task as usize].pinned;
            if let Some(cpu) = pinned.or_else(|| idle.next().map(|(cpu, _)| cpu)) {
                host.kick(cpu);
            }
        }
    }

    /// Kicks an idle pCPU for `task`, the one where it was if possible.
    fn kick_idle(&self, host: &mut Host<'_>, task: TaskId) {
        let seats = (0..).zip(&self.seats);
        let free = |(cpu, seat): &(CpuId, &Seat)| {
            seat.curr.is_none() && !host.cpus[*cpu as usize].kicked && host.may_run_on(task, *cpu)
        };
        let last = host.tasks[task as usize].cpu;
        let idle = seats
            .filter(free)
            .map(|(cpu, _)| cpu)
            .min_by_key(|&cpu| cpu != last);
        if let Some(cpu) = idle {
            host.kick(cpu);
        }
    }

    /// True when `prev` stays on `cpu`: it is its VM's turn, and no sibling that
    /// waits shall have the pCPU now.
    fn keeps(&self, host: &Host<'_>, cpu: CpuId, prev: TaskId) -> bool {
        let vm = host.tasks[prev as usize].vm;
        let seat = &self.seats[cpu as usize];
        let waits = self.gangs[vm as usize]
            .waiting
            .iter()
            .any(|&t| host.may_run_on(t, cpu));
        self.turn == Some(vm) && seat.wish.is_none() && (!waits || host.now_ns < seat.rotate_ns)
    }

    /// Takes from the gang of this turn whom a spinner wished for, or the first
    /// that may run on `cpu`.
    fn next(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<TaskId> {
        let wish = self.seat(cpu).wish.take();
        let waiting = &mut self.gangs[self.turn? as usize].waiting;
        let wished = waiting
            .iter()
            .position(|&t| Some(t) == wish && host.may_run_on(t, cpu));
        let at = wished.or_else(|| waiting.iter().position(|&t| host.may_run_on(t, cpu)))?;
        waiting.remove(at)
    }

    fn arm(&self, host: &mut Host<'_>, cpu: CpuId) {
        let at_ns = self.turn_end_ns.min(self.seats[cpu as usize].rotate_ns);
        host.set_timer(cpu, at_ns.max(host.now_ns + 1));
    }

    fn rotation_ns(&self) -> u64 {
        (self.slice_ns / ROTATIONS).max(1)
    }
}

impl HostScheduler for Strict {
    fn wake(&mut self, host: &mut Host<'_>, task: TaskId, _by_sibling: bool) {
        let gang = self.gang(host, task);
        gang.waiting.push_back(task);
        gang.runnable += 1;
        let before = self.turn.filter(|&vm| self.is_runnable(vm));
        self.take_turns(host, None);
        if before != self.turn || self.turn != Some(host.tasks[task as usize].vm) {
            return;
        }
        self.kick_idle(host, task);
    }

    fn pick(&mut self, host: &mut Host<'_>, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.take_turns(host, Some(cpu));
        let now_ns = host.now_ns;
        if let Some(prev) = prev {
            if self.keeps(host, cpu, prev) {
                if now_ns >= self.seat(cpu).rotate_ns {
                    self.seat(cpu).rotate_ns = now_ns + self.rotation_ns();
                }
                self.arm(host, cpu);
                return Some(prev);
            }
            self.gang(host, prev).waiting.push_back(prev);
        }
        let next = self.next(host, cpu);
        let rotate_ns = now_ns + self.rotation_ns();
        let seat = self.seat(cpu);
        seat.curr = next;
        seat.rotate_ns = rotate_ns;
        if let Some(prev) = prev.filter(|&t| self.turn == Some(host.tasks[t as usize].vm)) {
            self.kick_idle(host, prev);
        }
        match next {
            Some(_) => self.arm(host, cpu),
            None => host.set_timer(cpu, u64::MAX),
        }
        next
    }

    fn charge(&mut self, _host: &mut Host<'_>, _cpu: CpuId, _task: TaskId, _ran_ns: u64) {}

    fn block(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) {
        let gang = self.gang(host, task);
        gang.runnable = gang.runnable.saturating_sub(1);
        self.seat(cpu).curr = None;
    }

    fn timer(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) -> bool {
        if host.now_ns >= self.turn_end_ns || !self.keeps(host, cpu, task) {
            return true;
        }
        if host.now_ns >= self.seat(cpu).rotate_ns {
            self.seat(cpu).rotate_ns = host.now_ns + self.rotation_ns();
        }
        self.arm(host, cpu);
        false
    }

    /// Only within the gang that runs: no other vCPU may run now.
    fn yield_to(
        &mut self,
        host: &mut Host<'_>,
        cpu: CpuId,
        _from: TaskId,
        to: TaskId,
        _force: bool,
    ) -> bool {
        let task = &host.tasks[to as usize];
        let accepted = task.state == TaskState::Queued
            && self.turn == Some(task.vm)
            && host.now_ns < self.turn_end_ns
            && host.may_run_on(to, cpu);
        if accepted {
            self.seat(cpu).wish = Some(to);
        }
        accepted
    }

    fn yield_any(&mut self, host: &mut Host<'_>, cpu: CpuId, _task: TaskId) {
        self.seat(cpu).rotate_ns = host.now_ns;
    }

    fn has_waiting(&self, host: &Host<'_>, cpu: CpuId) -> bool {
        let gang = self.turn.map(|vm| &self.gangs[vm as usize]);
        gang.is_some_and(|g| g.waiting.iter().any(|&t| host.may_run_on(t, cpu)))
    }

    fn queued(&self, task: TaskId) -> u32 {
        let all = self.gangs.iter().flat_map(|g| &g.waiting);
        u32::try_from(all.filter(|&&t| t == task).count()).unwrap_or(u32::MAX)
    }
}
