// SPDX-License-Identifier: GPL-2.0-only
//! CFS, the scheduler of Linux 2.6.23 to 6.5, as its 3.x and later versions
//! divide a host between VMs (kernel/sched/fair.c).
//!
//! Modelled: virtual run time and its minimum, slices that end at ticks
//! (`sched_slice`, `check_preempt_tick`), credit of sleepers (`place_entity` with
//! `GENTLE_FAIR_SLEEPERS`), wake-up preemption (`check_preempt_wakeup`), the
//! next, last and skip buddies, and `yield_to_task_fair`, whose wish
//! `pick_next_entity` grants only within the wake-up granularity.
//!
//! Simplified: the two levels of a VM's cgroup and its vCPUs are one, with the
//! weights that group scheduling comes to (see [`Runqueues::weight`]).

use super::fair::{self, Fair};
use super::runqueues::{Runqueues, delta_fair};
use super::skew::Skew;
use super::{CpuId, Host, HostScheduler, TaskId};
use corun_case::sim;

/// What CFS knows of a task (`struct sched_entity`).
#[derive(Debug, Clone, Copy, Default)]
struct Entity {
    /// Relative to nothing but its own queue.
    vruntime: i64,
    /// What it ran since it was picked.
    ran_ns: u64,
}

/// What CFS knows of a queue (`struct cfs_rq`).
#[derive(Debug, Clone, Copy, Default)]
struct CfsRq {
    min_vruntime: i64,
    next: Option<TaskId>,
    last: Option<TaskId>,
    skip: Option<TaskId>,
}

impl CfsRq {
    /// `clear_buddies`.
    fn clear_buddies(&mut self, task: TaskId) {
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            if *buddy == Some(task) {
                *buddy = None;
            }
        }
    }
}

/// CFS, by itself or with one of the co-scheduling rules on top.
#[derive(Debug)]
pub struct Cfs {
    config: sim::Cfs,
    rqs: Runqueues,
    entities: Vec<Entity>,
    queues: Vec<CfsRq>,
    skew: Option<Skew>,
}

impl Cfs {
    /// Plain CFS.
    pub fn new(nr_tasks: usize, nr_vms: usize, nr_cpus: usize, config: sim::Cfs) -> Self {
        let mut rqs = Runqueues::new(nr_tasks, nr_vms, nr_cpus);
        rqs.per_vm = config.per_vm;
        Self {
            config,
            rqs,
            entities: vec![Entity::default(); nr_tasks],
            queues: vec![CfsRq::default(); nr_cpus],
            skew: None,
        }
    }

    /// Balance scheduling (Sukwong and Kim, 2011): siblings are put on
    /// one queue only when there is no other.
    #[must_use]
    pub fn with_siblings_apart(mut self) -> Self {
        self.rqs.spread = true;
        self
    }

    /// Relaxed co-scheduling (as ESX 4.1 does): who is ahead of the slowest
    /// runnable sibling by more than `skew` allows waits, if anyone else can run.
    #[must_use]
    pub fn with_skew(mut self, skew: Skew) -> Self {
        self.skew = Some(skew);
        self
    }

    fn vruntime(&self, task: TaskId) -> i64 {
        self.entities[task as usize].vruntime
    }

    fn cfs_rq(&mut self, cpu: CpuId) -> &mut CfsRq {
        &mut self.queues[cpu as usize]
    }

    /// The vruntime of what runs on `cpu`, with what it was not charged for yet.
    fn vruntime_of_curr(&self, host: &Host<'_>, cpu: CpuId, curr: TaskId) -> i64 {
        let ran_ns = host
            .now_ns
            .saturating_sub(host.cpus[cpu as usize].charged_ns);
        self.vruntime(curr) + delta_fair(ran_ns, self.rqs.weight(host, curr))
    }

    /// Puts `task` into the timeline of `cpu`, behind equals.
    fn insert(&mut self, cpu: CpuId, task: TaskId) {
        let vruntime = self.vruntime(task);
        let entities = &self.entities;
        let waiting = &mut self.rqs.cpus[cpu as usize].waiting;
        let at = waiting.partition_point(|&t| entities[t as usize].vruntime <= vruntime);
        waiting.insert(at, task);
        self.rqs.set_home(task, cpu);
    }

    fn rebase(&mut self, from: CpuId, to: CpuId, task: TaskId) {
        let shift = self.queues[to as usize].min_vruntime - self.queues[from as usize].min_vruntime;
        self.entities[task as usize].vruntime += shift;
    }

    /// `update_min_vruntime`: never goes back.
    fn update_min(&mut self, cpu: CpuId) {
        let rq = self.rqs.rq(cpu);
        let first = rq.waiting.first().map(|&t| self.vruntime(t));
        let curr = rq.curr.map(|t| self.vruntime(t));
        let least = first.into_iter().chain(curr).min();
        let min = &mut self.cfs_rq(cpu).min_vruntime;
        *min = least.map_or(*min, |v| v.max(*min));
    }

    /// `sched_slice`: the part of the period that `task` is due on a queue where
    /// `nr` tasks weigh `load` together. Before Linux 5.13 (`BASE_SLICE`) it may be
    /// shorter than the granularity: a light one gives way sooner than that.
    fn slice_ns(&self, host: &Host<'_>, task: TaskId, nr: usize, load: u64) -> u64 {
        let stretched_ns = nr as u64 * self.config.min_granularity_ns;
        let period_ns = self.config.latency_ns.max(stretched_ns);
        let weight = self.rqs.weight(host, task);
        let due = u128::from(period_ns) * u128::from(weight) / u128::from(load.max(weight));
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    /// `wakeup_gran`: the granularity in the virtual time of `task`.
    fn gran(&self, host: &Host<'_>, task: TaskId) -> i64 {
        delta_fair(
            self.config.wakeup_granularity_ns,
            self.rqs.weight(host, task),
        )
    }

    /// True when running `task` instead of `left` is not unfair
    /// (`wakeup_preempt_entity(task, left) < 1`).
    fn is_close(&self, host: &Host<'_>, task: TaskId, left: TaskId) -> bool {
        self.vruntime(task) - self.vruntime(left) <= self.gran(host, left)
    }

    /// `place_entity`.
    fn place(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId, first_time: bool) {
        let min = self.queues[cpu as usize].min_vruntime;
        let vruntime = if first_time {
            let weight = self.rqs.weight(host, task);
            let (nr, load) = (self.rqs.nr_running(cpu), self.rqs.load(host, cpu));
            min + delta_fair(self.slice_ns(host, task, nr + 1, load + weight), weight)
        } else {
            let credit = (self.config.latency_ns / 2).cast_signed();
            self.vruntime(task).max(min - credit)
        };
        self.entities[task as usize].vruntime = vruntime;
    }

    /// `check_preempt_wakeup`; keeps the preempted one as the last buddy on long
    /// queues (`LAST_BUDDY`).
    fn preempts(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId, curr: TaskId) -> bool {
        if host.cpus[cpu as usize].kicked {
            return false;
        }
        let behind = self.vruntime_of_curr(host, cpu, curr) - self.vruntime(task);
        if behind <= self.gran(host, task) {
            return false;
        }
        let nr_latency = self.config.latency_ns / self.config.min_granularity_ns.max(1);
        if self.rqs.nr_running(cpu) as u64 >= nr_latency {
            self.cfs_rq(cpu).last = Some(curr);
        }
        true
    }

    /// `pick_next_entity`, from those that wait on `cpu`.
    fn pick_next(&self, host: &Host<'_>, cpu: CpuId) -> Option<TaskId> {
        let waiting = &self.rqs.rq(cpu).waiting;
        let buddies = &self.queues[cpu as usize];
        let here = |b: Option<TaskId>| b.filter(|t| waiting.contains(t));
        let held = |t: TaskId| self.skew.as_ref().is_some_and(|s| s.is_ahead(host, t));
        let mut free = waiting.iter().copied().filter(|&t| !held(t));
        let Some(left) = free.next() else {
            return waiting.first().copied();
        };
        let mut chosen = left;
        if buddies.skip == Some(left) {
            chosen = free
                .next()
                .filter(|&t| self.is_close(host, t, left))
                .unwrap_or(left);
        }
        let mut wishes = [here(buddies.next), here(buddies.last)]
            .into_iter()
            .flatten();
        let granted = wishes.find(|&t| !held(t) && self.is_close(host, t, left));
        Some(granted.unwrap_or(chosen))
    }
}

impl Fair for Cfs {
    fn rqs(&mut self) -> &mut Runqueues {
        &mut self.rqs
    }

    /// Its place relative to the queue's minimum stays (`migrate_task_rq_fair`).
    fn migrate(&mut self, _host: &Host<'_>, from: CpuId, to: CpuId, task: TaskId) {
        if !self.rqs.detach(from, task) {
            return;
        }
        self.cfs_rq(from).clear_buddies(task);
        self.rebase(from, to, task);
        self.insert(to, task);
    }

    /// `check_preempt_tick`.
    fn slice_is_over(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId) -> bool {
        let Some(&first) = self.rqs.rq(cpu).waiting.first() else {
            return false;
        };
        let (nr, load) = (self.rqs.nr_running(cpu), self.rqs.load(host, cpu));
        let due_ns = self.slice_ns(host, task, nr, load);
        let entity = self.entities[task as usize];
        if entity.ran_ns >= due_ns {
            self.cfs_rq(cpu).clear_buddies(task);
            return true;
        }
        if self.skew.as_ref().is_some_and(|s| s.is_ahead(host, task)) {
            return true;
        }
        entity.ran_ns >= self.config.min_granularity_ns
            && entity.vruntime - self.vruntime(first) > due_ns.cast_signed()
    }

    fn arm(&self, host: &mut Host<'_>, cpu: CpuId) {
        let at_ns = self.rqs.next_tick_ns(cpu, host.now_ns, self.config.tick_ns);
        host.set_timer(cpu, at_ns);
    }

    fn wish(&mut self, cpu: CpuId, task: TaskId) {
        self.cfs_rq(cpu).next = Some(task);
    }

    /// As the authors' patch does (`deboost_yield_task_vruntime`): no more than what
    /// makes `pick_next_entity` find `to` close enough. A third one that is further behind
    /// still goes first.
    fn debase(&mut self, host: &Host<'_>, _cpu: CpuId, from: TaskId, to: TaskId) {
        if !self.is_close(host, to, from) {
            let close = self.vruntime(to) - self.gran(host, from);
            self.entities[from as usize].vruntime = close;
        }
    }
}

impl HostScheduler for Cfs {
    fn wake(&mut self, host: &mut Host<'_>, task: TaskId, _by_sibling: bool) {
        let cpu = self.rqs.select(host, task);
        let home = self.rqs.home(task);
        self.rqs.loads.set(host, task, true);
        if let Some(old) = home.filter(|&old| old != cpu) {
            self.rebase(old, cpu, task);
        }
        self.place(host, cpu, task, home.is_none());
        self.insert(cpu, task);
        if let Some(skew) = &mut self.skew {
            skew.wake(host, task);
        }
        let Some(curr) = self.rqs.rq(cpu).curr else {
            host.kick(cpu);
            return;
        };
        if self.preempts(host, cpu, task, curr) {
            host.kick(cpu);
        }
        if self.rqs.rq(cpu).waiting.len() == 1 {
            self.arm(host, cpu);
        }
    }

    fn pick(&mut self, host: &mut Host<'_>, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.rqs.rq_mut(cpu).curr = None;
        if let Some(prev) = prev {
            self.insert(cpu, prev);
        }
        if self.rqs.rq(cpu).waiting.is_empty() {
            fair::balance_idle(self, host, cpu);
        }
        let Some(next) = self.pick_next(host, cpu) else {
            host.set_timer(cpu, u64::MAX);
            return None;
        };
        self.rqs.detach(cpu, next);
        self.rqs.rq_mut(cpu).curr = Some(next);
        self.cfs_rq(cpu).clear_buddies(next);
        self.entities[next as usize].ran_ns = 0;
        self.update_min(cpu);
        self.arm(host, cpu);
        Some(next)
    }

    fn charge(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId, ran_ns: u64) {
        let delta = delta_fair(ran_ns, self.rqs.weight(host, task));
        self.rqs.loads.touch(host, task);
        let entity = &mut self.entities[task as usize];
        entity.vruntime += delta;
        entity.ran_ns += ran_ns;
        self.update_min(cpu);
        if let Some(skew) = &mut self.skew {
            skew.charge(task, ran_ns);
        }
    }

    fn block(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) {
        self.rqs.loads.set(host, task, false);
        self.rqs.rq_mut(cpu).curr = None;
        self.cfs_rq(cpu).clear_buddies(task);
        self.update_min(cpu);
        if let Some(skew) = &mut self.skew {
            skew.block(task);
        }
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
    fn yield_any(&mut self, _host: &mut Host<'_>, cpu: CpuId, task: TaskId) {
        if self.rqs.nr_running(cpu) > 1 {
            let rq = self.cfs_rq(cpu);
            rq.clear_buddies(task);
            rq.skip = Some(task);
        }
    }

    fn has_waiting(&self, _host: &Host<'_>, cpu: CpuId) -> bool {
        !self.rqs.rq(cpu).waiting.is_empty()
    }

    fn queued(&self, task: TaskId) -> u32 {
        self.rqs.queued(task)
    }
}
