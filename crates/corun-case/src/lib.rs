// SPDX-License-Identifier: GPL-2.0-only
//! The case: which host, which schedulers, which guests, and what they run.
//!
//! One TOML file describes one case, for the lab and for the simulator. The doc
//! comments below are the reference of its keys. The lab's driver gets the same
//! structures as JSON.

mod check;
mod comparator;
mod error;
mod ideal;
mod locate;
mod overrides;
mod parse;
mod select;
pub mod sim;
mod suggest;
mod target;
mod time_scale;

pub use comparator::{Comparator, TimeOption};
pub use error::CaseError;
pub use ideal::{cpu_demand, fair_cpus, ideal_cpus, ideal_slowdown};
pub use overrides::{Override, OverrideError};
pub use parse::{load, load_for, parse, parse_for};
pub use select::SelectError;
pub use suggest::hint;
pub use target::{Abilities, Target, WorkloadProblem};
pub use time_scale::{MAX_FACTOR, TimeScale};

pub use corun_lab_proto::agent::ParamValue;

use corun_lab_proto::agent::WorkloadSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Workloads that the guest agent can run.
pub const WORKLOADS: &[&str] = &[
    "cpu",
    "fake-spin",
    "forged-rip",
    "forkexec",
    "hackbench",
    "halt-storm",
    "ipi-storm",
    "klock",
    "lock",
    "pingpong",
    "shell",
    "stale",
    "stress-ng",
    "sysbench",
    "timer",
    "tlb",
];

/// A whole case file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// `[case]`: name, repeats, window lengths, time scale.
    pub case: General,
    /// `[host]`: the emulated host.
    #[serde(default)]
    pub host: Host,
    /// `[[scheduler]]`: the schedulers to compare, the baseline first. Solo
    /// windows are measured under the first one.
    #[serde(rename = "scheduler")]
    pub schedulers: Vec<Scheduler>,
    /// `[[guest]]`: the virtual machines.
    #[serde(rename = "guest")]
    pub guests: Vec<Guest>,
    /// `[[phase]]`: what runs together and what of it is measured.
    #[serde(rename = "phase")]
    pub phases: Vec<Phase>,
    /// `[gate]`: the sanity gate.
    #[serde(default)]
    pub gate: GateSettings,
    /// `[sim]`: what only the simulator needs.
    #[serde(default, skip_serializing_if = "sim::is_default")]
    pub sim: sim::SimSection,
}

/// `[case]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct General {
    /// Short name, used in file names.
    pub name: String,
    /// One line for people.
    #[serde(default)]
    pub title: String,
    /// How often each window is measured. Schedulers alternate (A B B A ...).
    #[serde(default = "defaults::repeats")]
    pub repeats: u32,
    /// Warm-up before each window. Seconds of guest time.
    #[serde(default = "defaults::warmup_s")]
    pub warmup_s: f64,
    /// Length of each window. Seconds of guest time.
    #[serde(default = "defaults::measure_s")]
    pub measure_s: f64,
    /// Factor on every time constant of all schedulers: a number, or "auto" to
    /// derive it from the measured cost of a vCPU switch.
    #[serde(default)]
    pub time_scale: TimeScale,
    /// Lab: measure what vCPUs wait for in every window (IPIs, wake-ups, time
    /// preempted). Costs time on each switch and IPI of a vCPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub latency: bool,
    /// Lab: run a small task of the host's own beside the guests, and measure
    /// how late it gets a pCPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_task: bool,
}

/// `[host]`: the emulated host, L1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Physical CPUs.
    pub pcpus: u32,
    /// Memory. MiB.
    pub memory_mib: u32,
    /// Kernel series, for example "7.3".
    pub kernel: String,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            pcpus: 2,
            memory_mib: 2048,
            kernel: defaults::kernel(),
        }
    }
}

/// `[[scheduler]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// Name in tables and results.
    pub label: String,
    /// "kernel" (the kernel's own), "corun", or a scheduler to compare with;
    /// several of one kind differ by their options.
    pub kind: SchedulerKind,
    /// Options of `corun run`, or of the comparator's program; the kernel's
    /// scheduler takes none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Lab: a command of the host's shell that runs while this one schedules, so that
    /// the figures show what it costs. It must print a line when it works, run on
    /// until SIGINT, and end then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Settings of the simulator's model of it.
    #[serde(default, skip_serializing_if = "sim::is_default")]
    pub sim: sim::SchedTunables,
}

/// What schedules the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerKind {
    /// The kernel's own scheduler.
    Kernel,
    /// `corun run`.
    Corun,
    /// CFS, Linux 3.x to 6.5; simulator alone.
    Cfs,
    /// EEVDF, Linux 6.6 and later, by name; simulator alone (in the lab it is
    /// what "kernel" means).
    Eevdf,
    /// Xen's credit scheduler; simulator alone.
    Credit,
    /// Co-scheduling; simulator alone.
    Cosched,
    /// `scx_bpfland`, from the Rust registry; lab alone.
    ScxBpfland,
    /// `scx_lavd`, from the Rust registry; lab alone.
    ScxLavd,
}

/// `[[guest]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guest {
    /// Name, used in phases and results.
    pub name: String,
    /// Virtual CPUs.
    #[serde(default = "defaults::vcpus")]
    pub vcpus: u32,
    /// The VM's `cpu.weight`, 1 to 10000.
    #[serde(default = "defaults::weight")]
    pub weight: u32,
    /// Memory. MiB.
    #[serde(default = "defaults::guest_memory_mib")]
    pub memory_mib: u32,
    /// Kernel series, for example "7.3".
    #[serde(default = "defaults::kernel")]
    pub kernel: String,
    /// KVM's paravirtual features that the guest is offered.
    #[serde(default)]
    pub pv: PvFeatures,
    /// Offers Hyper-V's flush hypercalls beside KVM's interface: what `corun guest
    /// options` prints.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hyperv: bool,
    /// Lab: flags added to the CPU model, as QEMU writes them: `+rdtscp`. What the
    /// emulated host's CPU lacks (PCID, for one) a guest does not get either.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cpu_flags: String,
    /// Lab: words added to the kernel's command line: `pti=on`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel_args: String,
    /// A kernel module of ours to load once the guest is up: `corun_guest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The module's parameters, as for insmod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module_params: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature.
fn is_false(value: &bool) -> bool {
    !value
}

/// KVM's paravirtual features; each is named on or off on QEMU's command line,
/// so that no default of a QEMU version decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(clippy::struct_excessive_bools)] // A set of switches is what this is.
pub struct PvFeatures {
    /// `kvm-steal-time`: the guest sees stolen time and preempted vCPUs.
    pub steal_time: bool,
    /// `kvm-pv-sched-yield`: an IPI to a preempted vCPU asks for a directed
    /// yield. Linux uses it only with `steal_time`.
    pub sched_yield: bool,
    /// `kvm-pv-tlb-flush`: preempted vCPUs flush when they enter next.
    pub tlb_flush: bool,
    /// `kvm-pv-ipi`: many IPIs by one hypercall.
    pub ipi: bool,
    /// `kvm-pv-unhalt`: paravirtual spinlocks, which halt instead of spinning.
    pub unhalt: bool,
    /// `kvm-pv-eoi`: end of interrupt without an exit.
    pub eoi: bool,
    /// `kvm-poll-control`: the guest may switch halt polling off.
    pub poll_control: bool,
}

impl Default for PvFeatures {
    fn default() -> Self {
        Self {
            steal_time: true,
            sched_yield: false,
            tlb_flush: false,
            ipi: false,
            unhalt: false,
            eoi: true,
            poll_control: false,
        }
    }
}

/// `[[phase]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Name in tables and results.
    pub name: String,
    /// Guests whose work is measured. The others of `run` are load.
    pub measure: Vec<String>,
    /// Also measure each measured guest alone.
    #[serde(default)]
    pub solo: bool,
    /// Warm-up of this phase, if not `case.warmup_s`. Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// Window of this phase, if not `case.measure_s`. Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure_s: Option<f64>,
    /// What each guest runs, by guest name.
    pub run: BTreeMap<String, Workload>,
}

impl Phase {
    /// The workload that `guest` runs; empty when it runs none.
    pub fn workload_of(&self, guest: &str) -> &str {
        self.run.get(guest).map_or("", |w| &w.workload)
    }
}

/// One workload of a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Name of the workload.
    pub workload: String,
    /// Threads; the guest's vCPU count when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Parameters of the workload: whole numbers or text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, ParamValue>,
}

impl Workload {
    /// What the agent is told.
    pub fn to_spec(&self) -> WorkloadSpec {
        WorkloadSpec {
            name: self.workload.clone(),
            threads: self.threads,
            params: self.params.clone(),
        }
    }
}

/// `[gate]`: the boot's figures count only if a burner slows down against an
/// equal burner by what the pCPUs allow. The first two guests are used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateSettings {
    /// Whether boots have to pass the gate.
    pub enabled: bool,
    /// Relative deviation allowed from a slowdown of 2.0.
    pub tolerance: f64,
}

impl Default for GateSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            tolerance: 0.05,
        }
    }
}

/// Least memory of a guest that gets the large tools. MiB. Measured: with 192
/// the kernel cannot unpack the initramfs.
pub const MIN_GUEST_MIB_WITH_TOOLS: u32 = 256;

/// Workloads that come in the image's large archive of tools; their libraries
/// come to 40 MB, so only cases that use them pay for them.
pub const TOOLS: &[&str] = &["stress-ng", "sysbench"];

impl Case {
    /// Whether any guest needs stress-ng or sysbench.
    pub fn needs_tools(&self) -> bool {
        self.guests.iter().any(|g| self.guest_needs_tools(&g.name))
    }

    /// Whether the guest called `name` needs stress-ng or sysbench.
    pub fn guest_needs_tools(&self, name: &str) -> bool {
        let runs = self.phases.iter().filter_map(|p| p.run.get(name));
        runs.into_iter()
            .any(|w| TOOLS.contains(&w.workload.as_str()))
    }

    /// The comparators that this case asks for, each once.
    pub fn comparators(&self) -> Vec<&'static Comparator> {
        let mut found: Vec<&'static Comparator> = Vec::new();
        for comparator in self.schedulers.iter().filter_map(|s| s.kind.comparator()) {
            if !found.contains(&comparator) {
                found.push(comparator);
            }
        }
        found
    }

    /// The guest called `name`.
    pub fn guest(&self, name: &str) -> Option<&Guest> {
        self.guests.iter().find(|g| g.name == name)
    }

    /// The phase called `name`.
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|p| p.name == name)
    }

    /// Warm-up of `phase`. Seconds.
    pub fn warmup_s(&self, phase: &Phase) -> f64 {
        phase.warmup_s.unwrap_or(self.case.warmup_s)
    }

    /// Window of `phase`. Seconds.
    pub fn measure_s(&self, phase: &Phase) -> f64 {
        phase.measure_s.unwrap_or(self.case.measure_s)
    }
}

mod defaults {
    pub(super) fn repeats() -> u32 {
        3
    }
    pub(super) fn warmup_s() -> f64 {
        1.0
    }
    pub(super) fn measure_s() -> f64 {
        5.0
    }
    pub(super) fn vcpus() -> u32 {
        2
    }
    pub(super) fn weight() -> u32 {
        100
    }
    pub(super) fn guest_memory_mib() -> u32 {
        192
    }
    pub(super) fn kernel() -> String {
        "7.3".to_owned()
    }
}
