// SPDX-License-Identifier: GPL-2.0-only
//! `corun sim run`.

use super::input::CaseArgs;
use super::progress::Progress;
use super::result::SimResult;
use super::table;
use anyhow::{Context, Result};
use corun_sim::batch;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const EXAMPLES: &str = "Examples:
  corun sim run demo
  corun sim run demo --profile --latency
  corun sim run demo --machine lab
  corun sim run demo --set host.pcpus=16 --set 'guest[0].vcpus=16' --set 'guest[1].vcpus=16'";

/// Run a case in the simulator, print its tables
///
/// Takes the same case files as `corun lab run`, and needs no machine: hosts of
/// up to 4096 pCPUs, other schedulers (CFS, EEVDF, Xen's credit, co-scheduling),
/// hardware with or without pause-loop exiting. Measures each phase under each
/// scheduler, and alone under the first one where the phase says `solo`. The
/// same seed gives the same run on every machine; repeat n has seed + n.
///
/// Time in the simulator is the hardware's, so `time_scale = "auto"` is 1, unless
/// `--machine` says otherwise.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    case: CaseArgs,
    /// Also show where guests spent their time: user, k:lock, k:tlb, k:other
    #[arg(long)]
    profile: bool,
    /// Also show latencies: TLB shootdowns, IPIs, vCPUs ready until they run,
    /// threads woken until they run
    #[arg(long)]
    latency: bool,
    /// Write the result as JSON into this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as JSON instead of tables
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, stop: &Arc<AtomicBool>) -> Result<()> {
    let input = args.case.read()?;
    let case = input.case(&[])?;
    let jobs = batch::jobs(&case);
    let progress = Progress::new(jobs.len(), stop, "stopped");
    let done = |done| progress.set(done);
    let outcomes = batch::run_all(&jobs, &input.models, input.threads, &done, stop);
    drop(progress);
    let result = SimResult::new(&input, &case, &jobs, &outcomes?);
    let text = serde_json::to_string_pretty(&result)?;
    if let Some(out) = &args.out {
        std::fs::write(out, &text).with_context(|| format!("writing {}", out.display()))?;
    }
    if args.json {
        println!("{text}");
    } else {
        print!("{}", table::render(&result, args.profile, args.latency));
    }
    Ok(())
}
