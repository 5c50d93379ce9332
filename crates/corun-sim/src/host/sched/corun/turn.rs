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
