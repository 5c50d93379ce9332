// SPDX-License-Identifier: GPL-2.0-only
//! Which runs the tables need, each of them once, and their outcomes.

use super::expr::{Probe, RunKey};
use super::figures;
use super::table::Table;
use crate::batch::{Job, Models, run_each, scenario};
use crate::{Outcome, SimError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs, and which table needs which.
#[derive(Debug)]
pub struct Plan {
    /// The runs.
    pub jobs: Vec<Job>,
    /// How many runs the tables ask for, with those that are the same.
    pub wanted: usize,
    /// Run of (table, run's key, repeat).
    index: BTreeMap<(usize, RunKey, u32), usize>,
    seeds: u32,
}

impl Plan {
    /// Of `tables`, with `seeds` repeats of every run.
    ///
    /// Two runs are the same when their scenarios are: a guest alone does not
    /// care what its neighbours would have done.
    pub fn new(tables: &[Table], seeds: u32, models: &Models) -> Result<Self, SimError> {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut plan = Self {
            jobs: Vec::new(),
            wanted: 0,
            index: BTreeMap::new(),
            seeds,
        };
        for (number, table) in tables.iter().enumerate() {
            let runs: BTreeSet<&RunKey> = table.probes().into_iter().map(|p| &p.run).collect();
            for run in runs {
                for repeat in 0..seeds {
                    let job = Job {
                        case: Arc::clone(&table.cases[run.variant]),
                        phase: run.phase.clone(),
                        scheduler: run.scheduler.clone(),
                        solo: run.solo.clone(),
                        repeat,
                    };
                    let key = format!("{:?}", scenario(&job, models)?);
                    let at = *known.entry(key).or_insert_with(|| {
                        plan.jobs.push(job);
                        plan.jobs.len() - 1
                    });
                    plan.index.insert((number, run.clone(), repeat), at);
                    plan.wanted += 1;
                }
            }
        }
        Ok(plan)
    }

    /// Runs everything on `threads` threads; `done` is told how many runs are
    /// finished. A run that fails costs what needs it, not the others.
    pub fn run(
        self,
        models: &Models,
        threads: usize,
        done: &(dyn Fn(usize) + Sync),
        stop: &AtomicBool,
    ) -> Result<Results, SimError> {
        let slots: Vec<Mutex<Option<Result<Outcome, String>>>> =
            self.jobs.iter().map(|_| Mutex::new(None)).collect();
        let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let set = |at: usize, outcome| {
            *slots[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        };
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = self.jobs.get(at) else { return };
                let ran = run_each(std::slice::from_ref(job), models, 1, stop, &|_, outcome| {
                    set(at, Ok(outcome));
                    Ok::<(), SimError>(())
                });
                if let Err(error) = ran {
                    set(at, Err(error.to_string()));
                }
                done(finished.fetch_add(1, Ordering::Relaxed) + 1);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, self.jobs.len().max(1)) {
                scope.spawn(work);
            }
        });
        if stop.load(Ordering::Relaxed) {
            return Err(SimError::Stopped);
        }
        let take = |slot: Mutex<Option<_>>| {
            let outcome = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            outcome.unwrap_or_else(|| Err("did not run".to_owned()))
        };
        Ok(Results {
            outcomes: slots.into_iter().map(take).collect(),
            index: self.index,
            seeds: self.seeds,
        })
    }
}

/// Outcomes of all runs.
#[derive(Debug)]
pub struct Results {
    outcomes: Vec<Result<Outcome, String>>,
    index: BTreeMap<(usize, RunKey, u32), usize>,
    /// Repeats of every run.
    pub seeds: u32,
}

impl Results {
    /// The outcome of a table's run, or why there is none.
    pub fn outcome(&self, table: usize, run: &RunKey, repeat: u32) -> Result<&Outcome, String> {
        let at = self.index.get(&(table, run.clone(), repeat));
        let at = at.ok_or_else(|| "was not planned".to_owned())?;
        self.outcomes[*at].as_ref().map_err(Clone::clone)
    }

    /// A figure's value in one repeat, or why there is none.
    pub fn read(&self, table: usize, probe: &Probe, repeat: u32) -> Result<f64, String> {
        let place = || format!("phase {}: ", probe.run.phase);
        let outcome = self
            .outcome(table, &probe.run, repeat)
            .map_err(|e| place() + &e)?;
        let vm = outcome
            .vm(&probe.guest)
            .ok_or_else(|| format!("{}no guest {}", place(), probe.guest))?;
        figures::read(vm, &probe.figure, outcome.measured_ns).map_err(|e| place() + &e)
    }
}

#[cfg(test)]
impl Results {
    /// Results made by hand: every run of `plan` has the outcome that `make`
    /// gives for it.
    pub(super) fn made_up(plan: Plan, make: &dyn Fn(&Job) -> Result<Outcome, String>) -> Self {
        Self {
            outcomes: plan.jobs.iter().map(make).collect(),
            index: plan.index,
            seeds: plan.seeds,
        }
    }
}
