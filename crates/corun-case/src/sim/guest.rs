// SPDX-License-Identifier: GPL-2.0-only
//! What the simulator must know of a guest's kernel.

use crate::PvFeatures;
use serde::{Deserialize, Serialize};

/// `[sim.guest.NAME]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuestKernel {
    /// The kernel's spinlocks; absent: those that Linux picks by `pv.unhalt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spinlock: Option<SpinlockKind>,
    /// How it flushes remote TLBs; absent: as Linux does by `pv.tlb_flush`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlb: Option<TlbKind>,
    /// Idle vCPUs need no shootdown: they flush when they leave the idle loop
    /// (Linux 4.20 and later, `tlb_is_not_lazy`; not where page tables are freed).
    pub lazy_tlb: bool,
    /// vCPU n runs on pCPU n (modulo the number of pCPUs) alone.
    pub pinned: bool,
    /// Tick of the guest kernel. Nanoseconds; 4 ms is HZ=250.
    pub tick_ns: u64,
    /// A second workload that runs in the same guest, beside the phase's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<crate::Workload>,
}

impl Default for GuestKernel {
    fn default() -> Self {
        Self {
            spinlock: None,
            tlb: None,
            lazy_tlb: false,
            pinned: false,
            tick_ns: 4_000_000,
            beside: None,
        }
    }
}

impl GuestKernel {
    /// The kernel in a guest that is offered `pv`.
    ///
    /// Without pv-unhalt Linux spins by test and set under any hypervisor
    /// (`kvm_spinlock_init`, `virt_spin_lock`), not in a queue.
    pub fn resolve(&self, pv: PvFeatures) -> SimGuest {
        let spinlock = if pv.unhalt {
            SpinlockKind::PvQueued
        } else {
            SpinlockKind::TestAndSet
        };
        let tlb = if pv.tlb_flush {
            TlbKind::Kvmtlb
        } else {
            TlbKind::Ipi
        };
        SimGuest {
            spinlock: self.spinlock.unwrap_or(spinlock),
            tlb: self.tlb.unwrap_or(tlb),
            lazy_tlb: self.lazy_tlb,
            pinned: self.pinned,
            tick_ns: self.tick_ns,
            beside: self.beside.clone(),
        }
    }
}

/// A guest's kernel with nothing left open.
#[derive(Debug, Clone, PartialEq)]
pub struct SimGuest {
    /// The kernel's spinlocks.
    pub spinlock: SpinlockKind,
    /// How it flushes remote TLBs.
    pub tlb: TlbKind,
    /// Idle vCPUs need no shootdown: they flush when they leave the idle loop
    /// (Linux 4.20 and later, `tlb_is_not_lazy`; not where page tables are freed).
    pub lazy_tlb: bool,
    /// vCPU n runs on pCPU n (modulo the number of pCPUs) alone.
    pub pinned: bool,
    /// Tick of the guest kernel. Nanoseconds; 4 ms is HZ=250.
    pub tick_ns: u64,
    /// A second workload that runs in the same guest, beside the phase's.
    pub beside: Option<crate::Workload>,
}

impl Default for SimGuest {
    fn default() -> Self {
        Self {
            spinlock: SpinlockKind::Queued,
            tlb: TlbKind::Ipi,
            lazy_tlb: false,
            pinned: false,
            tick_ns: 4_000_000,
            beside: None,
        }
    }
}

/// Spinlock algorithms of guest kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpinlockKind {
    /// Ticket lock: strict FIFO (Linux 2.6.25 to 4.1).
    Ticket,
    /// Paravirtual ticket lock: waiters halt, the unlocker kicks the next one
    /// (seed 001, figures 3 to 8).
    PvTicket,
    /// Preemptable ticket lock: waiters may overtake those that do not run,
    /// after a delay in proportion to their place (Ouyang and Lange, VEE 2013).
    Pmt,
    /// Queued spinlock: FIFO, each waiter on its own cache line (Linux 4.2).
    Queued,
    /// Paravirtual queued spinlock: waiters halt, a running vCPU may take a
    /// lock whose queue head sleeps (`kernel/locking/qspinlock_paravirt.h`).
    PvQueued,
    /// The same in Linux 4.2 to 4.4: nobody passes the queue.
    PvQueuedFifo,
    /// Test and set: what Linux 4.2 and later use under a hypervisor without
    /// pv-unhalt (arch/x86 `virt_spin_lock`).
    TestAndSet,
    /// What `CONFIG_DEBUG_SPINLOCK`, which `CONFIG_LOCK_STAT` selects, makes of every
    /// spinlock up to Linux 4.10: waiters try and wait for a cycle of the time-stamp
    /// counter (`__spin_lock_debug`), which is over before the delay loop's first PAUSE.
    /// Whoever tries first wins, nobody halts, and no pause-loop exit sees them.
    Debug,
}

/// How a guest flushes the TLBs of its other vCPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlbKind {
    /// By IPI, waiting for every target.
    Ipi,
    /// kvmtlb: targets that do not run flush when they enter (seed 001,
    /// figures 9 and 10; KVM's `PV_TLB_FLUSH`).
    Kvmtlb,
    /// kvmtlb as seed 000's authors ported it (version 4 of the patches, their public
    /// repository drouyang/shoot4u): who queues the first flush for a target that does
    /// not run sends it the interrupt, too, and waits.
    KvmtlbV4,
    /// `Shoot4U`: one hypercall, the hypervisor flushes (seed 000, section 4).
    Shoot4u,
}
