// SPDX-License-Identifier: GPL-2.0-only
//! L1's driver <-> the agent in a guest.

use crate::LatencySummary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which program to run in the guest, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Name of the workload: one of `corun-agent --list`.
    pub name: String,
    /// Worker threads; the number of online vCPUs when absent. Workers are
    /// pinned one per vCPU, round robin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Parameters by name; each workload documents its own and refuses others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, ParamValue>,
}

/// Value of one workload parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
}

/// Driver to agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case")]
pub enum Command {
    /// Start a workload. With `measure_ms` the agent warms up, measures one
    /// window and ends the workload by itself; without, it runs until
    /// [`Command::Stop`] and then reports everything since the warm-up.
    Run {
        /// Chosen by the driver; events about this run carry it.
        id: u64,
        /// What to run.
        workload: WorkloadSpec,
        /// Run this long before anything counts. Milliseconds, guest clock.
        warmup_ms: u64,
        /// Length of the measured window. Milliseconds, guest clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        measure_ms: Option<u64>,
    },
    /// End run `id` and report its result.
    Stop {
        /// The run to end.
        id: u64,
    },
    /// Time `count` CPUID instructions on one vCPU: each is one VM exit.
    TimeExits {
        /// Chosen by the driver.
        id: u64,
        /// How many exits to time.
        count: u64,
    },
    /// Load one of our kernel modules.
    LoadModule {
        /// Chosen by the driver.
        id: u64,
        /// Its file is `/mod/corun/NAME.ko`.
        name: String,
        /// Parameters, as for insmod.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        params: String,
    },
    /// Power the guest off.
    PowerOff,
}

/// Agent to driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The guest is up; sent once, first.
    Ready {
        /// [`crate::PROTOCOL_VERSION`] of the agent.
        protocol: u32,
        /// `uname -r` of the guest.
        kernel: String,
        /// Online vCPUs.
        vcpus: u32,
        /// Workloads this guest can run.
        workloads: Vec<String>,
        /// Paravirtual features that the guest kernel sees in KVM's CPUID leaf
        /// 0x40000001 (`steal_time`, `pv_tlb_flush`, `pv_unhalt`, ...).
        pv_features: Vec<String>,
    },
    /// The warm-up of run `id` is over: what follows counts.
    Started {
        /// The run.
        id: u64,
    },
    /// Run `id` is over.
    Finished {
        /// The run.
        id: u64,
        /// What was measured.
        result: RunResult,
    },
    /// Answer to [`Command::TimeExits`].
    ExitsTimed {
        /// The request.
        id: u64,
        /// Mean time of one exit and re-entry.
        mean_ns: f64,
        /// Fastest batch of 64, per exit: the cost without interference.
        min_ns: f64,
    },
    /// Answer to [`Command::LoadModule`]: it is in.
    ModuleLoaded {
        /// The request.
        id: u64,
    },
    /// Run `id` failed: a workload's failure, never retried.
    Failed {
        /// The run or request.
        id: u64,
        /// What went wrong, with the program's own last words where there are any.
        message: String,
    },
}

/// What one run of one workload measured in its window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Name of the workload.
    pub workload: String,
    /// Worker threads used.
    pub threads: u32,
    /// Work done in the window, in `unit`.
    pub work: f64,
    /// What is counted: "round trips", "madvise calls", ...
    pub unit: String,
    /// Length of the window. Nanoseconds, guest monotonic clock.
    pub elapsed_ns: u64,
    /// `work` per second of wall time.
    pub rate_per_s: f64,
    /// Latency distributions.
    pub latency: Vec<LatencySummary>,
    /// Steal time summed over the guest's vCPUs in the window, from the guest's
    /// /proc/stat.
    pub steal_ns: u64,
    /// Growth of each line of the guest's /proc/interrupts, summed over vCPUs,
    /// by its label (`LOC`, `RES`, `CAL`, `TLB`, ...); unchanged lines are left out.
    pub interrupts: BTreeMap<String, u64>,
    /// Growth of the counters of the guest module `corun_guest`, by name, where it
    /// is loaded. Its histograms are in `latency`. The workload `klock` has those of
    /// `corun_locks` here, `stale` what it checked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub module_counts: BTreeMap<String, u64>,
}
