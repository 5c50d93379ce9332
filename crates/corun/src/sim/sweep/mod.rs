// SPDX-License-Identifier: GPL-2.0-only
//! `corun sim sweep`.

mod grid;
mod parquet;
mod rows;
mod store;

use super::input::{CaseArgs, Input};
use super::progress::Progress;
use super::result::{Run, models_sha256, sha256};
use anyhow::{Context, Result};
use corun_case::{Case, Override};
use corun_sim::batch::{self, Job};
use corun_sim::{Outcome, SimError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use store::{Identity, Point, Store};

/// Form of a sweep's files.
const SCHEMA_VERSION: u32 = 1;

const EXAMPLES: &str = "Examples:
  corun sim sweep demo --out out/ple --grid sim.kvm.ple.window_cycles=1024,4096,16384
  corun sim sweep demo --out out/size --grid host.pcpus=2,4,8 --grid 'guest[0].vcpus=2,4,8'";

/// Run a case at every point of a grid of parameters
///
/// Every `--grid key=v1,v2,...` is an axis, with the keys of `--set`; all
/// combinations are run on all cores. The folder gets `points.jsonl`, a line a
/// finished point with everything measured, and at the end `sweep.csv` and
/// `sweep.parquet`, a row for each guest in each run. Interrupted, the same command goes on where it
/// was; with more values, it runs the new points alone.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    case: CaseArgs,
    /// An axis of the grid: a key of the case and its values; may be given more
    /// than once
    #[arg(long = "grid", value_name = "KEY=V1,V2,...", required = true)]
    axes: Vec<String>,
    /// Folder of the results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// A point of the grid, not yet run.
struct Plan {
    fingerprint: String,
    values: BTreeMap<String, String>,
    case: Arc<Case>,
}

pub(crate) fn run(args: &Args, stop: &Arc<AtomicBool>) -> Result<()> {
    let input = args.case.read()?;
    let axes = args.axes.iter().map(|a| grid::parse(a));
    let axes = axes.collect::<Result<Vec<_>>>().context("--grid")?;
    let keys: Vec<String> = axes
        .iter()
        .filter_map(|a| a.first())
        .map(Override::key)
        .collect();
    let identity = Identity {
        schema_version: SCHEMA_VERSION,
        case_text: input.text.clone(),
        set: input.sets.iter().map(ToString::to_string).collect(),
        keys: keys.clone(),
        models: models_sha256(&input),
        version: version()?,
    };
    // Every point is checked before the first one runs.
    let points = grid::points(&axes)?;
    let plans = points.iter().map(|p| plan(&input, &identity, p));
    let plans = plans.collect::<Result<Vec<Plan>>>()?;
    let mut store = Store::open(&args.out, &identity)?;
    run_points(&input, &plans, &mut store, stop)?;
    let done: Vec<&Point> = plans
        .iter()
        .filter_map(|p| store.get(&p.fingerprint))
        .collect();
    let table = rows::of(&keys, &done);
    let (csv, parquet) = (store.file("sweep.csv"), store.file("sweep.parquet"));
    store::write_whole(&csv, &table.csv()?)?;
    store::write_whole(&parquet, &parquet::write(&table)?)?;
    println!(
        "{} points: {}, {}",
        done.len(),
        csv.display(),
        parquet.display()
    );
    Ok(())
}

fn plan(input: &Input, identity: &Identity, point: &[Override]) -> Result<Plan> {
    let values: BTreeMap<String, String> = point
        .iter()
        .map(|set| (set.key(), set.value().to_owned()))
        .collect();
    Ok(Plan {
        fingerprint: sha256(serde_json::to_vec(&(identity, &values))?),
        values,
        case: input.case(point)?,
    })
}

/// The version, and the program's hash: points of two builds do not mix.
fn version() -> Result<String> {
    let program = std::env::current_exe().and_then(std::fs::read);
    let program = program.context("reading corun's own program")?;
    Ok(format!("{} {}", env!("CARGO_PKG_VERSION"), sha256(program)))
}

/// Points that are being run.
struct Running<'a> {
    /// Of each point its runs so far, by job.
    runs: BTreeMap<usize, Vec<Option<Run>>>,
    store: &'a mut Store,
}

/// Runs those of `plans` that are not in `store` and adds them.
fn run_points(
    input: &Input,
    plans: &[Plan],
    store: &mut Store,
    stop: &Arc<AtomicBool>,
) -> Result<()> {
    let mut jobs: Vec<Job> = Vec::new();
    // Of each job its point, and its place among the point's jobs.
    let mut places: Vec<(usize, usize)> = Vec::new();
    let mut runs = BTreeMap::new();
    for (index, plan) in plans.iter().enumerate() {
        if store.get(&plan.fingerprint).is_none() {
            let of_point = batch::jobs(&plan.case);
            places.extend((0..of_point.len()).map(|place| (index, place)));
            runs.insert(index, vec![None; of_point.len()]);
            jobs.extend(of_point);
        }
    }
    let running = Mutex::new(Running { runs, store });
    let progress = Progress::new(
        jobs.len(),
        stop,
        "stopped; the same command goes on where it was",
    );
    let each = |index: usize, outcome: Outcome| -> Result<()> {
        let (point, place) = places[index];
        let run = Run::new(&jobs[index], &outcome);
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        running.add(plans, point, place, run)?;
        progress.step();
        Ok(())
    };
    let result = batch::run_each(&jobs, &input.models, input.threads, stop, &each);
    result.map_err(|error: anyhow::Error| match error.downcast_ref() {
        Some(SimError::Stopped) => error.context("the same command goes on where it was"),
        _ => error,
    })
}

impl Running<'_> {
    /// Takes the run at `place` of `point`; the last one completes the point.
    fn add(&mut self, plans: &[Plan], point: usize, place: usize, run: Run) -> Result<()> {
        let Some(runs) = self.runs.get_mut(&point) else {
            return Ok(());
        };
        runs[place] = Some(run);
        if runs.iter().any(Option::is_none) {
            return Ok(());
        }
        let runs = self.runs.remove(&point).unwrap_or_default();
        let plan = &plans[point];
        self.store.add(Point {
            fingerprint: plan.fingerprint.clone(),
            values: plan.values.clone(),
            runs: runs.into_iter().flatten().collect(),
        })
    }
}
