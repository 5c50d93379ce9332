// SPDX-License-Identifier: GPL-2.0-only
//! A deterministic model of CPU-overcommitted KVM hosts.
//!
//! Hardware < host scheduler < KVM < guest kernel < workload; each layer is a
//! module with a narrow interface, and corun's scheduler is the same C policy
//! that the BPF build runs.

pub mod batch;
pub mod engine;
pub mod host;
pub mod outcome;
pub mod repro;
pub mod scenario;
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
pub fn run(_scenario: &Scenario) -> Result<Outcome, SimError> {
    Err(SimError::Scenario(
        "the machine is not written yet".to_owned(),
    ))
}
