// SPDX-License-Identifier: GPL-2.0-only
//! What a run measured.

use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Where a nanosecond of a pCPU went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Account {
    /// User mode of a guest.
    User,
    /// A guest kernel, waiting for a spinlock.
    KernelLock,
    /// A guest kernel, flushing TLBs or waiting for others that do.
    KernelTlb,
    /// A guest kernel, anything else.
    KernelOther,
    /// VM exits, their handlers and entries.
    Exit,
    /// The host's scheduler, switches, and other work of the host.
    Host,
    /// Halt polling.
    Poll,
    /// Nothing.
    Idle,
}

/// How many accounts there are.
pub const ACCOUNTS: usize = 8;

/// Their names, in order.
pub const ACCOUNT_NAMES: [&str; ACCOUNTS] = [
    "user", "k:lock", "k:tlb", "k:other", "exit", "host", "poll", "idle",
];

/// A sum of nanoseconds by account.
pub type Accounts = [u64; ACCOUNTS];

/// What a run measured, its warm-up left out.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Measured time. Nanoseconds.
    pub measured_ns: u64,
    /// Events that the engine handled, with those of the warm-up.
    pub events: u64,
    /// Hash of the whole trace, with that of the warm-up.
    pub trace_hash: u64,
    /// All pCPUs together.
    pub pcpus: Accounts,
    /// The guests, in the scenario's order.
    pub vms: Vec<VmOutcome>,
}

/// What a run measured of one guest.
#[derive(Debug, Clone)]
pub struct VmOutcome {
    /// Its name.
    pub name: String,
    /// Units of work done, by the programs of [`crate::VmSpec::work`].
    pub units: Vec<u64>,
    /// Time of pCPUs that it used.
    pub accounts: Accounts,
    /// Distributions in nanoseconds, by name: `tlb` (shootdown, initiator's
    /// view), `lock.NAME` (wait for a spinlock), `unit` (time between two units
    /// of a thread), `wake` (a guest thread's wake-up to its running), `ipi`
    /// (send to receipt), `ready` (vCPU runnable until it runs), `jitter.FLOW`.
    pub histograms: BTreeMap<String, Histogram<u64>>,
    /// Counts by name: `exit.REASON`, `yield.asked`, `yield.honoured`,
    /// `ple.bursts`, `poll.hits`, ...
    pub counters: BTreeMap<String, u64>,
}

impl Outcome {
    /// The guest called `name`.
    pub fn vm(&self, name: &str) -> Option<&VmOutcome> {
        self.vms.iter().find(|vm| vm.name == name)
    }
}

impl VmOutcome {
    /// A figure by its name; `None` when there is no such figure, or nothing
    /// was counted for it.
    ///
    /// `rate` (units of the first program a second), `rate.N` (of program N),
    /// `HISTOGRAM.mean_us`, `.min_us`, `.max_us`, `.pNN_us`, `.count`,
    /// `share.ACCOUNT` (of the guest's own user and kernel time),
    /// `cpu_s` (pCPU seconds a second), `count.COUNTER` (a second),
    /// `per_unit.COUNTER`.
    pub fn figure(&self, name: &str, measured_ns: u64) -> Option<f64> {
        let seconds = measured_ns as f64 / 1e9;
        if name == "rate" {
            return Some(*self.units.first()? as f64 / seconds);
        }
        if name == "cpu_s" {
            return Some(self.accounts.iter().sum::<u64>() as f64 / 1e9 / seconds);
        }
        let (group, rest) = name.split_once('.')?;
        match group {
            "rate" => Some(*self.units.get(rest.parse::<usize>().ok()?)? as f64 / seconds),
            "share" => self.share(rest),
            "count" => Some(self.counter(rest) as f64 / seconds),
            "per_unit" => {
                let units = *self.units.first().filter(|u| **u > 0)?;
                Some(self.counter(rest) as f64 / units as f64)
            }
            _ => self.distribution(name),
        }
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    fn share(&self, account: &str) -> Option<f64> {
        let guest = &self.accounts[..=Account::KernelOther as usize];
        let index = ACCOUNT_NAMES[..guest.len()]
            .iter()
            .position(|n| *n == account)?;
        let sum: u64 = guest.iter().sum();
        (sum > 0).then(|| guest[index] as f64 / sum as f64)
    }

    fn distribution(&self, name: &str) -> Option<f64> {
        let (histogram, what) = name.rsplit_once('.')?;
        let h = self.histograms.get(histogram).filter(|h| !h.is_empty())?;
        Some(match what {
            "count" => h.len() as f64,
            "mean_us" => h.mean() / 1e3,
            "min_us" => h.min() as f64 / 1e3,
            "max_us" => h.max() as f64 / 1e3,
            _ => {
                let percentile = what.strip_prefix('p')?.strip_suffix("_us")?;
                h.value_at_quantile(percentile.parse::<f64>().ok()? / 100.0) as f64 / 1e3
            }
        })
    }
}
