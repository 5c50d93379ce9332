// SPDX-License-Identifier: GPL-2.0-only
//! Test vectors: the same inputs through every build of the policy.

use crate::{Tunables, ffi};
use serde::Deserialize;

/// The decisions, in the order of `enum corun_vector_op`.
pub const OPS: [&str; 24] = [
    "share_vtime",
    "share_charge",
    "share_wake",
    "share_preempts_in",
    "share_keeps",
    "yield_decide",
    "yield_slice",
    "yield_fresh",
    "yield_score",
    "urgent_decide",
    "urgent_takes",
    "urgent_defers",
    "pool_next",
    "gang_coupled",
    "gang_pulls",
    "gang_slice",
    "halt_judge",
    "halt_step",
    "share_resumes",
    "gang_align",
    "gang_follows",
    "gang_crowded",
    "yield_affords",
    "halt_note_load",
];

/// Most inputs of a decision (`CORUN_VECTOR_IN`).
pub const INPUTS: usize = 10;
/// Most outputs of a decision (`CORUN_VECTOR_OUT`).
pub const OUTPUTS: usize = 2;

/// `struct corun_vector`: a decision's inputs and what it said.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vector {
    /// Index into [`OPS`].
    pub op: u32,
    /// 1 after a run that knew the op.
    pub done: u32,
    /// Arguments in order.
    pub inputs: [u64; INPUTS],
    /// Results.
    pub outputs: [u64; OUTPUTS],
    /// Tunables in force.
    pub tunables: Tunables,
}

const _: () = assert!(size_of::<Vector>() == 232 && std::mem::offset_of!(Vector, tunables) == 104);

impl Vector {
    /// A vector that has not run, with default tunables; inputs beyond
    /// [`INPUTS`] are dropped, missing ones are 0.
    pub fn new(op: u32, inputs: &[u64]) -> Self {
        let mut v = Self {
            op,
            done: 0,
            inputs: [0; INPUTS],
            outputs: [0; OUTPUTS],
            tunables: Tunables::default(),
        };
        for (slot, input) in v.inputs.iter_mut().zip(inputs) {
            *slot = *input;
        }
        v
    }

    /// Runs it through the native build.
    #[must_use]
    pub fn run_native(mut self) -> Self {
        // SAFETY: the pointer is to an exclusive, initialized vector.
        unsafe { ffi::corun_native_vector_run(&raw mut self) };
        self
    }
}

/// A vector with its expected outputs, as in `policy/vectors/*.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// What the vector shows.
    pub why: String,
    /// Name in [`OPS`].
    pub op: String,
    /// Arguments in order; negative numbers stand for vtimes before 0.
    #[serde(rename = "in")]
    pub inputs: Vec<i128>,
    /// Results.
    #[serde(rename = "out")]
    pub outputs: Vec<u64>,
}

impl Expected {
    /// The vector to run; `None` for an unknown op.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "vtimes wrap: the lower 64 bits are what is meant"
    )]
    pub fn vector(&self) -> Option<Vector> {
        let op = (0_u32..).zip(OPS).find(|(_, name)| *name == self.op)?.0;
        let inputs: Vec<u64> = self.inputs.iter().map(|i| *i as u64).collect();
        Some(Vector::new(op, &inputs))
    }
}

const FILES: [&str; 6] = [
    include_str!("../../../policy/vectors/share.json"),
    include_str!("../../../policy/vectors/yield.json"),
    include_str!("../../../policy/vectors/urgent.json"),
    include_str!("../../../policy/vectors/pool.json"),
    include_str!("../../../policy/vectors/gang.json"),
    include_str!("../../../policy/vectors/halt.json"),
];

/// The vectors of the repository.
pub fn repository() -> Result<Vec<Expected>, serde_json::Error> {
    let mut all = Vec::new();
    for file in FILES {
        all.extend(serde_json::from_str::<Vec<Expected>>(file)?);
    }
    Ok(all)
}
