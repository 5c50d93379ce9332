// SPDX-License-Identifier: GPL-2.0-only
//! `corun sim`: cases in the simulator.

mod check;
mod input;
mod models;
mod progress;
mod repro;
mod result;
mod run;
mod summary;
mod sweep;
mod table;
mod trace;

use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A deterministic model of overcommitted hosts that runs corun's own policy.
#[derive(Subcommand)]
pub(crate) enum Command {
    Run(run::Args),
    Sweep(sweep::Args),
    Repro(repro::Args),
    Trace(trace::Args),
    Check(check::Args),
    Models(models::Args),
}

pub(crate) fn dispatch(command: &Command, stop: &Arc<AtomicBool>) -> Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(args, stop),
        Command::Sweep(args) => sweep::run(args, stop),
        Command::Repro(args) => return repro::run(args, stop),
        Command::Trace(args) => trace::run(args),
        Command::Check(args) => check::run(args, stop),
        Command::Models(args) => models::run(args),
    }
    .map(|()| ExitCode::SUCCESS)
}
