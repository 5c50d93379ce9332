// SPDX-License-Identifier: GPL-2.0-only
//! `corun doctor`.

use anyhow::Result;
use corun_host::doctor::{self, Options};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Say what is wrong on this KVM host, why, and what to do
///
/// Looks at the kernel, KVM and how VMs are set up, watches the VMs for some
/// seconds (whatever scheduler runs), and prints what it found, worst first: each
/// finding with its evidence and the next step. Changes nothing without --repair,
/// which undoes what a killed corun left (KVM's halt polling, a map). As root it
/// sees more: it says what it could not see.
///
/// Exits with 0 when no finding matters, with 1 when one does, and with 2 when none
/// does but not all could be looked at (a notice by itself is healthy).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Undo what a killed corun left (as root)
    #[arg(long)]
    repair: bool,
    /// How long to watch the VMs, 0.1 to 3600
    #[arg(long, value_name = "SEC", default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,
    /// Do not watch the VMs
    #[arg(long, conflicts_with = "seconds")]
    no_sample: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds from 0.1 to 3600".to_owned()),
    }
}

pub(crate) fn run(args: &Args, stop: &AtomicBool) -> Result<ExitCode> {
    let options = Options {
        repair: args.repair,
        watch: (!args.no_sample).then(|| Duration::from_secs_f64(args.seconds)),
    };
    let report = doctor::examine(&options, stop);
    let output = if args.json {
        format!("{}\n", serde_json::to_string(&report)?)
    } else {
        doctor::text(&report)
    };
    std::io::stdout().lock().write_all(output.as_bytes())?;
    Ok(ExitCode::from(report.verdict.exit_code()))
}
