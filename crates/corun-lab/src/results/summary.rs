// SPDX-License-Identifier: GPL-2.0-only
//! From samples to figures.

use super::latency;
use super::spread::Spread;
use super::vcpus::{self, VcpuFigures};
use crate::case::{Case, Phase, ideal_cpus, ideal_slowdown};
use corun_lab_proto::HistogramError;
use corun_lab_proto::agent::RunResult;
use corun_lab_proto::control::Sample;
use serde::Serialize;
use std::collections::BTreeMap;

/// All figures of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// One entry per measured guest of each phase.
    pub guests: Vec<GuestSummary>,
    /// One entry per phase and scheduler.
    pub counters: Vec<CounterSums>,
    /// One entry per guest at work in each phase, alone and under each
    /// scheduler, where the case asks for `latency`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vcpu_latency: Vec<VcpuFigures>,
}

/// One measured guest in one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuestSummary {
    /// The phase.
    pub phase: String,
    /// The guest.
    pub guest: String,
    /// What it ran.
    pub workload: String,
    /// Unit of the rates, per second.
    pub unit: String,
    /// Rate alone; `None` when the phase has no solo windows.
    pub solo: Option<Spread>,
    /// Latencies alone, merged over repeats.
    pub solo_latency: Vec<LatencyFigures>,
    /// Slowdown of a CPU-bound guest on a perfectly fair host.
    pub ideal_slowdown: Option<f64>,
    /// The co-run under each scheduler, in the case's order.
    pub schedulers: Vec<SchedulerFigures>,
}

/// One guest's co-run under one scheduler. Spreads are over repeats.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SchedulerFigures {
    /// Label of the scheduler.
    pub scheduler: String,
    /// Rate per second.
    pub rate: Option<Spread>,
    /// Median solo rate divided by each repeat's rate.
    pub slowdown: Option<Spread>,
    /// Latencies, merged over repeats.
    pub latency: Vec<LatencyFigures>,
}

/// A merged latency distribution. Nanoseconds of the guest's clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyFigures {
    /// What one sample measures.
    pub what: String,
    /// Samples.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// Counters and CPU shares of a phase's co-run windows under one scheduler.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterSums {
    /// The phase.
    pub phase: String,
    /// Label of the scheduler.
    pub scheduler: String,
    /// Windows summed.
    pub windows: usize,
    /// Their length together. Seconds on L1's clock.
    pub seconds: f64,
    /// Growth of each counter, summed.
    pub counters: BTreeMap<String, u64>,
    /// Each VM's share of the CPU time of all VMs, 0 to 1.
    pub cpu_share: BTreeMap<String, Spread>,
    /// The share that weights and vCPU counts entitle it to.
    pub ideal_cpu_share: BTreeMap<String, f64>,
    /// CPU time of each VM by what it is entitled to: 1 is its fair share.
    pub fair_use: BTreeMap<String, Spread>,
    /// pCPUs that were busy, the VMs' use and all else.
    pub busy_pcpus: Option<Spread>,
    /// How late the host's own task got a pCPU, where the case asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_task: Option<LatencyFigures>,
}

impl Summary {
    /// Summarizes `samples` of `case`.
    pub fn of(case: &Case, samples: &[Sample]) -> Result<Self, HistogramError> {
        let mut summary = Self::default();
        for phase in &case.phases {
            let all: Vec<&Sample> = samples.iter().filter(|s| s.phase == phase.name).collect();
            for guest in &phase.measure {
                summary
                    .guests
                    .push(guest_summary(case, phase, guest, &all)?);
            }
            for scheduler in &case.schedulers {
                let windows: Vec<&Sample> = corun(&all, &scheduler.label).collect();
                if !windows.is_empty() {
                    summary
                        .counters
                        .push(sums(case, phase, &scheduler.label, &windows)?);
                }
            }
            summary
                .vcpu_latency
                .extend(vcpus::figures(case, phase, &all)?);
        }
        Ok(summary)
    }
}

pub(super) fn corun<'a>(
    samples: &'a [&'a Sample],
    label: &'a str,
) -> impl Iterator<Item = &'a Sample> {
    samples
        .iter()
        .copied()
        .filter(move |s| !s.solo && s.scheduler == label)
}

fn guest_summary(
    case: &Case,
    phase: &Phase,
    guest: &str,
    samples: &[&Sample],
) -> Result<GuestSummary, HistogramError> {
    let solo: Vec<&RunResult> = samples
        .iter()
        .filter(|s| s.solo)
        .filter_map(|s| s.guests.get(guest))
        .collect();
    let solo_rate = Spread::of(&rates(&solo));
    let mut schedulers = Vec::new();
    for s in &case.schedulers {
        let runs: Vec<&RunResult> = corun(samples, &s.label)
            .filter_map(|s| s.guests.get(guest))
            .collect();
        schedulers.push(SchedulerFigures {
            scheduler: s.label.clone(),
            rate: Spread::of(&rates(&runs)),
            slowdown: solo_rate.and_then(|solo| slowdown(solo.median, &rates(&runs))),
            latency: latency::merge(runs)?,
        });
    }
    let any = samples.iter().find_map(|s| s.guests.get(guest));
    Ok(GuestSummary {
        phase: phase.name.clone(),
        guest: guest.to_owned(),
        workload: phase.workload_of(guest).to_owned(),
        unit: any.map(|r| r.unit.clone()).unwrap_or_default(),
        solo: solo_rate,
        solo_latency: latency::merge(solo)?,
        ideal_slowdown: ideal_slowdown(case, phase, guest),
        schedulers,
    })
}

fn rates(runs: &[&RunResult]) -> Vec<f64> {
    runs.iter().map(|r| r.rate_per_s).collect()
}

/// A window without any work has no finite slowdown and would not be JSON; such
/// windows void the figure instead of being left out.
fn slowdown(solo: f64, rates: &[f64]) -> Option<Spread> {
    let each: Vec<f64> = rates.iter().map(|r| solo / r).collect();
    each.iter()
        .all(|s| s.is_finite())
        .then(|| Spread::of(&each))
        .flatten()
}

fn sums(
    case: &Case,
    phase: &Phase,
    label: &str,
    windows: &[&Sample],
) -> Result<CounterSums, HistogramError> {
    let mut counters: BTreeMap<String, u64> = BTreeMap::new();
    for (name, grown) in windows.iter().flat_map(|s| &s.counters) {
        *counters.entry(name.clone()).or_default() += grown;
    }
    let ideal = ideal_cpus(case, phase);
    let all: f64 = ideal.values().sum();
    let shares =
        |guest: &str| -> Vec<f64> { windows.iter().filter_map(|s| share(s, guest)).collect() };
    let ideal_cpu_share: BTreeMap<String, f64> =
        ideal.into_iter().map(|(g, cpus)| (g, cpus / all)).collect();
    let fair_use = |(guest, fair): (&String, &f64)| {
        let by_fair: Vec<f64> = shares(guest).iter().map(|s| s / fair).collect();
        Some((guest.clone(), Spread::of(&by_fair)?))
    };
    let host_task = latency::merge_summaries(windows.iter().filter_map(|s| s.host_task.as_ref()))?;
    let busy: Vec<f64> = windows
        .iter()
        .map(|s| s.busy_ns as f64 / (s.elapsed_ns.max(1)) as f64)
        .collect();
    Ok(CounterSums {
        phase: phase.name.clone(),
        scheduler: label.to_owned(),
        windows: windows.len(),
        seconds: windows.iter().map(|s| s.elapsed_ns as f64 / 1e9).sum(),
        counters,
        cpu_share: phase
            .run
            .keys()
            .filter_map(|g| Some((g.clone(), Spread::of(&shares(g))?)))
            .collect(),
        fair_use: ideal_cpu_share.iter().filter_map(fair_use).collect(),
        ideal_cpu_share,
        busy_pcpus: Spread::of(&busy),
        host_task: host_task.into_iter().next(),
    })
}

fn share(sample: &Sample, guest: &str) -> Option<f64> {
    let all: u64 = sample.vm_cpu_ns.values().sum();
    let one = *sample.vm_cpu_ns.get(guest)?;
    (all > 0).then(|| one as f64 / all as f64)
}
