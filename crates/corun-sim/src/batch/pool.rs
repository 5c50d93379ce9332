// SPDX-License-Identifier: GPL-2.0-only
//! Runs on all cores. Each run is a thread's own from start to end, so how many
//! threads there are changes no result.

use super::{Job, Models, scenario};
use crate::{Outcome, SimError};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many threads this machine runs at once.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Runs `jobs` on `threads` threads; the outcomes are in the order of the jobs.
///
/// `done` is told after each run how many there are now. The first error ends
/// the rest, and so does `stop`, with [`SimError::Stopped`]; runs under way are
/// finished first.
pub fn run_all(
    jobs: &[Job],
    models: &Models,
    threads: usize,
    done: &(dyn Fn(usize) + Sync),
    stop: &AtomicBool,
) -> Result<Vec<Outcome>, SimError> {
    let slots: Vec<Mutex<Option<Outcome>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let finished = AtomicUsize::new(0);
    run_each(jobs, models, threads, stop, &|index, outcome| {
        *slots[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        done(finished.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(())
    })?;
    let outcomes = slots
        .into_iter()
        .map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    // All are there: a job that was not run is an error above.
    outcomes
        .collect::<Option<Vec<_>>>()
        .ok_or(SimError::Stopped)
}

/// As [`run_all`], but hands out each outcome, with its job's index, as it
/// comes; an error of `each` ends the rest.
pub fn run_each<E: From<SimError> + Send>(
    jobs: &[Job],
    models: &Models,
    threads: usize,
    stop: &AtomicBool,
    each: &(dyn Fn(usize, Outcome) -> Result<(), E> + Sync),
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    // Of several errors that of the first job: the same whatever the threads.
    let failed: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let fail = |index: usize, error: E| {
        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.as_ref().is_none_or(|(first, _)| index < *first) {
            *failed = Some((index, error));
        }
        next.store(jobs.len(), Ordering::Relaxed);
    };
    let work = || {
        loop {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            let outcome = scenario(job, models).and_then(|s| crate::run(&s));
            if let Err(error) = outcome.map_err(E::from).and_then(|o| each(index, o)) {
                fail(index, error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failed {
        Some((_, error)) => Err(error),
        None if next.load(Ordering::Relaxed) < jobs.len() => Err(SimError::Stopped.into()),
        None => Ok(()),
    }
}
