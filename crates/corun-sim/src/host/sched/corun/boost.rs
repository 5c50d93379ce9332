// SPDX-License-Identifier: GPL-2.0-only
//! Who waits, and who runs out of turn: bpf/boost.bpf.h, and of
//! bpf/events.bpf.h what happens once KVM has told.

use super::state::Cpu;
use super::state::Hint;
use super::{Corun, CpuId, Host, TaskId, TaskState};
use crate::host::sched::placement::around;
use corun_policy::boost::{self, Sibling, UrgentVerdict, Victim};
use corun_policy::{Mechanisms, Region};

/// A spinner's choice: whom it yields to, and who else holds others up.
#[derive(Default)]
struct Choice {
    best_score: u64,
    best: Option<TaskId>,
    critical: Option<TaskId>,
}

impl Corun {
    /// `task` enters its VM's queue. Of one that was halted we know that it has
    /// an interrupt to handle.
    pub(super) fn note_waits(&mut self, host: &Host<'_>, task: TaskId, waking: bool) {
        let t = &host.tasks[task as usize];
        let symbols = self.mechanisms.has(Mechanisms::SYMBOLS);
        let r = &mut self.recs[task as usize];
        r.in_kernel = waking || t.in_kernel;
        r.region = match t.region {
            region if symbols && !waking => region.number(),
            _ => Region::Unknown.number(),
        };
        // 0 means that it does not wait.
        r.waits_since_ns = host.now_ns.max(1);
    }

    /// `task` got a pCPU: it takes its interrupts now.
    pub(super) fn note_runs(&mut self, host: &Host<'_>, task: TaskId) {
        let r = &mut self.recs[task as usize];
        r.waits_since_ns = 0;
        r.urgent_ns = 0;
        r.ipi_from = super::state::VcpuSet::default();
        let first = &mut self.states[host.tasks[task as usize].vm as usize].first;
        // Whoever runs need not go first any more.
        first.take_if(|f| *f == task);
    }

    /// pCPU `cpu` as a boost of `vm` sees it.
    fn see_victim(&self, cpu: CpuId, vm: usize, now_ns: u64) -> Victim {
        let c = &self.cpus[cpu as usize];
        let idle = Victim {
            taken: true,
            ..Victim::default()
        };
        let (Some(_), Some(other)) = (c.curr, c.running_vm) else {
            return idle;
        };
        let ran_ns = now_ns - c.run_start_ns;
        let other_vm = &self.vms[other];
        Victim {
            vm_vtime_ns: other_vm
                .vtime_ns
                .wrapping_add(corun_policy::vtime(ran_ns, other_vm.weight)),
            urgent_end_ns: c.urgent_end_ns,
            sibling_or_host: other == vm,
            taken: c.kick_pending || c.urgent.is_some() || c.serving.is_some(),
        }
    }

    /// A pCPU that gives way to `task`, from the one where it was on; `None` when
    /// there is none or the pool is full.
    fn find_victim(&self, host: &Host<'_>, task: TaskId) -> Option<CpuId> {
        let t = &host.tasks[task as usize];
        let vm = t.vm as usize;
        let serves = |c: &&Cpu| c.urgent.is_some() || c.serving.is_some();
        if self.cpus.iter().filter(serves).count() >= self.pool.size as usize {
            return None;
        }
        let looks = usize::try_from(self.tun.cpu_looks).unwrap_or(usize::MAX);
        let allowed = around(t.cpu, self.cpus.len()).filter(|&cpu| host.may_run_on(task, cpu));
        let gives_way = |&cpu: &CpuId| {
            let victim = self.see_victim(cpu, vm, host.now_ns);
            boost::takes(&self.vms[vm], &victim, host.now_ns, &self.tun)
        };
        allowed.take(looks).find(gives_way)
    }

    /// Others wait for `task`: it runs soon, if policy agrees.
    pub(super) fn make_urgent(&mut self, host: &mut Host<'_>, task: TaskId) {
        let r = &mut self.recs[task as usize];
        let verdict = boost::urgent(
            r.waits_since_ns,
            r.urgent_ns,
            r.boosted_ns,
            host.now_ns,
            &self.tun,
        );
        if verdict != UrgentVerdict::Yes {
            return;
        }
        r.urgent_ns = host.now_ns.max(1);
        self.states[host.tasks[task as usize].vm as usize].first = Some(task);
        if !self.mechanisms.has(Mechanisms::MICRO) {
            return;
        }
        self.served.events += 1;
        if let Some(cpu) = self.find_victim(host, task) {
            self.cpu(cpu).urgent = Some(task);
            host.kick(cpu);
        }
    }

    fn weigh(&self, host: &Host<'_>, choice: &mut Choice, cpu: CpuId, from: TaskId, task: TaskId) {
        let r = &self.recs[task as usize];
        let sibling = Sibling {
            waits_since_ns: r.waits_since_ns,
            region: r.region,
            in_kernel: r.in_kernel,
            ipi_from_spinner: r.ipi_from.has(self.recs[from as usize].id),
        };
        let score = boost::score(&sibling, host.now_ns);
        let region = Region::from_number(r.region);
        if score > 0 && region.is_some_and(Region::is_critical) {
            choice.critical = Some(task);
        }
        if score > choice.best_score && host.may_run_on(task, cpu) {
            choice.best_score = score;
            choice.best = Some(task);
        }
    }

    /// `from` spins on `cpu`: who should run instead.
    pub(super) fn choose_sibling(
        &mut self,
        host: &mut Host<'_>,
        cpu: CpuId,
        from: TaskId,
    ) -> Option<TaskId> {
        let mut choice = Choice::default();
        let state = &self.states[host.tasks[from as usize].vm as usize];
        for &task in &state.vcpus {
            if task != from {
                self.weigh(host, &mut choice, cpu, from, task);
            }
        }
        // The best one gets the spinner's pCPU; another gets a short slice.
        if self.mechanisms.has(Mechanisms::MICRO)
            && let Some(critical) = choice.critical
            && choice.critical != choice.best
        {
            self.make_urgent(host, critical);
        }
        choice.best
    }

    /// Gives `cpu`, which the caller has, to `to` at its next dispatch.
    pub(super) fn hand_over(&mut self, now_ns: u64, cpu: CpuId, to: TaskId) {
        let left_ns = self.cpu(cpu).slice_end_ns.saturating_sub(now_ns);
        self.cpu(cpu).turn_end_ns = 0;
        self.cpu(cpu).hint = Some(Hint {
            to,
            slice_ns: corun_policy::yield_slice(left_ns, &self.tun),
            made_ns: now_ns,
        });
    }

    /// `on_spin`.
    pub(super) fn on_spin(&mut self, host: &mut Host<'_>, cpu: CpuId, from: TaskId) -> bool {
        let strict = self.mechanisms.has(Mechanisms::STRICT);
        if !strict && !self.mechanisms.has(Mechanisms::GANG) {
            return false;
        }
        self.states[host.tasks[from as usize].vm as usize].events += 1;
        let chosen = self.choose_sibling(host, cpu, from);
        match chosen {
            Some(to) if strict => {
                self.hand_over(host.now_ns, cpu, to);
                true
            }
            _ => false,
        }
    }

    /// `note_interrupt` of an IPI.
    pub(super) fn note_ipi(&mut self, host: &mut Host<'_>, from: TaskId, to: TaskId) {
        let any = [
            Mechanisms::STRICT,
            Mechanisms::IPI,
            Mechanisms::IO,
            Mechanisms::GANG,
        ];
        let t = &host.tasks[to as usize];
        if !any.iter().any(|&m| self.mechanisms.has(m))
            || t.vm != host.tasks[from as usize].vm
            || t.state == TaskState::Running
        {
            return;
        }
        let from_id = self.recs[from as usize].id;
        let r = &mut self.recs[to as usize];
        r.ipi_from.insert(from_id);
        if r.waits_since_ns == 0 {
            return;
        }
        self.states[t.vm as usize].events += 1;
        if self.mechanisms.has(Mechanisms::IPI) {
            self.make_urgent(host, to);
        }
    }

    /// An urgent slice of `task` begins on `cpu`: its VM pays for the switches,
    /// too.
    pub(super) fn urgent_starts(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId) {
        let vm = &mut self.vms[host.tasks[task as usize].vm as usize];
        let cost_ns = corun_policy::vtime(self.tun.boost_cost_ns, vm.weight);
        vm.vtime_ns = vm.vtime_ns.wrapping_add(cost_ns);
        let now_ns = host.now_ns;
        self.cpu(cpu).serve_start_ns = now_ns;
        let r = &mut self.recs[task as usize];
        r.boosted_ns = now_ns.max(1);
        self.served.served += 1;
        if r.urgent_ns != 0 {
            self.served.waited_ns += now_ns - r.urgent_ns;
        }
    }

    /// The urgent slice on `cpu` ends.
    pub(super) fn urgent_ends(&mut self, cpu: CpuId, now_ns: u64) {
        let c = self.cpu(cpu);
        c.serving = None;
        c.urgent_end_ns = now_ns.max(1);
        let ran_ns = now_ns - c.serve_start_ns;
        self.served.busy_ns += ran_ns;
    }
}
