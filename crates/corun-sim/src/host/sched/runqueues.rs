// SPDX-License-Identifier: GPL-2.0-only
//! Run queues by pCPU, as CFS and EEVDF have them: who waits where, and what
//! each task weighs. The order within a queue is the scheduler's own.

use super::load::Loads;
use super::{CpuId, Host, TaskId, TaskState};

/// Weight of a VM of the default weight with one runnable vCPU
/// (`NICE_0_LOAD` on 64 bits).
const NICE_0_LOAD: u64 = 1 << 20;
/// `cpu.weight` that means [`NICE_0_LOAD`].
const WEIGHT_DEFAULT: u64 = 100;
/// A pCPU that is busy balances every 16 ms for each pCPU of its domain
/// (`busy_factor`); domains are small, larger hosts have several.
const BALANCE_NS_PER_CPU: u64 = 16_000_000;
/// pCPUs of the domain that we assume at most.
const DOMAIN_CPUS: u64 = 8;
/// Not on any queue yet.
const NOWHERE: CpuId = CpuId::MAX;

/// CPU time as virtual time of an entity of `weight` (`calc_delta_fair`).
pub(super) fn delta_fair(delta_ns: u64, weight: u64) -> i64 {
    (delta_ns.saturating_mul(NICE_0_LOAD) / weight).cast_signed()
}

/// The CPU time in which an entity of `weight` gains `vtime`.
pub(super) fn unfair(vtime: i64, weight: u64) -> u64 {
    u64::try_from(vtime).unwrap_or(0).saturating_mul(weight) / NICE_0_LOAD
}

/// One pCPU's queue.
#[derive(Debug, Clone)]
pub(super) struct Rq {
    /// What `pick` returned last and did not block since.
    pub(super) curr: Option<TaskId>,
    /// Who waits.
    pub(super) waiting: Vec<TaskId>,
    /// When the pCPU looks for a task to pull.
    pub(super) next_balance_ns: u64,
    /// How often in a row it found none small enough (`nr_balance_failed`).
    pub(super) failed: u32,
}

/// The queues of all pCPUs.
#[derive(Debug)]
pub(super) struct Runqueues {
    pub(super) cpus: Vec<Rq>,
    /// Queue that each task is in, or was in last.
    home: Vec<CpuId>,
    /// What each task wanted to run of late.
    pub(super) loads: Loads,
    /// Keep siblings apart (balance scheduling).
    pub(super) spread: bool,
    /// Weights are those of VMs (a cgroup each), not of vCPUs.
    pub(super) per_vm: bool,
    /// A VM counts for as many as its vCPUs that want to run at once.
    pub(super) concur: bool,
    balance_every_ns: u64,
}

impl Runqueues {
    pub(super) fn new(nr_tasks: usize, nr_vms: usize, nr_cpus: usize) -> Self {
        let balance_every_ns = BALANCE_NS_PER_CPU * (nr_cpus as u64).clamp(1, DOMAIN_CPUS);
        let rq = |cpu: u64| Rq {
            curr: None,
            waiting: Vec::with_capacity(nr_tasks.min(64)),
            // Not all at once, as on a host whose pCPUs booted one by one.
            next_balance_ns: balance_every_ns + cpu * balance_every_ns / nr_cpus as u64,
            failed: 0,
        };
        Self {
            cpus: (0..nr_cpus as u64).map(rq).collect(),
            home: vec![NOWHERE; nr_tasks],
            loads: Loads::new(nr_tasks, nr_vms),
            spread: false,
            per_vm: true,
            concur: false,
            balance_every_ns,
        }
    }

    pub(super) fn rq(&self, cpu: CpuId) -> &Rq {
        &self.cpus[cpu as usize]
    }

    pub(super) fn rq_mut(&mut self, cpu: CpuId) -> &mut Rq {
        &mut self.cpus[cpu as usize]
    }

    /// The queue of `task`; `None` before its first wake-up.
    pub(super) fn home(&self, task: TaskId) -> Option<CpuId> {
        let cpu = self.home[task as usize];
        (cpu != NOWHERE).then_some(cpu)
    }

    pub(super) fn set_home(&mut self, task: TaskId, cpu: CpuId) {
        self.home[task as usize] = cpu;
    }

    /// What a vCPU weighs: its share of its VM's cgroup, or, without cgroups, what
    /// any thread weighs.
    pub(super) fn weight(&self, host: &Host<'_>, task: TaskId) -> u64 {
        let vm_weight = u64::from(host.tasks[task as usize].vm_weight.max(1));
        let mut weight = vm_weight * NICE_0_LOAD / WEIGHT_DEFAULT;
        if !self.per_vm {
            return weight;
        }
        if self.concur {
            let vm = host.tasks[task as usize].vm;
            weight *= self.loads.at_once(vm).clamp(1, self.cpus.len() as u64);
        }
        self.loads.share(host, task, weight).max(1)
    }

    /// Tasks on the queue of `cpu`, the running one included (`nr_running`).
    pub(super) fn nr_running(&self, cpu: CpuId) -> usize {
        let rq = self.rq(cpu);
        rq.waiting.len() + usize::from(rq.curr.is_some())
    }

    /// The queue in which `to` waits, if a directed yield from `cpu` may go there:
    /// `yield_to()` refuses one that does not wait, and one between two pCPUs that
    /// have a task each.
    pub(super) fn yield_target(&self, host: &Host<'_>, cpu: CpuId, to: TaskId) -> Option<CpuId> {
        let to_cpu = self.home(to)?;
        let waits = host.tasks[to as usize].state == TaskState::Queued;
        let alone = self.nr_running(cpu) == 1 && self.nr_running(to_cpu) == 1;
        (waits && !alone).then_some(to_cpu)
    }

    /// Weight of all tasks on the queue of `cpu`.
    pub(super) fn load(&self, host: &Host<'_>, cpu: CpuId) -> u64 {
        let rq = self.rq(cpu);
        let tasks = rq.waiting.iter().chain(&rq.curr);
        tasks.map(|&t| self.weight(host, t)).sum()
    }

    /// Takes `task` out of the queue of `cpu`; false when it is not there.
    pub(super) fn detach(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let waiting = &mut self.rq_mut(cpu).waiting;
        let at = waiting.iter().position(|&t| t == task);
        at.map(|i| waiting.remove(i)).is_some()
    }

    /// True when the pCPU shall look for work elsewhere; sets the next time.
    pub(super) fn balance_is_due(&mut self, cpu: CpuId, now_ns: u64) -> bool {
        let every_ns = self.balance_every_ns;
        let rq = self.rq_mut(cpu);
        if now_ns < rq.next_balance_ns {
            return false;
        }
        rq.next_balance_ns = now_ns + every_ns;
        true
    }

    /// Shifts the clock of the periodic timer of `cpu`: the next multiple of
    /// `tick_ns`, or a balancing tick when nobody waits (as with `NO_HZ_FULL`,
    /// which spares the simulator ticks that decide nothing).
    pub(super) fn next_tick_ns(&self, cpu: CpuId, now_ns: u64, tick_ns: u64) -> u64 {
        let tick_ns = tick_ns.max(1);
        let rq = self.rq(cpu);
        let from_ns = if rq.waiting.is_empty() {
            rq.next_balance_ns.max(now_ns)
        } else {
            now_ns
        };
        (from_ns / tick_ns + 1) * tick_ns
    }

    /// How often `task` waits.
    pub(super) fn queued(&self, task: TaskId) -> u32 {
        let all = self.cpus.iter().flat_map(|rq| &rq.waiting);
        u32::try_from(all.filter(|&&t| t == task).count()).unwrap_or(u32::MAX)
    }
}
