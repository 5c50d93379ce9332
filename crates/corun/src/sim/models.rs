// SPDX-License-Identifier: GPL-2.0-only
//! `corun sim models`.

use super::input::load_models;
use anyhow::{Context, Result};
use corun_case::hint;
use std::path::PathBuf;

/// List the workload models, or print one
///
/// A case names a model as its workload. The lab's workloads have models too:
/// `lock` with `op = "pipe"` is the model `lab-lock-pipe`. Copy one into a
/// folder of your own, change it, and pass `--models FOLDER`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print this model's file
    name: Option<String>,
    /// Also the models of this folder
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let models = load_models(args.models.as_ref())?;
    if let Some(name) = &args.name {
        let text = models.text(name).with_context(|| {
            format!(
                "no model {name:?}: `corun sim models` lists them{}",
                hint(name, models.names())
            )
        })?;
        print!("{text}");
        return Ok(());
    }
    let width = models.names().map(str::len).max().unwrap_or(0);
    for model in models.names().filter_map(|n| models.get(n)) {
        println!("{:<width$}  {}", model.name, model.title);
    }
    Ok(())
}
