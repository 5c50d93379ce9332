// SPDX-License-Identifier: GPL-2.0-only
//! `corun run`.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use corun_host::{Mechanisms, RunOptions, SymbolSource, event_names, hazards};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Schedule this host: load corun's sched_ext scheduler until Ctrl-C
///
/// VMs are discovered from KVM's own events, whatever the VMM, and share the
/// host by the cpu.weight of their cgroup, however many vCPUs they have. A vCPU
/// that spins gives way to the one that KVM asks for. Ctrl-C gives the host back
/// to the kernel's own scheduler; so does kill -9.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Longest time a task runs before others are considered, in microseconds
    #[arg(long, value_name = "US", default_value_t = 3000)]
    slice_us: u64,
    /// Factor for every time constant; for emulated hosts, where switches cost
    /// more (`corun lab run` sets it)
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    time_scale: f64,
    /// What is switched on beyond fair shares: a list of yield, strict, ipi, io,
    /// micro, symbols, gang, halt; or all, or none
    #[arg(long, value_name = "LIST", default_value = "all")]
    mechanisms: Mechanisms,
    /// Symbols of guests' kernels: VM=FILE (a System.map or the guest's
    /// /proc/kallsyms), or a directory of System.map files for any VM that they fit
    #[arg(long, value_name = "VM=FILE|DIR")]
    symbols: Vec<SymbolSource>,
    /// Print counters every SEC seconds
    #[arg(long, value_name = "SEC")]
    stats: Option<f64>,
    /// Count what the BPF programs cost and print it at the end
    #[arg(long)]
    hook_costs: bool,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Load although this hazard was found
    #[arg(long = "ignore-hazard", value_name = "NAME", value_parser = hazards::HAZARDS)]
    ignored_hazards: Vec<String>,
    /// Do as on a kernel that lacks this function or tracepoint; for tests and
    /// comparisons
    #[arg(long = "without-event", value_name = "NAME", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(event_names()))]
    without_events: Vec<String>,
}

pub(crate) fn run(args: &Args, stop: &AtomicBool) -> Result<()> {
    let stats = args.stats.map(Duration::try_from_secs_f64).transpose()?;
    let options = RunOptions {
        slice: Duration::from_micros(args.slice_us),
        time_scale: args.time_scale,
        mechanisms: args.mechanisms,
        symbols: args.symbols.clone(),
        hook_costs: args.hook_costs,
        stats,
        json: args.json,
        ignored_hazards: args.ignored_hazards.clone(),
        without_events: args.without_events.clone(),
    };
    crate::metrics::serve_beside(args.metrics, args.symbols.clone(), || {
        Ok(corun_host::run::run(&options, stop)?)
    })
}
