// SPDX-License-Identifier: GPL-2.0-only
//! `corun trace analyze`.

use super::{Input, table};
use anyhow::{Context, Result, bail};
use corun_events::analyze::Analysis;
use std::collections::BTreeMap;
use std::io::Write;

const EXAMPLES: &str = "Examples:
  corun trace analyze corun.trace --symbols web=/boot/System.map-6.12.90
  corun trace analyze corun.trace --transactions web=180000
  corun trace analyze tlb.jsonl --json | jq '.vms[0].shootdowns.told.cdf'";

/// What a recording tells: where vCPUs' time went, who spun, exits, shootdowns, wake-ups
///
/// Per vCPU: running, polling, ready (by cause) and halted, which add up to the
/// recording's length. Per VM: exits by reason and a transaction, runs of pause
/// exits by length, place and cause, where vCPUs were preempted and gave way,
/// IPIs from sending to receipt, TLB shootdowns, wake-ups in stages. Guest
/// functions have names with --symbols.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Transactions that a VM did during the recording, by the workload's own
    /// count: exits a transaction are then shown
    #[arg(long, value_name = "VM=COUNT", value_parser = transactions)]
    transactions: Vec<(String, u64)>,
    /// Print one JSON object, distributions included
    #[arg(long)]
    json: bool,
}

fn transactions(text: &str) -> Result<(String, u64)> {
    let (vm, count) = text.rsplit_once('=').unwrap_or_default();
    let count = count.parse().ok().filter(|n| *n > 0);
    match count {
        Some(count) if !vm.is_empty() => Ok((vm.to_owned(), count)),
        _ => bail!("expected VM=COUNT with a count above 0, such as web=180000"),
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let recording = args.input.open()?;
    let header = recording.header.clone();
    let given: BTreeMap<String, u64> = args.transactions.iter().cloned().collect();
    let known = |name: &String| header.vms.iter().any(|vm| vm.name == *name);
    if let Some(stranger) = given.keys().find(|name| !known(name)) {
        let names: Vec<&str> = header.vms.iter().map(|vm| vm.name.as_str()).collect();
        bail!(
            "--transactions {stranger}: no VM of that name in the recording; it has {}",
            names.join(", ")
        );
    }
    let symbols = args.input.symbols(&header)?;
    let mut analysis = Analysis::new(&header, &symbols, given);
    for event in recording {
        analysis.take(&event.with_context(|| args.input.name())?);
    }
    let report = analysis.finish();
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &report)?;
        writeln!(out)?;
    } else {
        out.write_all(table::render(&report).as_bytes())?;
    }
    Ok(())
}
