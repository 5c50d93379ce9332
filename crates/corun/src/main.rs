// SPDX-License-Identifier: GPL-2.0-only
//! The `corun` command line: one module a command.

mod doctor;
mod guest;
mod lab;
mod metrics;
mod report;
mod run;
mod sim;
mod top;
mod trace;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use corun_lab::driver::{self, DriverOptions};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// CPU overcommit for KVM hosts without the stalls.
#[derive(Parser)]
#[command(name = "corun", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Doctor(doctor::Args),
    /// Guests with corun's kernel module
    #[command(subcommand)]
    Guest(guest::Command),
    Exporter(metrics::Args),
    Top(top::Args),
    /// The lab: an emulated KVM host that boots anywhere in seconds
    #[command(subcommand)]
    Lab(lab::Command),
    /// The simulator: the same cases in a model of any host, in seconds
    #[command(subcommand)]
    Sim(sim::Command),
    Report(report::Args),
    #[command(subcommand)]
    Trace(trace::Command),
    /// Drive a case inside the emulated host (`corun lab run` starts it there)
    #[command(hide = true)]
    LabDriver {
        /// The case as JSON
        case: PathBuf,
        /// Start the guests and measure nothing
        #[arg(long)]
        guests_only: bool,
        /// ... while they do the work of its first phase
        #[arg(long, requires = "guests_only")]
        load: bool,
    },
    /// Tiny VMs inside the emulated host, for tests of robustness
    #[command(hide = true, subcommand)]
    LabVms(lab::vms::Command),
    /// Put the policy's test vectors through its BPF build, in this kernel
    #[command(hide = true)]
    PolicyCheck {
        /// Made-up vectors a decision, beside the repository's
        #[arg(long, default_value_t = 200)]
        random: u32,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn")),
        )
        .without_time()
        .init();
    match dispatch(cli.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("corun: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<ExitCode> {
    // The driver handles signals itself: in the lab it is its guests' parent.
    if let Command::LabDriver {
        case,
        guests_only,
        load,
    } = command
    {
        let options = DriverOptions {
            case,
            guests_only,
            load,
            corun: None,
        };
        return Ok(if driver::run(&options) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    // It forks, which a process with a thread for signals must not.
    if let Command::LabVms(command) = &command {
        return lab::vms::run(command).map(|()| ExitCode::SUCCESS);
    }
    let stop = stop_flag()?;
    match command {
        Command::LabDriver { .. } | Command::LabVms(_) => unreachable!("handled above"),
        Command::Run(args) => run::run(&args, &stop).map(|()| ExitCode::SUCCESS),
        Command::Guest(command) => guest::dispatch(&command),
        Command::Doctor(args) => doctor::run(&args, &stop),
        Command::Exporter(args) => metrics::export(&args, &stop).map(|()| ExitCode::SUCCESS),
        Command::Top(args) => top::run(&args, &stop).map(|()| ExitCode::SUCCESS),
        Command::Lab(command) => lab::dispatch(&command, &stop),
        Command::Sim(command) => sim::dispatch(&command, &stop),
        Command::Report(args) => report::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Trace(command) => trace::dispatch(&command, &stop),
        Command::PolicyCheck { random } => {
            println!("{} passed, 0 failed", corun_host::vectors::check(random)?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A flag that Ctrl-C and SIGTERM set; everything long looks at it.
fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .context("installing the Ctrl-C handler")?;
    Ok(stop)
}
