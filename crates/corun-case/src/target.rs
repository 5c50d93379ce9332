// SPDX-License-Identifier: GPL-2.0-only
//! Who runs the case: what the lab can do and what the simulator can differ.

use crate::{WORKLOADS, Workload, suggest};
use std::fmt;

/// Who runs the case.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    /// The lab: real kernels, an emulated machine with memory of its own.
    Lab,
    /// The simulator, and what it says of itself.
    Sim(&'a dyn Abilities),
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lab => "Lab",
            Self::Sim(_) => "Sim",
        })
    }
}

/// What a program that runs cases can run.
pub trait Abilities {
    /// Refuses `work` if it cannot run.
    fn workload(&self, work: &Workload) -> Result<(), WorkloadProblem>;

    /// Refuses options of `corun run`, saying why.
    fn options(&self, options: &[String]) -> Result<(), String>;
}

/// Why a workload cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadProblem {
    /// Parameter that is to blame; `None`: the workload's name.
    pub param: Option<String>,
    /// What is wrong and what was expected.
    pub message: String,
}

/// The lab; workloads' parameters are for its agent to check.
pub(crate) struct Lab;

impl Abilities for Lab {
    fn workload(&self, work: &Workload) -> Result<(), WorkloadProblem> {
        if WORKLOADS.contains(&work.workload.as_str()) {
            return Ok(());
        }
        Err(WorkloadProblem {
            param: None,
            message: format!(
                "unknown workload `{}`: expected one of {}{}",
                work.workload,
                WORKLOADS.join(", "),
                suggest::hint(&work.workload, WORKLOADS.iter().copied())
            ),
        })
    }

    /// `corun run` itself refuses the rest, in the lab.
    fn options(&self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}

impl Target<'_> {
    pub(crate) fn abilities(&self) -> &dyn Abilities {
        match self {
            Self::Lab => &Lab,
            Self::Sim(sim) => *sim,
        }
    }
}
