// SPDX-License-Identifier: GPL-2.0-only
//! The micro-sliced pool (seed 004): pCPUs set aside for very short slices, so
//! that a preempted vCPU that others wait for runs soon.
//!
//! The pool is the last pCPUs of the host. One queue in order of arrival serves
//! all of them, with no more waiting than pCPUs (a vCPU goes to a pCPU of the pool
//! that is idle or has an empty queue, else nowhere); who ran one micro slice goes
//! back to its normal queue. Triggers are interrupts for a preempted vCPU, and
//! yields, as the authors' Xen has them (their public repository, Jeongseob/xen,
//! `sched_try_offload_siblings`). Who waits for answers to an IPI sends all siblings
//! there that wait for a pCPU. Who spins for a lock sends the first one that was
//! preempted inside a critical function, or waits in the hypercall of a
//! paravirtual lock's waiter, and has not yielded itself. While one is in the pool the
//! spinner goes on.

use super::{CpuId, Host, TaskId, TaskState};
use std::collections::VecDeque;

/// The pool.
#[derive(Debug)]
pub(super) struct Micro {
    first: usize,
    urgent: VecDeque<TaskId>,
    /// Who is in the pool, waiting or running.
    guest: Vec<bool>,
}

impl Micro {
    /// `pcpus` of `nr_cpus` pCPUs; one stays normal.
    pub(super) fn new(nr_tasks: usize, nr_cpus: usize, pcpus: u32) -> Self {
        let pcpus = (pcpus as usize).min(nr_cpus.saturating_sub(1));
        Self {
            first: nr_cpus - pcpus,
            urgent: VecDeque::with_capacity(nr_tasks),
            guest: vec![false; nr_tasks],
        }
    }

    /// True when `cpu` is of the pool.
    pub(super) fn has(&self, cpu: CpuId) -> bool {
        cpu as usize >= self.first
    }

    /// True when `task` is in the pool.
    pub(super) fn is_guest(&self, task: TaskId) -> bool {
        self.guest[task as usize]
    }

    /// True when `to`, which gets an interrupt, shall enter: it was preempted
    /// and may run on a pCPU of the pool.
    pub(super) fn wants(&self, host: &Host<'_>, to: TaskId) -> bool {
        let allowed = (0..)
            .zip(host.cpus)
            .skip(self.first)
            .any(|(c, _)| host.may_run_on(to, c));
        let room = self.urgent.len() < host.cpus.len() - self.first;
        room && allowed && !self.is_guest(to) && host.tasks[to as usize].state == TaskState::Queued
    }

    /// Takes in `task`; kicks a pCPU of the pool that has nothing to do.
    pub(super) fn enter(&mut self, host: &mut Host<'_>, task: TaskId, curr: &[Option<TaskId>]) {
        self.guest[task as usize] = true;
        self.urgent.push_back(task);
        let pool = (0..).zip(curr).skip(self.first);
        let free = |&(cpu, curr): &(CpuId, &Option<TaskId>)| {
            curr.is_none() && !host.cpus[cpu as usize].kicked && host.may_run_on(task, cpu)
        };
        let idle = { pool }.find(free).map(|(cpu, _)| cpu);
        if let Some(cpu) = idle {
            host.kick(cpu);
        }
    }

    /// The next for `cpu`, if it is of the pool.
    pub(super) fn take(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<TaskId> {
        if !self.has(cpu) {
            return None;
        }
        let at = self.urgent.iter().position(|&t| host.may_run_on(t, cpu))?;
        self.urgent.remove(at)
    }

    /// `task` does not run any more; true when it was a guest.
    pub(super) fn leave(&mut self, task: TaskId) -> bool {
        std::mem::take(&mut self.guest[task as usize])
    }

    /// True when someone waits who may run on `cpu`.
    pub(super) fn has_urgent(&self, host: &Host<'_>, cpu: CpuId) -> bool {
        self.urgent.iter().any(|&t| host.may_run_on(t, cpu))
    }

    /// How often `task` waits here.
    pub(super) fn queued(&self, task: TaskId) -> u32 {
        u32::from(self.urgent.contains(&task))
    }
}
