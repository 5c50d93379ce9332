// SPDX-License-Identifier: GPL-2.0-only
//! `corun lab table`.

use anyhow::{Context, Result};
use corun_lab::results::{Matrix, MatrixInput};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the slowdowns of several results as one table
///
/// One row for each measured guest of each phase, one column for each scheduler.
/// Each result is of one boot, and so are a row's figures. The first column is
/// what the others are judged against.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Results that `corun lab run` wrote
    #[arg(required = true, value_name = "FILE")]
    results: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let inputs: Result<Vec<MatrixInput>> = args.results.iter().map(|f| read(f)).collect();
    let matrix = Matrix::of(&inputs?);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&matrix)?);
    } else {
        print!("{}", matrix.render());
    }
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<MatrixInput> {
    let name = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("reading {name}"))?;
    serde_json::from_str(&text).with_context(|| format!("{name} is no result of `corun lab run`"))
}
