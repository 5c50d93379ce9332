// SPDX-License-Identifier: GPL-2.0-only
//! What the doctor found: its form, its order, its verdict.

use super::vm::VmReport;
use crate::features::Feature;
use serde::Serialize;

/// Version of [`Report`]'s JSON.
pub const REPORT_VERSION: u32 = 1;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know; the host is healthy with it.
    Note,
    /// Guests lose time, or something will go wrong.
    Warning,
    /// Guests lose much of their time, or the host can hang.
    Critical,
}

impl Severity {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }
}

/// Something to know, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Kind of finding; stable.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The VM that it concerns; none: the host.
    pub vm: Option<String>,
    /// What was found, in one sentence.
    pub what: String,
    /// What shows it, with figures.
    pub evidence: Vec<String>,
    /// What to do.
    pub next_step: String,
    /// Where the book says more.
    pub docs: String,
    /// Orders findings of one severity, larger first: for VMs, the share of time
    /// lost, 0 to 1.
    pub weight: f64,
}

impl Finding {
    /// A finding of the host, without evidence yet.
    pub(super) fn new(
        id: &'static str,
        severity: Severity,
        what: impl Into<String>,
        next_step: impl Into<String>,
    ) -> Self {
        Self {
            id,
            severity,
            vm: None,
            what: what.into(),
            evidence: Vec::new(),
            next_step: next_step.into(),
            docs: format!("reference/findings.md#{id}"),
            weight: 0.0,
        }
    }

    /// Adds what shows it.
    pub(super) fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// Says which VM it concerns, and how much of its time is lost.
    pub(super) fn of_vm(mut self, vm: &str, weight: f64) -> Self {
        self.vm = Some(vm.to_owned());
        self.weight = weight;
        self
    }
}

/// Something that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// What.
    pub what: String,
    /// Why, and what would show it.
    pub why: String,
    /// True when it can hide a problem: then "healthy" cannot be said.
    pub hides_problems: bool,
}

/// What it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No finding that matters. Exit code 0.
    Healthy,
    /// Findings that matter: warnings or worse. Exit code 1.
    Findings,
    /// None that matters, but something could not be looked at. Exit code 2.
    CouldNotLook,
}

impl Verdict {
    /// The command's exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Healthy => 0,
            Self::Findings => 1,
            Self::CouldNotLook => 2,
        }
    }
}

/// How VMs were watched.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sampled {
    /// How long. Seconds.
    pub length_s: f64,
    /// True: by BPF. False: by /proc, which knows run and ready time alone.
    pub by_bpf: bool,
}

/// All that the doctor has to say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`REPORT_VERSION`].
    pub corun_doctor: u32,
    /// Version of corun.
    pub version: &'static str,
    /// `uname -r`.
    pub kernel: String,
    /// What it comes to.
    pub verdict: Verdict,
    /// What the host has and lacks.
    pub features: Vec<Feature>,
    /// The VMs.
    pub vms: Vec<VmReport>,
    /// How the VMs were watched; none: they were not.
    pub sampled: Option<Sampled>,
    /// What was found, worst first.
    pub findings: Vec<Finding>,
    /// What was put right just now.
    pub repaired: Vec<String>,
    /// What could not be looked at.
    pub unseen: Vec<Unseen>,
}

/// What the checks write to.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) findings: Vec<Finding>,
    pub(super) repaired: Vec<String>,
    pub(super) unseen: Vec<Unseen>,
}

impl Notes {
    pub(super) fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Says what could not be looked at, where that can hide a problem.
    pub(super) fn blind(&mut self, what: &str, why: impl Into<String>) {
        self.unseen.push(Unseen {
            what: what.to_owned(),
            why: why.into(),
            hides_problems: true,
        });
    }

    /// Says what is not known, though the verdict does not depend on it.
    pub(super) fn unknown(&mut self, what: &str, why: impl Into<String>) {
        self.unseen.push(Unseen {
            what: what.to_owned(),
            why: why.into(),
            hides_problems: false,
        });
    }

    /// Worst first.
    pub(super) fn rank(&mut self) {
        self.findings.sort_by(|a, b| {
            (b.severity.cmp(&a.severity))
                .then(b.weight.total_cmp(&a.weight))
                .then_with(|| (a.id, &a.vm).cmp(&(b.id, &b.vm)))
        });
    }

    pub(super) fn verdict(&self) -> Verdict {
        if self.findings.iter().any(|f| f.severity > Severity::Note) {
            Verdict::Findings
        } else if self.unseen.iter().any(|u| u.hides_problems) {
            Verdict::CouldNotLook
        } else {
            Verdict::Healthy
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worse_comes_first_then_what_costs_more() {
        let mut notes = Notes::default();
        for (id, severity, weight) in [
            ("a", Severity::Note, 0.9),
            ("b", Severity::Warning, 0.1),
            ("c", Severity::Warning, 0.4),
            ("d", Severity::Critical, 0.0),
        ] {
            notes.find(Finding::new(id, severity, "", "").of_vm("web", weight));
        }
        notes.rank();
        let order: Vec<_> = notes.findings.iter().map(|f| f.id).collect();
        assert_eq!(order, ["d", "c", "b", "a"]);
    }

    #[test]
    fn a_note_is_healthy_and_a_blind_spot_is_not() {
        let mut notes = Notes::default();
        notes.find(Finding::new("a", Severity::Note, "", ""));
        notes.unknown("b", "");
        assert_eq!(notes.verdict(), Verdict::Healthy);
        notes.blind("c", "");
        assert_eq!(notes.verdict(), Verdict::CouldNotLook);
        notes.find(Finding::new("d", Severity::Warning, "", ""));
        assert_eq!(
            notes.verdict(),
            Verdict::Findings,
            "what matters goes first"
        );
    }
}
