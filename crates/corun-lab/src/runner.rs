// SPDX-License-Identifier: GPL-2.0-only
//! Runs a case from this machine: boots L1 until a boot gives figures that may
//! be used, judges windows by how disturbed the machine was, collects.

mod collect;
mod watch;

pub use watch::{Step, Steps, Watch};

use crate::boot::{
    Accel, AttemptError, Boot, BootError, BootSpec, Failure, Next, run_with_retries,
};
use crate::case::Case;
use crate::driver::estimate;
use crate::image::{Image, RunLayer};
use crate::paths::LabDirs;
use crate::results::{BootCounts, CaseResult, GateOutcome, SCHEMA_VERSION, SchedulerInfo, Summary};
pub use collect::Limits;
use collect::{Collector, MachineClock};
use corun_lab_proto::control::Report;
use corun_lab_proto::{HistogramError, PROTOCOL_VERSION};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What L1's init runs.
const ENTRY: &str = "#!/bin/sh\nexec corun lab-driver /corun/case.json\n";
/// Longest silence of a driver beyond one window: it reports each step, and the
/// slowest step is loading a scheduler or waiting for slow guests.
const SILENCE: Duration = Duration::from_secs(200);
/// And that many times as long, at most, where L1 is slow: verifying `scx_lavd` takes more
/// than four minutes then.
const MOST_SILENCES: u32 = 6;

/// How to run a case.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// What runs L1's instructions.
    pub accel: Accel,
    /// Boots in all whose figures the gate may judge.
    pub boots: u32,
    /// Retries of a boot that an emulator fault ended.
    pub retries: u32,
    /// Disturbance beyond which a window is measured again.
    pub limits: Limits,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            accel: Accel::default(),
            boots: 3,
            retries: 3,
            limits: Limits {
                steal: 0.05,
                foreign: 0.1,
            },
        }
    }
}

impl RunOptions {
    fn limits(&self) -> Limits {
        if self.accel.feels_this_machine() {
            self.limits
        } else {
            Limits::NONE
        }
    }
}

/// Why a case gave no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The last boot failed.
    #[error("{source}\nboots started: {started}, lost to emulator faults: {faults}")]
    Boot {
        /// Why.
        source: AttemptError,
        /// Boots started.
        started: u32,
        /// Boots that an emulator fault ended.
        faults: usize,
    },
    /// The gate refused every boot.
    #[error(
        "the sanity gate refused {} boot(s): CPU-only slowdowns {} instead of 2.0 +- {} %; \
         this machine is too disturbed for figures. Next: stop other programs, allow more \
         boots (--boots), or widen gate.tolerance",
        .outcomes.len(), slowdowns(.outcomes), .tolerance * 100.0
    )]
    Gate {
        /// What the gate said of each boot.
        outcomes: Vec<GateOutcome>,
        /// The case's tolerance.
        tolerance: f64,
    },
    /// A latency distribution cannot be read.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// The case cannot be sent to L1.
    #[error("encoding the case: {0}")]
    Encode(#[from] serde_json::Error),
}

fn slowdowns(outcomes: &[GateOutcome]) -> String {
    let each: Vec<String> = outcomes
        .iter()
        .map(|o| format!("{:.2}", o.slowdown))
        .collect();
    each.join(", ")
}

/// How L1 is booted for `case`.
pub fn boot_spec(case: &Case, accel: Accel) -> BootSpec {
    BootSpec {
        pcpus: case.host.pcpus,
        memory_mib: case.host.memory_mib,
        accel,
        ..BootSpec::default()
    }
}

/// Runs `case` (whose file says `case_text`) on `image`, telling `watch` about
/// each step, until it is done or `stop` is set.
pub fn run_case(
    case: &Case,
    case_text: &str,
    image: &Image,
    dirs: &LabDirs,
    options: &RunOptions,
    watch: &mut dyn Watch,
    stop: &AtomicBool,
) -> Result<CaseResult, RunError> {
    let json = serde_json::to_string(case)?;
    let mut one_boot = |_| {
        let layer = RunLayer::new(ENTRY).with("case.json", json.as_bytes());
        let boot = Boot::start(&boot_spec(case, options.accel), image, &layer, dirs)?;
        drive(boot, case, options, watch, stop)
    };
    let mut boots = BootCounts::default();
    for _ in 0..options.boots.max(1) {
        let outcome = run_with_retries(options.retries, &mut one_boot);
        let faults = u32::try_from(outcome.faults.len()).unwrap_or(u32::MAX);
        boots.started += faults;
        boots.emulator_faults.extend(outcome.faults);
        let collected = match outcome.result {
            Ok(collected) => collected,
            Err(source) => {
                let lost = matches!(&source, AttemptError::Diagnosed(d) if d.is_emulator_suspect());
                return Err(RunError::Boot {
                    source,
                    started: boots.started + u32::from(!lost),
                    faults: boots.emulator_faults.len(),
                });
            }
        };
        boots.started += 1;
        match collected.gate {
            Some(gate) if !gate.passed => {
                watch_gate(&gate);
                boots.gate_rejected.push(gate);
            }
            _ => return Ok(result(case, case_text, image, options, boots, collected)?),
        }
    }
    Err(RunError::Gate {
        outcomes: boots.gate_rejected,
        tolerance: case.gate.tolerance,
    })
}

fn watch_gate(gate: &GateOutcome) {
    eprintln!(
        "The sanity gate refuses this boot: CPU-only slowdown {:.3}, solo on {:.2} pCPUs.",
        gate.slowdown, gate.solo_pcpus
    );
}

/// One boot, from its start to the driver's last word.
fn drive(
    mut boot: Boot,
    case: &Case,
    options: &RunOptions,
    watch: &mut dyn Watch,
    stop: &AtomicBool,
) -> Result<Collector, AttemptError> {
    let slowness = options.accel.slowness();
    // Refused windows may triple the time; beyond that something is wrong.
    let deadline = estimate(case) * 4 * slowness;
    let silence = SILENCE * slowness.min(MOST_SILENCES)
        + Duration::from_secs_f64(longest_window_s(case)) * slowness;
    let mut collector = Collector::new(MachineClock, options.limits());
    loop {
        if boot.age() > deadline {
            let message = format!("the case did not end in {} s", deadline.as_secs());
            return Err(boot.diagnose(reported(message, true)).into());
        }
        match boot.next(silence, stop)? {
            Next::Report(Report::Done) => return finish(boot, collector, stop),
            Next::Report(Report::Failed {
                message,
                emulator_suspect,
            }) => {
                return Err(boot.diagnose(reported(message, emulator_suspect)).into());
            }
            Next::Report(Report::Hello { protocol, .. }) if protocol != PROTOCOL_VERSION => {
                let message = format!(
                    "the driver in L1 speaks protocol {protocol}, this program {PROTOCOL_VERSION}"
                );
                return Err(boot.diagnose(reported(message, false)).into());
            }
            Next::Report(report) => {
                watch.see(&report);
                if let Some(order) = collector.take(report).map_err(clock_error)? {
                    boot.send(&order)?;
                }
            }
            Next::Silent => return Err(boot.diagnose(Failure::Silent { waited: silence }).into()),
            Next::Ended => return Err(boot.diagnose(Failure::Ended).into()),
        }
    }
}

fn clock_error(error: std::io::Error) -> BootError {
    BootError::Io("reading /proc/stat".to_owned(), error)
}

fn reported(message: String, emulator_suspect: bool) -> Failure {
    Failure::Reported {
        message,
        emulator_suspect,
    }
}

/// The driver is done: L1 powers off by itself, or is ended when it hangs.
fn finish(
    mut boot: Boot,
    collector: Collector,
    stop: &AtomicBool,
) -> Result<Collector, AttemptError> {
    boot.wait_exit(Duration::from_secs(10), stop)?;
    Ok(collector)
}

fn longest_window_s(case: &Case) -> f64 {
    let longest = |p| case.warmup_s(p) + case.measure_s(p);
    case.phases.iter().map(longest).fold(0.0, f64::max)
}

fn result(
    case: &Case,
    case_text: &str,
    image: &Image,
    options: &RunOptions,
    boots: BootCounts,
    collected: Collector,
) -> Result<CaseResult, HistogramError> {
    let mut versions = image.versions.clone();
    versions.insert("corun".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let summary = Summary::of(case, &collected.samples)?;
    let factor = collected.calibration.as_ref().map_or(1.0, |c| c.factor);
    let schedulers = case.schedulers.iter();
    Ok(CaseResult {
        schema_version: SCHEMA_VERSION,
        case: case.clone(),
        case_text: case_text.to_owned(),
        case_sha256: hex(&Sha256::digest(case_text.as_bytes())),
        versions,
        accel: format!("{:?}", options.accel).to_lowercase(),
        host: collected.host,
        schedulers: schedulers.map(|s| SchedulerInfo::of(s, factor)).collect(),
        guests: collected.guests,
        calibration: collected.calibration,
        gate: collected.gate,
        boots,
        windows: collected.windows,
        warnings: collected.warnings,
        samples: collected.samples,
        summary,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{b:02x}");
        text
    })
}
