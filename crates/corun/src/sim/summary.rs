// SPDX-License-Identifier: GPL-2.0-only
//! From outcomes to the figures of the tables. Spreads are over repeats, which
//! are seeds.

use super::result::{Latency, cpu_share};
use corun_case::{Case, Phase, ideal_cpus, ideal_slowdown};
use corun_lab::results::Spread;
use corun_lab_proto::LatencySummary;
use corun_sim::batch::Job;
use corun_sim::{Outcome, VmOutcome};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// Accounts of the profile: the guest's own time.
pub(crate) const PROFILE: [&str; 4] = ["user", "k:lock", "k:tlb", "k:other"];

/// One measured guest in one phase.
#[derive(Debug, Serialize)]
pub(crate) struct GuestSummary {
    pub(crate) phase: String,
    pub(crate) guest: String,
    pub(crate) workload: String,
    /// Alone under the first scheduler; `None` when the phase does not ask.
    pub(crate) solo: Option<Figures>,
    /// Slowdown of a CPU-bound guest on a perfectly fair host.
    pub(crate) ideal_slowdown: Option<f64>,
    /// The share of all guests' CPU time that weights entitle it to.
    pub(crate) ideal_cpu_share: Option<f64>,
    /// Together with the phase's others, by scheduler, in the case's order.
    pub(crate) schedulers: Vec<SchedulerFigures>,
}

/// One guest under one scheduler.
#[derive(Debug, Serialize)]
pub(crate) struct SchedulerFigures {
    pub(crate) scheduler: String,
    /// Median solo rate divided by each repeat's rate.
    pub(crate) slowdown: Option<Spread>,
    /// Share of all guests' CPU time.
    pub(crate) cpu_share: Option<Spread>,
    #[serde(flatten)]
    pub(crate) figures: Figures,
}

/// One guest's own figures.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    /// Units a second.
    pub(crate) rate: Option<Spread>,
    /// Shares of the guest's user and kernel time, by account.
    pub(crate) profile: BTreeMap<&'static str, Spread>,
    /// Distributions, merged over repeats.
    pub(crate) latency: BTreeMap<String, Latency>,
    /// The same in full, as `HdrHistogram` V2 in base64. Nanoseconds.
    pub(crate) histograms: BTreeMap<String, String>,
}

/// The figures of `jobs`, which gave `outcomes`.
pub(crate) fn of(case: &Case, jobs: &[Job], outcomes: &[Outcome]) -> Vec<GuestSummary> {
    let runs: Vec<(&Job, &Outcome)> = jobs.iter().zip(outcomes).collect();
    let mut guests = Vec::new();
    for phase in &case.phases {
        let of_phase = |(job, _): &&(&Job, &Outcome)| job.phase == phase.name;
        let runs: Vec<(&Job, &Outcome)> = runs.iter().filter(of_phase).copied().collect();
        guests.extend(phase.measure.iter().map(|g| guest(case, phase, g, &runs)));
    }
    guests
}

fn guest(case: &Case, phase: &Phase, name: &str, runs: &[(&Job, &Outcome)]) -> GuestSummary {
    let pick = |wanted: &dyn Fn(&Job) -> bool| -> Vec<&Outcome> {
        let runs = runs.iter().filter(|(job, _)| wanted(job));
        runs.map(|(_, outcome)| *outcome).collect()
    };
    let solo = pick(&|job| job.solo.as_deref() == Some(name));
    let solo = (!solo.is_empty()).then(|| figures(name, &solo));
    let alone = solo.as_ref().and_then(|s| s.rate).map(|r| r.median);
    let schedulers = case.schedulers.iter().map(|s| {
        let together = pick(&|job| job.solo.is_none() && job.scheduler == s.label);
        let shares: Vec<f64> = together.iter().filter_map(|o| cpu_share(o, name)).collect();
        SchedulerFigures {
            scheduler: s.label.clone(),
            slowdown: alone.and_then(|alone| slowdown(alone, &rates(name, &together))),
            cpu_share: Spread::of(&shares),
            figures: figures(name, &together),
        }
    });
    let ideal = ideal_cpus(case, phase);
    let all: f64 = ideal.values().sum();
    GuestSummary {
        phase: phase.name.clone(),
        guest: name.to_owned(),
        workload: phase.workload_of(name).to_owned(),
        ideal_slowdown: ideal_slowdown(case, phase, name),
        ideal_cpu_share: ideal.get(name).map(|cpus| cpus / all),
        schedulers: schedulers.collect(),
        solo,
    }
}

fn rates(name: &str, outcomes: &[&Outcome]) -> Vec<f64> {
    let rate = |o: &&Outcome| o.vm(name)?.figure("rate", o.measured_ns);
    outcomes.iter().filter_map(rate).collect()
}

/// A run without any work has no finite slowdown; it voids the figure instead of
/// being left out.
fn slowdown(alone: f64, rates: &[f64]) -> Option<Spread> {
    let each: Vec<f64> = rates.iter().map(|rate| alone / rate).collect();
    let finite = each.iter().all(|s| s.is_finite());
    finite.then(|| Spread::of(&each)).flatten()
}

fn figures(name: &str, outcomes: &[&Outcome]) -> Figures {
    let vms: Vec<&VmOutcome> = outcomes.iter().filter_map(|o| o.vm(name)).collect();
    let share = |account: &'static str| {
        let of = |vm: &&VmOutcome| vm.figure(&format!("share.{account}"), 1);
        let values: Vec<f64> = vms.iter().filter_map(of).collect();
        Some((account, Spread::of(&values)?))
    };
    let mut merged: BTreeMap<&str, Histogram<u64>> = BTreeMap::new();
    for (name, histogram) in vms.iter().flat_map(|vm| &vm.histograms) {
        match merged.get_mut(name.as_str()) {
            // Histograms of one name have one range, so that this cannot fail.
            Some(sum) => drop(sum.add(histogram)),
            None => drop(merged.insert(name, histogram.clone())),
        }
    }
    Figures {
        rate: Spread::of(&rates(name, outcomes)),
        profile: PROFILE.into_iter().filter_map(share).collect(),
        latency: merged
            .iter()
            .filter_map(|(name, h)| Some(((*name).to_owned(), Latency::of(h)?)))
            .collect(),
        histograms: merged.iter().filter_map(encoded).collect(),
    }
}

/// Readers of a result draw curves of it; `None` when nothing is in it.
fn encoded((name, histogram): (&&str, &Histogram<u64>)) -> Option<(String, String)> {
    if histogram.is_empty() {
        return None;
    }
    // Cannot fail: it is written to memory.
    let summary = LatencySummary::from_histogram(name, histogram).ok()?;
    Some(((*name).to_owned(), summary.histogram))
}
