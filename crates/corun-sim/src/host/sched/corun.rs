// SPDX-License-Identifier: GPL-2.0-only
//! corun's scheduler: the hooks of bpf/corun.bpf.c around the same C policy.
//!
//! Nothing is decided here that the BPF program decides in C; names follow it.
//! Simplified: slices end on time, where `sched_ext` ends them at the host's next
//! tick; hardware threads count as pCPUs when an idle one is looked for
//! (`scx_bpf_select_cpu_dfl` prefers idle cores); no host tasks (slot 0).

use super::placement::around;
use super::{CpuId, Host, HostScheduler, TaskId, TaskState};
use corun_policy::{Mechanisms, Party, Tunables, Vcpu, Verdict, Vm, YieldInput};

/// Per pCPU (`struct cpu_ctx`, and the kernel's local queue).
#[derive(Debug, Clone, Default)]
struct Cpu {
    /// Put here directly at a wake-up (`SCX_DSQ_LOCAL`).
    local: Vec<TaskId>,
    /// What `pick` returned last and did not block since.
    curr: Option<TaskId>,
    /// End of its slice.
    slice_end_ns: u64,
    kick_pending: bool,
    hint: Option<Hint>,
}

/// What a directed yield leaves behind.
#[derive(Debug, Clone, Copy)]
struct Hint {
    to: TaskId,
    slice_ns: u64,
    made_ns: u64,
}

/// corun's scheduler.
#[derive(Debug)]
pub struct Corun {
    tun: Tunables,
    mechanisms: Mechanisms,
    vms: Vec<Vm>,
    vcpus: Vec<Vcpu>,
    /// It ran before (`corun_enable` was called).
    enabled: Vec<bool>,
    /// One queue for each VM, by vtime, in order of arrival for equal ones.
    queues: Vec<Vec<TaskId>>,
    cpus: Vec<Cpu>,
    /// How many of them have a `curr`.
    running: usize,
    vtime_now_ns: u64,
    /// VMs that the current `take_best` found nothing in.
    tried: Vec<bool>,
}

impl Corun {
    /// The scheduler with nothing to run yet.
    pub fn new(
        nr_tasks: usize,
        nr_vms: usize,
        nr_cpus: usize,
        tunables: Tunables,
        mechanisms: Mechanisms,
    ) -> Self {
        let vcpu = Vcpu {
            weight: corun_policy::WEIGHT_DEFAULT,
            ..Vcpu::default()
        };
        let queue = || Vec::with_capacity(nr_tasks.min(256));
        Self {
            tun: tunables,
            mechanisms,
            vms: vec![Vm::default(); nr_vms],
            vcpus: vec![vcpu; nr_tasks],
            enabled: vec![false; nr_tasks],
            queues: (0..nr_vms).map(|_| queue()).collect(),
            cpus: vec![Cpu::default(); nr_cpus],
            running: 0,
            vtime_now_ns: 0,
            tried: vec![false; nr_vms],
        }
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu as usize]
    }

    fn set_curr(&mut self, cpu: CpuId, task: Option<TaskId>) {
        let had = std::mem::replace(&mut self.cpu(cpu).curr, task);
        self.running = self.running + usize::from(task.is_some()) - usize::from(had.is_some());
    }

    fn party(&self, vm: usize, task: TaskId) -> Party<'_> {
        Party {
            vm: &self.vms[vm],
            vcpu: &self.vcpus[task as usize],
        }
    }

    /// Limits what a VM and a vCPU may have saved up while they slept.
    fn wake_vtimes(&mut self, vm: usize, task: TaskId) {
        let vm = &mut self.vms[vm];
        vm.vtime_ns = corun_policy::wake(vm.vtime_ns, self.vtime_now_ns, &self.tun);
        let vcpu = &mut self.vcpus[task as usize];
        vcpu.vtime_ns = corun_policy::wake(vcpu.vtime_ns, vm.vcpu_vtime_now_ns, &self.tun);
    }

    /// `corun_enable`, and the VM's weight, which the control program sets.
    fn enable(&mut self, host: &Host<'_>, vm: usize, task: TaskId) {
        self.vms[vm].weight = host.tasks[task as usize].vm_weight;
        if !std::mem::replace(&mut self.enabled[task as usize], true) {
            self.vcpus[task as usize].vtime_ns = self.vms[vm].vcpu_vtime_now_ns;
        }
    }

    /// An idle pCPU for `task`: where it was, one of the same cache, any.
    fn pick_idle(&self, host: &Host<'_>, task: TaskId) -> Option<CpuId> {
        if self.running == self.cpus.len() {
            return None;
        }
        let prev = host.tasks[task as usize].cpu;
        let llc = host.cpus[prev as usize].llc;
        let idle = |&cpu: &CpuId| {
            let c = &self.cpus[cpu as usize];
            let free = c.curr.is_none() && c.local.is_empty() && !host.cpus[cpu as usize].kicked;
            free && host.may_run_on(task, cpu)
        };
        let mut elsewhere = None;
        for cpu in around(prev, self.cpus.len()).filter(idle) {
            if host.cpus[cpu as usize].llc == llc {
                return Some(cpu);
            }
            elsewhere = elsewhere.or(Some(cpu));
        }
        elsewhere
    }

    /// Would `task`, waking, preempt what runs on `cpu`?
    fn preempts(&self, host: &Host<'_>, vm: usize, task: TaskId, cpu: CpuId) -> bool {
        let c = &self.cpus[cpu as usize];
        let Some(curr) = c.curr.filter(|_| !c.kick_pending) else {
            return false;
        };
        let running_vm = host.tasks[curr as usize].vm as usize;
        let ran_ns = host
            .now_ns
            .saturating_sub(host.cpus[cpu as usize].charged_ns);
        corun_policy::preempts(
            self.party(vm, task),
            self.party(running_vm, curr),
            vm == running_vm,
            ran_ns,
            &self.tun,
        )
    }

    /// Kicks one pCPU off its task for `task`, if one should give way.
    fn kick_for_wakeup(&mut self, host: &mut Host<'_>, vm: usize, task: TaskId) {
        let prev_cpu = host.tasks[task as usize].cpu;
        let all = 0..CpuId::try_from(self.cpus.len()).unwrap_or(0);
        let others = all.filter(|&c| c != prev_cpu && host.may_run_on(task, c));
        let mut victims = std::iter::once(prev_cpu).chain(others);
        if let Some(cpu) = victims.find(|&c| self.preempts(host, vm, task, c)) {
            self.cpu(cpu).kick_pending = true;
            host.kick(cpu);
        }
    }

    /// `corun_enqueue`.
    fn enqueue(&mut self, host: &mut Host<'_>, task: TaskId, waking: bool) {
        let vm = host.tasks[task as usize].vm as usize;
        let vcpus = &self.vcpus;
        let vtime_ns = vcpus[task as usize].vtime_ns;
        let queue = &mut self.queues[vm];
        let at = queue.partition_point(|&t| !before(vtime_ns, vcpus[t as usize].vtime_ns));
        queue.insert(at, task);
        if let Some(cpu) = self.pick_idle(host, task) {
            host.kick(cpu);
        } else if waking {
            self.kick_for_wakeup(host, vm, task);
        }
    }

    /// The hint's vCPU, if it still waits and may run here.
    fn follow_hint(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<(TaskId, u64)> {
        let hint = self.cpu(cpu).hint.take()?;
        if !corun_policy::hint_fresh(hint.made_ns, host.now_ns, &self.tun)
            || !host.may_run_on(hint.to, cpu)
        {
            return None;
        }
        let queue = &mut self.queues[host.tasks[hint.to as usize].vm as usize];
        let at = queue.iter().position(|&t| t == hint.to)?;
        Some((queue.remove(at), hint.slice_ns))
    }

    /// The VM with the best claim among those with a task queued, leaving out
    /// `except` and those that were tried.
    fn best_vm(&self, except: Option<usize>) -> Option<usize> {
        let usable =
            |&vm: &usize| Some(vm) != except && !self.tried[vm] && !self.queues[vm].is_empty();
        let better = |best: usize, vm: usize| {
            if corun_policy::first(&self.vms[vm], &self.vms[best]) {
                vm
            } else {
                best
            }
        };
        (0..self.vms.len()).filter(usable).reduce(better)
    }

    /// Does `prev`, whose slice is over, go on?
    fn keeps(&self, host: &Host<'_>, prev: TaskId) -> bool {
        let vm = host.tasks[prev as usize].vm as usize;
        let best = self.best_vm(Some(vm)).map(|v| &self.vms[v]);
        let head = self.queues[vm].first();
        let head_vtime_ns = head.map(|&t| self.vcpus[t as usize].vtime_ns);
        corun_policy::keeps(self.party(vm, prev), best, head_vtime_ns)
    }

    /// Takes the first task that may run here from the VM with the best claim.
    fn take_best(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<TaskId> {
        self.tried.fill(false);
        let mut taken = None;
        while let Some(vm) = self.best_vm(None) {
            let queue = &mut self.queues[vm];
            if let Some(at) = queue.iter().position(|&t| host.may_run_on(t, cpu)) {
                taken = Some(queue.remove(at));
                break;
            }
            // All its tasks are bound to other pCPUs.
            self.tried[vm] = true;
        }
        self.tried.fill(false);
        taken
    }

    /// `corun_dispatch`: what runs next on `cpu`, and its slice.
    fn dispatch(
        &mut self,
        host: &Host<'_>,
        cpu: CpuId,
        prev: Option<TaskId>,
    ) -> Option<(TaskId, u64)> {
        let slice_ns = self.tun.slice_ns;
        if !self.cpu(cpu).local.is_empty() {
            return Some((self.cpu(cpu).local.remove(0), slice_ns));
        }
        if let Some(hinted) = self.follow_hint(host, cpu) {
            return Some(hinted);
        }
        if let Some(prev) = prev
            && self.keeps(host, prev)
        {
            return Some((prev, slice_ns));
        }
        let next = self.take_best(host, cpu).or(prev);
        next.map(|task| (task, slice_ns))
    }

    /// `corun_running`.
    fn running(&mut self, host: &Host<'_>, task: TaskId) {
        let vm = &mut self.vms[host.tasks[task as usize].vm as usize];
        self.vtime_now_ns = later(self.vtime_now_ns, vm.vtime_ns);
        let vtime_ns = self.vcpus[task as usize].vtime_ns;
        vm.vcpu_vtime_now_ns = later(vm.vcpu_vtime_now_ns, vtime_ns);
    }
}

/// `corun_before`: vtimes wrap.
fn before(a: u64, b: u64) -> bool {
    corun_policy::before(a, b)
}

/// `corun_later`.
fn later(a: u64, b: u64) -> u64 {
    if before(a, b) { b } else { a }
}

impl HostScheduler for Corun {
    /// `corun_select_cpu`, then `corun_enqueue` if no pCPU was idle.
    fn wake(&mut self, host: &mut Host<'_>, task: TaskId, _waker: Option<CpuId>) {
        let vm = host.tasks[task as usize].vm as usize;
        self.enable(host, vm, task);
        self.wake_vtimes(vm, task);
        if let Some(cpu) = self.pick_idle(host, task) {
            self.cpu(cpu).local.push(task);
            host.kick(cpu);
            return;
        }
        self.enqueue(host, task, true);
    }

    fn pick(&mut self, host: &mut Host<'_>, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let c = self.cpu(cpu);
        c.kick_pending = false;
        let Some((next, slice_ns)) = self.dispatch(host, cpu, prev) else {
            self.set_curr(cpu, None);
            host.set_timer(cpu, u64::MAX);
            return None;
        };
        self.set_curr(cpu, Some(next));
        let c = self.cpu(cpu);
        c.slice_end_ns = host.now_ns + slice_ns;
        host.set_timer(cpu, host.now_ns + slice_ns.max(1));
        if Some(next) != prev {
            if let Some(prev) = prev {
                self.enqueue(host, prev, false);
            }
            self.running(host, next);
        }
        Some(next)
    }

    /// `settle`.
    fn charge(&mut self, host: &mut Host<'_>, _cpu: CpuId, task: TaskId, ran_ns: u64) {
        let vm = &mut self.vms[host.tasks[task as usize].vm as usize];
        corun_policy::charge(&mut self.vcpus[task as usize], ran_ns);
        let vtime_ns = corun_policy::vtime(ran_ns, vm.weight);
        vm.vtime_ns = vm.vtime_ns.wrapping_add(vtime_ns);
        vm.used_ns += ran_ns;
    }

    fn block(&mut self, _host: &mut Host<'_>, cpu: CpuId, _task: TaskId) {
        self.set_curr(cpu, None);
    }

    fn timer(&mut self, host: &mut Host<'_>, cpu: CpuId, _task: TaskId) -> bool {
        let end_ns = self.cpu(cpu).slice_end_ns;
        if host.now_ns >= end_ns {
            return true;
        }
        host.set_timer(cpu, end_ns);
        false
    }

    /// `corun_yield`. The kernel does not ask for tasks that do not wait. The
    /// policy never lets fairness refuse, so `force` changes nothing.
    fn yield_to(
        &mut self,
        host: &mut Host<'_>,
        cpu: CpuId,
        from: TaskId,
        to: TaskId,
        _force: bool,
    ) -> bool {
        let (f, t) = (&host.tasks[from as usize], &host.tasks[to as usize]);
        if t.state != TaskState::Queued {
            return false;
        }
        let verdict = corun_policy::decide(YieldInput {
            directed: true,
            same_vm: f.vm == t.vm,
            allowed_here: host.may_run_on(to, cpu),
        });
        if verdict != Verdict::Honour || !self.mechanisms.has(Mechanisms::YIELD) {
            return false;
        }
        let left_ns = self.cpu(cpu).slice_end_ns.saturating_sub(host.now_ns);
        self.cpu(cpu).hint = Some(Hint {
            to,
            slice_ns: corun_policy::yield_slice(left_ns, &self.tun),
            made_ns: host.now_ns,
        });
        true
    }

    /// The slice ends; `keeps` decides in the `pick` that follows.
    fn yield_any(&mut self, host: &mut Host<'_>, cpu: CpuId, _task: TaskId) {
        self.cpu(cpu).slice_end_ns = host.now_ns;
    }

    fn has_waiting(&self, host: &Host<'_>, cpu: CpuId) -> bool {
        let here = |&t: &TaskId| host.may_run_on(t, cpu);
        !self.cpus[cpu as usize].local.is_empty() || self.queues.iter().flatten().any(here)
    }

    fn queued(&self, task: TaskId) -> u32 {
        let local = self.cpus.iter().flat_map(|c| &c.local);
        let all = self.queues.iter().flatten().chain(local);
        u32::try_from(all.filter(|&&t| t == task).count()).unwrap_or(u32::MAX)
    }
}
