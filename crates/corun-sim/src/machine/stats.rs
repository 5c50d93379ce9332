// SPDX-License-Identifier: GPL-2.0-only
//! What is counted while the machine runs.

use crate::outcome::{ACCOUNTS, Accounts, VmOutcome};
use crate::trace::EXITS;
use hdrhistogram::Histogram;

/// Longest time told apart in a histogram: 1,000 s.
const MAX_NS: u64 = 1_000_000_000_000;

/// Histograms that every VM has, by number; those of locks and flows follow.
pub(crate) mod hist {
    pub(crate) const TLB: usize = 0;
    pub(crate) const UNIT: usize = 1;
    pub(crate) const WAKE: usize = 2;
    pub(crate) const IPI: usize = 3;
    pub(crate) const READY: usize = 4;
    pub(crate) const PLE_RUN: usize = 5;
    pub(crate) const NAMES: [&str; 6] = ["tlb", "unit", "wake", "ipi", "ready", "ple_run"];
}

/// Counters that every VM has, by number.
pub(crate) mod counter {
    pub(crate) const YIELD_ASKED: usize = 0;
    pub(crate) const YIELD_HONOURED: usize = 1;
    pub(crate) const POLL_HIT: usize = 2;
    pub(crate) const POLL_MISS: usize = 3;
    pub(crate) const HALT: usize = 4;
    pub(crate) const KICK: usize = 5;
    pub(crate) const PREEMPTED: usize = 6;
    pub(crate) const PREEMPTED_LOCKED: usize = 7;
    pub(crate) const SHOOTDOWN: usize = 8;
    pub(crate) const CALL_SENT: usize = 9;
    pub(crate) const CALL_PREEMPTED: usize = 10;
    pub(crate) const PLE_IN_RUNS: usize = 11;
    pub(crate) const DROPPED: usize = 12;
    pub(crate) const NAMES: [&str; 13] = [
        "yield.asked",
        "yield.honoured",
        "poll.hits",
        "poll.misses",
        "halts",
        "kicks",
        "preempted",
        "preempted.locked",
        "shootdowns",
        "calls.sent",
        "calls.preempted",
        "ple.in_runs",
        "net.dropped",
    ];
}

/// What is counted of a VM.
#[derive(Debug)]
pub(crate) struct Stats {
    pub(crate) accounts: Accounts,
    pub(crate) units: Vec<u64>,
    pub(crate) exits: [u64; EXITS.len()],
    pub(crate) counters: [u64; counter::NAMES.len()],
    histograms: Vec<Histogram<u64>>,
    names: Vec<String>,
}

impl Stats {
    pub(crate) fn new(works: usize) -> Self {
        let mut stats = Self {
            accounts: [0; ACCOUNTS],
            units: vec![0; works],
            exits: [0; EXITS.len()],
            counters: [0; counter::NAMES.len()],
            histograms: Vec::new(),
            names: Vec::new(),
        };
        for name in hist::NAMES {
            stats.histogram(name);
        }
        stats
    }

    /// The number of the histogram called `name`, made if need be.
    pub(crate) fn histogram(&mut self, name: &str) -> usize {
        if let Some(known) = self.names.iter().position(|n| n == name) {
            return known;
        }
        // The bounds are constants that the library accepts.
        if let Ok(h) = Histogram::new_with_bounds(1, MAX_NS, 2) {
            self.histograms.push(h);
            self.names.push(name.to_owned());
        }
        self.names.len() - 1
    }

    /// The name of histogram `number`.
    pub(crate) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", String::as_str)
    }

    pub(crate) fn record(&mut self, histogram: usize, value: u64) {
        self.histograms[histogram].saturating_record(value);
    }

    /// Records `value` so many times.
    pub(crate) fn record_n(&mut self, histogram: usize, value: u64, times: u64) {
        self.histograms[histogram].saturating_record_n(value, times);
    }

    pub(crate) fn count(&mut self, counter: usize) {
        self.counters[counter] += 1;
    }

    /// Forgets what the warm-up counted.
    pub(crate) fn reset(&mut self) {
        self.accounts = [0; ACCOUNTS];
        self.units.fill(0);
        self.exits.fill(0);
        self.counters.fill(0);
        for h in &mut self.histograms {
            h.reset();
        }
    }

    pub(crate) fn into_outcome(self, name: String) -> VmOutcome {
        let exits = EXITS
            .iter()
            .zip(self.exits)
            .map(|(name, n)| (format!("exit.{name}"), n));
        let counters = counter::NAMES
            .iter()
            .zip(self.counters)
            .map(|(name, n)| ((*name).to_owned(), n));
        VmOutcome {
            name,
            units: self.units,
            accounts: self.accounts,
            histograms: self.names.into_iter().zip(self.histograms).collect(),
            counters: exits.chain(counters).collect(),
        }
    }
}
