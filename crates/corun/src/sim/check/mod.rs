// SPDX-License-Identifier: GPL-2.0-only
//! `corun sim check`: the simulator against the lab.

mod compare;
mod lab;
mod table;

use super::input::load_models;
use super::progress::Progress;
use super::summary;
use anyhow::{Context, Result};
use compare::{Comparison, Report};
use corun_case::{Override, Target, parse_for};
use corun_sim::batch;
use corun_sim::machines::Machine;
use lab::LabResult;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const EXAMPLES: &str = "Examples:
  corun sim check docs/results/demo.json
  corun sim check docs/results/*.json --out sim-vs-lab.json";

/// Simulate what the lab measured, show both side by side
///
/// Takes results of `corun lab run`. The case in each is run in the simulator, on
/// the machine `lab` with the time scale and the costs of exits and switches that
/// the result's boot was measured to have (with `--accel icount`: on `lab-icount`,
/// where these are the same in all boots), in windows of the same length. Shows
/// slowdowns, shares of CPU time, the simulator's error, and whether the same
/// scheduler wins where the lab's spreads leave a winner.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Results of `corun lab run`
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// The machine to simulate: a name, or a file [default: lab, or lab-icount for results
    /// of `--accel icount`]
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Windows of each kind, with a seed each
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Also use the workload models of this folder; they go before shipped ones
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
    /// Threads [default: all that this machine has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Write the comparison as JSON into this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the comparison as JSON instead of tables
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, stop: &Arc<AtomicBool>) -> Result<()> {
    // All of them first: nobody should wait for the third to be unreadable.
    let labs = args
        .results
        .iter()
        .map(|file| LabResult::read(file.as_path()));
    let labs = labs.collect::<Result<Vec<_>>>()?;
    let mut results = Vec::new();
    for (lab, file) in labs.iter().zip(&args.results) {
        results.push(check(args, lab, file, stop)?);
    }
    let report = Report::new(results);
    let text = serde_json::to_string_pretty(&report)?;
    if let Some(out) = &args.out {
        std::fs::write(out, &text).with_context(|| format!("writing {}", out.display()))?;
    }
    if args.json {
        println!("{text}");
    } else {
        print!("{}", table::render(&report));
    }
    Ok(())
}

fn check(args: &Args, lab: &LabResult, file: &Path, stop: &Arc<AtomicBool>) -> Result<Comparison> {
    let failed = || format!("{}: simulating its case", file.display());
    let mut machine = Machine::find(machine_of(args, lab))?;
    if let Some(host) = &lab.host {
        machine.run_kernel(&host.kernel);
    }
    let models = load_models(args.models.as_ref())?.of_lab(&machine.lab_models);
    let c = lab.calibration;
    machine.calibrate(c.factor, whole(c.exit_ns), whole(c.switch_ns));
    let mut sets = machine.overrides(&lab.case_text).with_context(failed)?;
    // The command line of the lab may have changed these.
    let general = &lab.case.case;
    for set in [
        format!("case.time_scale={:?}", c.factor),
        format!("case.repeats={}", args.repeats),
        format!("case.measure_s={:?}", general.measure_s),
        format!("case.warmup_s={:?}", general.warmup_s),
    ] {
        sets.push(set.parse::<Override>()?);
    }
    let case = parse_for(&lab.case_text, file, Target::Sim(&models), &sets);
    let case = Arc::new(case.with_context(failed)?);
    let jobs = batch::jobs(&case);
    let threads = args.threads.map_or_else(batch::threads, usize::from);
    let progress = Progress::new(jobs.len(), stop, "stopped");
    let done = |done| progress.set(done);
    let outcomes = batch::run_all(&jobs, &models, threads, &done, stop);
    drop(progress);
    let simulated = summary::of(&case, &jobs, &outcomes?);
    Ok(Comparison::new(file, lab, machine.name, &simulated))
}

/// What the lab's machine is called, by what ran its instructions.
fn machine_of<'a>(args: &'a Args, lab: &LabResult) -> &'a str {
    let by_lab = if lab.accel == "icount" {
        "lab-icount"
    } else {
        "lab"
    };
    args.machine.as_deref().unwrap_or(by_lab)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from floating point saturates, and costs have upper bounds"
)]
fn whole(ns: f64) -> u64 {
    ns.round() as u64
}
