// SPDX-License-Identifier: GPL-2.0-only
//! From case files to many runs at once.

mod lab;
mod models;
mod options;
mod pool;
mod scenario;

pub use models::Models;
pub use options::{CorunOptions, OptionsError};
pub use pool::{run_all, run_each, threads};
pub use scenario::scenario;

use corun_case::Case;
use std::sync::Arc;

/// One run of a case.
#[derive(Debug, Clone)]
pub struct Job {
    /// The case.
    pub case: Arc<Case>,
    /// Name of one of its phases.
    pub phase: String,
    /// Label of one of its schedulers.
    pub scheduler: String,
    /// This guest runs, alone on the host.
    pub solo: Option<String>,
    /// Number of the repeat; each has a seed of its own.
    pub repeat: u32,
}

/// All runs that `case` asks for: each phase under each scheduler, and, where
/// the phase wants it, each measured guest alone under the first scheduler, as
/// in the lab.
pub fn jobs(case: &Arc<Case>) -> Vec<Job> {
    let mut jobs = Vec::new();
    for phase in &case.phases {
        let mut add = |scheduler: &str, solo: Option<&String>| {
            jobs.extend((0..case.case.repeats).map(|repeat| Job {
                case: Arc::clone(case),
                phase: phase.name.clone(),
                scheduler: scheduler.to_owned(),
                solo: solo.cloned(),
                repeat,
            }));
        };
        if let (true, Some(first)) = (phase.solo, case.schedulers.first()) {
            for guest in &phase.measure {
                add(&first.label, Some(guest));
            }
        }
        for scheduler in &case.schedulers {
            add(&scheduler.label, None);
        }
    }
    jobs
}

#[cfg(test)]
mod tests;
