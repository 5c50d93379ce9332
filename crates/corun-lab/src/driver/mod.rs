// SPDX-License-Identifier: GPL-2.0-only
//! The program that drives a case inside the emulated host (L1): starts the
//! guests, measures, and reports to the runner on L0.

mod agents;
mod beside;
mod boot;
mod calibrate;
mod cgroup;
mod control;
mod counters;
mod error;
#[cfg(test)]
mod fake;
mod gate;
mod host_task;
mod kmsg;
mod latency;
mod loaded;
mod phases;
mod plan;
mod procfs;
mod qemu;
mod rt;
mod sched_ext;
mod scheduler;
mod session;
mod window;

pub use error::DriverError;
pub use plan::{Step, Window, estimate, plan};
pub(crate) use scheduler::arguments;

use crate::case::Case;
use control::Control;
use corun_lab_proto::control::Report;
use counters::HostCounters;
use error::{Context, Result};
use host_task::HostTask;
use latency::Latency;
use nix::sys::signal::{SigSet, Signal};
use qemu::Places;
use session::Session;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How to drive.
#[derive(Debug, Clone)]
pub struct DriverOptions {
    /// The case as JSON, written by the runner.
    pub case: PathBuf,
    /// Start the guests, then wait for SIGINT or SIGTERM, and measure nothing.
    pub guests_only: bool,
    /// ... while they do the work of the case's first phase.
    pub load: bool,
    /// The `corun` program to run; this program itself when absent.
    pub corun: Option<PathBuf>,
}

/// Drives the case, reports how it went, and returns whether it went well. All
/// failures have been reported when this returns.
pub fn run(options: &DriverOptions) -> bool {
    match drive(options) {
        Ok(()) => true,
        Err(e) => {
            eprintln!("corun lab-driver: {e}");
            false
        }
    }
}

fn drive(options: &DriverOptions) -> Result<()> {
    if options.guests_only {
        return hold_guests(&read_case(&options.case)?, options.load);
    }
    let mut control = Control::open()?;
    let (case, observers) = match read_case(&options.case).and_then(Observers::attach) {
        Ok(both) => both,
        Err(e) => {
            control.send(&failed(&e))?;
            return Err(e);
        }
    };
    rt::make_responsive();
    let mut session = Session::new(control, Box::new(observers.counters), Places::default());
    session.latency = observers.latency;
    session.host_task = observers.host_task;
    let outcome = drive_case(&mut session, &case, options);
    session.stop_guests();
    for text in kmsg::alarms() {
        session.report(&Report::Warning { text })?;
    }
    match &outcome {
        Ok(()) => session.report(&Report::Done)?,
        Err(e) => session.report(&failed(e))?,
    }
    outcome
}

/// What watches the host: attached once, before there are guests, because each
/// attachment patches L1's kernel text.
struct Observers {
    counters: HostCounters,
    latency: Option<Latency>,
    host_task: Option<HostTask>,
}

impl Observers {
    /// Attaches those that `case` asks for.
    fn attach(case: Case) -> Result<(Case, Self)> {
        let latency = case.case.latency.then(Latency::attach).transpose()?;
        let observers = Self {
            counters: HostCounters::attach()?,
            latency,
            host_task: case.case.host_task.then(HostTask::start),
        };
        Ok((case, observers))
    }
}

fn drive_case(session: &mut Session, case: &Case, options: &DriverOptions) -> Result<()> {
    boot::hello(session)?;
    let _key_holder = boot::start_guests(session, case)?;
    let calibration = calibrate::calibrate(session, case)?;
    let factor = calibration.factor;
    let slice = Duration::from_nanos(calibration.slice_ns);
    session.report(&Report::Calibration(calibration))?;
    if case.gate.enabled && !gate::pass(session, case, slice)? {
        return Ok(());
    }
    let program = match &options.corun {
        Some(path) => path.clone(),
        None => std::env::current_exe().doing(|| "find this program".to_owned())?,
    };
    phases::run(session, case, &program, factor)
}

fn failed(error: &DriverError) -> Report {
    Report::Failed {
        message: error.to_string(),
        emulator_suspect: matches!(error, DriverError::EmulatorSuspect(_)),
    }
}

fn read_case(path: &Path) -> Result<Case> {
    let doing = || format!("read the case {}", path.display());
    let text = fs::read_to_string(path).doing(doing)?;
    serde_json::from_str(&text).doing(doing)
}

/// Guests for a person at a shell in L1.
fn hold_guests(case: &Case, load: bool) -> Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    // Before any thread starts: a signal must wait for us, wherever it lands.
    signals
        .thread_block()
        .doing(|| "block signals".to_owned())?;
    let nobody = Control::silent();
    let mut session = Session::new(nobody, Box::new(counters::None), Places::default());
    let _key_holder = boot::start_guests(&mut session, case)?;
    if let Some(phase) = case.phases.first().filter(|_| load) {
        window::start_load(&mut session, phase)?;
    }
    println!("corun lab-driver: guests are up; they end with this process");
    signals.wait().doing(|| "wait for a signal".to_owned())?;
    session.stop_guests();
    Ok(())
}
