// SPDX-License-Identifier: GPL-2.0-only
//! Scenarios for tests.

use corun_case::sim::{Costs, Kvm, SchedTunables, SimGuest};
use corun_case::{PvFeatures, SchedulerKind};
use corun_policy::Tunables;
use corun_sim::workload::Model;
use corun_sim::{Scenario, SchedulerSpec, VmSpec, WorkSpec};
use std::path::PathBuf;
use std::sync::Arc;

fn models() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// The shipped model called `name`.
pub fn model(name: &str) -> Model {
    let file = models().join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
    toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Names of all shipped models.
pub fn model_names() -> Vec<String> {
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
pub struct Build(Scenario);

impl Build {
    pub fn new(pcpus: u32, kind: SchedulerKind) -> Self {
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
                directed_yield: true,
            },
            vms: Vec::new(),
            check: true,
        })
    }

    pub fn vm(mut self, name: &str, vcpus: u32, workload: &str) -> Self {
        self.0.vms.push(VmSpec {
            name: name.to_owned(),
            vcpus,
            weight: 100,
            kernel: SimGuest::default(),
            pv: PvFeatures::default(),
            work: vec![WorkSpec {
                model: Arc::new(model(workload)),
                threads: None,
            }],
        });
        self
    }

    pub fn seconds(mut self, seconds: f64) -> Self {
        self.0.measure_ns = (seconds * 1e9) as u64;
        self
    }

    pub fn scenario(self) -> Scenario {
        self.0
    }
}
