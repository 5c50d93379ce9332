// SPDX-License-Identifier: GPL-2.0-only
//! What runs next on a pCPU (`corun_dispatch`).

use super::{Corun, CpuId, Host, TaskId};
use corun_policy::{Mechanisms, boost};

/// Tasks of a queue that are asked where they may run, at most (bpf/queue.bpf.h).
const QUEUE_LOOKS: usize = 8;

impl Corun {
    /// Takes `task` out of its VM's queue, if it still waits and may run here.
    pub(super) fn take(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId) -> bool {
        if !host.may_run_on(task, cpu) {
            return false;
        }
        let queue = &mut self.queues[host.tasks[task as usize].vm as usize];
        let at = queue.iter().position(|&t| t == task);
        at.map(|at| queue.remove(at)).is_some()
    }

    /// Dispatches whom a spinner on this pCPU asked for, if that still makes
    /// sense.
    fn follow_hint(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<(TaskId, u64)> {
        let hint = self.cpu(cpu).hint.take()?;
        let fresh = corun_policy::hint_fresh(hint.made_ns, host.now_ns, &self.tun);
        let vm = host.tasks[hint.to as usize].vm as usize;
        let other = self.best_vm(host, cpu, Some(vm)).map(|vm| &self.vms[vm]);
        let affords =
            || corun_policy::yield_affords(&self.vms[vm], other, self.lanes_of(vm), &self.tun);
        (fresh && affords() && self.take(host, cpu, hint.to)).then_some((hint.to, hint.slice_ns))
    }

    /// Takes the urgent vCPU that this pCPU was kicked for, for a short slice.
    fn serve_urgent(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<(TaskId, u64)> {
        let task = self.cpu(cpu).urgent.take()?;
        if !self.take(host, cpu, task) {
            return None;
        }
        self.cpu(cpu).serving = Some(task);
        Some((task, self.tun.urgent_slice_ns))
    }

    /// Takes a vCPU of the gang that this pCPU was kicked for.
    fn join_gang(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<(TaskId, u64)> {
        let (vm, end_ns) = self.cpu(cpu).gang.take()?;
        let task = self.take_from(host, cpu, vm)?;
        self.cpu(cpu).join_end_ns = Some(end_ns);
        Some((task, self.tun.slice_ns))
    }

    /// Takes whom this pCPU was asked to run out of turn.
    fn take_marked(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<(TaskId, u64)> {
        self.serve_urgent(host, cpu)
            .or_else(|| self.follow_hint(host, cpu))
            .or_else(|| self.join_gang(host, cpu))
    }

    /// The first task in `vm`'s queue that may run on `cpu` (`waits_for_cpu`): of a long
    /// queue the first tasks decide, and when none of them may, the last of these stands
    /// for the rest.
    fn first_for(&self, host: &Host<'_>, cpu: CpuId, vm: usize) -> Option<TaskId> {
        let mut looked = self.queues[vm].iter().take(QUEUE_LOOKS).enumerate();
        let last = QUEUE_LOOKS - 1;
        let first = looked.find(|&(at, &task)| at == last || host.may_run_on(task, cpu));
        first.map(|(_, &task)| task)
    }

    /// The VM with the best claim to `cpu` among those with a task for it, leaving out
    /// `except` and those that were tried.
    pub(super) fn best_vm(
        &self,
        host: &Host<'_>,
        cpu: CpuId,
        except: Option<usize>,
    ) -> Option<usize> {
        let usable = |&vm: &usize| {
            Some(vm) != except && !self.tried[vm] && self.first_for(host, cpu, vm).is_some()
        };
        let better = |best: usize, vm: usize| {
            if corun_policy::first(&self.vms[vm], &self.vms[best]) {
                vm
            } else {
                best
            }
        };
        (0..self.vms.len()).filter(usable).reduce(better)
    }

    /// Does `prev`, whose slice is over, go on? `best`: the other VM that waits.
    fn keeps(&self, host: &Host<'_>, cpu: CpuId, prev: TaskId, best: Option<usize>) -> bool {
        let vm = host.tasks[prev as usize].vm as usize;
        let best = best.map(|v| &self.vms[v]);
        let head = self.first_for(host, cpu, vm);
        // An urgent sibling goes before any other.
        let urgent = self.states[vm].first.is_some();
        let head_vtime_ns = head.map(|t| {
            if urgent {
                self.vcpus[prev as usize].vtime_ns.wrapping_sub(1)
            } else {
                self.vcpus[t as usize].vtime_ns
            }
        });
        corun_policy::keeps(self.party(vm, prev), best, head_vtime_ns)
    }

    /// Takes the urgent vCPU of `vm`, or its first task that may run here.
    fn take_from(&mut self, host: &Host<'_>, cpu: CpuId, vm: usize) -> Option<TaskId> {
        if let Some(first) = self.states[vm].first.take()
            && self.take(host, cpu, first)
        {
            return Some(first);
        }
        let queue = &mut self.queues[vm];
        let at = queue.iter().position(|&t| host.may_run_on(t, cpu))?;
        Some(queue.remove(at))
    }

    /// Takes the first task that may run here from the VM with the best claim.
    fn take_best(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<(TaskId, u64)> {
        while let Some(vm) = self.best_vm(host, cpu, None) {
            if let Some(task) = self.take_from(host, cpu, vm) {
                return Some((task, self.tun.slice_ns));
            }
            // All its tasks are bound to other pCPUs.
            self.tried[vm] = true;
        }
        None
    }

    /// Does `task` run on past its slice's end, because it is inside a critical
    /// section? Whoever the pCPU was kicked for keeps its mark and comes next.
    fn defers(&mut self, host: &Host<'_>, task: TaskId, best: Option<usize>) -> bool {
        let Some(best) = best.filter(|_| self.mechanisms.has(Mechanisms::SYMBOLS)) else {
            return false;
        };
        let t = &host.tasks[task as usize];
        let r = &mut self.recs[task as usize];
        let (vm, best) = (&self.vms[t.vm as usize], &self.vms[best]);
        let defers = boost::defers(t.region.number(), r.deferred, vm, best, &self.tun);
        r.deferred += u64::from(defers);
        defers
    }

    /// This pCPU was idle, and was kicked for a task that may not be the one that
    /// it took: another idle pCPU is to look at what is left.
    fn kick_idle_for_rest(&self, host: &mut Host<'_>, here: CpuId) {
        // This pCPU still counts as one that does not run.
        let leaves_some = || {
            (0..)
                .zip(&self.queues)
                .any(|(vm, q)| !self.tried[vm] && !q.is_empty())
        };
        if self.running + 1 >= self.cpus.len() || !leaves_some() {
            return;
        }
        let idle = |&cpu: &CpuId| cpu != here && self.is_idle(host, cpu);
        let first = (0..).take(self.cpus.len()).find(idle);
        if let Some(cpu) = first {
            host.kick(cpu);
        }
    }

    /// `corun_dispatch`: what runs next on `cpu`, and its slice.
    pub(super) fn dispatch(
        &mut self,
        host: &mut Host<'_>,
        cpu: CpuId,
        prev: Option<TaskId>,
    ) -> Option<(TaskId, u64)> {
        if !self.cpu(cpu).local.is_empty() {
            return Some((self.cpu(cpu).local.remove(0), self.tun.slice_ns));
        }
        self.cpu(cpu).kick_pending = false;
        self.tried.fill(false);
        if let Some(prev) = prev {
            return Some(self.dispatch_after(host, cpu, prev));
        }
        let taken = self.take_marked(host, cpu);
        let taken = taken.or_else(|| self.resume_turn(host, cpu));
        let taken = taken.or_else(|| self.take_best(host, cpu));
        if taken.is_some() {
            self.kick_idle_for_rest(host, cpu);
        }
        taken
    }

    /// A turn ends with `prev` still runnable.
    fn dispatch_after(&mut self, host: &Host<'_>, cpu: CpuId, prev: TaskId) -> (TaskId, u64) {
        let vm = host.tasks[prev as usize].vm as usize;
        let mut best = self.best_vm(host, cpu, Some(vm));
        if self.cpu(cpu).hint.is_none() && self.defers(host, prev, best) {
            self.turn_lasts(cpu, host.now_ns + self.tun.defer_ns);
            return (prev, self.tun.defer_ns);
        }
        if let Some(marked) = self.take_marked(host, cpu) {
            return marked;
        }
        let serving = self.cpu(cpu).serving == Some(prev);
        let next = if serving {
            None
        } else {
            self.chosen_by_leader(host, cpu, vm, best)
        };
        if let Some(next) = next.filter(|&next| next != vm)
            && let Some(task) = self.take_from(host, cpu, next)
        {
            return (task, self.tun.slice_ns);
        }
        if next == Some(vm) {
            best = None;
        }
        if serving || !self.keeps(host, cpu, prev, best) {
            let taken = if serving {
                self.resume_turn(host, cpu)
            } else {
                None
            };
            let taken = taken.or_else(|| {
                let sibling = next.filter(|&next| next == vm);
                sibling.and_then(|vm| Some((self.take_from(host, cpu, vm)?, self.tun.slice_ns)))
            });
            if let Some(taken) = taken.or_else(|| self.take_best(host, cpu)) {
                return taken;
            }
        }
        if serving {
            self.urgent_ends(cpu, host.now_ns);
        }
        (prev, self.kept_slice(cpu, vm, !serving, host.now_ns))
    }
}
