// SPDX-License-Identifier: GPL-2.0-only
//! Host schedulers: which task runs on which pCPU.
//!
//! The machine owns the pCPUs and the tasks (vCPU threads) and calls the
//! scheduler through [`HostScheduler`]; the scheduler keeps its queues, reads
//! the machine through [`Host`], and asks for kicks and timers there. The calls
//! follow the kernel's: wake-up, pick, put, tick, yield_to.

mod account;
pub mod build;
pub mod cfs;
pub mod corun;
pub mod cosched;
pub mod credit;
pub mod eevdf;
mod fair;
mod load;
mod micro;
mod placement;
mod runqueues;
pub mod skew;
#[cfg(test)]
mod tests;

use corun_policy::Region;

/// Index of a host task.
pub type TaskId = u32;
/// Index of a pCPU.
pub type CpuId = u32;

/// What a task does, as the host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// Sleeps: not in any queue.
    Blocked,
    /// Waits for a pCPU: in exactly one queue.
    Queued,
    /// Is some pCPU's `current`.
    Running,
}

/// A task, as a scheduler sees it. Kept by the machine.
#[derive(Debug, Clone)]
pub struct HostTask {
    /// VM that it belongs to, from 0.
    pub vm: u32,
    /// Weight of that VM, 1 to 10000 (100 is the default).
    pub vm_weight: u32,
    /// The only pCPU that it may run on.
    pub pinned: Option<CpuId>,
    /// What it does.
    pub state: TaskState,
    /// pCPU that it runs on, or ran on last.
    pub cpu: CpuId,
    /// It was preempted where others of its VM may wait for it, as its
    /// instruction pointer tells.
    pub critical: bool,
    /// Where its guest was when its turn ended, as a host sees it that has the
    /// guest's symbols. Up to date from the `pick` that ends the turn until the
    /// next turn.
    pub region: Region,
    /// That was in kernel mode.
    pub in_kernel: bool,
}

/// A pCPU, as a scheduler sees it. Kept by the machine.
#[derive(Debug, Clone)]
pub struct HostCpu {
    /// The running task; `None`: idle.
    pub current: Option<TaskId>,
    /// When `current` was put there, or was charged last
    /// ([`HostScheduler::charge`]). Nanoseconds.
    pub charged_ns: u64,
    /// Its core: pCPUs of one core are hardware threads of it.
    pub core: u32,
    /// Its last-level cache.
    pub llc: u32,
    /// It was asked to reschedule and has not done it yet.
    pub kicked: bool,
}

/// What a scheduler may ask of the machine. Buffers, drained after each call.
#[derive(Debug, Default)]
pub struct Requests {
    /// pCPUs that shall call [`HostScheduler::pick`] soon: idle ones after the
    /// latency of a wake-up, busy ones after that of a preempting IPI (at once
    /// when the caller runs there).
    pub kicks: Vec<CpuId>,
    /// Busy pCPUs that shall do so when they are in the host next: nobody interrupts
    /// their guests.
    pub lazy_kicks: Vec<CpuId>,
    /// pCPUs whose [`HostScheduler::timer`] is to be called, and when; replaces
    /// the pCPU's earlier timer. `u64::MAX` cancels.
    pub timers: Vec<(CpuId, u64)>,
}

/// The machine, for the length of one call.
pub struct Host<'a> {
    /// Now. Nanoseconds.
    pub now_ns: u64,
    /// All tasks by [`TaskId`].
    pub tasks: &'a [HostTask],
    /// All pCPUs by [`CpuId`].
    pub cpus: &'a [HostCpu],
    /// What the scheduler asks for.
    pub requests: &'a mut Requests,
}

impl Host<'_> {
    /// Asks that `cpu` picks again.
    pub fn kick(&mut self, cpu: CpuId) {
        self.requests.kicks.push(cpu);
    }

    /// Asks that `cpu` picks again when its guest is left, for whatever reason.
    pub fn kick_lazily(&mut self, cpu: CpuId) {
        self.requests.lazy_kicks.push(cpu);
    }

    /// Sets the timer of `cpu`; `u64::MAX` cancels it.
    pub fn set_timer(&mut self, cpu: CpuId, at_ns: u64) {
        self.requests.timers.push((cpu, at_ns));
    }

    /// True when `task` may run on `cpu`.
    pub fn may_run_on(&self, task: TaskId, cpu: CpuId) -> bool {
        self.tasks[task as usize].pinned.is_none_or(|p| p == cpu)
    }

    /// True when `a` and `b` are two vCPUs of one VM.
    pub fn are_siblings(&self, a: TaskId, b: TaskId) -> bool {
        a != b && self.tasks[a as usize].vm == self.tasks[b as usize].vm
    }

    /// True when nothing runs on `cpu`.
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.cpus[cpu as usize].current.is_none()
    }
}

/// A host scheduler.
///
/// Order of calls when a pCPU reschedules: `charge(current)`; then, if the task
/// stays runnable, `pick(cpu, Some(current))` (which may return it again, or
/// queue it and return another), else `block(current)` and `pick(cpu, None)`.
/// A task that `pick` returns is no longer in any queue. The machine updates
/// `tasks` and `cpus` after each call: within `pick(cpu, Some(t))` the task `t`
/// still has the state `Running`.
pub trait HostScheduler {
    /// A blocked task becomes runnable. The scheduler queues it and kicks a
    /// pCPU that shall run it, if one should now. `tasks[task].state` is still
    /// `Blocked`. `by_sibling`: a vCPU of its VM woke it, not a timer or a device.
    fn wake(&mut self, host: &mut Host<'_>, task: TaskId, by_sibling: bool);

    /// `cpu` needs a task. `prev` ran until now and is still runnable: return
    /// it, or put it into a queue. Sets the pCPU's timer for what it returns.
    fn pick(&mut self, host: &mut Host<'_>, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId>;

    /// `task` ran for `ran_ns` on `cpu` since it was picked or charged last.
    fn charge(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId, ran_ns: u64);

    /// `task`, which ran on `cpu` and was just charged, sleeps.
    fn block(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId);

    /// The timer of `cpu` went off; `task` runs there and was just charged.
    /// True: the pCPU shall pick again. Otherwise set the next timer.
    fn timer(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) -> bool;

    /// KVM asks that `to` runs instead of `from`, which runs on `cpu` and was
    /// just charged (`yield_to()`). True: accepted; the pCPU `cpu` then picks
    /// again. `force`: `from` pays for it where `to` waits on `cpu`, too, so that it is
    /// not too unfair (Debooster).
    fn yield_to(
        &mut self,
        host: &mut Host<'_>,
        cpu: CpuId,
        from: TaskId,
        to: TaskId,
        force: bool,
    ) -> bool;

    /// `task`, which runs on `cpu` and was just charged, gives way to any other
    /// (`sched_yield()`, Xen's `SCHEDOP_yield`); the pCPU then picks again.
    fn yield_any(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId);

    /// KVM found vCPU `from` spinning, which runs on `cpu`; its own search for
    /// whom to yield to follows. True: the pCPU picks again in any case.
    fn spins(&mut self, _host: &mut Host<'_>, _cpu: CpuId, _from: TaskId) -> bool {
        false
    }

    /// The guest on `cpu` asks that its vCPU `to` runs (`KVM_HC_SCHED_YIELD`);
    /// KVM's `yield_to()` follows. True: the pCPU picks again in any case.
    fn guest_yields(&mut self, _host: &mut Host<'_>, _cpu: CpuId, _to: TaskId) -> bool {
        false
    }

    /// vCPU `from` sent an interrupt to its sibling `to`. For schedulers that
    /// look at IPIs.
    fn ipi(&mut self, _host: &mut Host<'_>, _from: TaskId, _to: TaskId) {}

    /// A device's interrupt came for `to`, which waits for a pCPU.
    fn device_interrupt(&mut self, _host: &mut Host<'_>, _to: TaskId) {}

    /// True when its hooks are programs whose time counts (`Costs::hook_pick_ns` and
    /// the next two). What the kernel's own schedulers take is in `pick_ns` and
    /// `switch_ns`.
    fn has_hooks(&self) -> bool {
        false
    }

    /// True when a task waits that could run on `cpu`: halt polling ends then
    /// (`kvm_vcpu_can_poll`: `single_task_running`).
    fn has_waiting(&self, host: &Host<'_>, cpu: CpuId) -> bool;

    /// How often `task` is in the queues: the checkers want 1 for queued tasks
    /// and 0 for the others. May be slow.
    fn queued(&self, task: TaskId) -> u32;
}
