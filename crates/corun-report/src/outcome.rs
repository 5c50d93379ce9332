// SPDX-License-Identifier: GPL-2.0-only
//! What a result of the lab and one of the simulator have in common.

use crate::model::Fact;
use corun_lab::results::Spread;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// A case's figures.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    /// The case's name and title.
    pub(crate) title: String,
    /// Case, versions, time scale and the like.
    pub(crate) facts: Vec<Fact>,
    /// The case file's text.
    pub(crate) case_text: String,
    /// What was lost, measured again or refused.
    pub(crate) losses: Vec<String>,
    /// Labels of the schedulers, in the case's order; the first is "before".
    pub(crate) schedulers: Vec<String>,
    /// How each of them was run.
    pub(crate) programs: Vec<Fact>,
    /// Workload models and their SHA-256; simulator only.
    pub(crate) models: Vec<Fact>,
    /// A row for each measured guest of each phase.
    pub(crate) rows: Vec<Measured>,
    /// CPU shares, by phase and scheduler.
    pub(crate) shares: Vec<Shares>,
    /// Counters by phase and scheduler.
    pub(crate) counters: Vec<Counters>,
    /// What vCPUs waited for; lab only, where the case asks for it.
    pub(crate) waits: Vec<Waits>,
    /// What was taken away from each window; lab only.
    pub(crate) windows: Vec<Window>,
}

/// A measured guest in a phase.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    pub(crate) phase: String,
    pub(crate) guest: String,
    pub(crate) workload: String,
    /// Unit of its rates, per second.
    pub(crate) unit: String,
    /// Slowdown of a CPU-bound guest on a perfectly fair host.
    pub(crate) ideal: Option<f64>,
    /// With the host to itself.
    pub(crate) alone: Option<Figures>,
    /// Beside the others, by scheduler's label.
    pub(crate) under: Vec<(String, Figures)>,
}

impl Measured {
    /// Its figures under the scheduler of that label.
    pub(crate) fn of(&self, scheduler: &str) -> Option<&Figures> {
        let found = self.under.iter().find(|(label, _)| label == scheduler);
        found.map(|(_, figures)| figures)
    }

    /// Phase and guest, one line.
    pub(crate) fn name(&self) -> String {
        format!("{} · {}", self.phase, self.guest)
    }
}

/// One guest's figures. Spreads are over repeats.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Figures {
    /// Per second.
    pub(crate) rate: Option<Spread>,
    /// Against running alone.
    pub(crate) slowdown: Option<Spread>,
    /// Where its time went: shares by account; simulator only.
    pub(crate) profile: BTreeMap<String, f64>,
    /// Distributions over all repeats.
    pub(crate) latency: Vec<Latency>,
}

/// A distribution of times.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Latency {
    /// What one sample is.
    pub(crate) what: String,
    /// Nanoseconds.
    pub(crate) histogram: Histogram<u64>,
}

/// CPU shares in a phase under a scheduler, by VM.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shares {
    pub(crate) phase: String,
    pub(crate) scheduler: String,
    /// VM, its share of all VMs' CPU time, what it is entitled to.
    pub(crate) vms: Vec<(String, Spread, Option<f64>)>,
}

/// Counters in a phase under a scheduler.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Counters {
    pub(crate) phase: String,
    pub(crate) scheduler: String,
    /// Each a second.
    pub(crate) per_s: BTreeMap<String, f64>,
}

/// What one guest's vCPUs waited for in a phase.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waits {
    pub(crate) phase: String,
    pub(crate) guest: String,
    /// Empty: alone.
    pub(crate) scheduler: String,
    /// By name.
    pub(crate) latency: Vec<Latency>,
}

/// A measured window as the machine saw it; shares of its CPU time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    pub(crate) steal: f64,
    pub(crate) foreign: f64,
    pub(crate) accepted: bool,
}
