// SPDX-License-Identifier: GPL-2.0-only
//! The credit scheduler's accounts: who has how much CPU time left
//! (`csched_acct`).

use super::{CpuId, Host};

/// Time between refills (`CSCHED_ACCT_TSLICE`: three ticks).
const REFILL_NS: u64 = 30_000_000;
/// More missed refills than this change nothing.
const MAX_REFILLS: u64 = 16;

/// Priorities, the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    Over,
    Under,
    Boost,
}

/// What the scheduler knows of a vCPU (`struct csched_unit`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    /// CPU time that it may still use in this period. Nanoseconds.
    pub(super) credit_ns: i64,
    pub(super) priority: Priority,
    /// Takes part in the refill.
    pub(super) active: bool,
    /// Gave way (`CSCHED_FLAG_UNIT_YIELD`).
    pub(super) yielded: bool,
    /// When it was picked.
    pub(super) picked_ns: u64,
    /// Its pCPU; `None` before the first wake-up.
    pub(super) home: Option<CpuId>,
}

impl Unit {
    /// Asleep, with nothing owed.
    pub(super) fn new() -> Self {
        Self {
            credit_ns: 0,
            priority: Priority::Under,
            active: false,
            yielded: false,
            picked_ns: 0,
            home: None,
        }
    }

    /// Gets `share_ns`, of which a vCPU can use one pCPU's time at most.
    fn earn(&mut self, share_ns: i64) {
        let period_ns = REFILL_NS.cast_signed();
        self.credit_ns = (self.credit_ns + share_ns.min(period_ns)).max(-period_ns);
        self.priority = match self.credit_ns {
            i64::MIN..0 => Priority::Over,
            _ if self.priority == Priority::Boost => Priority::Boost,
            _ => Priority::Under,
        };
        if self.credit_ns > period_ns {
            // It does not use what it gets (`__csched_unit_acct_stop_locked`).
            self.credit_ns /= 2;
            self.active = false;
        }
    }
}

/// When refills are due.
#[derive(Debug)]
pub(super) struct Refills {
    next_ns: u64,
}

impl Refills {
    pub(super) fn new() -> Self {
        Self { next_ns: REFILL_NS }
    }

    /// Does all refills that are due; true when there was one.
    pub(super) fn run(&mut self, host: &Host<'_>, units: &mut [Unit]) -> bool {
        if host.now_ns < self.next_ns {
            return false;
        }
        let due = (host.now_ns - self.next_ns) / REFILL_NS + 1;
        self.next_ns += due * REFILL_NS;
        for _ in 0..due.min(MAX_REFILLS) {
            refill(host, units);
        }
        true
    }
}

/// One refill: the host's CPU time of a period, divided between the active vCPUs
/// by the weight of their VMs ("Make weight per-vcpu" in Xen).
fn refill(host: &Host<'_>, units: &mut [Unit]) {
    let weights = host.tasks.iter().map(|t| i64::from(t.vm_weight.max(1)));
    let active = units.iter().zip(weights.clone()).filter(|(u, _)| u.active);
    let total: i64 = active.map(|(_, weight)| weight).sum();
    let host_ns = host
        .cpus
        .iter()
        .map(|_| REFILL_NS.cast_signed())
        .sum::<i64>();
    let active = units.iter_mut().zip(weights).filter(|(u, _)| u.active);
    for (unit, weight) in active {
        unit.earn(host_ns * weight / total);
    }
}
