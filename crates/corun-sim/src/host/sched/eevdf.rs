// SPDX-License-Identifier: GPL-2.0-only
//! EEVDF, Linux's scheduler since 6.6 (kernel/sched/fair.c).
//!
//! Modelled: eligibility by the weighted mean of the virtual run times
//! (`avg_vruntime`, `entity_eligible`), virtual deadlines (`update_deadline`,
//! `pick_eevdf`), `RUN_TO_PARITY` (an eligible task runs its slice to the end),
//! lag that sleepers keep (`update_entity_lag`, `place_entity` with `PLACE_LAG`),
//! wake-up preemption by deadline, and `yield_to_task_fair`, whose wish
//! (`PICK_BUDDY`) is granted only to an eligible task.
//!
//! Simplified: no delayed dequeue; lag is not rescaled when a VM's number of
//! runnable vCPUs changes (`reweight_entity`); a wake-up sets no next buddy
//! (`NEXT_BUDDY`, off by default up to 6.18); a yield moves the deadline on but
//! does not forfeit the rest of the slice, as 6.18 and later do; the two levels
//! of a VM's cgroup and its vCPUs are one (see [`Runqueues::weight`]).

use super::fair::{self, Fair};
use super::runqueues::{Runqueues, delta_fair, unfair};
use super::{CpuId, Host, HostScheduler, TaskId};
use corun_case::sim;

/// `TICK_NSEC` where the case sets no tick: limit of the lag that sleepers keep.
const TICK_NS: u64 = 4_000_000;

/// What EEVDF knows of a task (`struct sched_entity`).
#[derive(Debug, Clone, Copy, Default)]
struct Entity {
    vruntime: i64,
    deadline: i64,
    /// Mean minus own vruntime when it left its queue.
    lag: i64,
    /// Deadline when it was picked: while that stands, its slice is protected.
    protected: Option<i64>,
    /// Its slice ended since it was picked.
    expired: bool,
}

/// What EEVDF knows of a queue (`struct cfs_rq`).
#[derive(Debug, Clone, Copy, Default)]
struct CfsRq {
    /// Where an empty queue places its first task.
    zero_vruntime: i64,
    next: Option<TaskId>,
    /// Debooster: picked next, eligible or not.
    forced: Option<TaskId>,
}

/// EEVDF.
#[derive(Debug)]
pub struct Eevdf {
    config: sim::Eevdf,
    rqs: Runqueues,
    entities: Vec<Entity>,
    cfs_rqs: Vec<CfsRq>,
}

/// Weighted sums over a queue, from which its mean follows.
#[derive(Debug, Clone, Copy)]
struct Mean {
    zero: i64,
    sum: i128,
    load: u64,
}

impl Mean {
    /// `avg_vruntime`.
    fn vruntime(&self) -> i64 {
        if self.load == 0 {
            return self.zero;
        }
        let shift = self.sum.div_euclid(i128::from(self.load));
        self.zero + i64::try_from(shift).unwrap_or(0)
    }

    /// `vruntime_eligible`: at or before the mean, without the rounding.
    fn eligible(&self, vruntime: i64) -> bool {
        i128::from(vruntime - self.zero) * i128::from(self.load) <= self.sum
    }
}

impl Eevdf {
    /// EEVDF with nothing to run yet.
    pub fn new(nr_tasks: usize, nr_vms: usize, nr_cpus: usize, config: sim::Eevdf) -> Self {
        let mut rqs = Runqueues::new(nr_tasks, nr_vms, nr_cpus);
        rqs.per_vm = config.per_vm;
        rqs.concur = config.concur;
        Self {
            config,
            rqs,
            entities: vec![Entity::default(); nr_tasks],
            cfs_rqs: vec![CfsRq::default(); nr_cpus],
        }
    }

    fn entity(&mut self, task: TaskId) -> &mut Entity {
        &mut self.entities[task as usize]
    }

    fn cfs_rq(&mut self, cpu: CpuId) -> &mut CfsRq {
        &mut self.cfs_rqs[cpu as usize]
    }

    /// The slice in the virtual time of `task`.
    fn vslice(&self, host: &Host<'_>, task: TaskId) -> i64 {
        delta_fair(self.config.base_slice_ns, self.rqs.weight(host, task))
    }

    /// The vruntime of `task` on `cpu`, with what it was not charged for yet.
    fn vruntime(&self, host: &Host<'_>, cpu: CpuId, task: TaskId) -> i64 {
        let vruntime = self.entities[task as usize].vruntime;
        // A task that was just picked is not the machine's current one yet.
        if host.cpus[cpu as usize].current != Some(task) || self.rqs.rq(cpu).curr != Some(task) {
            return vruntime;
        }
        let ran_ns = host
            .now_ns
            .saturating_sub(host.cpus[cpu as usize].charged_ns);
        vruntime + delta_fair(ran_ns, self.rqs.weight(host, task))
    }

    fn mean(&self, host: &Host<'_>, cpu: CpuId) -> Mean {
        let zero = self.cfs_rqs[cpu as usize].zero_vruntime;
        let rq = self.rqs.rq(cpu);
        let (mut sum, mut load) = (0, 0);
        for &task in rq.waiting.iter().chain(&rq.curr) {
            let weight = self.rqs.weight(host, task);
            sum += i128::from(self.vruntime(host, cpu, task) - zero) * i128::from(weight);
            load += weight;
        }
        Mean { zero, sum, load }
    }

    /// `update_entity_lag`, before the task leaves its queue.
    fn keep_lag(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId) {
        let weight = self.rqs.weight(host, task);
        let limit = delta_fair(self.tick_ns().max(2 * self.config.base_slice_ns), weight);
        let lag = self.mean(host, cpu).vruntime() - self.vruntime(host, cpu, task);
        self.entity(task).lag = lag.clamp(-limit, limit);
    }

    /// `place_entity`: the lag is as it was, also after the task itself has
    /// moved the mean. `deadline` is relative, for tasks that migrate.
    fn place(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId, deadline: i64) {
        let mean = self.mean(host, cpu);
        let mut lag = i128::from(self.entity(task).lag);
        if mean.load > 0 {
            let own = i128::from(self.rqs.weight(host, task));
            lag = lag * (i128::from(mean.load) + own) / i128::from(mean.load);
        } else {
            lag = 0;
        }
        let vruntime = mean.vruntime() - i64::try_from(lag).unwrap_or(0);
        let entity = self.entity(task);
        entity.vruntime = vruntime;
        entity.deadline = vruntime + deadline;
        entity.protected = None;
        self.rqs.rq_mut(cpu).waiting.push(task);
        self.rqs.set_home(task, cpu);
    }

    fn clear_buddies(&mut self, cpu: CpuId, task: TaskId) {
        let rq = self.cfs_rq(cpu);
        rq.next = rq.next.filter(|&t| t != task);
        rq.forced = rq.forced.filter(|&t| t != task);
    }

    /// `pick_eevdf` with the buddies: the running task, if it stays runnable, is
    /// among the candidates.
    fn choose(&self, host: &Host<'_>, cpu: CpuId) -> Option<TaskId> {
        let rq = self.rqs.rq(cpu);
        let buddies = &self.cfs_rqs[cpu as usize];
        let here = |b: Option<TaskId>| b.filter(|t| rq.waiting.contains(t));
        if let Some(forced) = here(buddies.forced) {
            return Some(forced);
        }
        let mean = self.mean(host, cpu);
        let eligible = |&t: &TaskId| mean.eligible(self.vruntime(host, cpu, t));
        if let Some(next) = here(buddies.next).filter(eligible) {
            return Some(next);
        }
        if let Some(curr) = rq.curr.filter(eligible) {
            let entity = &self.entities[curr as usize];
            if entity.protected == Some(entity.deadline) {
                return Some(curr);
            }
        }
        let all = || rq.curr.iter().chain(&rq.waiting).copied();
        let deadline = |t: &TaskId| self.entities[*t as usize].deadline;
        let best = all().filter(eligible).min_by_key(deadline);
        best.or_else(|| all().min_by_key(|&t| self.vruntime(host, cpu, t)))
    }

    /// The configured tick, or the usual one beside high-resolution ticks.
    fn tick_ns(&self) -> u64 {
        match self.config.tick_ns {
            0 => TICK_NS,
            tick_ns => tick_ns,
        }
    }
}

impl Fair for Eevdf {
    fn rqs(&mut self) -> &mut Runqueues {
        &mut self.rqs
    }

    /// `detach_task`, `attach_task` with `PLACE_REL_DEADLINE`.
    fn migrate(&mut self, host: &Host<'_>, from: CpuId, to: CpuId, task: TaskId) {
        self.keep_lag(host, from, task);
        if self.rqs.detach(from, task) {
            self.clear_buddies(from, task);
            let entity = self.entities[task as usize];
            self.place(host, to, task, entity.deadline - entity.vruntime);
        }
    }

    fn slice_is_over(&mut self, _host: &Host<'_>, cpu: CpuId, task: TaskId) -> bool {
        let others = !self.rqs.rq(cpu).waiting.is_empty();
        others && self.entity(task).expired
    }

    /// With high-resolution ticks, or to the end of the slice.
    fn arm(&self, host: &mut Host<'_>, cpu: CpuId) {
        let mut at_ns = self.rqs.next_tick_ns(cpu, host.now_ns, self.tick_ns());
        let rq = self.rqs.rq(cpu);
        if let Some(curr) = rq.curr
            && self.config.tick_ns == 0
            && !rq.waiting.is_empty()
        {
            let left = self.entities[curr as usize].deadline - self.vruntime(host, cpu, curr);
            let left_ns = unfair(left, self.rqs.weight(host, curr));
            at_ns = at_ns.min(host.now_ns + left_ns + 1);
        }
        host.set_timer(cpu, at_ns);
    }

    fn wish(&mut self, cpu: CpuId, task: TaskId) {
        self.cfs_rq(cpu).next = Some(task);
    }

    /// Pays with the rest of its slice, and its place.
    fn debase(&mut self, host: &Host<'_>, cpu: CpuId, from: TaskId, to: TaskId) {
        let vslice = self.vslice(host, from);
        let behind = self.entity(to).vruntime + 1;
        let entity = self.entity(from);
        entity.vruntime = entity.vruntime.max(entity.deadline - vslice).max(behind);
        entity.deadline = entity.deadline.max(entity.vruntime + vslice);
        self.cfs_rq(cpu).forced = Some(to);
    }
}

impl HostScheduler for Eevdf {
    fn wake(&mut self, host: &mut Host<'_>, task: TaskId, _by_sibling: bool) {
        let cpu = self.rqs.select(host, task);
        let first_time = self.rqs.home(task).is_none();
        self.rqs.loads.set(host, task, true);
        let vslice = self.vslice(host, task);
        // Newcomers get half a slice first (`PLACE_DEADLINE_INITIAL`).
        let deadline = if first_time { vslice / 2 } else { vslice };
        self.place(host, cpu, task, deadline);
        if self.rqs.rq(cpu).curr.is_none() {
            host.kick(cpu);
            return;
        }
        if !host.cpus[cpu as usize].kicked && self.choose(host, cpu) == Some(task) {
            // `resched_curr_lazy`
            if self.config.lazy {
                host.kick_lazily(cpu);
            } else {
                host.kick(cpu);
            }
        }
        if self.rqs.rq(cpu).waiting.len() == 1 {
            self.arm(host, cpu);
        }
    }

    fn pick(&mut self, host: &mut Host<'_>, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.rqs.rq_mut(cpu).curr = prev;
        if self.rqs.nr_running(cpu) == 0 {
            fair::balance_idle(self, host, cpu);
        }
        let Some(next) = self.choose(host, cpu) else {
            host.set_timer(cpu, u64::MAX);
            return None;
        };
        if prev != Some(next) {
            self.rqs.detach(cpu, next);
            if let Some(prev) = prev {
                self.rqs.rq_mut(cpu).waiting.push(prev);
                self.rqs.set_home(prev, cpu);
            }
        }
        self.rqs.rq_mut(cpu).curr = Some(next);
        self.clear_buddies(cpu, next);
        let entity = self.entity(next);
        entity.protected = Some(entity.deadline);
        entity.expired = false;
        self.arm(host, cpu);
        Some(next)
    }

    fn charge(&mut self, host: &mut Host<'_>, _cpu: CpuId, task: TaskId, ran_ns: u64) {
        let delta = delta_fair(ran_ns, self.rqs.weight(host, task));
        self.rqs.loads.touch(host, task);
        let vslice = self.vslice(host, task);
        let entity = self.entity(task);
        entity.vruntime += delta;
        if entity.vruntime >= entity.deadline {
            entity.deadline = entity.vruntime + vslice;
            entity.expired = true;
        }
    }

    fn block(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) {
        self.keep_lag(host, cpu, task);
        self.cfs_rq(cpu).zero_vruntime = self.mean(host, cpu).vruntime();
        self.rqs.loads.set(host, task, false);
        self.rqs.rq_mut(cpu).curr = None;
        self.clear_buddies(cpu, task);
    }

    fn timer(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) -> bool {
        fair::tick(self, host, cpu, task)
    }

    fn yield_to(
        &mut self,
        host: &mut Host<'_>,
        cpu: CpuId,
        from: TaskId,
        to: TaskId,
        force: bool,
    ) -> bool {
        fair::yield_to(self, host, cpu, from, to, force)
    }

    /// `yield_task_fair`.
    fn yield_any(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) {
        if self.rqs.nr_running(cpu) > 1 {
            self.clear_buddies(cpu, task);
            let vslice = self.vslice(host, task);
            self.entity(task).deadline += vslice;
        }
    }

    fn has_waiting(&self, _host: &Host<'_>, cpu: CpuId) -> bool {
        !self.rqs.rq(cpu).waiting.is_empty()
    }

    fn queued(&self, task: TaskId) -> u32 {
        self.rqs.queued(task)
    }
}
