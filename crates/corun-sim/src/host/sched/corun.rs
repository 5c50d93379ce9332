// SPDX-License-Identifier: GPL-2.0-only
//! corun's scheduler: the hooks of bpf/corun.bpf.c around the same C policy.
//!
//! Nothing is decided here that the BPF program decides in C; names follow it.
//! Simplified: slices end on time, where `sched_ext` ends them at the host's next
//! tick; hardware threads count as pCPUs when an idle one is looked for
//! (`scx_bpf_select_cpu_dfl` prefers idle cores); no host tasks (slot 0).

use super::placement::around;
use super::{CpuId, Host, HostScheduler, HostTask, TaskId, TaskState};
use corun_policy::boost::{self as boost_policy, Pool, PoolWindow};
use corun_policy::{Mechanisms, Party, Tunables, Vcpu, Verdict, Vm, Wakeup, YieldInput};
use gang::Window;
use state::{Cpu, Rec, VmState};
use std::collections::BTreeSet;

mod boost;
mod dispatch;
mod gang;
mod state;
mod turn;

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
    /// VMs that had nothing for the pCPU in this dispatch.
    tried: Vec<bool>,
    states: Vec<VmState>,
    recs: Vec<Rec>,
    /// How many pCPUs may serve urgent vCPUs at once.
    pool: Pool,
    /// Urgent service since the start.
    served: PoolWindow,
    window: Window,
}

impl Corun {
    /// The scheduler for `tasks`, with nothing to run yet.
    pub fn new(
        tasks: &[HostTask],
        nr_cpus: usize,
        tunables: Tunables,
        mechanisms: Mechanisms,
    ) -> Self {
        let nr_vms = tasks.iter().map(|t| t.vm as usize + 1).max().unwrap_or(0);
        let vcpu = Vcpu {
            weight: corun_policy::WEIGHT_DEFAULT,
            ..Vcpu::default()
        };
        let queue = || Vec::with_capacity(tasks.len().min(256));
        let mut states = vec![VmState::default(); nr_vms];
        let recs = (0..).zip(tasks).map(|(task, t)| {
            let vcpus = &mut states[t.vm as usize].vcpus;
            vcpus.push(task);
            let id = vcpus.len() - 1;
            Rec {
                id,
                ..Rec::default()
            }
        });
        let recs = recs.collect();
        for (state, vm) in states.iter_mut().zip(0..) {
            let pinned = tasks.iter().filter(|t| t.vm == vm).map(|t| t.pinned);
            let pcpus: Option<BTreeSet<CpuId>> = pinned.collect();
            state.nr_pcpus = pcpus.map_or(nr_cpus, |pcpus| pcpus.len());
        }
        Self {
            recs,
            tun: tunables,
            mechanisms,
            vms: vec![Vm::default(); nr_vms],
            vcpus: vec![vcpu; tasks.len()],
            enabled: vec![false; tasks.len()],
            queues: (0..nr_vms).map(|_| queue()).collect(),
            cpus: vec![Cpu::default(); nr_cpus],
            running: 0,
            vtime_now_ns: 0,
            tried: vec![false; nr_vms],
            states,
            pool: Pool::default(),
            served: PoolWindow::default(),
            window: Window {
                end_ns: tunables.window_ns,
                before: PoolWindow::default(),
            },
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

    /// How many pCPUs `vm` can use at once.
    fn lanes_of(&self, vm: usize) -> u32 {
        let state = &self.states[vm];
        let lanes = state.vcpus.len().min(state.nr_pcpus);
        u32::try_from(lanes).unwrap_or(u32::MAX)
    }

    /// Limits what the VM of `task` and `task` may have saved up while they slept, by the
    /// vtime of what runs where it may.
    fn wake_vtimes(&mut self, host: &Host<'_>, vm: usize, task: TaskId) {
        let pinned = host.tasks[task as usize].pinned;
        let now_ns = pinned.map_or(self.vtime_now_ns, |cpu| self.cpu(cpu).vtime_now_ns);
        let lanes = self.lanes_of(vm);
        let vm = &mut self.vms[vm];
        vm.vtime_ns = corun_policy::wake(vm.vtime_ns, now_ns, lanes, &self.tun);
        let vcpu = &mut self.vcpus[task as usize];
        vcpu.vtime_ns = corun_policy::wake(vcpu.vtime_ns, vm.vcpu_vtime_now_ns, 1, &self.tun);
    }

    /// `corun_enable`, and the VM's weight, which the control program sets.
    fn enable(&mut self, host: &Host<'_>, vm: usize, task: TaskId) {
        self.vms[vm].weight = host.tasks[task as usize].vm_weight;
        if !std::mem::replace(&mut self.enabled[task as usize], true) {
            self.vcpus[task as usize].vtime_ns = self.vms[vm].vcpu_vtime_now_ns;
        }
    }

    /// Nothing runs on `cpu`, and nothing is about to.
    fn is_idle(&self, host: &Host<'_>, cpu: CpuId) -> bool {
        let c = &self.cpus[cpu as usize];
        c.curr.is_none() && c.local.is_empty() && !host.cpus[cpu as usize].kicked
    }

    /// An idle pCPU for `task`: where it was, one of the same cache, any.
    fn pick_idle(&self, host: &Host<'_>, task: TaskId) -> Option<CpuId> {
        if self.running == self.cpus.len() {
            return None;
        }
        let prev = host.tasks[task as usize].cpu;
        let llc = host.cpus[prev as usize].llc;
        let idle = |&cpu: &CpuId| self.is_idle(host, cpu) && host.may_run_on(task, cpu);
        let mut elsewhere = None;
        for cpu in around(prev, self.cpus.len()).filter(idle) {
            if host.cpus[cpu as usize].llc == llc {
                return Some(cpu);
            }
            elsewhere = elsewhere.or(Some(cpu));
        }
        elsewhere
    }

    /// After how much more time of what runs on `cpu` does `task`, waking, preempt it?
    /// `None`: somebody does already, or it does not.
    fn preempts_in(
        &self,
        host: &Host<'_>,
        (vm, task): (usize, TaskId),
        within: Wakeup,
        cpu: CpuId,
    ) -> Option<u64> {
        let c = &self.cpus[cpu as usize];
        let curr = c.curr.filter(|_| !c.kick_pending)?;
        let running_vm = host.tasks[curr as usize].vm as usize;
        let ran_ns = host.now_ns - c.run_start_ns;
        let wakeup = if vm == running_vm {
            within
        } else {
            Wakeup::Stranger
        };
        corun_policy::preempts_in(
            self.party(vm, task),
            self.party(running_vm, curr),
            wakeup,
            ran_ns,
            &self.tun,
        )
    }

    /// Kicks one pCPU off its task for `task`, if one should give way, or sees to it
    /// that the first that should soon does.
    fn kick_for_wakeup(&mut self, host: &mut Host<'_>, vm: usize, task: TaskId, within: Wakeup) {
        let prev_cpu = host.tasks[task as usize].cpu;
        let mut first = None;
        let mut looks = 0;
        for cpu in around(prev_cpu, self.cpus.len()) {
            if !host.may_run_on(task, cpu) {
                continue;
            }
            if looks == self.tun.cpu_looks {
                break;
            }
            looks += 1;
            let Some(wait_ns) = self.preempts_in(host, (vm, task), within, cpu) else {
                continue;
            };
            if wait_ns == 0 {
                self.cpu(cpu).kick_pending = true;
                host.kick(cpu);
                return;
            }
            if first.is_none_or(|(least_ns, _)| wait_ns < least_ns) {
                first = Some((wait_ns, cpu));
            }
        }
        if let Some((wait_ns, cpu)) = first {
            self.cut_slice(host, cpu, wait_ns);
        }
    }

    /// `corun_enqueue`. `waking`: what the task that wakes has to do with vCPUs of its VM;
    /// `None`: it was preempted.
    fn enqueue(&mut self, host: &mut Host<'_>, task: TaskId, waking: Option<Wakeup>) {
        let vm = host.tasks[task as usize].vm as usize;
        self.note_waits(host, task, waking.is_some());
        self.recs[task as usize].woken = waking.is_some();
        let vcpus = &self.vcpus;
        let vtime_ns = vcpus[task as usize].vtime_ns;
        let queue = &mut self.queues[vm];
        let at = queue.partition_point(|&t| !before(vtime_ns, vcpus[t as usize].vtime_ns));
        queue.insert(at, task);
        if let Some(cpu) = self.pick_idle(host, task) {
            host.kick(cpu);
        } else if let Some(within) = waking {
            self.kick_for_wakeup(host, vm, task, within);
        }
    }

    /// `task` was chosen on `cpu`: those who sleep are measured against where it is.
    fn move_clocks(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId) {
        let vm = &mut self.vms[host.tasks[task as usize].vm as usize];
        self.vtime_now_ns = later(self.vtime_now_ns, vm.vtime_ns);
        let c = &mut self.cpus[cpu as usize];
        c.vtime_now_ns = later(c.vtime_now_ns, vm.vtime_ns);
        let vtime_ns = self.vcpus[task as usize].vtime_ns;
        vm.vcpu_vtime_now_ns = later(vm.vcpu_vtime_now_ns, vtime_ns);
    }

    /// `corun_running`; returns the slice that it gets.
    fn starts(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId, slice_ns: u64) -> u64 {
        self.move_clocks(host, cpu, task);
        self.recs[task as usize].deferred = 0;
        let slice_ns = self.begin_turn(host, cpu, task, slice_ns);
        self.note_runs(host, task);
        slice_ns
    }

    /// Notes on `cpu` that `task` runs there.
    fn begin_turn(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId, slice_ns: u64) -> u64 {
        let vm = host.tasks[task as usize].vm as usize;
        let now_ns = host.now_ns;
        let c = self.cpu(cpu);
        let new_vm = c.running_vm != Some(vm);
        let join_end_ns = c.join_end_ns.take();
        c.kick_pending = false;
        c.running_vm = Some(vm);
        if c.serving == Some(task) {
            self.urgent_starts(host, cpu, task);
            return slice_ns;
        }
        c.serving = None;
        let goes_on = std::mem::take(&mut self.cpu(cpu).turn_goes_on);
        if !goes_on {
            self.cpu(cpu).cut_end_ns = 0;
        }
        let slice_ns = match join_end_ns {
            Some(end_ns) => boost_policy::gang_slice(end_ns.saturating_sub(now_ns), &self.tun),
            None if !goes_on && slice_ns == self.tun.slice_ns => self.aligned_slice(vm, now_ns),
            None => slice_ns,
        };
        self.turn_starts(host, cpu, task, now_ns + slice_ns);
        if new_vm && self.mechanisms.has(Mechanisms::GANG) {
            self.pull_gang(host, vm, cpu, now_ns + slice_ns);
        }
        slice_ns
    }

    /// `corun_stopping`, after `settle`.
    fn stops(&mut self, cpu: CpuId, task: TaskId, now_ns: u64, runnable: bool) {
        if self.cpu(cpu).serving == Some(task) {
            self.urgent_ends(cpu, now_ns);
        } else if runnable {
            self.turn_stops(cpu, task, now_ns);
        }
    }

    /// Charges `task` for what it ran on `cpu` since it was charged last.
    fn settle(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId) {
        let c = self.cpu(cpu);
        let ran_ns = host.now_ns - std::mem::replace(&mut c.run_start_ns, host.now_ns);
        let vm = &mut self.vms[host.tasks[task as usize].vm as usize];
        corun_policy::charge(&mut self.vcpus[task as usize], ran_ns);
        let vtime_ns = corun_policy::vtime(ran_ns, vm.weight);
        vm.vtime_ns = vm.vtime_ns.wrapping_add(vtime_ns);
        vm.used_ns += ran_ns;
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
    fn wake(&mut self, host: &mut Host<'_>, task: TaskId, by_sibling: bool) {
        let vm = host.tasks[task as usize].vm as usize;
        self.enable(host, vm, task);
        self.wake_vtimes(host, vm, task);
        if let Some(cpu) = self.pick_idle(host, task) {
            self.recs[task as usize].woken = true;
            self.cpu(cpu).local.push(task);
            host.kick(cpu);
            return;
        }
        let within = if by_sibling {
            Wakeup::BySibling
        } else {
            Wakeup::Sibling
        };
        self.enqueue(host, task, Some(within));
    }

    fn pick(&mut self, host: &mut Host<'_>, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.end_windows(host.now_ns);
        if let Some(prev) = prev {
            self.settle(host, cpu, prev);
        }
        let Some((next, slice_ns)) = self.dispatch(host, cpu, prev) else {
            self.set_curr(cpu, None);
            host.set_timer(cpu, u64::MAX);
            return None;
        };
        self.set_curr(cpu, Some(next));
        self.cpu(cpu).run_start_ns = host.now_ns;
        let slice_ns = if Some(next) == prev {
            self.move_clocks(host, cpu, next);
            slice_ns
        } else {
            if let Some(prev) = prev {
                self.stops(cpu, prev, host.now_ns, true);
                self.enqueue(host, prev, None);
            }
            self.starts(host, cpu, next, slice_ns)
        };
        let slice_ns = self.cut(cpu, slice_ns, host.now_ns);
        self.cpu(cpu).slice_end_ns = host.now_ns + slice_ns;
        host.set_timer(cpu, host.now_ns + slice_ns.max(1));
        Some(next)
    }

    /// Nothing: as in BPF, a turn is charged when it ends.
    fn charge(&mut self, _host: &mut Host<'_>, _cpu: CpuId, _task: TaskId, _ran_ns: u64) {}

    fn block(&mut self, host: &mut Host<'_>, cpu: CpuId, task: TaskId) {
        self.stops(cpu, task, host.now_ns, false);
        self.settle(host, cpu, task);
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
        self.states[host.tasks[from as usize].vm as usize].events += 1;
        let chosen = if self.mechanisms.has(Mechanisms::STRICT) {
            self.choose_sibling(host, cpu, from)
        } else {
            None
        };
        self.hand_over(host.now_ns, cpu, chosen.unwrap_or(to));
        true
    }

    fn spins(&mut self, host: &mut Host<'_>, cpu: CpuId, from: TaskId) -> bool {
        self.on_spin(host, cpu, from)
    }

    /// `on_hypercall`.
    fn guest_yields(&mut self, host: &mut Host<'_>, cpu: CpuId, to: TaskId) -> bool {
        let waits = self.recs[to as usize].waits_since_ns != 0;
        let hands_over = waits && self.mechanisms.has(Mechanisms::YIELD);
        if hands_over {
            self.hand_over(host.now_ns, cpu, to);
        }
        hands_over
    }

    fn ipi(&mut self, host: &mut Host<'_>, from: TaskId, to: TaskId) {
        self.note_ipi(host, from, to);
    }

    fn device_interrupt(&mut self, host: &mut Host<'_>, to: TaskId) {
        if self.mechanisms.has(Mechanisms::IO) {
            self.make_urgent(host, to);
        }
    }

    /// The slice ends; `keeps` decides in the `pick` that follows.
    fn yield_any(&mut self, host: &mut Host<'_>, cpu: CpuId, _task: TaskId) {
        let c = self.cpu(cpu);
        c.slice_end_ns = host.now_ns;
        c.turn_end_ns = 0;
    }

    fn has_hooks(&self) -> bool {
        true
    }

    /// The kernel counts a task that waits in a shared queue on the run queue
    /// where it was last (`nr_running`), and KVM looks at its own alone.
    fn has_waiting(&self, host: &Host<'_>, cpu: CpuId) -> bool {
        let here = |&t: &TaskId| host.tasks[t as usize].cpu == cpu;
        !self.cpus[cpu as usize].local.is_empty() || self.queues.iter().flatten().any(here)
    }

    fn queued(&self, task: TaskId) -> u32 {
        let local = self.cpus.iter().flat_map(|c| &c.local);
        let all = self.queues.iter().flatten().chain(local);
        u32::try_from(all.filter(|&&t| t == task).count()).unwrap_or(u32::MAX)
    }
}
