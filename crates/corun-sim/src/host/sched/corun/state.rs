// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler keeps of pCPUs, VMs and vCPUs (bpf/state.bpf.h).

use crate::host::sched::TaskId;

/// Per pCPU (`struct cpu_ctx`, and the kernel's local queue).
#[derive(Debug, Clone, Default)]
pub(super) struct Cpu {
    /// Put here directly at a wake-up (`SCX_DSQ_LOCAL`).
    pub(super) local: Vec<TaskId>,
    /// What `pick` returned last and did not block since.
    pub(super) curr: Option<TaskId>,
    /// Its VM; stays when the pCPU idles.
    pub(super) running_vm: Option<usize>,
    /// When `curr` began to run, or was charged last.
    pub(super) run_start_ns: u64,
    /// End of its slice.
    pub(super) slice_end_ns: u64,
    /// A preempting kick is on its way; one at a time.
    pub(super) kick_pending: bool,
    pub(super) hint: Option<Hint>,
    /// Urgent vCPU that this pCPU was kicked for.
    pub(super) urgent: Option<TaskId>,
    /// Urgent vCPU that has its short slice here.
    pub(super) serving: Option<TaskId>,
    /// When that began, and when the last one ended; 0: none.
    pub(super) serve_start_ns: u64,
    pub(super) urgent_end_ns: u64,
    /// VM whose gang this pCPU was kicked for, and its leader's end.
    pub(super) gang: Option<(usize, u64)>,
    /// Leader's end, for who is about to run here.
    pub(super) join_end_ns: Option<u64>,
    /// End of the vCPU's turn here; 0: it gave way itself.
    pub(super) turn_end_ns: u64,
    /// The turn that was interrupted here.
    pub(super) turn: Option<Turn>,
    /// Such a turn is about to go on.
    pub(super) turn_goes_on: bool,
    /// When a VM that woke in vain will have a better claim than the turn's; 0: none.
    pub(super) cut_end_ns: u64,
    /// vtime of the VM that was picked here last, or later.
    pub(super) vtime_now_ns: u64,
}

/// A turn that was interrupted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) task: TaskId,
    pub(super) left_ns: u64,
    pub(super) stopped_ns: u64,
    /// By a VM with a better claim.
    pub(super) lost: bool,
}

/// What a directed yield leaves behind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hint {
    pub(super) to: TaskId,
    pub(super) slice_ns: u64,
    pub(super) made_ns: u64,
}

/// What boosts know of a VM (`struct vm_state`).
#[derive(Debug, Clone, Default)]
pub(super) struct VmState {
    /// Its vCPUs' tasks, by number.
    pub(super) vcpus: Vec<TaskId>,
    /// How many pCPUs these may run on, all told.
    pub(super) nr_pcpus: usize,
    /// Times that a vCPU waited for a preempted sibling, now and a window ago.
    pub(super) events: u64,
    pub(super) events_before: u64,
    pub(super) used_before_ns: u64,
    /// Its vCPUs are started together.
    pub(super) coupled: bool,
    /// End of the turn that began last.
    pub(super) turn_end_ns: u64,
    /// When a turn ended and who came next was chosen last, and that VM.
    pub(super) chosen: Option<(u64, usize)>,
    /// Runs before its siblings.
    pub(super) first: Option<TaskId>,
}

/// What is known of a vCPU (`struct vcpu_rec`).
#[derive(Debug, Clone, Default)]
pub(super) struct Rec {
    /// Its number in its VM.
    pub(super) id: usize,
    /// It waits for a pCPU since then; 0: it runs, or it sleeps.
    pub(super) waits_since_ns: u64,
    /// It is urgent since then; 0: it is not.
    pub(super) urgent_ns: u64,
    /// Its last urgent slice began then; 0: there was none.
    pub(super) boosted_ns: u64,
    /// Siblings whose IPIs it has not taken.
    pub(super) ipi_from: VcpuSet,
    /// Where it was stopped: `enum corun_region`, and whether in the kernel.
    pub(super) region: u32,
    pub(super) in_kernel: bool,
    /// It slept before it waited for a pCPU.
    pub(super) woken: bool,
    /// Times in a row that its slice's end was put off.
    pub(super) deferred: u64,
}

/// `struct corun_vcpuset`: vCPUs with larger ids than it holds are in no set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct VcpuSet([u64; 4]);

impl VcpuSet {
    pub(super) fn insert(&mut self, id: usize) {
        if let Some(word) = self.0.get_mut(id / 64) {
            *word |= 1 << (id % 64);
        }
    }

    pub(super) fn has(&self, id: usize) -> bool {
        self.0.get(id / 64).is_some_and(|w| w >> (id % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::VcpuSet;

    #[test]
    fn a_set_holds_what_was_put_in_and_no_large_ids() {
        let mut set = VcpuSet::default();
        for id in [0, 63, 64, 255, 256] {
            set.insert(id);
        }
        let held: Vec<_> = (0..300).filter(|&id| set.has(id)).collect();
        assert_eq!(held, [0, 63, 64, 255]);
    }
}
