// SPDX-License-Identifier: GPL-2.0-only
//! Whole machines: 16 pCPUs, four guests of 16 vCPUs with different programs.

use crate::common::Build;
use crate::{Sample, Subject};
use corun_case::SchedulerKind;
use corun_sim::{Scenario, run};
use std::time::Instant;

/// Programs of the guests, in turns.
pub(crate) const MODELS: [&str; 4] = ["dedup", "gmake", "ebizzy", "cpu"];

pub(crate) fn subjects() -> Vec<Subject> {
    let subject = |name, kind, check| Subject::new(name, move || timed(&scenario(kind, check)));
    vec![
        subject("corun: the C policy", SchedulerKind::Corun, false),
        subject("corun, checkers on", SchedulerKind::Corun, true),
        subject("eevdf", SchedulerKind::Eevdf, false),
        subject("cfs", SchedulerKind::Cfs, false),
    ]
}

fn scenario(kind: SchedulerKind, check: bool) -> Scenario {
    let mut scenario = host(kind, 16, 0.5);
    scenario.check = check;
    scenario
}

/// `pcpus` pCPUs with four times as many vCPUs, in guests of 16.
pub(crate) fn host(kind: SchedulerKind, pcpus: u32, seconds: f64) -> Scenario {
    let mut build = Build::new(pcpus, kind).seconds(seconds);
    for (i, model) in (0..pcpus * 4 / 16).zip(MODELS.iter().cycle()) {
        build = build.vm(&format!("vm{i}"), 16, model);
    }
    let mut scenario = build.scenario();
    scenario.check = false;
    scenario
}

/// Runs `scenario` by the clock.
pub(crate) fn timed(scenario: &Scenario) -> Result<Sample, String> {
    let start = Instant::now();
    let outcome = run(scenario).map_err(|e| e.to_string())?;
    Ok(Sample {
        events: outcome.events,
        seconds: start.elapsed().as_secs_f64(),
    })
}
