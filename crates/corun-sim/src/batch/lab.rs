// SPDX-License-Identifier: GPL-2.0-only
//! The lab's workloads, and which model stands for which of their variants.
//! Names, parameters and defaults are those of `lab/agent/src/workload/`.

/// A workload of the lab's agent.
pub(super) struct LabWorkload {
    /// Its name.
    pub(super) name: &'static str,
    /// The parameter that says what it does, and its default. Each value has a
    /// model of its own.
    pub(super) variant: Option<(&'static str, &'static str)>,
    /// Parameters that say how much of it; models stand for the defaults alone.
    pub(super) amounts: &'static [(&'static str, &'static str)],
}

/// All of them.
pub(super) static LAB: [LabWorkload; 8] = [
    LabWorkload {
        name: "cpu",
        variant: None,
        amounts: &[("iterations", "32768")],
    },
    LabWorkload {
        name: "forkexec",
        variant: Some(("command", "mix")),
        amounts: &[("kib", "64")],
    },
    LabWorkload {
        name: "hackbench",
        variant: Some(("via", "socket")),
        amounts: &[
            ("groups", "1"),
            ("fds", "10"),
            ("loops", "200"),
            ("tasks", "process"),
        ],
    },
    LabWorkload {
        name: "lock",
        variant: Some(("op", "dentry")),
        amounts: &[],
    },
    LabWorkload {
        name: "pingpong",
        variant: Some(("via", "tcp")),
        amounts: &[],
    },
    LabWorkload {
        name: "stress-ng",
        variant: Some(("stressor", "mutex")),
        amounts: &[("slice_s", "5")],
    },
    LabWorkload {
        name: "sysbench",
        variant: Some(("test", "threads")),
        amounts: &[("events", "150"), ("acquisitions", "10000"), ("locks", "1")],
    },
    LabWorkload {
        name: "tlb",
        variant: Some(("op", "mix")),
        amounts: &[("pages", "16"), ("initiators", "0")],
    },
];

impl LabWorkload {
    /// The lab's workload called `name`.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        LAB.iter().find(|w| w.name == name)
    }

    /// Names of models, those of `lab`, that may stand for `variant` (`None`: the
    /// default one), the best first.
    pub(super) fn model_names(&self, lab: &str, variant: Option<&str>) -> Vec<String> {
        let default = self.variant.map(|(_, default)| default);
        let mut names = Vec::new();
        if let Some(variant) = variant.or(default) {
            names.push(format!("{lab}-{}-{variant}", self.name));
        }
        if variant.is_none() || variant == default {
            names.extend([format!("{lab}-{}", self.name), self.name.to_owned()]);
        }
        names
    }
}
