// SPDX-License-Identifier: GPL-2.0-only
//! Turns: what a vCPU was given, however often others come in between
//! (bpf/turn.bpf.h).

use super::{Corun, CpuId, Host, TaskId};
use corun_policy::{Mechanisms, boost};

impl Corun {
    /// A vCPU's turn on `cpu` begins, and with it any other's has ended.
    pub(super) fn turn_begins(&mut self, cpu: CpuId, end_ns: u64) {
        let c = self.cpu(cpu);
        c.turn_end_ns = end_ns;
        c.turn = None;
    }

    /// `task` comes to run on `cpu`, not out of turn, until `end_ns`.
    pub(super) fn turn_starts(&mut self, host: &Host<'_>, cpu: CpuId, task: TaskId, end_ns: u64) {
        let vm_of = |task: TaskId| host.tasks[task as usize].vm;
        let interrupted = self.cpu(cpu).turn;
        let sibling = interrupted.is_some_and(|(turn, _)| vm_of(turn) == vm_of(task));
        // Who woke may sleep soon, and whom it preempted then goes on; but not a
        // sibling, or their VM would have the pCPU for both turns.
        if self.recs[task as usize].woken && !sibling {
            self.cpu(cpu).turn_end_ns = end_ns;
        } else {
            self.turn_begins(cpu, end_ns);
        }
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
        slice_ns
    }

    /// `task` is stopped although it could run on.
    pub(super) fn turn_stops(&mut self, cpu: CpuId, task: TaskId, now_ns: u64) {
        let c = self.cpu(cpu);
        let left_ns = c.turn_end_ns.saturating_sub(now_ns);
        c.turn = (left_ns > 0).then_some((task, left_ns));
    }

    /// Goes on with the turn that was interrupted on `cpu`.
    pub(super) fn resume_turn(&mut self, host: &Host<'_>, cpu: CpuId) -> Option<(TaskId, u64)> {
        let (task, left_ns) = self.cpu(cpu).turn?;
        let vm = &self.vms[host.tasks[task as usize].vm as usize];
        if !corun_policy::resumes(vm, None, left_ns, &self.tun) {
            return None;
        }
        // Once: who was taken by another pCPU has its turn there.
        self.cpu(cpu).turn = None;
        self.take(host, cpu, task).then_some((task, left_ns))
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
        if !self.mechanisms.has(Mechanisms::GANG) || end_ns == 0 || end_ns > host.now_ns {
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

    /// Slice of a vCPU of `vm` whose turn begins: it ends with its siblings'.
    pub(super) fn aligned_slice(&mut self, vm: usize, now_ns: u64) -> u64 {
        if !self.mechanisms.has(Mechanisms::GANG) {
            return self.tun.slice_ns;
        }
        let s = &mut self.states[vm];
        let left_ns = s.turn_end_ns.saturating_sub(now_ns);
        let slice_ns = boost::gang_align(s.coupled, left_ns, &self.tun);
        s.turn_end_ns = now_ns + slice_ns;
        slice_ns
    }
}
