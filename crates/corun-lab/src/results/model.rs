// SPDX-License-Identifier: GPL-2.0-only
//! The result file. Additions keep the schema version; changes raise it.

use super::machine::Disturbance;
use super::summary::Summary;
use crate::boot::Attempt;
use crate::case::{Case, Scheduler, SchedulerKind};
use crate::driver;
use corun_lab_proto::control::{Calibration, Sample};
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the result file's form.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything that one case gave. All figures are from one boot of L1.
#[derive(Debug, Clone, Serialize)]
pub struct CaseResult {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The case as it was run, options of the command line included.
    pub case: Case,
    /// The case file's text.
    pub case_text: String,
    /// SHA-256 of the case file's text, hexadecimal.
    pub case_sha256: String,
    /// Versions of what took part, by name.
    pub versions: BTreeMap<String, String>,
    /// What ran L1's instructions: "tcg" or "kvm".
    pub accel: String,
    /// The emulated host, as it says of itself.
    pub host: Option<HostInfo>,
    /// The schedulers as they were run, in the case's order.
    pub schedulers: Vec<SchedulerInfo>,
    /// The guests, as they say of themselves.
    pub guests: Vec<GuestInfo>,
    /// Costs measured at boot, and the time scale.
    pub calibration: Option<Calibration>,
    /// The gate that this boot passed; `None` when the case has none.
    pub gate: Option<GateOutcome>,
    /// How many boots it took, and why.
    pub boots: BootCounts,
    /// What happened to the machine in each window, refused ones included.
    pub windows: Vec<MachineWindow>,
    /// What the driver warned of.
    pub warnings: Vec<String>,
    /// All kept windows.
    pub samples: Vec<Sample>,
    /// What follows from the samples.
    pub summary: Summary,
}

/// The emulated host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostInfo {
    /// `uname -r`.
    pub kernel: String,
    /// Online pCPUs.
    pub pcpus: u32,
    /// QEMU's version line.
    pub qemu: Option<String>,
    /// KVM's `halt_poll_ns`.
    pub halt_poll_ns: Option<u64>,
}

/// One scheduler of the case, as it was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SchedulerInfo {
    /// Label in the case.
    pub label: String,
    /// The program and its version; "kernel" for the kernel's own.
    pub program: String,
    /// What the program was told; the scaled time constants are among it.
    pub arguments: Vec<String>,
    /// Time constants that could not be scaled; empty: all were.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub not_scaled: &'static str,
}

impl SchedulerInfo {
    /// How `scheduler` runs at time scale `factor`.
    pub fn of(scheduler: &Scheduler, factor: f64) -> Self {
        let comparator = scheduler.kind.comparator();
        Self {
            label: scheduler.label.clone(),
            program: match comparator {
                Some(c) => format!("{} {}", c.program, c.version),
                None if scheduler.kind == SchedulerKind::Kernel => "kernel".to_owned(),
                None => format!("corun {}", env!("CARGO_PKG_VERSION")),
            },
            arguments: driver::arguments(scheduler, factor),
            not_scaled: comparator.map_or("", |c| c.fixed),
        }
    }
}

/// One guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuestInfo {
    /// Name in the case.
    pub name: String,
    /// `uname -r`.
    pub kernel: String,
    /// Online vCPUs.
    pub vcpus: u32,
    /// Paravirtual features that it sees.
    pub pv_features: Vec<String>,
    /// Its boot time on L1's clock.
    pub boot_ns: u64,
}

/// What the sanity gate said.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GateOutcome {
    /// Slowdown of a burner against an equal one.
    pub slowdown: f64,
    /// pCPUs that the solo burner used.
    pub solo_pcpus: f64,
    /// Whether that is good enough.
    pub passed: bool,
}

/// Boots that it took.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BootCounts {
    /// All boots, the one with the figures included.
    pub started: u32,
    /// Boots that an emulator fault ended.
    pub emulator_faults: Vec<Attempt>,
    /// Boots whose figures the gate refused.
    pub gate_rejected: Vec<GateOutcome>,
}

/// One window as the machine saw it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MachineWindow {
    /// Number of the window in its boot.
    pub window: u32,
    /// What was taken away.
    #[serde(flatten)]
    pub disturbance: Disturbance,
    /// Whether the runner accepted it.
    pub accepted: bool,
}
