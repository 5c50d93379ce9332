// SPDX-License-Identifier: GPL-2.0-only
//! `stale`: proves that no vCPU uses a translation that the kernel has taken back.
//!
//! Some threads change mappings: they put another page at an address, take the
//! right to write away, discard pages (of 4 KiB and out of larger ones), fork.
//! The others read and write there all the time, without system calls of their
//! own. A change counts once its system call has returned: from then on, whoever
//! still reads the old page, or writes where it must not, has a stale entry in its
//! TLB, and the run fails.

mod disturb;
mod fault;
mod slots;
mod tally;

use super::{Setup, ThreadRule, Workload};
use crate::error::Error;
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};
use disturb::Disturber;
use slots::Slots;
use std::sync::Arc;
use tally::{Tallied, Tally};

/// Checks between two looks at whether the run is over.
const CHECKS_PER_STEP: usize = 256;
/// Every how many changes the mutator forks, and asks the kernel to move pages.
const FORK_EVERY: u64 = 16;
const COMPACT_EVERY: u64 = 128;

pub(super) static WORKLOAD: Workload = Workload {
    name: "stale",
    about: "threads that remap, protect, discard and fork while others read and write: fails on the first stale translation",
    unit: "changes of mappings",
    latency: "one change with its system calls and checks",
    threads: ThreadRule::Any,
    program: None,
    params: &[
        Param {
            name: "mutators",
            about: "threads that change mappings; all others use them",
            kind: Kind::Int {
                default: 1,
                min: 1,
                max: 16,
            },
        },
        Param {
            name: "disturb",
            about: "1: pages in use also migrate, at 4 KiB each of the guest's memory, and vCPUs go and come; needs root",
            kind: Kind::Int {
                default: 0,
                min: 0,
                max: 1,
            },
        },
    ],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let mutators = usize::try_from(setup.params.int("mutators")).unwrap_or(1);
    let threads = setup.threads.max(setup.cpus.len());
    if mutators >= threads {
        let problem = format!("{mutators} mutators leave nobody of {threads} threads to check");
        return Err(Error::Threads {
            workload: WORKLOAD.name,
            problem,
        });
    }
    let checkers = threads - mutators;
    let mut all = Vec::new();
    for _ in 0..mutators {
        all.push(Arc::new(Slots::map(checkers)?));
    }
    fault::install(&all)?;
    let tally = Arc::new(Tally::default());
    let mut workers: Vec<Box<dyn Worker>> = Vec::new();
    for slots in &all {
        workers.push(Box::new(Mutator {
            slots: Arc::clone(slots),
            tally: Arc::clone(&tally),
            turn: 0,
        }));
    }
    for index in 0..checkers {
        workers.push(Box::new(Checker {
            all: all.clone(),
            tally: Arc::clone(&tally),
            index,
            counter: 0,
        }));
    }
    if setup.params.int("disturb") == 1 {
        let disturber = Disturber::new(all, Arc::clone(&tally), &setup.cpus);
        workers.push(Box::new(disturber));
    }
    let threads = Threads::start(workers, &setup.cpus, &setup.control)?;
    Ok(Box::new(Tallied::new(threads, tally)))
}

/// Changes mappings.
struct Mutator {
    slots: Arc<Slots>,
    tally: Arc<Tally>,
    turn: u64,
}

impl Worker for Mutator {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        self.turn += 1;
        meter.time(|| self.slots.remap(self.turn))?;
        meter.time(|| self.slots.protect())?;
        let split = meter.time(|| self.slots.discard(self.turn))?;
        Tally::add(&self.tally.splits, u64::from(split));
        if self.turn.is_multiple_of(FORK_EVERY) {
            meter.time(|| self.slots.fork())?;
            Tally::add(&self.tally.forks, 1);
        }
        if self.turn.is_multiple_of(COMPACT_EVERY) {
            // Only root may, and not every kernel can: then nothing moves.
            let compacted = std::fs::write("/proc/sys/vm/compact_memory", "1").is_ok();
            Tally::add(&self.tally.compactions, u64::from(compacted));
        }
        Ok(Flow::Continue)
    }
}

/// Uses all mappings, and sees whether they are those of now.
struct Checker {
    all: Vec<Arc<Slots>>,
    tally: Arc<Tally>,
    index: usize,
    counter: u64,
}

impl Worker for Checker {
    fn step(&mut self, _: &Meter) -> Result<Flow, Error> {
        for _ in 0..CHECKS_PER_STEP {
            self.counter += 1;
            for slots in &self.all {
                slots.check_remapped()?;
                slots.check_discarded()?;
                slots.write_protected(self.index, self.counter);
                slots.write_forked(self.index, self.counter);
                slots.check_counters()?;
            }
        }
        let accesses = CHECKS_PER_STEP * self.all.iter().map(|s| s.accesses()).sum::<usize>();
        Tally::add(&self.tally.accesses, accesses as u64);
        Ok(Flow::Continue)
    }
}

#[cfg(test)]
mod tests {
    use crate::control::Control;
    use corun_lab_proto::agent::WorkloadSpec;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    #[test]
    fn a_sound_machine_passes() {
        let spec = WorkloadSpec {
            name: "stale".to_owned(),
            threads: Some(3),
            params: BTreeMap::new(),
        };
        let control = Arc::new(Control::default());
        let mut session = super::WORKLOAD.start(&spec, &control).expect("starts");
        session.open_window();
        let deadline = Instant::now() + Duration::from_millis(300);
        session
            .run_until(Some(deadline), &control)
            .expect("no stale translation");
        let window = session.close_window();
        assert!(window.work > 0.0);
        assert!(window.module_counts["stale.accesses"] > 0);
    }
}
