// SPDX-License-Identifier: GPL-2.0-only
//! How much was checked, and how much went on meanwhile.

use crate::control::Control;
use crate::error::Error;
use crate::session::{Session, Window};
use crate::threads::Threads;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Counters of one run; they only grow.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Accesses to the mappings that were judged.
    pub(super) accesses: AtomicU64,
    pub(super) forks: AtomicU64,
    /// Huge pages that lost one of their small ones.
    pub(super) splits: AtomicU64,
    /// Pages in use that were copied to other memory.
    pub(super) migrations: AtomicU64,
    pub(super) compactions: AtomicU64,
    /// vCPUs that went or came.
    pub(super) hotplugs: AtomicU64,
}

impl Tally {
    pub(super) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    fn read(&self) -> BTreeMap<String, u64> {
        [
            ("accesses", &self.accesses),
            ("forks", &self.forks),
            ("splits", &self.splits),
            ("migrations", &self.migrations),
            ("compactions", &self.compactions),
            ("hotplugs", &self.hotplugs),
        ]
        .map(|(name, counter)| (format!("stale.{name}"), counter.load(Ordering::Relaxed)))
        .into()
    }
}

/// The threads of a run, with their tally.
pub(super) struct Tallied {
    threads: Threads,
    tally: Arc<Tally>,
    at_begin: BTreeMap<String, u64>,
}

impl Tallied {
    pub(super) fn new(threads: Threads, tally: Arc<Tally>) -> Self {
        Self {
            threads,
            tally,
            at_begin: BTreeMap::new(),
        }
    }
}

impl Session for Tallied {
    fn threads(&self) -> usize {
        self.threads.threads()
    }

    fn run_until(&mut self, deadline: Option<Instant>, control: &Control) -> Result<(), Error> {
        self.threads.run_until(deadline, control)
    }

    fn open_window(&mut self) {
        self.at_begin = self.tally.read();
        self.threads.open_window();
    }

    fn close_window(&mut self) -> Window {
        let mut window = self.threads.close_window();
        let counts = self.tally.read().into_iter().map(|(name, n)| {
            let before = self.at_begin.get(&name).copied().unwrap_or(0);
            (name, n - before)
        });
        window.module_counts.extend(counts);
        window
    }
}
