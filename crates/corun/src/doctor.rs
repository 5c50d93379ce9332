// SPDX-License-Identifier: GPL-2.0-only
//! `corun doctor`.

use anyhow::Result;
use corun_host::doctor::{self, Finding, Outcome};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// Look for what is wrong on this host, and put it right
///
/// Today: whether a corun that was killed has left KVM's halt polling changed.
/// Exits with 0 when no problem is left, with 1 otherwise.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Undo what a killed corun left (as root)
    #[arg(long)]
    repair: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let findings = doctor::check(args.repair);
    let healthy = doctor::is_healthy(&findings);
    let output = if args.json {
        let value = serde_json::json!({"healthy": healthy, "findings": findings});
        format!("{value}\n")
    } else {
        findings.iter().map(line).collect()
    };
    std::io::stdout().lock().write_all(output.as_bytes())?;
    Ok(if healthy {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn line(finding: &Finding) -> String {
    let outcome = match finding.outcome {
        Outcome::Ok => "ok",
        Outcome::Problem => "PROBLEM",
        Outcome::Repaired => "repaired",
    };
    let mut text = format!("{outcome:<9} {}: {}\n", finding.check, finding.text);
    if let Some(step) = &finding.next_step {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "          -> {step}");
    }
    text
}
