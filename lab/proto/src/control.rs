// SPDX-License-Identifier: GPL-2.0-only
//! L0's runner <-> L1's driver.

use crate::LatencySummary;
use crate::agent::RunResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Driver (L1) to runner (L0).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Report {
    /// First message of a boot.
    Hello {
        /// [`crate::PROTOCOL_VERSION`] of the driver.
        protocol: u32,
        /// `uname -r` of L1.
        kernel: String,
        /// Online pCPUs of L1.
        pcpus: u32,
        /// Version line of the QEMU that runs the guests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        qemu: Option<String>,
        /// KVM's module parameter `halt_poll_ns` in L1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        halt_poll_ns: Option<u64>,
    },
    /// A guest is up.
    GuestReady {
        /// Its name.
        guest: String,
        /// Its `uname -r`.
        kernel: String,
        /// Its online vCPUs.
        vcpus: u32,
        /// Paravirtual features that it sees.
        pv_features: Vec<String>,
        /// From QEMU's start to the agent's first word, on L1's clock.
        boot_ns: u64,
    },
    /// For the progress display; carries no result.
    Progress {
        /// What is being done now.
        text: String,
        /// Steps done.
        done: u32,
        /// Steps in all.
        total: u32,
    },
    /// What the boot measured about itself and the time scale it uses.
    Calibration(Calibration),
    /// A measured window begins; the runner notes the machine's steal time.
    WindowBegin {
        /// Number of the window, counted over the boot.
        window: u32,
    },
    /// The window is over; the driver waits for [`Order::Verdict`].
    WindowEnd {
        /// Number of the window.
        window: u32,
    },
    /// Something that a reader of the results should know, for example a
    /// kernel warning in L1; the case goes on.
    Warning {
        /// What was seen.
        text: String,
    },
    /// One window that was kept.
    Sample(Box<Sample>),
    /// The sanity gate's outcome; the boot ends when it did not pass.
    Gate {
        /// CPU-only slowdown against an equal co-runner.
        slowdown: f64,
        /// Host CPU time that the solo guest used, in pCPUs.
        solo_pcpus: f64,
        /// Whether the boot's figures may be used.
        passed: bool,
    },
    /// The case cannot go on: a workload failed, a guest died, corun refused.
    Failed {
        /// What went wrong and the evidence.
        message: String,
        /// True when the cause may be an emulator fault (a guest that fell
        /// silent or was reset), so that another boot is worth trying; false for
        /// a workload's or corun's own failure.
        emulator_suspect: bool,
    },
    /// All phases are done. The boot's success marker.
    Done,
}

/// Costs measured at boot, and the factor derived from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// One VM exit and re-entry (CPUID).
    pub exit_ns: f64,
    /// One switch from a vCPU to another VM's vCPU on the same pCPU, all included.
    pub switch_ns: f64,
    /// Factor derived from `switch_ns` (see `corun lab run --help`).
    pub auto_factor: f64,
    /// Factor in use for this run.
    pub factor: f64,
    /// `base_slice_ns` set for the kernel's scheduler, and corun's slice.
    pub slice_ns: u64,
    /// `base_slice_ns` as the kernel had chosen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_slice_ns: Option<u64>,
}

/// One measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Number of the window in this boot.
    pub window: u32,
    /// Phase of the case.
    pub phase: String,
    /// Label of the scheduler of the case.
    pub scheduler: String,
    /// True when the measured guest ran alone.
    pub solo: bool,
    /// Repeat, from 0.
    pub repeat: u32,
    /// Time scale factor in force.
    pub factor: f64,
    /// What the kernel called the sched_ext scheduler that was in force at the
    /// window's end, and since it was chosen; `None`: the kernel's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_ext: Option<String>,
    /// True when the runner refused the window each time it was measured: it
    /// is the last try, measured on a disturbed machine.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disturbed: bool,
    /// How often the window was measured again before this.
    #[serde(default)]
    pub redone: u32,
    /// Time between the first and the last measured guest's start of its window.
    #[serde(default)]
    pub start_spread_ns: u64,
    /// What each measured guest reported, by guest name.
    pub guests: BTreeMap<String, RunResult>,
    /// Length of the window on L1's monotonic clock.
    pub elapsed_ns: u64,
    /// CPU time of L1 that each VM used (all threads of its VMM), by guest name.
    pub vm_cpu_ns: BTreeMap<String, u64>,
    /// CPU time of L1 in all states but idle, summed over pCPUs.
    pub busy_ns: u64,
    /// Growth of counters in the window, by name: directed yields and their
    /// fate (`yield.*`), KVM's debugfs counters (`kvm.*`), the scheduler's own
    /// (`corun.*`).
    pub counters: BTreeMap<String, u64>,
    /// What the vCPUs of each VM at work waited for, by guest name; only where
    /// the case asks for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vcpu_latency: BTreeMap<String, VcpuLatency>,
    /// How late a small task of the host's own got a pCPU; only where the case
    /// asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_task: Option<LatencySummary>,
}

/// What the vCPUs of one VM waited for in one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VcpuLatency {
    /// Times on L1's clock, `what` being their names: `ipi` (a sibling's IPI,
    /// from sending to injection), its parts by the target's state when it was
    /// sent, `wake_to_run`, `preempted`, `preempted_with_ipi`. Good to 6 %.
    pub times: Vec<LatencySummary>,
    /// Exact sums of the same times, by name; and where the vCPUs' time went: `run`,
    /// `poll`, `ready_*` by cause, `halted`, `blocked`, which make up `wall`. Nanoseconds.
    pub sums_ns: BTreeMap<String, u64>,
    /// Growth of counts: `spins`, `yields`, `exits`, `halt_exits`,
    /// `hypercalls`.
    pub counts: BTreeMap<String, u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature.
fn is_false(value: &bool) -> bool {
    !value
}

/// Runner (L0) to driver (L1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Answer to [`Report::WindowEnd`].
    Verdict {
        /// Number of the window.
        window: u32,
        /// False: the machine was disturbed; measure the window again.
        keep: bool,
    },
    /// End now; power off.
    Abort,
}
