// SPDX-License-Identifier: GPL-2.0-only
//! Scenarios for tests.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod random;

use corun_case::sim::{Costs, Kvm, Ple, SchedTunables, SimGuest};
use corun_case::{PvFeatures, SchedulerKind};
use corun_policy::Tunables;
use corun_sim::workload::Model;
use corun_sim::{Outcome, Scenario, SchedulerSpec, VmSpec, WorkSpec};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

fn models() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// The shipped model called `name`.
pub(crate) fn model(name: &str) -> Model {
    let file = models().join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
    toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// A model of a test's own: what comes after its name and title.
pub(crate) fn model_of(name: &str, body: &str) -> Model {
    let head = format!("name = '{name}'\ntitle = ''\nderivation = ''\nunit = ''\n");
    toml::from_str(&(head + body)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Pause-loop exiting with a window that stays as it is.
pub(crate) fn fixed_window() -> Ple {
    Ple {
        grow: 0,
        ..Ple::default()
    }
}

/// The model called `name` of `tests/golden`.
pub(crate) fn fixed_model(name: &str) -> Model {
    let text = match name {
        "storm" => include_str!("../golden/storm.toml"),
        "pipe" => include_str!("../golden/pipe.toml"),
        "gang" => include_str!("../golden/gang.toml"),
        "wire" => include_str!("../golden/wire.toml"),
        "burn" => include_str!("../golden/burn.toml"),
        _ => panic!("no model {name} in tests/golden"),
    };
    toml::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// What `name` came to in guest "a".
pub(crate) fn figure(outcome: &Outcome, name: &str) -> f64 {
    let vm = outcome.vm("a").expect("guest");
    let figure = vm.figure(name, outcome.measured_ns);
    figure.unwrap_or_else(|| panic!("{name}: not counted"))
}

/// A guest with the usual kernel.
pub(crate) fn vm_spec(name: &str, vcpus: u32, work: Vec<WorkSpec>) -> VmSpec {
    VmSpec {
        name: name.to_owned(),
        vcpus,
        weight: 100,
        kernel: SimGuest::default(),
        pv: PvFeatures::default(),
        work,
    }
}

/// Names of all shipped models.
pub(crate) fn model_names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(models())
        .expect("models")
        .filter_map(|entry| {
            let path = entry.expect("entry").path();
            Some(path.file_stem()?.to_str()?.to_owned())
        })
        .collect();
    names.sort();
    names
}

/// Builds a scenario.
pub(crate) struct Build(Scenario);

impl Build {
    pub(crate) fn new(pcpus: u32, kind: SchedulerKind) -> Self {
        Self(Scenario {
            seed: 1,
            warmup_ns: 50_000_000,
            measure_ns: 0,
            pcpus,
            threads_per_core: 1,
            pcpus_per_llc: 0,
            costs: Costs::default(),
            kvm: Kvm::default(),
            scheduler: SchedulerSpec {
                kind,
                settings: SchedTunables::default(),
                tunables: Tunables::default(),
                mechanisms: corun_policy::Mechanisms::ALL,
            },
            vms: Vec::new(),
            check: true,
        })
    }

    pub(crate) fn vm(self, name: &str, vcpus: u32, workload: &str) -> Self {
        self.vm_of(name, vcpus, model(workload))
    }

    /// A guest that runs a model of the test's own.
    pub(crate) fn vm_of(mut self, name: &str, vcpus: u32, model: Model) -> Self {
        let work = WorkSpec {
            model: Arc::new(model),
            threads: None,
        };
        self.0.vms.push(vm_spec(name, vcpus, vec![work]));
        self
    }

    /// A guest that runs models of `tests/golden`, which no tuning changes.
    pub(crate) fn fixed_vm(mut self, name: &str, vcpus: u32, models: &[&str]) -> Self {
        let work = models.iter().map(|m| WorkSpec {
            model: Arc::new(fixed_model(m)),
            threads: None,
        });
        self.0.vms.push(vm_spec(name, vcpus, work.collect()));
        self
    }

    pub(crate) fn seconds(mut self, seconds: f64) -> Self {
        let ns = Duration::from_secs_f64(seconds).as_nanos();
        self.0.measure_ns = u64::try_from(ns).expect("fewer than 500 years");
        self
    }

    pub(crate) fn scenario(self) -> Scenario {
        self.0
    }
}
