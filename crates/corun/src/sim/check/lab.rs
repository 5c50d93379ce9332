// SPDX-License-Identifier: GPL-2.0-only
//! What a comparison needs of a lab's result file.

use anyhow::{Context, Result, bail};
use corun_case::Case;
use corun_lab::results::{SCHEMA_VERSION, Spread};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A result of `corun lab run`.
#[derive(Debug, Deserialize)]
pub(super) struct LabResult {
    pub(super) accel: String,
    pub(super) host: Option<Host>,
    pub(super) case: Case,
    pub(super) case_text: String,
    pub(super) calibration: Calibration,
    pub(super) summary: Summary,
}

/// The emulated host.
#[derive(Debug, Deserialize)]
pub(super) struct Host {
    /// `uname -r`.
    pub(super) kernel: String,
}

/// What the boot was measured to have.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Calibration {
    pub(super) exit_ns: f64,
    pub(super) switch_ns: f64,
    pub(super) factor: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Summary {
    pub(super) guests: Vec<Measured>,
    pub(super) counters: Vec<Counters>,
}

/// A measured guest in a phase.
#[derive(Debug, Deserialize)]
pub(super) struct Measured {
    pub(super) phase: String,
    pub(super) guest: String,
    pub(super) solo: Option<Spread>,
    pub(super) schedulers: Vec<Figures>,
}

/// A guest under one scheduler.
#[derive(Debug, Deserialize)]
pub(super) struct Figures {
    pub(super) scheduler: String,
    pub(super) slowdown: Option<Spread>,
}

/// A phase under one scheduler.
#[derive(Debug, Deserialize)]
pub(super) struct Counters {
    phase: String,
    scheduler: String,
    cpu_share: BTreeMap<String, Spread>,
}

impl LabResult {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let name = file.display();
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("{name}: cannot read the lab's result"))?;
        let what = || format!("{name}: no result of `corun lab run`");
        let value: serde_json::Value = serde_json::from_str(&text).with_context(what)?;
        match value.get("schema_version").map(serde_json::Value::as_u64) {
            Some(Some(version)) if version == u64::from(SCHEMA_VERSION) => {}
            Some(Some(version)) => {
                bail!("{name}: version {version} of results: expected {SCHEMA_VERSION}")
            }
            _ => bail!("{}: it has no schema_version", what()),
        }
        if value
            .get("calibration")
            .is_some_and(serde_json::Value::is_null)
        {
            bail!("{name}: the boot was not calibrated: its time scale is unknown");
        }
        serde_json::from_value(value).with_context(what)
    }
}

impl Summary {
    /// CPU share of `guest` in `phase` under `scheduler`.
    pub(super) fn share(&self, phase: &str, scheduler: &str, guest: &str) -> Option<Spread> {
        let of = |c: &&Counters| c.phase == phase && c.scheduler == scheduler;
        self.counters.iter().find(of)?.cpu_share.get(guest).copied()
    }
}
