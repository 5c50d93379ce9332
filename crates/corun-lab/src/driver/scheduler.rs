// SPDX-License-Identifier: GPL-2.0-only
//! Chooses what schedules the host: the kernel, or a program that loads a
//! sched_ext scheduler and runs as a child.

use super::beside::Beside;
use super::error::{Context, DriverError, Result};
use super::loaded::{Launch, Loaded};
use super::sched_ext::SchedExt;
use crate::case::{Scheduler, SchedulerKind};
use std::fs;
use std::path::{Path, PathBuf};

/// What `corun run` prints first when it schedules.
const CORUN_READY: &str = "corun: scheduling";
/// What the kernel calls corun's scheduler.
const CORUN_OPS: &str = "corun";

/// The host's scheduler.
pub(super) struct HostScheduler {
    corun: PathBuf,
    factor: f64,
    loaded: Option<Loaded>,
    /// What runs beside the guests under the scheduler that was selected.
    beside: Option<Beside>,
}

impl HostScheduler {
    /// The kernel schedules; `corun` is the program to run later.
    pub(super) fn new(corun: PathBuf, factor: f64) -> Self {
        Self {
            corun,
            factor,
            loaded: None,
            beside: None,
        }
    }

    /// Hands the host to `scheduler`.
    pub(super) fn select(&mut self, scheduler: &Scheduler) -> Result<()> {
        self.release()?;
        if let Some(mut launch) = launch(scheduler, self.factor, &self.corun) {
            if scheduler.kind == SchedulerKind::Corun {
                launch.arguments.extend(guest_symbols()?);
            }
            self.loaded = Some(Loaded::load(launch, SchedExt::now)?);
        }
        self.beside = scheduler.beside.as_deref().map(Beside::start).transpose()?;
        self.check().map(|_| ())
    }

    /// Fails unless the scheduler that was selected is in force, and was so
    /// without a break: an ejected scheduler must not give figures for itself. The
    /// same holds for what is to run beside the guests.
    /// Returns what the kernel calls it; `None` for its own.
    pub(super) fn check(&mut self) -> Result<Option<String>> {
        self.beside.as_mut().map_or(Ok(()), Beside::check)?;
        let found = SchedExt::now();
        match &mut self.loaded {
            None if found.is_off() => Ok(None),
            None => Err(DriverError::Own(format!(
                "the kernel's own scheduler was asked for, but sched_ext is {:?} ({:?})",
                found.state, found.ops
            ))),
            Some(loaded) => loaded.check(&found).map(|()| Some(found.ops)),
        }
    }

    /// Hands the host back to the kernel's scheduler.
    pub(super) fn release(&mut self) -> Result<()> {
        self.beside.take().map_or(Ok(()), Beside::stop)?;
        match self.loaded.take() {
            Some(loaded) => loaded.unload(SchedExt::now),
            None => Ok(()),
        }
    }
}

/// How `scheduler` is started; `None` when the kernel's own is meant.
fn launch(scheduler: &Scheduler, factor: f64, corun: &Path) -> Option<Launch> {
    let arguments = arguments(scheduler, factor);
    if let Some(comparator) = scheduler.kind.comparator() {
        return Some(Launch {
            // In L1 it lies in PATH, where the image put it.
            program: comparator.program.into(),
            arguments,
            ready_line: None,
            ops: comparator.ops,
        });
    }
    (scheduler.kind == SchedulerKind::Corun).then(|| Launch {
        program: corun.to_owned(),
        arguments,
        ready_line: Some(CORUN_READY),
        ops: CORUN_OPS,
    })
}

/// What the program of `scheduler` is told at this `factor`. A factor of 1 is
/// every program's own default and is not named, so that the smoke case runs
/// corun as users do.
pub(crate) fn arguments(scheduler: &Scheduler, factor: f64) -> Vec<String> {
    let mut arguments = match scheduler.kind.comparator() {
        Some(comparator) => comparator.scaled_arguments(factor),
        None if scheduler.kind == SchedulerKind::Corun => {
            let mut run = vec!["run".to_owned()];
            if (factor - 1.0).abs() > f64::EPSILON {
                run.extend(["--time-scale".to_owned(), format!("{factor}")]);
            }
            run
        }
        None => return Vec::new(),
    };
    arguments.extend(scheduler.options.iter().cloned());
    arguments
}

/// Where the map of the guests' kernel is put.
const SYMBOLS_DIR: &str = "/run/corun-symbols";

/// `--symbols` for `corun run`: guests of the host's own kernel version have the
/// host's symbols; others are seen to run another kernel.
fn guest_symbols() -> Result<[String; 2]> {
    let map = Path::new(SYMBOLS_DIR).join("System.map");
    if !map.exists() {
        fs::create_dir_all(SYMBOLS_DIR).doing(|| format!("create {SYMBOLS_DIR}"))?;
        fs::copy("/proc/kallsyms", &map).doing(|| format!("write {}", map.display()))?;
    }
    Ok(["--symbols".to_owned(), SYMBOLS_DIR.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheduler(kind: &str, options: &str) -> Scheduler {
        let text = format!("label = 'x'\nkind = '{kind}'\noptions = [{options}]\n");
        toml::from_str(&text).expect("is a scheduler")
    }

    #[test]
    fn the_factor_and_the_options_are_passed_on() {
        let told = |kind, options, factor| arguments(&scheduler(kind, options), factor).join(" ");
        assert_eq!(told("corun", "'--stats', '1'", 1.0), "run --stats 1");
        assert_eq!(told("corun", "", 42.5), "run --time-scale 42.5");
        assert_eq!(
            told("corun", "'--mechanisms', 'ipi'", 2.0),
            "run --time-scale 2 --mechanisms ipi"
        );
        assert_eq!(
            told("scx_bpfland", "'--sticky-tasks'", 2.0),
            "--slice-us 2000 --slice-us-lag 80000 --sticky-tasks"
        );
        assert_eq!(told("kernel", "", 42.5), "");
    }

    #[test]
    fn the_kernels_scheduler_starts_nothing() {
        let corun = Path::new("/x/corun");
        assert!(launch(&scheduler("kernel", ""), 1.0, corun).is_none());
        let lavd = launch(&scheduler("scx_lavd", ""), 1.0, corun).expect("starts");
        assert_eq!(lavd.program, Path::new("scx_lavd"));
        let own = launch(&scheduler("corun", ""), 1.0, corun).expect("starts");
        assert_eq!(own.program, corun);
    }
}
