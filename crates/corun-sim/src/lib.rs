// SPDX-License-Identifier: GPL-2.0-only
//! A deterministic model of CPU-overcommitted KVM hosts.
//!
//! Hardware < host scheduler < KVM < guest kernel < workload; each layer is a
//! module with a narrow interface, and corun's scheduler is the same C policy
//! that the BPF build runs.
#![allow(
    clippy::cast_possible_truncation,
    reason = "numbers of entities are u32 in scenarios, and indices of them here; times are bounded by a run's length"
)]

pub mod batch;
pub mod engine;
mod guest;
pub mod host;
mod kvm;
mod machine;
pub mod machines;
pub mod outcome;
pub mod repro;
pub mod scenario;
pub mod symbols;
pub mod trace;
pub mod workload;

pub use outcome::{Outcome, VmOutcome};
pub use scenario::{Scenario, SchedulerSpec, VmSpec, WorkSpec};

/// Why a scenario cannot run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The scenario asks for something impossible.
    #[error("{0}")]
    Scenario(String),
    /// Ended from outside before it was done.
    #[error("stopped")]
    Stopped,
    /// A model's file is wrong.
    #[error("workload model {name}: {what}")]
    Model {
        /// Which.
        name: String,
        /// What is wrong, and what was expected.
        what: String,
    },
    /// An invariant does not hold: a defect of the simulator.
    #[error("broken invariant at {at_ns} ns: {what}")]
    Invariant {
        /// Simulated time.
        at_ns: u64,
        /// Which.
        what: String,
    },
}

/// Runs `scenario`.
pub fn run(scenario: &Scenario) -> Result<Outcome, SimError> {
    machine::Machine::new(scenario, None)?.run(scenario)
}

/// Runs `scenario` and gives every event to `sink`.
pub fn run_traced(scenario: &Scenario, sink: &mut dyn trace::Sink) -> Result<Outcome, SimError> {
    machine::Machine::new(scenario, Some(sink))?.run(scenario)
}
