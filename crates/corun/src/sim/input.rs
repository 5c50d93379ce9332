// SPDX-License-Identifier: GPL-2.0-only
//! Options that `corun sim run` and `corun sim sweep` share: which case, with
//! what changed, and which models.

use crate::lab::cases;
use anyhow::{Context, Result};
use corun_case::{Case, Override, Target, parse_for};
use corun_sim::batch::Models;
use corun_sim::machines::Machine;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(clap::Args)]
pub(crate) struct CaseArgs {
    /// A case file, or a name from `corun lab cases`
    case: String,
    /// Set a key of the case, for example `sim.kvm.ple.window_cycles=8192`; may
    /// be given more than once
    ///
    /// The value is TOML; a single word needs no quotes. Lists count from 0:
    /// `scheduler[1].sim.cfs.latency_ns=6000000`. A CPU without pause-loop
    /// exiting: `sim.kvm.ple=false`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<Override>,
    /// What things cost, and what time scale "auto" is: a machine that comes with
    /// corun ("default", "lab" and "lab-icount": the emulated host of `corun lab`), or a
    /// file
    ///
    /// Keys that the case sets itself, and `--set`, go before.
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Repeats, each with a seed of its own, instead of the case's
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// Seed of the first repeat, instead of the case's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Also use the workload models of this folder; they go before shipped ones
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
    /// Check the simulator's invariants on the way (slower)
    #[arg(long)]
    check: bool,
    /// Threads [default: all that this machine has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// What they come to.
pub(crate) struct Input {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
    /// The machine that the case runs on, if it was named.
    pub(crate) machine: Option<String>,
    /// All changes to the text, in their order.
    pub(crate) sets: Vec<Override>,
    /// How many of them, the first ones, are the machine's.
    pub(crate) by_machine: usize,
    pub(crate) models: Models,
    pub(crate) threads: usize,
}

impl CaseArgs {
    pub(crate) fn read(&self) -> Result<Input> {
        let (file, text) = cases::find(&self.case)?;
        let machine = self.machine.as_deref().map(Machine::find).transpose()?;
        let mut sets = match &machine {
            Some(machine) => machine.overrides(&text)?,
            None => Vec::new(),
        };
        let by_machine = sets.len();
        sets.extend(self.sets.iter().cloned());
        let mut also = |set: String| -> Result<()> {
            sets.push(set.parse()?);
            Ok(())
        };
        if let Some(repeats) = self.repeats {
            also(format!("case.repeats={repeats}"))?;
        }
        if let Some(seed) = self.seed {
            also(format!("sim.seed={seed}"))?;
        }
        if self.check {
            also("sim.check=true".to_owned())?;
        }
        Ok(Input {
            file,
            text,
            models: models_on(machine.as_ref(), load_models(self.models.as_ref())?),
            machine: machine.map(|m| m.name),
            sets,
            by_machine,
            threads: self
                .threads
                .map_or_else(corun_sim::batch::threads, usize::from),
        })
    }
}

fn models_on(machine: Option<&Machine>, models: Models) -> Models {
    match machine {
        Some(machine) => models.of_lab(&machine.lab_models),
        None => models,
    }
}

impl Input {
    /// The case with `more` set on top of the command line's changes.
    pub(crate) fn case(&self, more: &[Override]) -> Result<Arc<Case>> {
        let sets = [self.sets.as_slice(), more].concat();
        let case = parse_for(&self.text, &self.file, Target::Sim(&self.models), &sets)?;
        Ok(Arc::new(case))
    }
}

/// The shipped models, and those of `folder`.
pub(super) fn load_models(folder: Option<&PathBuf>) -> Result<Models> {
    let models = Models::shipped().context("reading corun's own models")?;
    match folder {
        Some(folder) => Ok(models.with_folder(folder)?),
        None => Ok(models),
    }
}
