// SPDX-License-Identifier: GPL-2.0-only
//! Xen's credit scheduler (xen/common/sched/credit.c), and micro-sliced cores
//! (seed 004) on top of it.
//!
//! Modelled: credits refilled every 30 ms by weight (`csched_acct`), ticks of
//! 10 ms that mark who is active and end a boost (`csched_tick`), the priorities
//! BOOST, UNDER and OVER, queues by pCPU in order of priority, stealing
//! (`csched_load_balance`), tickling (`__runq_tickle`), the rate limit, and
//! `SCHEDOP_yield`. Up to Xen 4.7 the rate limit holds for a yield, too: a vCPU
//! that spins yields at every pause-loop exit and goes on at once, until it has
//! run for 1 ms; then the first `schedule()` puts it behind another
//! (`yield_limited`; 4.8 lets yields pass). Who runs is asked when a slice or a
//! rate limit ends, at a yield, and when a better vCPU wakes: neither a tick nor a refill
//! preempts. As in Xen 4.0 and later a VM's weight counts once for each
//! of its active vCPUs, so a larger VM gets more; see the
//! accounts.
//!
//! Simplified: the refill happens at the first call after its time; no caps, no
//! vCPU placement other than at the first wake-up (stealing does the rest), no
//! NUMA or hardware-thread preferences.

use super::account::{Priority, Refills, Unit, Yield};
use super::micro::Micro;
use super::placement::around;
use super::{CpuId, Host, HostScheduler, TaskId};
use corun_case::sim;
use corun_policy::Region;

/// Tick (`CSCHED_TICK_PERIOD`).
const TICK_NS: u64 = 10_000_000;

/// The credit scheduler.
#[derive(Debug)]
pub struct Credit {
    config: sim::Credit,
    units: Vec<Unit>,
    queues: Vec<Vec<TaskId>>,
    curr: Vec<Option<TaskId>>,
    refills: Refills,
    micro: Micro,
}

impl Credit {
    /// The scheduler with nothing to run yet.
    pub fn new(nr_tasks: usize, nr_cpus: usize, config: sim::Credit) -> Self {
        let queue = Vec::with_capacity(nr_tasks.min(64));
        Self {
            micro: Micro::new(nr_tasks, nr_cpus, config.micro_pcpus),
            config,
            units: vec![Unit::new(); nr_tasks],
            queues: vec![queue; nr_cpus],
            curr: vec![None; nr_cpus],
            refills: Refills::new(),
        }
    }

    fn unit(&mut self, task: TaskId) -> &mut Unit {
        &mut self.units[task as usize]
    }

    fn priority(&self, task: TaskId) -> Priority {
        self.units[task as usize].priority
    }

    /// True when `cpu` runs and has nothing, by our own books.
    fn is_free(&self, cpu: CpuId) -> bool {
        self.curr[cpu as usize].is_none() && self.queues[cpu as usize].is_empty()
    }

    /// True when `task` may be on `cpu` in its normal life.
    fn fits(&self, host: &Host<'_>, cpu: CpuId, task: TaskId) -> bool {
        let pinned = host.tasks[task as usize].pinned.is_some();
        host.may_run_on(task, cpu) && (pinned || !self.micro.has(cpu))
    }

    /// `csched_acct`, then `csched_runq_sort` on all queues: stable, by the new
    /// priorities.
    fn account(&mut self, host: &Host<'_>) {
        if !self.refills.run(host, &mut self.units) {
            return;
        }
        let units = &self.units;
        let priority = |t: TaskId| units[t as usize].priority;
        for queue in &mut self.queues {
            // By insertion: `sort_by` may allocate.
            for i in 1..queue.len() {
                let mut at = i;
                while at > 0 && priority(queue[at]) > priority(queue[at - 1]) {
                    queue.swap(at, at - 1);
                    at -= 1;
                }
            }
        }
    }

    /// `__runq_insert`: behind all of its priority; one that yielded goes behind
    /// one of lower priority, too.
    fn insert(&mut self, cpu: CpuId, task: TaskId) {
        let priority = self.priority(task);
        let units = &self.units;
        let queue = &mut self.queues[cpu as usize];
        let mut at = queue.partition_point(|&t| units[t as usize].priority >= priority);
        let yields = units[task as usize].yielded == Yield::Now;
        if yields && at < queue.len() {
            at += 1;
        }
        queue.insert(at, task);
        let unit = self.unit(task);
        unit.yielded = if yields { Yield::Done } else { Yield::None };
        unit.home = Some(cpu);
    }

    /// `__runq_tickle`: who runs `task`, which waits on `cpu` now? Its own pCPU
    /// if that has nothing better, else an idle one, which will steal it.
    fn tickle(&self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) {
        let curr = self.curr[cpu as usize];
        let alone = self.queues[cpu as usize].len() == 1;
        if curr.is_none() {
            host.kick(cpu);
        }
        if curr.is_none() && alone || self.tickle_idle(host, cpu, task) {
            return;
        }
        if curr.is_some_and(|curr| self.priority(task) > self.priority(curr)) {
            host.kick(cpu);
        }
    }

    /// Kicks an idle pCPU that may steal `task` from `cpu`; false: there is none.
    fn tickle_idle(&self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) -> bool {
        let mut others = self.idle_others(host, cpu);
        let idle = others.find(|&c| self.fits(host, c, task));
        drop(others);
        idle.map(|c| host.kick(c)).is_some()
    }

    /// Kicks an idle pCPU that may steal anything from `cpu`. Xen migrates who
    /// was kicked away; here an idle pCPU fetches it.
    fn offer(&self, host: &mut Host<'_>, cpu: CpuId) {
        let queue = &self.queues[cpu as usize];
        if queue.is_empty() {
            return;
        }
        let mut others = self.idle_others(host, cpu);
        let idle = others.find(|&c| queue.iter().any(|&t| self.fits(host, c, t)));
        drop(others);
        if let Some(idle) = idle {
            host.kick(idle);
        }
    }

    /// Idle pCPUs but `cpu` that nobody kicked yet.
    fn idle_others(&self, host: &Host<'_>, cpu: CpuId) -> impl Iterator<Item = CpuId> {
        let others = around(cpu, self.queues.len()).skip(1);
        others.filter(|&c| self.is_free(c) && !host.cpus[c as usize].kicked)
    }

    /// The pCPU of a vCPU that was never placed (`csched_cpu_pick`).
    fn first_home(&self, host: &Host<'_>, task: TaskId) -> CpuId {
        let near = host.tasks[task as usize].cpu;
        let usable = around(near, self.queues.len()).filter(|&c| self.fits(host, c, task));
        let used = |c: &CpuId| {
            self.queues[*c as usize].len() + usize::from(self.curr[*c as usize].is_some())
        };
        usable.min_by_key(used).unwrap_or(near)
    }

    /// `csched_load_balance`: a vCPU of another queue that is better than
    /// `floor` (`None`: idle).
    fn steal(&mut self, host: &Host<'_>, cpu: CpuId, floor: Option<Priority>) -> Option<TaskId> {
        for other in around(cpu, self.queues.len()).skip(1) {
            let queue = &self.queues[other as usize];
            let better = queue
                .iter()
                .take_while(|&&t| floor.is_none_or(|p| self.priority(t) > p));
            let mut fitting = better.copied().filter(|&t| self.fits(host, cpu, t));
            if let Some(task) = fitting.next() {
                self.queues[other as usize].retain(|&t| t != task);
                return Some(task);
            }
        }
        None
    }

    /// The next of the queue of `cpu`, or a better one of another.
    fn next(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<TaskId> {
        let head = self.queues[cpu as usize].first().copied();
        let floor = head.map(|t| self.priority(t));
        if floor.is_none_or(|p| p == Priority::Over)
            && !self.micro.has(cpu)
            && let Some(task) = self.steal(host, cpu, floor)
        {
            return Some(task);
        }
        let head = head?;
        self.queues[cpu as usize].remove(0);
        Some(head)
    }

    /// Starts `task` on `cpu`, or lets it go on if it is `prev`, for `slice_ns` at
    /// most. What goes on keeps the time since when it runs (`continue_running`).
    fn start(
        &mut self,
        host: &mut Host<'_>,
        cpu: CpuId,
        (task, prev): (TaskId, Option<TaskId>),
        slice_ns: u64,
    ) {
        self.curr[cpu as usize] = Some(task);
        let now_ns = host.now_ns;
        let unit = self.unit(task);
        unit.yielded = Yield::None;
        if prev != Some(task) {
            unit.picked_ns = now_ns;
        }
        unit.until_ns = now_ns + slice_ns;
        Self::arm(host, cpu, now_ns + slice_ns);
    }

    /// The timer goes off at the slice's end, or at the tick before it.
    fn arm(host: &mut Host<'_>, cpu: CpuId, end_ns: u64) {
        let tick_ns = (host.now_ns / TICK_NS + 1) * TICK_NS;
        host.set_timer(cpu, end_ns.min(tick_ns).max(host.now_ns + 1));
    }

    /// Puts back what ran on `cpu` until now: a guest of the micro pool goes to
    /// where it came from.
    fn put_back(&mut self, host: &mut Host<'_>, cpu: CpuId, prev: TaskId) {
        let guest = self.micro.leave(prev);
        let home = self.units[prev as usize]
            .home
            .filter(|_| guest)
            .unwrap_or(cpu);
        self.insert(home, prev);
        if home != cpu {
            self.tickle(host, home, prev);
        }
    }

    /// Does the rate limit keep `prev` on `cpu`? (`csched_schedule`)
    fn is_rate_limited(&self, host: &Host<'_>, cpu: CpuId, prev: TaskId) -> bool {
        let unit = &self.units[prev as usize];
        (unit.yielded != Yield::Now || self.config.yield_limited)
            && !self.micro.has(cpu)
            && host.now_ns.saturating_sub(unit.picked_ns) < self.config.ratelimit_ns
    }

    /// Goes `prev` on, which yielded for one that is in the micro pool now?
    fn stays(&mut self, host: &Host<'_>, prev: TaskId) -> bool {
        let unit = self.unit(prev);
        if unit.yielded != Yield::Stays {
            return false;
        }
        unit.yielded = Yield::None;
        host.now_ns < unit.until_ns
    }

    /// `task` spins for a lock: the first sibling that was preempted where it may hold one
    /// goes to the micro pool, unless one is there. True: one is.
    fn hurry_holder(&mut self, host: &mut Host<'_>, task: TaskId) -> bool {
        for sibling in (0..).take(host.tasks.len()) {
            if !host.are_siblings(task, sibling) {
                continue;
            }
            let gave_way = self.units[sibling as usize].yielded == Yield::Done;
            if host.tasks[sibling as usize].critical && !gave_way {
                self.hurry(host, sibling);
            }
            if self.micro.is_guest(sibling) {
                return true;
            }
        }
        false
    }

    /// `task` waits for its siblings' answers: all that wait for a pCPU go to the micro pool.
    fn hurry_targets(&mut self, host: &mut Host<'_>, task: TaskId) {
        for sibling in (0..).take(host.tasks.len()) {
            if host.are_siblings(task, sibling) {
                self.hurry(host, sibling);
            }
        }
    }

    /// `to` goes to the micro pool if it waits for a pCPU and there is room.
    fn hurry(&mut self, host: &mut Host<'_>, to: TaskId) {
        let Some(home) = self.units[to as usize]
            .home
            .filter(|_| self.micro.wants(host, to))
        else {
            return;
        };
        let queue = &mut self.queues[home as usize];
        let Some(at) = queue.iter().position(|&t| t == to) else {
            return;
        };
        queue.remove(at);
        self.micro.enter(host, to, &self.curr);
    }
}

impl HostScheduler for Credit {
    fn wake(&mut self, host: &mut Host<'_>, task: TaskId, _by_sibling: bool) {
        self.account(host);
        let home = self.units[task as usize].home;
        let cpu = home.unwrap_or_else(|| self.first_home(host, task));
        let boost = self.config.boost;
        let unit = self.unit(task);
        if boost && home.is_some() && unit.priority == Priority::Under {
            unit.priority = Priority::Boost;
        }
        self.insert(cpu, task);
        self.tickle(host, cpu, task);
    }

    fn pick(&mut self, host: &mut Host<'_>, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.account(host);
        if let Some(prev) = prev {
            if self.stays(host, prev) {
                Self::arm(host, cpu, self.units[prev as usize].until_ns);
                return Some(prev);
            }
            if self.is_rate_limited(host, cpu, prev) {
                let limit_ns = self.config.ratelimit_ns;
                let unit = self.unit(prev);
                unit.until_ns = unit.picked_ns + limit_ns;
                Self::arm(host, cpu, unit.until_ns);
                return Some(prev);
            }
            self.curr[cpu as usize] = None;
            self.put_back(host, cpu, prev);
        }
        self.curr[cpu as usize] = None;
        if let Some(urgent) = self.micro.take(host, cpu) {
            self.start(host, cpu, (urgent, None), self.config.micro_slice_ns);
            return Some(urgent);
        }
        let Some(next) = self.next(host, cpu) else {
            host.set_timer(cpu, u64::MAX);
            return None;
        };
        self.unit(next).home = Some(cpu);
        self.start(host, cpu, (next, prev), self.config.slice_ns);
        self.offer(host, cpu);
        Some(next)
    }

    fn charge(&mut self, _host: &mut Host<'_>, _cpu: CpuId, task: TaskId, ran_ns: u64) {
        self.unit(task).credit_ns -= ran_ns.cast_signed();
    }

    fn block(&mut self, _host: &mut Host<'_>, cpu: CpuId, task: TaskId) {
        self.curr[cpu as usize] = None;
        self.micro.leave(task);
        self.unit(task).yielded = Yield::None;
    }

    fn timer(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) -> bool {
        if host.now_ns.is_multiple_of(TICK_NS) {
            let unit = self.unit(task);
            if unit.priority == Priority::Boost {
                unit.priority = Priority::Under;
            }
            if !unit.active {
                unit.active = true;
            }
        }
        self.account(host);
        self.offer(host, cpu);
        let end_ns = self.units[task as usize].until_ns;
        if host.now_ns >= end_ns {
            return true;
        }
        Self::arm(host, cpu, end_ns);
        false
    }

    /// Xen has no directed yield.
    fn yield_to(
        &mut self,
        _host: &mut Host<'_>,
        _cpu: CpuId,
        _from: TaskId,
        _to: TaskId,
        _force: bool,
    ) -> bool {
        false
    }

    /// With a micro pool, what the instruction pointer says decides (`vcpu_yield`,
    /// `sched_try_offload_siblings` of the authors' Xen).
    fn yield_any(&mut self, host: &mut Host<'_>, _cpu: CpuId, task: TaskId) {
        let stays = self.config.micro_pcpus > 0
            && match host.tasks[task as usize].region {
                Region::User | Region::Unknown => false,
                Region::LockWait => self.hurry_holder(host, task),
                Region::AckWait => {
                    self.hurry_targets(host, task);
                    true
                }
                _ => true,
            };
        self.unit(task).yielded = if stays { Yield::Stays } else { Yield::Now };
    }

    fn ipi(&mut self, host: &mut Host<'_>, _from: TaskId, to: TaskId) {
        self.hurry(host, to);
    }

    fn device_interrupt(&mut self, host: &mut Host<'_>, to: TaskId) {
        self.hurry(host, to);
    }

    fn has_waiting(&self, host: &Host<'_>, cpu: CpuId) -> bool {
        let urgent = self.micro.has(cpu) && self.micro.has_urgent(host, cpu);
        urgent || !self.queues[cpu as usize].is_empty()
    }

    fn queued(&self, task: TaskId) -> u32 {
        let normal = self.queues.iter().flatten().filter(|&&t| t == task).count();
        u32::try_from(normal).unwrap_or(u32::MAX) + self.micro.queued(task)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HostCpu, HostTask, Requests, TaskState};
    use super::*;

    fn task(vm: u32) -> HostTask {
        HostTask {
            vm,
            vm_weight: 100,
            pinned: None,
            state: TaskState::Queued,
            cpu: 0,
            critical: false,
            region: Region::Unknown,
            in_kernel: false,
        }
    }

    /// One pCPU on which task 0 runs and task 1 waits; task 0 yields at `at_ns`.
    fn picked_after_yield(yield_limited: bool, at_ns: u64) -> Option<TaskId> {
        let tasks = [task(0), task(1)];
        let cpus = [HostCpu {
            current: None,
            charged_ns: 0,
            core: 0,
            llc: 0,
            kicked: false,
        }];
        let mut requests = Requests::default();
        let config = sim::Credit {
            yield_limited,
            ..sim::Credit::default()
        };
        let mut credit = Credit::new(2, 1, config);
        let mut host = Host {
            now_ns: 0,
            tasks: &tasks,
            cpus: &cpus,
            requests: &mut requests,
        };
        credit.wake(&mut host, 0, false);
        credit.wake(&mut host, 1, false);
        assert_eq!(credit.pick(&mut host, 0, None), Some(0));
        host.now_ns = at_ns;
        credit.yield_any(&mut host, 0, 0);
        credit.pick(&mut host, 0, Some(0))
    }

    #[test]
    fn a_yield_is_rate_limited_up_to_xen_4_7() {
        assert_eq!(picked_after_yield(true, 10_000), Some(0));
        assert_eq!(picked_after_yield(true, 1_000_000), Some(1));
        assert_eq!(picked_after_yield(false, 10_000), Some(1));
    }
}
