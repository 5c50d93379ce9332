// SPDX-License-Identifier: GPL-2.0-only
//! What CFS and EEVDF do alike: both are the kernel's fair class
//! (kernel/sched/fair.c), and differ in whom they pick and for how long.

use super::runqueues::Runqueues;
use super::{CpuId, Host, HostScheduler, TaskId};

/// A scheduler of the fair class. What it is asked here is its own; what all of
/// the class do with the answers are the functions below.
pub(super) trait Fair: HostScheduler {
    /// Its queues.
    fn rqs(&mut self) -> &mut Runqueues;

    /// Moves a waiting task to another queue.
    fn migrate(&mut self, host: &Host<'_>, from: CpuId, to: CpuId, task: TaskId);

    /// True when another one shall run on `cpu` instead of `task`, at a tick.
    fn slice_is_over(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId) -> bool;

    /// Sets the timer of `cpu` to the next tick.
    fn arm(&self, host: &mut Host<'_>, cpu: CpuId);

    /// Makes `task`, which waits on `cpu`, the next to run there, as far as that
    /// is fair.
    fn wish(&mut self, cpu: CpuId, task: TaskId);

    /// Debooster: the spinner `from`, which has `cpu`, pays with its place for it
    /// that `to`, which waits there, runs next.
    fn debase(&mut self, host: &Host<'_>, cpu: CpuId, from: TaskId, to: TaskId);
}

/// A queue that ran dry takes a task of another's (`newidle_balance`).
pub(super) fn balance_idle(fair: &mut impl Fair, host: &Host<'_>, cpu: CpuId) {
    if let Some((from, task)) = fair.rqs().pull_when_idle(host, cpu) {
        fair.migrate(host, from, cpu, task);
    }
}

/// `task_tick_fair`, and the balancing that goes with ticks: see
/// [`HostScheduler::timer`].
pub(super) fn tick(fair: &mut impl Fair, host: &mut Host<'_>, cpu: CpuId, task: TaskId) -> bool {
    if fair.rqs().balance_is_due(cpu, host.now_ns)
        && let Some((from, pulled)) = fair.rqs().pull_when_busy(host, cpu)
    {
        fair.migrate(host, from, cpu, pulled);
    }
    fair.rqs().kick_idle(host, cpu);
    if fair.slice_is_over(host, cpu, task) {
        return true;
    }
    fair.arm(host, cpu);
    false
}

/// `yield_to_task_fair`: see [`HostScheduler::yield_to`].
pub(super) fn yield_to(
    fair: &mut impl Fair,
    host: &mut Host<'_>,
    cpu: CpuId,
    from: TaskId,
    to: TaskId,
    force: bool,
) -> bool {
    let Some(to_cpu) = fair.rqs().yield_target(host, cpu, to) else {
        return false;
    };
    fair.wish(to_cpu, to);
    fair.yield_any(host, cpu, from);
    if to_cpu != cpu {
        host.kick(to_cpu);
    } else if force {
        fair.debase(host, cpu, from, to);
    }
    true
}
