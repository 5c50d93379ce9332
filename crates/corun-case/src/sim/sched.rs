// SPDX-License-Identifier: GPL-2.0-only
//! Settings of the host schedulers that the simulator models. All times are
//! nanoseconds.

use serde::{Deserialize, Serialize};

/// `sim = { ... }` of a `[[scheduler]]`: overrides of the kind's own settings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SchedTunables {
    /// Of kind "cfs".
    pub cfs: Cfs,
    /// Of kind "eevdf" (and "kernel").
    pub eevdf: Eevdf,
    /// Of kind "credit".
    pub credit: Credit,
    /// Of kind "cosched".
    pub cosched: Cosched,
}

/// CFS (kernel/sched/fair.c, 3.x to 6.5). The defaults are those of a host of
/// 8 or more CPUs: Linux scales them by 1 + log2(min(CPUs, 8)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cfs {
    /// `sysctl_sched_latency`.
    pub latency_ns: u64,
    /// `sysctl_sched_min_granularity`.
    pub min_granularity_ns: u64,
    /// `sysctl_sched_wakeup_granularity`.
    pub wakeup_granularity_ns: u64,
    /// Tick: slices end at its multiples.
    pub tick_ns: u64,
    /// Each VM is a cgroup of its weight; otherwise each vCPU is a thread like
    /// any other.
    pub per_vm: bool,
}

impl Default for Cfs {
    fn default() -> Self {
        Self {
            latency_ns: 24_000_000,
            min_granularity_ns: 3_000_000,
            wakeup_granularity_ns: 4_000_000,
            tick_ns: 1_000_000,
            per_vm: true,
        }
    }
}

/// EEVDF (kernel/sched/fair.c, 6.6 and later).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Eevdf {
    /// `base_slice_ns`: 2.8 ms on 8 or more CPUs (3.0 ms before 6.13).
    pub base_slice_ns: u64,
    /// Tick: slices end at its multiples; 0: high-resolution (`HRTICK`).
    pub tick_ns: u64,
    /// As in CFS.
    pub per_vm: bool,
    /// A VM weighs as much more as vCPUs of it wanted to run at once of late, in whole
    /// numbers and no more than there are pCPUs: `cgroup_mode` `concur`, which is
    /// the default of 7.3. Before (`smp`) a VM's weight was one for the host.
    pub concur: bool,
    /// A task that wakes preempts a vCPU only when that leaves its guest, at the latest
    /// at the host's next tick: no interrupt is sent. Linux's `PREEMPT_LAZY` (6.13 and later;
    /// `preempt=lazy`, the default where the kernel has it).
    pub lazy: bool,
}

impl Default for Eevdf {
    fn default() -> Self {
        Self {
            base_slice_ns: 2_800_000,
            tick_ns: 4_000_000,
            per_vm: true,
            concur: false,
            lazy: false,
        }
    }
}

/// Xen's credit scheduler (xen/common/sched/credit.c).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Credit {
    /// `sched_credit_tslice_ms`.
    pub slice_ns: u64,
    /// `sched_ratelimit_us`.
    pub ratelimit_ns: u64,
    /// The rate limit holds for yields, too, as up to Xen 4.7.
    pub yield_limited: bool,
    /// A vCPU that wakes with credit left is put before the others.
    pub boost: bool,
    /// Micro-sliced cores (seed 004): pCPUs set aside for short slices.
    pub micro_pcpus: u32,
    /// Their slice.
    pub micro_slice_ns: u64,
}

impl Default for Credit {
    fn default() -> Self {
        Self {
            slice_ns: 30_000_000,
            ratelimit_ns: 1_000_000,
            yield_limited: true,
            boost: true,
            micro_pcpus: 0,
            micro_slice_ns: 100_000,
        }
    }
}

/// Co-scheduling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cosched {
    /// How strict.
    pub kind: CoschedKind,
    /// Turn of a VM.
    pub slice_ns: u64,
    /// Relaxed: a vCPU may be ahead of its slowest sibling by this much.
    pub max_skew_ns: u64,
}

impl Default for Cosched {
    fn default() -> Self {
        Self {
            kind: CoschedKind::Strict,
            slice_ns: 10_000_000,
            max_skew_ns: 3_000_000,
        }
    }
}

/// Ways to run a VM's vCPUs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoschedKind {
    /// All runnable vCPUs of a VM, or none (Ousterhout's gangs).
    Strict,
    /// Those that are too far ahead wait for the others (`VMware` ESX 4.1).
    Relaxed,
    /// Siblings only never share a pCPU (Sukwong and Kim, `EuroSys` 2011).
    Balance,
}
