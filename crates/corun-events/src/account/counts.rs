// SPDX-License-Identifier: GPL-2.0-only
//! What happened to a vCPU how often, and how long it took.

use super::Histogram;
use super::additive::additive;
use serde::{Deserialize, Serialize};

/// How often something happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// KVM took it for spinning (`kvm_vcpu_on_spin()`): pause-loop exits, Hyper-V's
    /// long spins.
    pub spins: u64,
    /// Directed yields that KVM asked for from it (`yield_to()`).
    pub yields_asked: u64,
    /// ... that the scheduler took.
    pub yields_honoured: u64,
    /// IPIs that it sent to siblings. One that the target has pending already counts.
    pub ipis_sent: u64,
    /// IPIs of siblings that it took.
    pub ipis_received: u64,
    /// Interrupts that it took and no vCPU sent.
    pub device_interrupts: u64,
    /// Times that it lost its pCPU though runnable, its guest in user mode.
    pub preempted_user: u64,
    /// ... its guest in kernel mode.
    pub preempted_kernel: u64,
    /// ... of those in kernel mode: in a critical section, as symbols of the guest's kernel
    /// tell; `None` without symbols.
    pub preempted_critical: Option<u64>,
    /// ... not in KVM, so that nothing is known of the guest: in its VMM.
    pub preempted_outside: u64,
    /// Times that its guest halted it.
    pub halts: u64,
    /// ... and halt polling saw the end of it.
    pub polls_succeeded: u64,
    /// ... and halt polling was in vain.
    pub polls_failed: u64,
    /// Times that it was woken.
    pub wakeups: u64,
}

additive!(Counts {
    spins,
    yields_asked,
    yields_honoured,
    ipis_sent,
    ipis_received,
    device_interrupts,
    preempted_user,
    preempted_kernel,
    preempted_critical,
    preempted_outside,
    halts,
    polls_succeeded,
    polls_failed,
    wakeups,
});

impl Counts {
    /// Times that it lost its pCPU though runnable.
    pub fn preempted(&self) -> u64 {
        self.preempted_user + self.preempted_kernel + self.preempted_outside
    }

    /// Share of halts with polling that polling ended, 0 to 1; `None` without polling.
    pub fn poll_success(&self) -> Option<f64> {
        let polls = self.polls_succeeded + self.polls_failed;
        (polls > 0).then(|| self.polls_succeeded as f64 / polls as f64)
    }
}

/// How long things took. They count when they end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Woken, to running.
    pub wake_to_run: Histogram,
    /// Off its pCPU though runnable.
    pub preempted: Histogram,
    /// ... the part of it with a sibling's IPI pending.
    pub preempted_with_ipi: Histogram,
    /// A sibling's IPI from sending to injection; this vCPU, its target, ran.
    pub ipi_to_running: Histogram,
    /// ... it was preempted.
    pub ipi_to_preempted: Histogram,
    /// ... it had been woken, and waited for a pCPU.
    pub ipi_to_queued: Histogram,
    /// ... it slept.
    pub ipi_to_asleep: Histogram,
    /// Waits for TLB shootdowns, an estimate: IPIs of one vector that this vCPU sent to two
    /// or more siblings, none of the earlier ones taken by all, from the first one's sending
    /// to the last one's injection. Other calls of functions on several CPUs are
    /// in it; shootdowns of one target are not.
    pub shootdown: Histogram,
}

additive!(Latencies {
    wake_to_run,
    preempted,
    preempted_with_ipi,
    ipi_to_running,
    ipi_to_preempted,
    ipi_to_queued,
    ipi_to_asleep,
    shootdown,
});

impl Latencies {
    /// All IPIs to this vCPU, from sending to injection.
    pub fn ipi(&self) -> Histogram {
        let mut all = self.ipi_to_running.clone();
        all.merge(&self.ipi_to_preempted);
        all.merge(&self.ipi_to_queued);
        all.merge(&self.ipi_to_asleep);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_ipis_and_nothing_else_are_summed() {
        let one = Histogram::of(&[3]);
        let latencies = Latencies {
            ipi_to_running: one.clone(),
            ipi_to_asleep: one.clone(),
            wake_to_run: one,
            ..Latencies::default()
        };
        let all = latencies.ipi();
        assert_eq!((all.count, all.sum_ns), (2, 6));
    }

    #[test]
    fn poll_success_is_of_polls_not_of_halts() {
        let mut counts = Counts {
            halts: 10,
            ..Counts::default()
        };
        assert_eq!(counts.poll_success(), None);
        (counts.polls_succeeded, counts.polls_failed) = (1, 3);
        assert_eq!(counts.poll_success(), Some(0.25));
    }
}
