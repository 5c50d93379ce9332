// SPDX-License-Identifier: GPL-2.0-only
//! What the vCPUs of each guest waited for, merged over repeats.

use super::latency;
use super::summary::{LatencyFigures, corun};
use crate::case::{Case, Phase};
use corun_lab_proto::HistogramError;
use corun_lab_proto::control::{Sample, VcpuLatency};
use serde::Serialize;
use std::collections::BTreeMap;

/// One guest at work in one phase, alone or in the co-run under one scheduler.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VcpuFigures {
    /// The phase.
    pub phase: String,
    /// The guest.
    pub guest: String,
    /// What it ran.
    pub workload: String,
    /// Label of the scheduler.
    pub scheduler: String,
    /// True when the guest ran alone.
    pub solo: bool,
    /// Length of the windows together. Seconds on L1's clock.
    pub seconds: f64,
    /// Distributions by name. Nanoseconds of L1's clock, good to 6 %.
    pub latency: Vec<LatencyFigures>,
    /// Time that all its vCPUs together were preempted, in each second. Milliseconds.
    pub preempted_ms_per_s: f64,
    /// The part of it in which a sibling's IPI waited for them: time that vCPUs
    /// spent waiting for a preempted sibling. Milliseconds.
    pub waited_ms_per_s: f64,
    /// Counts in each second: `spins`, `yields`, `exits`, `halt_exits`, `hypercalls`.
    pub per_s: BTreeMap<String, f64>,
    /// The same for each unit of the guest's work; empty for guests that are not
    /// measured and for windows without work.
    pub per_work: BTreeMap<String, f64>,
}

impl VcpuFigures {
    /// The distribution called `what`, if it has samples.
    pub fn of(&self, what: &str) -> Option<&LatencyFigures> {
        self.latency.iter().find(|l| l.what == what)
    }

    /// Share of the sibling IPIs whose target was preempted or waited for a
    /// pCPU when they were sent, 0 to 1; `None` without IPIs.
    pub fn ipis_to_waiting(&self) -> Option<f64> {
        let count = |what: &str| self.of(what).map_or(0, |l| l.count);
        let all = count("ipi");
        let waiting = count("ipi_to_preempted") + count("ipi_to_queued");
        (all > 0).then(|| waiting as f64 / all as f64)
    }
}

/// The figures of `phase`, whose samples are `samples`: each guest alone, then
/// under each scheduler.
pub(super) fn figures(
    case: &Case,
    phase: &Phase,
    samples: &[&Sample],
) -> Result<Vec<VcpuFigures>, HistogramError> {
    let mut all = Vec::new();
    for guest in phase.run.keys() {
        let solo: Vec<&Sample> = samples.iter().copied().filter(|s| s.solo).collect();
        all.extend(of_windows(phase, guest, &solo)?);
        for scheduler in &case.schedulers {
            let windows: Vec<&Sample> = corun(samples, &scheduler.label).collect();
            all.extend(of_windows(phase, guest, &windows)?);
        }
    }
    Ok(all)
}

/// The figures of `guest` over `windows`, which are of one kind.
fn of_windows(
    phase: &Phase,
    guest: &str,
    windows: &[&Sample],
) -> Result<Option<VcpuFigures>, HistogramError> {
    let seen: Vec<(&Sample, &VcpuLatency)> = windows
        .iter()
        .filter_map(|s| Some((*s, s.vcpu_latency.get(guest)?)))
        .collect();
    let Some((first, _)) = seen.first() else {
        return Ok(None);
    };
    let seconds: f64 = seen.iter().map(|(s, _)| s.elapsed_ns as f64 / 1e9).sum();
    let sum_ms_per_s = |what: &str| {
        let ns: u64 = seen.iter().filter_map(|(_, v)| v.sums_ns.get(what)).sum();
        ns as f64 / 1e6 / seconds
    };
    let per_s = per_second(&seen, seconds);
    let rate = work_per_s(guest, windows);
    Ok(Some(VcpuFigures {
        phase: phase.name.clone(),
        guest: guest.to_owned(),
        workload: phase.workload_of(guest).to_owned(),
        scheduler: first.scheduler.clone(),
        solo: first.solo,
        seconds,
        latency: latency::merge_summaries(seen.iter().flat_map(|(_, v)| &v.times))?,
        preempted_ms_per_s: sum_ms_per_s("preempted"),
        waited_ms_per_s: sum_ms_per_s("preempted_with_ipi"),
        per_work: match rate {
            Some(rate) => per_s.iter().map(|(n, v)| (n.clone(), v / rate)).collect(),
            None => BTreeMap::new(),
        },
        per_s,
    }))
}

fn per_second(seen: &[(&Sample, &VcpuLatency)], seconds: f64) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for (name, count) in seen.iter().flat_map(|(_, v)| &v.counts) {
        *sums.entry(name.clone()).or_default() += *count as f64 / seconds;
    }
    sums
}

/// Work of `guest` per second over all `windows`; `None` if it did none, or is
/// load whose work nobody counts.
fn work_per_s(guest: &str, windows: &[&Sample]) -> Option<f64> {
    let runs = || windows.iter().filter_map(|s| s.guests.get(guest));
    let work: f64 = runs().map(|r| r.work).sum();
    let seconds: f64 = runs().map(|r| r.elapsed_ns as f64 / 1e9).sum();
    (work > 0.0 && seconds > 0.0).then(|| work / seconds)
}
