// SPDX-License-Identifier: GPL-2.0-only
//! One run: warm-up, window, result.

use crate::control::Control;
use crate::error::Error;
use crate::module;
use crate::procfs::Counters;
use crate::session::Window;
use crate::sync::nanos;
use crate::workload::{self, Workload};
use corun_lab_proto::LatencySummary;
use corun_lab_proto::agent::{RunResult, WorkloadSpec};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What to run and for how long.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The workload.
    pub(crate) spec: WorkloadSpec,
    /// Time before the window.
    pub(crate) warmup: Duration,
    /// Length of the window; `None`: until `control` stops it.
    pub(crate) measure: Option<Duration>,
}

/// Runs `plan`; calls `started` when the window begins. A stop during the warm-up
/// gives an empty window, so that the one who stopped it gets the same two answers.
pub(crate) fn execute(
    plan: &Plan,
    control: &Arc<Control>,
    started: impl FnOnce(),
) -> Result<RunResult, Error> {
    let workload = workload::find(&plan.spec.name)?;
    let mut session = workload.start(&plan.spec, control)?;
    session.run_until(Some(Instant::now() + plan.warmup), control)?;

    started();
    let before = Counters::read();
    let module_before = module::Stats::read();
    session.open_window();
    let deadline = plan.measure.map(|length| Instant::now() + length);
    session.run_until(deadline, control)?;
    let window = session.close_window();
    let after = Counters::read();
    let module = module::Stats::read().since(&module_before);

    let mut result = result(workload, session.threads(), &window, &before, &after)?;
    result.latency.extend(module.latency()?);
    result.module_counts.extend(module.counts);
    Ok(result)
}

fn result(
    workload: &Workload,
    threads: usize,
    window: &Window,
    before: &Counters,
    after: &Counters,
) -> Result<RunResult, Error> {
    let elapsed = window.end - window.begin;
    let seconds = elapsed.as_secs_f64();
    Ok(RunResult {
        workload: workload.name.to_owned(),
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        work: window.work,
        unit: workload.unit.to_owned(),
        elapsed_ns: nanos(elapsed),
        rate_per_s: if seconds > 0.0 {
            window.work / seconds
        } else {
            0.0
        },
        latency: vec![LatencySummary::from_histogram(
            workload.latency,
            &window.latency,
        )?],
        steal_ns: after.steal_ns_since(before),
        interrupts: after.interrupts_since(before),
        module_counts: window.module_counts.clone(),
    })
}
