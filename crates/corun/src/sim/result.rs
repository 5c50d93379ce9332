// SPDX-License-Identifier: GPL-2.0-only
//! What `corun sim run` gives as JSON. Additions keep the schema version;
//! changes raise it.

use super::input::Input;
use super::summary::{self, GuestSummary};
use corun_case::Case;
use corun_sim::batch::Job;
use corun_sim::outcome::{ACCOUNT_NAMES, Accounts};
use corun_sim::{Outcome, VmOutcome};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Version of the result's form.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// Everything that one case gave.
#[derive(Debug, Serialize)]
pub(crate) struct SimResult {
    pub(crate) schema_version: u32,
    /// corun's version.
    pub(crate) version: &'static str,
    /// The case as it was run.
    pub(crate) case: Case,
    /// The case file's text, without the changes.
    pub(crate) case_text: String,
    /// SHA-256 of it, hexadecimal.
    pub(crate) case_sha256: String,
    /// The machine that the case was run on, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) machine: Option<String>,
    /// How many of `set`, the first ones, are the machine's.
    #[serde(skip)]
    pub(crate) by_machine: usize,
    /// Changes by the machine and from the command line, in their order.
    pub(crate) set: Vec<String>,
    /// SHA-256 of each model, hexadecimal.
    pub(crate) models: BTreeMap<String, String>,
    pub(crate) runs: Vec<Run>,
    pub(crate) summary: Vec<GuestSummary>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) phase: String,
    pub(crate) scheduler: String,
    /// The guest that had the host to itself.
    pub(crate) solo: Option<String>,
    pub(crate) repeat: u32,
    pub(crate) seed: u64,
    pub(crate) measured_ns: u64,
    /// Events that the simulator handled.
    pub(crate) events: u64,
    /// Hash of all that happened; the same on every machine. Hexadecimal, since
    /// many readers of JSON cannot hold 64 bits.
    pub(crate) trace_hash: String,
    /// Where the pCPUs' time went. Nanoseconds.
    pub(crate) pcpus: BTreeMap<String, u64>,
    pub(crate) guests: Vec<GuestRun>,
}

/// One guest in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GuestRun {
    pub(crate) name: String,
    /// Units of work, by program.
    pub(crate) units: Vec<u64>,
    /// Units of the first program a second; `None` for an idle guest.
    pub(crate) rate_per_s: Option<f64>,
    /// pCPU time of the guest; `None` if nobody used any.
    pub(crate) cpu_share: Option<f64>,
    /// Where its time went. Nanoseconds of pCPUs.
    pub(crate) accounts: BTreeMap<String, u64>,
    /// Counts, from the end of the warm-up.
    pub(crate) counters: BTreeMap<String, u64>,
    /// Distributions by name.
    pub(crate) latency: BTreeMap<String, Latency>,
}

/// A distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) count: u64,
    pub(crate) mean_ns: f64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) max_ns: u64,
}

impl Latency {
    /// Of `histogram`; `None` when nothing is in it.
    pub(crate) fn of(histogram: &Histogram<u64>) -> Option<Self> {
        (!histogram.is_empty()).then(|| Self {
            count: histogram.len(),
            mean_ns: histogram.mean(),
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        })
    }
}

impl SimResult {
    /// Of `jobs`, which gave `outcomes`.
    pub(crate) fn new(input: &Input, case: &Case, jobs: &[Job], outcomes: &[Outcome]) -> Self {
        let runs = jobs.iter().zip(outcomes);
        Self {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            case: case.clone(),
            case_text: input.text.clone(),
            case_sha256: sha256(&input.text),
            machine: input.machine.clone(),
            by_machine: input.by_machine,
            set: input.sets.iter().map(ToString::to_string).collect(),
            models: models_sha256(input),
            summary: summary::of(case, jobs, outcomes),
            runs: runs.map(|(job, outcome)| Run::new(job, outcome)).collect(),
        }
    }
}

impl Run {
    pub(crate) fn new(job: &Job, outcome: &Outcome) -> Self {
        Self {
            phase: job.phase.clone(),
            scheduler: job.scheduler.clone(),
            solo: job.solo.clone(),
            repeat: job.repeat,
            seed: job.case.sim.seed.wrapping_add(u64::from(job.repeat)),
            measured_ns: outcome.measured_ns,
            events: outcome.events,
            trace_hash: format!("{:016x}", outcome.trace_hash),
            pcpus: by_name(&outcome.pcpus),
            guests: outcome
                .vms
                .iter()
                .map(|vm| GuestRun::new(vm, outcome))
                .collect(),
        }
    }
}

impl GuestRun {
    fn new(vm: &VmOutcome, outcome: &Outcome) -> Self {
        let latency = |(name, h): (&String, &Histogram<u64>)| Some((name.clone(), Latency::of(h)?));
        Self {
            name: vm.name.clone(),
            units: vm.units.clone(),
            rate_per_s: vm.figure("rate", outcome.measured_ns),
            cpu_share: cpu_share(outcome, &vm.name),
            accounts: by_name(&vm.accounts),
            counters: vm.counters.clone(),
            latency: vm.histograms.iter().filter_map(latency).collect(),
        }
    }
}

/// Guest `name`'s share of all guests' pCPU time.
pub(crate) fn cpu_share(outcome: &Outcome, name: &str) -> Option<f64> {
    let used = |vm: &VmOutcome| vm.accounts.iter().sum::<u64>();
    let all: u64 = outcome.vms.iter().map(used).sum();
    (all > 0).then(|| outcome.vm(name).map_or(0, used) as f64 / all as f64)
}

fn by_name(accounts: &Accounts) -> BTreeMap<String, u64> {
    let names = ACCOUNT_NAMES.iter().map(ToString::to_string);
    names.zip(accounts.iter().copied()).collect()
}

/// SHA-256 of `text`, hexadecimal.
pub(crate) fn sha256(text: impl AsRef<[u8]>) -> String {
    format!("{:x}", Sha256::digest(text))
}

/// SHA-256 of each model, hexadecimal.
pub(crate) fn models_sha256(input: &Input) -> BTreeMap<String, String> {
    let hash = |name: &str| Some((name.to_owned(), sha256(input.models.text(name)?)));
    input.models.names().filter_map(hash).collect()
}
