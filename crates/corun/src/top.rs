// SPDX-License-Identifier: GPL-2.0-only
//! `corun top`: what each VM does with its time, and what it waits for, live.

mod batch;
mod column;
mod figures;
mod live;
mod render;
mod state;
#[cfg(test)]
mod synthetic;
mod view;

use anyhow::Result;
use column::Column;
use corun_events::account::Snapshot;
use corun_host::SymbolSource;
use corun_host::accounts::{AccountOptions, Accounts};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a wait looks whether it should end.
const POLL: Duration = Duration::from_millis(50);

/// Show which vCPU waits for whom, and why, under any scheduler
///
/// Reads only: works with sched_ext or without, whether corun's scheduler runs or
/// not. Needs root, the kvm module, and a kernel with BTF.
#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "flags of the command line")]
pub(crate) struct Args {
    /// Seconds between updates (0.1 to 3600)
    #[arg(short, long, default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Print tables, one after the other, instead of a screen
    #[arg(short, long)]
    batch: bool,
    /// Updates before the end (default: until Ctrl-C)
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Print the accounts of each interval as one JSON object a line (implies --batch)
    #[arg(long)]
    json: bool,
    /// Column to sort by
    #[arg(short, long, value_enum, default_value_t = Column::Ready)]
    sort: Column,
    /// Only VMs whose name contains this
    #[arg(short, long, default_value = "")]
    filter: String,
    /// Show each VM's vCPUs
    #[arg(short = 'c', long)]
    vcpus: bool,
    /// At the end, tell what the accounts' BPF programs cost (with --batch)
    #[arg(long)]
    hook_costs: bool,
    /// vCPUs that have room (default: 16 a pCPU, at least 1024)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65536))]
    max_vcpus: Option<u32>,
    /// Symbols of guests' kernels, by which preemptions in critical sections are told:
    /// VM=FILE, or a directory, as for `corun run`
    #[arg(long, value_name = "VM=FILE|DIR")]
    symbols: Vec<SymbolSource>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if !(0.1..=3600.0).contains(&seconds) {
        return Err("expected 0.1 to 3600".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

pub(crate) fn run(args: &Args, stop: &AtomicBool) -> Result<()> {
    let mut accounts = Accounts::begin(AccountOptions {
        max_vcpus: args.max_vcpus,
        symbols: args.symbols.clone(),
        hook_costs: args.hook_costs,
    })?;
    if args.batch || args.json || !std::io::stdout().is_terminal() {
        batch::run(args, &mut accounts, stop)
    } else {
        live::run(args, &mut accounts, stop)
    }
}

/// Makes intervals of an account's readings.
struct Intervals {
    before: Snapshot,
}

impl Intervals {
    fn begin(accounts: &mut Accounts) -> Result<Self> {
        Ok(Self {
            before: accounts.read()?,
        })
    }

    /// What happened since the last call.
    fn next(&mut self, accounts: &mut Accounts) -> Result<Snapshot> {
        let now = accounts.read()?;
        let interval = now.since(&self.before);
        self.before = now;
        Ok(interval)
    }
}

/// Waits until `deadline`; false when it should stop instead.
fn wait(deadline: Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(POLL));
    }
}

#[cfg(test)]
mod tests;
