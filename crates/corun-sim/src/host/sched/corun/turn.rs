// SPDX-License-Identifier: GPL-2.0-only
//! Turns: what a vCPU was given, however often others come in between
//! (bpf/turn.bpf.h).

use super::state::Turn;
use super::{Corun, CpuId, Host, TaskId};
use corun_policy::{Mechanisms, boost};

impl Corun {
    /// Can all vCPUs of `vm` run at the same time? One with more of them than there are
    /// pCPUs for it gains nothing by long turns that begin and end together.
    fn fits_host(&self, vm: usize) -> bool {
        self.states[vm].vcpus.len() <= self.states[vm].nr_pcpus
    }

    /// A vCPU's turn on `cpu` begins, and with it any other's has ended.
    pub(super) fn turn_begins(&mut self, cpu: CpuId, end_ns: u64) {
        let c = self.cpu(cpu);
        c.turn_end_ns = end_ns;
        c.turn = None;
    }

    /// `task` comes to run on `cpu`, not out of turn, until `end_ns`.
    pub(super) fn turn_starts(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId, end_ns: u64) {
        let vm_of = |task: TaskId| host.tasks[task as usize].vm;
        let woken = self.recs[task as usize].woken;
        let c = self.cpu(cpu);
        c.turn_end_ns = end_ns;
        // Who woke may sleep soon, and whom it preempted then goes on; but not a
        // sibling, or their VM would have the pCPU for both turns.
        c.turn = c
            .turn
            .filter(|turn| woken && vm_of(turn.task) != vm_of(task));
        if let Some(turn) = &mut c.turn {
            turn.lost = true;
        }
    }

    /// The turn on `cpu` does not end before `end_ns`.
    pub(super) fn turn_lasts(&mut self, cpu: CpuId, end_ns: u64) {
        let c = self.cpu(cpu);
        c.turn_end_ns = c.turn_end_ns.max(end_ns);
    }

    /// Slice of a vCPU of `vm` that keeps `cpu`: what is left of its turn, if it was
    /// stopped within `its_turn`, or a new one.
    pub(super) fn kept_slice(&mut self, cpu: CpuId, vm: usize, its_turn: bool, now_ns: u64) -> u64 {
        let left_ns = self.cpu(cpu).turn_end_ns.saturating_sub(now_ns);
        if its_turn && corun_policy::resumes(&self.vms[vm], None, left_ns, &self.tun) {
            return left_ns;
        }
        let slice_ns = self.aligned_slice(vm, now_ns);
        self.turn_begins(cpu, now_ns + slice_ns);
        self.cpu(cpu).cut_end_ns = 0;
        slice_ns
    }

    /// `task` is stopped although it could run on.
    pub(super) fn turn_stops(&mut self, cpu: CpuId, task: TaskId, now_ns: u64) {
        let c = self.cpu(cpu);
        let turn = Turn {
            task,
            left_ns: c.turn_end_ns.saturating_sub(now_ns),
            stopped_ns: now_ns,
            lost: false,
        };
        c.turn = (turn.left_ns > 0).then_some(turn);
    }

    /// Does `turn`, which was interrupted on `cpu`, go on, now that it is free? VMs with
    /// a better claim go before it if such a one has interrupted it or was to.
    fn turn_resumes(&self, host: &Host<'_>, cpu: CpuId, turn: &Turn) -> bool {
        // It has waited ever since, or it had another turn elsewhere.
        let waits_since_ns = self.recs[turn.task as usize].waits_since_ns;
        let vm = host.tasks[turn.task as usize].vm as usize;
        let waited = waits_since_ns.saturating_sub(turn.stopped_ns) <= self.tun.urgent_slice_ns;
        if !waited || !self.fits_host(vm) {
            return false;
        }
        let cut_end_ns = self.cpus[cpu as usize].cut_end_ns;
        let cut_is_due = cut_end_ns != 0 && cut_end_ns <= host.now_ns;
        let other = self
            .best_vm(host, cpu, None)
            .filter(|_| turn.lost || cut_is_due);
        let (vm, other) = (&self.vms[vm], other.map(|vm| &self.vms[vm]));
        corun_policy::resumes(vm, other, turn.left_ns, &self.tun)
    }

    /// Goes on with the turn that was interrupted on `cpu`.
    pub(super) fn resume_turn(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<(TaskId, u64)> {
        let turn = self.cpu(cpu).turn?;
        if !self.turn_resumes(host, cpu, &turn) {
            return None;
        }
        self.cpu(cpu).turn = None;
        if !self.take(host, cpu, turn.task) {
            return None;
        }
        self.cpu(cpu).turn_goes_on = true;
        Some((turn.task, turn.left_ns))
    }

    /// What runs on `cpu` for `slice_ns` from `now_ns` on stops before for who woke in
    /// vain; not who runs there out of turn.
    pub(super) fn cut(&mut self, cpu: CpuId, slice_ns: u64, now_ns: u64) -> u64 {
        let c = self.cpu(cpu);
        if c.serving.is_some() {
            return slice_ns;
        }
        let left_ns = c.cut_end_ns.saturating_sub(now_ns);
        if left_ns == 0 {
            c.cut_end_ns = 0;
            return slice_ns;
        }
        slice_ns.min(left_ns)
    }

    /// The turn on `cpu` stops after `wait_ns` to let who has the best claim go on: it
    /// had none that was good enough when it woke. Who runs there out of turn is not
    /// stopped; the turn is, when it goes on.
    pub(super) fn cut_slice(&mut self, host: &mut Host<'_>, cpu: CpuId, wait_ns: u64) {
        let end_ns = host.now_ns + wait_ns;
        let slice_ns = self.tun.slice_ns;
        let c = self.cpu(cpu);
        let cut_before = c.cut_end_ns != 0 && c.cut_end_ns <= end_ns;
        if end_ns - c.run_start_ns >= slice_ns || cut_before {
            return;
        }
        c.cut_end_ns = end_ns;
        if c.serving.is_none() && c.urgent.is_none() && end_ns < c.slice_end_ns {
            c.slice_end_ns = end_ns;
            host.set_timer(cpu, end_ns);
        }
    }

    /// Which VM comes next on `cpu`, where a turn of `vm` has run its time: the one that
    /// a sibling's pCPU has just chosen, or `None`: choose. `best` is the other VM that
    /// waits with the best claim; who chooses may be followed.
    pub(super) fn chosen_by_leader(
        &mut self,
        host: &Host<'_>,
        cpu: CpuId,
        vm: usize,
        best: Option<usize>,
    ) -> Option<usize> {
        let end_ns = self.cpu(cpu).turn_end_ns;
        let aligned = self.mechanisms.has(Mechanisms::GANG) && self.fits_host(vm);
        if !aligned || end_ns == 0 || end_ns > host.now_ns {
            return None;
        }
        let s = &self.states[vm];
        if let Some((chosen_ns, next)) = s.chosen
            && boost::gang_follows(s.coupled, host.now_ns - chosen_ns, &self.tun)
        {
            return Some(next);
        }
        let first = |&best: &usize| corun_policy::first(&self.vms[best], &self.vms[vm]);
        let next = best.filter(first).unwrap_or(vm);
        self.states[vm].chosen = Some((host.now_ns, next));
        None
    }

    /// Slice of a vCPU of `vm` whose turn begins: it ends with its siblings', or is short
    /// where they cannot run together.
    pub(super) fn aligned_slice(&mut self, vm: usize, now_ns: u64) -> u64 {
        if !self.mechanisms.has(Mechanisms::GANG) {
            return self.tun.slice_ns;
        }
        if !self.fits_host(vm) {
            let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let s = &self.states[vm];
            let (vcpus, pcpus) = (count(s.vcpus.len()), count(s.nr_pcpus));
            return boost::gang_crowded(s.coupled, vcpus, pcpus, &self.tun);
        }
        let s = &mut self.states[vm];
        let left_ns = s.turn_end_ns.saturating_sub(now_ns);
        let slice_ns = boost::gang_align(s.coupled, left_ns, &self.tun);
        s.turn_end_ns = now_ns + slice_ns;
        slice_ns
    }
}
