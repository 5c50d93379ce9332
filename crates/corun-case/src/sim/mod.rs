// SPDX-License-Identifier: GPL-2.0-only
//! What only the simulator needs to know: the hardware's costs, the host's
//! kernel and KVM, and what kind of kernel the guests have. `[sim]` in a case
//! file; the lab, which has the real things, ignores it.

mod costs;
mod kvm;
mod sched;

pub use costs::Costs;
pub use kvm::{HaltPoll, Hypervisor, Kvm, Ple, SpinHandler};
pub use sched::{Cfs, Cosched, CoschedKind, Credit, Eevdf, SchedTunables};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[sim]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimSection {
    /// Seed of the first run; repeat n has seed + n.
    pub seed: u64,
    /// Hardware threads of a core, 1 or 2.
    pub threads_per_core: u32,
    /// pCPUs that share a last-level cache; 0: all.
    pub pcpus_per_llc: u32,
    /// What things cost. Nanoseconds.
    pub costs: Costs,
    /// The host's KVM (or Xen).
    pub kvm: Kvm,
    /// Guests, by name; those not named have the defaults.
    pub guest: BTreeMap<String, SimGuest>,
}

impl Default for SimSection {
    fn default() -> Self {
        Self {
            seed: 1,
            threads_per_core: 1,
            pcpus_per_llc: 0,
            costs: Costs::default(),
            kvm: Kvm::default(),
            guest: BTreeMap::new(),
        }
    }
}

/// `[sim.guest.NAME]`: what the simulator must know of a guest's kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimGuest {
    /// The kernel's spinlocks.
    pub spinlock: SpinlockKind,
    /// How it flushes remote TLBs.
    pub tlb: TlbKind,
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
    /// lock whose queue head sleeps (kernel/locking/qspinlock_paravirt.h).
    PvQueued,
    /// Test and set: what Linux 4.2 and later use under a hypervisor without
    /// pv-unhalt (arch/x86 `virt_spin_lock`).
    TestAndSet,
}

/// How a guest flushes the TLBs of its other vCPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlbKind {
    /// By IPI, waiting for every target.
    Ipi,
    /// kvmtlb: targets that do not run flush when they enter (seed 001,
    /// figures 9 and 10; KVM's PV_TLB_FLUSH).
    Kvmtlb,
    /// Shoot4U: one hypercall, the hypervisor flushes (seed 000, section 4).
    Shoot4u,
}
