// SPDX-License-Identifier: GPL-2.0-only
//! Which queue a task goes to: wake-up placement and load balancing, the same
//! for CFS and EEVDF (`select_task_rq_fair`, `newidle_balance`,
//! `load_balance`).
//!
//! Simplified: two levels (last-level cache, host) instead of scheduling
//! domains; no `wake_affine`; hardware threads count as pCPUs (no idle-core
//! search); load is what the tasks weigh now instead of a decaying average; no
//! active balancing of a running task.

use super::runqueues::Runqueues;
use super::{CpuId, Host, TaskId};

/// `imbalance_pct` within a last-level cache: 17 % more is imbalance.
const IMBALANCE_PCT: u64 = 117;

impl Runqueues {
    /// The pCPU for a task that wakes (`select_task_rq_fair`).
    pub(super) fn select(&self, host: &Host<'_>, task: TaskId) -> CpuId {
        if let Some(cpu) = host.tasks[task as usize].pinned {
            return cpu;
        }
        let Some(prev) = self.home(task) else {
            return self.least_loaded(host, task);
        };
        if let Some(cpu) = self.idle_near(host, task, prev) {
            return cpu;
        }
        if self.spread && self.has_sibling(host, prev, task) {
            return self.least_loaded(host, task);
        }
        prev
    }

    /// `prev` when it is idle, else an idle pCPU of its last-level cache, else
    /// any (`select_idle_sibling`; the kernel stops at the cache and leaves the
    /// rest to the balancing of idle pCPUs, which is at once here).
    fn idle_near(&self, host: &Host<'_>, task: TaskId, prev: CpuId) -> Option<CpuId> {
        let llc = host.cpus[prev as usize].llc;
        let usable = |cpu: &CpuId| self.takes(host, *cpu, task) && self.nr_running(*cpu) == 0;
        let mut elsewhere = None;
        for cpu in around(prev, self.cpus.len()).filter(usable) {
            if host.cpus[cpu as usize].llc == llc {
                return Some(cpu);
            }
            elsewhere = elsewhere.or(Some(cpu));
        }
        elsewhere
    }

    /// Where a new task starts (`find_idlest_cpu`), and with `spread` also where
    /// one goes that would share a queue with a sibling. When all have siblings
    /// there is no choice.
    fn least_loaded(&self, host: &Host<'_>, task: TaskId) -> CpuId {
        let cpus = || around(host.tasks[task as usize].cpu, self.cpus.len());
        let key = |cpu: &CpuId| (self.load(host, *cpu), self.nr_running(*cpu));
        let apart = cpus().filter(|&cpu| self.takes(host, cpu, task));
        let best = apart.min_by_key(key).or_else(|| cpus().min_by_key(key));
        best.unwrap_or(0)
    }

    /// True when `task` may be put on the queue of `cpu`.
    fn takes(&self, host: &Host<'_>, cpu: CpuId, task: TaskId) -> bool {
        host.may_run_on(task, cpu) && !(self.spread && self.has_sibling(host, cpu, task))
    }

    /// True when another task of its VM is on the queue of `cpu`.
    fn has_sibling(&self, host: &Host<'_>, cpu: CpuId, task: TaskId) -> bool {
        let rq = self.rq(cpu);
        let mut tasks = rq.waiting.iter().chain(&rq.curr);
        tasks.any(|&t| host.are_siblings(task, t))
    }

    /// What an idle pCPU pulls: a task of the longest queue that may come
    /// (`newidle_balance`), that of the same cache first.
    pub(super) fn pull_when_idle(&self, host: &Host<'_>, cpu: CpuId) -> Option<(CpuId, TaskId)> {
        let llc = host.cpus[cpu as usize].llc;
        let near = |other: CpuId| host.cpus[other as usize].llc == llc;
        let mut best: Option<((bool, usize), (CpuId, TaskId))> = None;
        for other in around(cpu, self.cpus.len()).skip(1) {
            let waiting = &self.rq(other).waiting;
            let key = (near(other), waiting.len());
            // A queue whose pCPU is about to take its only task is left alone.
            if waiting.len() + usize::from(self.rq(other).curr.is_some()) < 2
                || best.is_some_and(|(b, _)| b >= key)
            {
                continue;
            }
            let mut fitting = waiting.iter().filter(|&&t| host.may_run_on(t, cpu));
            if let Some(&task) = fitting.next() {
                best = Some((key, (other, task)));
            }
        }
        best.map(|(_, from)| from)
    }

    /// At the tick of a pCPU where tasks wait: wakes an idle pCPU that could pull
    /// one (`nohz_balancer_kick`).
    pub(super) fn kick_idle(&self, host: &mut Host<'_>, cpu: CpuId) {
        let waiting = &self.rq(cpu).waiting;
        if waiting.is_empty() {
            return;
        }
        let helps = |&c: &CpuId| {
            let free = self.nr_running(c) == 0 && !host.cpus[c as usize].kicked;
            free && waiting.iter().any(|&t| host.may_run_on(t, c))
        };
        let idle = around(cpu, self.cpus.len()).skip(1).find(helps);
        if let Some(idle) = idle {
            host.kick(idle);
        }
    }

    /// What a busy pCPU pulls at its balancing tick: one task of the queue with
    /// the largest load, the one that evens the two out best (`load_balance`,
    /// `detach_tasks`). A task that is too large for the gap counts for half as
    /// much after each attempt that failed, so no pile-up lasts.
    pub(super) fn pull_when_busy(
        &mut self,
        host: &Host<'_>,
        cpu: CpuId,
    ) -> Option<(CpuId, TaskId)> {
        let failed = std::mem::take(&mut self.rq_mut(cpu).failed);
        let mine = self.load(host, cpu);
        let (load, from) = self.largest_load(host, cpu)?;
        if load * 100 <= mine * IMBALANCE_PCT {
            return None;
        }
        let gap = load - mine;
        let counts = |t: TaskId| self.weight(host, t) >> failed.min(63);
        let fits = |t: &&TaskId| self.takes(host, cpu, **t) && counts(**t) < gap;
        let waiting = self.rq(from).waiting.iter();
        let left = |t: &&TaskId| gap.abs_diff(2 * self.weight(host, **t));
        let task = waiting.filter(fits).min_by_key(left).copied();
        if task.is_none() {
            self.rq_mut(cpu).failed = failed + 1;
        }
        task.map(|task| (from, task))
    }

    /// The queue with the largest load among those where tasks wait.
    fn largest_load(&self, host: &Host<'_>, cpu: CpuId) -> Option<(u64, CpuId)> {
        let others = around(cpu, self.cpus.len()).skip(1);
        let busy = others.filter(|&c| !self.rq(c).waiting.is_empty());
        let loads = busy.map(|c| (self.load(host, c), c));
        loads.reduce(|a, b| if b.0 > a.0 { b } else { a })
    }
}

/// All pCPUs, from `first` on and around.
pub(super) fn around(first: CpuId, nr: usize) -> impl Iterator<Item = CpuId> {
    let nr = CpuId::try_from(nr).unwrap_or(CpuId::MAX);
    let first = first % nr.max(1);
    (first..nr).chain(0..first)
}
