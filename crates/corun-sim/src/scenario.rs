// SPDX-License-Identifier: GPL-2.0-only
//! One run: a host, its guests, what they do, for how long.

use crate::workload::Model;
use corun_case::sim::{Costs, Kvm, SchedTunables, SimGuest};
use corun_case::{PvFeatures, SchedulerKind};
use corun_policy::Tunables;
use std::sync::Arc;

/// All that decides a run. The same scenario gives the same trace.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Nothing is counted before this. Nanoseconds.
    pub warmup_ns: u64,
    /// Length of the measured time after the warm-up. Nanoseconds.
    pub measure_ns: u64,
    /// pCPUs.
    pub pcpus: u32,
    /// Hardware threads of a core.
    pub threads_per_core: u32,
    /// pCPUs of a last-level cache; 0: all.
    pub pcpus_per_llc: u32,
    /// What things cost.
    pub costs: Costs,
    /// The hypervisor.
    pub kvm: Kvm,
    /// The host's scheduler.
    pub scheduler: SchedulerSpec,
    /// The guests.
    pub vms: Vec<VmSpec>,
    /// Check the invariants while it runs.
    pub check: bool,
}

/// The host's scheduler.
#[derive(Debug, Clone)]
pub struct SchedulerSpec {
    /// Which.
    pub kind: SchedulerKind,
    /// Settings of the kernels' and Xen's.
    pub settings: SchedTunables,
    /// Settings of corun's.
    pub tunables: Tunables,
    /// What of corun is switched on.
    pub mechanisms: corun_policy::Mechanisms,
}

/// A guest.
#[derive(Debug, Clone)]
pub struct VmSpec {
    /// Name.
    pub name: String,
    /// vCPUs.
    pub vcpus: u32,
    /// Weight, 1 to 10000.
    pub weight: u32,
    /// Its kernel.
    pub kernel: SimGuest,
    /// What KVM offers it.
    pub pv: PvFeatures,
    /// What it runs.
    pub work: Vec<WorkSpec>,
}

/// A program in a guest.
#[derive(Debug, Clone)]
pub struct WorkSpec {
    /// Its model.
    pub model: Arc<Model>,
    /// Threads that roles "per vCPU" are counted by; the vCPUs when absent.
    pub threads: Option<u32>,
}
