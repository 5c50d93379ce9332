// SPDX-License-Identifier: GPL-2.0-only
//! `corun sim trace`.

use super::input::CaseArgs;
use anyhow::{Context, Result, bail};
use corun_events::recording::{self, Output};
use corun_events::{Event, Header, Vm, Writer};
use corun_sim::Scenario;
use corun_sim::batch::{self, Job};
use corun_sim::trace::Sink;
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = "Examples:
  corun sim trace demo --phase tlb --scheduler corun --out tlb.jsonl
  corun sim trace demo --phase tlb --scheduler eevdf --solo a --out alone.jsonl";

/// Record every event of one simulated window
///
/// Writes a recording: a header line, then one JSON object an event (who got a
/// pCPU, exits, interrupts sent and taken, directed yields, shootdowns, waits for
/// spinlocks), the warm-up included. The format is that of recordings of a real
/// host. A window of seconds makes hundreds of megabytes: shorten it with
/// `--set case.measure_s=0.1`. A name that ends in .zst is compressed. `corun trace`
/// shows and analyses it.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    case: CaseArgs,
    /// Phase of the case; the first one when absent
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
    /// Scheduler of the case, by its label; the first one when absent
    #[arg(long, value_name = "LABEL")]
    scheduler: Option<String>,
    /// Only this guest runs
    #[arg(long, value_name = "GUEST")]
    solo: Option<String>,
    /// The recording; compressed when the name ends in .zst
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Writes events as they come; the first failure is kept.
struct ToFile {
    writer: Writer<Output>,
    events: u64,
    error: Option<std::io::Error>,
}

impl Sink for ToFile {
    fn take(&mut self, event: &Event) {
        if self.error.is_none() {
            self.events += 1;
            self.error = self.writer.put(event).err();
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let input = args.case.read()?;
    let case = input.case(&[])?;
    let phase = choose(
        "phase",
        args.phase.as_deref(),
        case.phases.iter().map(|p| p.name.as_str()),
    )?;
    let scheduler = choose(
        "scheduler",
        args.scheduler.as_deref(),
        case.schedulers.iter().map(|s| s.label.as_str()),
    )?;
    let job = Job {
        case: Arc::clone(&case),
        phase,
        scheduler,
        solo: args.solo.clone(),
        repeat: 0,
    };
    let scenario = batch::scenario(&job, &input.models)?;
    let title = format!("{}, {}, {}", case.case.name, job.phase, job.scheduler);
    let header = header(&scenario, &title, &job.scheduler)?;
    let mut sink = ToFile {
        writer: recording::create(&args.out, &header)
            .with_context(|| format!("creating {}", args.out.display()))?,
        events: 0,
        error: None,
    };
    let outcome = corun_sim::run_traced(&scenario, &mut sink)?;
    let written = sink.error.map_or(Ok(()), Err);
    written
        .and_then(|()| recording::finish(sink.writer))
        .with_context(|| format!("writing {}", args.out.display()))?;
    println!(
        "{} events of {title} in {} (trace hash {:016x})",
        sink.events,
        args.out.display(),
        outcome.trace_hash
    );
    Ok(())
}

fn header(scenario: &Scenario, title: &str, scheduler: &str) -> Result<Header> {
    let vms = scenario.vms.iter().map(|vm| Vm::new(&vm.name, vm.vcpus));
    let names = corun_sim::trace::names(scenario)?;
    Ok(Header {
        duration_ns: scenario.warmup_ns + scenario.measure_ns,
        clock: "simulated".to_owned(),
        kernel: scheduler.to_owned(),
        locks: names.locks,
        symbols: names.symbols,
        ..Header::new("sim", title, scenario.pcpus, vms.collect())
    })
}

fn choose<'a>(
    what: &str,
    wanted: Option<&str>,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<String> {
    let found = match wanted {
        Some(wanted) => known.clone().find(|k| *k == wanted),
        None => known.clone().next(),
    };
    let Some(found) = found else {
        bail!(
            "unknown {what} `{}`: expected one of {}",
            wanted.unwrap_or_default(),
            known.collect::<Vec<_>>().join(", ")
        );
    };
    Ok(found.to_owned())
}
