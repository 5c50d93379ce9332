// SPDX-License-Identifier: GPL-2.0-only
//! `corun lab-vms`: tiny VMs in the emulated host, for tests of robustness.

use anyhow::{Result, ensure};
use clap::{Subcommand, ValueEnum};
use corun_lab::tinyvm::churn::{ChurnOptions, ChurnReport, churn};
use corun_lab::tinyvm::hold::{HoldOptions, HoldReport, hold};
use corun_lab::tinyvm::{Ending, Program, TinyVmError, hog};
use std::time::Duration;

/// What tiny VMs are to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start and end many VMs, in every state in which a vCPU can be
    Churn {
        /// VMs to start and end
        #[arg(long, value_name = "N", default_value_t = 500)]
        vms: u32,
        /// VMs at the same time
        #[arg(long, value_name = "N", default_value_t = 4)]
        at_once: u32,
        /// Processes that keep the host busy meanwhile
        #[arg(long, value_name = "N", default_value_t = 2)]
        burners: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run one VM for a while; one JSON object a second tells how it gets on
    Hold {
        /// What its vCPUs do
        #[arg(long, value_enum)]
        program: ProgramArg,
        /// How many there are
        #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
        vcpus: u32,
        /// For how long
        #[arg(long, value_name = "SEC", default_value_t = 10.0)]
        seconds: f64,
        /// Name by which `corun run` calls it
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Hold a pCPU as a real-time task
    Hog {
        /// Which pCPU
        #[arg(long)]
        cpu: usize,
        /// For how long
        #[arg(long, value_name = "SEC", default_value_t = 60.0)]
        seconds: f64,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ProgramArg {
    /// Compute without end
    Spin,
    /// Sleep until an interrupt comes; none does
    Halt,
    /// vCPU 0 sends IPIs to the others, which sleep in between
    Ipi,
    /// Port I/O without end
    Io,
    /// Work in turns, and notify Hyper-V of long spins while waiting
    Turns,
    /// Notify Hyper-V of long spins without end
    Fake,
}

impl From<ProgramArg> for Program {
    fn from(arg: ProgramArg) -> Self {
        match arg {
            ProgramArg::Spin => Self::Spin,
            ProgramArg::Halt => Self::Halt,
            ProgramArg::Ipi => Self::Ipi,
            ProgramArg::Io => Self::Io,
            ProgramArg::Turns => Self::Turns,
            ProgramArg::Fake => Self::Fake,
        }
    }
}

/// Runs `command`. The process must have no other thread yet: VMs are forked off.
pub(crate) fn run(command: &Command) -> Result<()> {
    match *command {
        Command::Churn {
            vms,
            at_once,
            burners,
            json,
        } => {
            let report = churn(ChurnOptions {
                vms,
                at_once,
                burners,
            })?;
            print_churn(&report, json)?;
            ensure!(
                report.failed == 0,
                TinyVmError::Failed {
                    failed: report.failed,
                    vms,
                }
            );
        }
        Command::Hold {
            program,
            vcpus,
            seconds,
            ..
        } => {
            let options = HoldOptions {
                program: program.into(),
                vcpus,
                length: Duration::try_from_secs_f64(seconds)?,
                every: Duration::from_secs(1),
            };
            hold(options, print_hold)?;
        }
        Command::Hog { cpu, seconds } => {
            hog::hog(cpu, Duration::try_from_secs_f64(seconds)?)?;
        }
    }
    Ok(())
}

fn print_churn(report: &ChurnReport, json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(report)?);
        return Ok(());
    }
    println!(
        "{} VMs ended as they should, {} did not, in {:.1} s",
        report.ended, report.failed, report.took_s
    );
    for ending in Ending::ALL {
        let count = report.endings.get(ending.name()).copied().unwrap_or(0);
        println!("  {count:>5}  {:<13}  {}", ending.name(), ending.describe());
    }
    Ok(())
}

fn print_hold(report: &HoldReport) {
    match serde_json::to_string(report) {
        Ok(line) => println!("{line}"),
        Err(e) => eprintln!("corun: {e}"),
    }
}
