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

/// What became of a vCPU's last yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Yield {
    /// It did not, or it ran since.
    None,
    /// It gives way (`CSCHED_FLAG_UNIT_YIELD`).
    Now,
    /// It waits behind those that it gave way to.
    Done,
    /// One that it may wait for is on its way: it goes on.
    Stays,
}

/// What the scheduler knows of a vCPU (`struct csched_unit`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    /// CPU time that it may still use in this period. Nanoseconds.
    pub(super) credit_ns: i64,
    pub(super) priority: Priority,
    /// Takes part in the refill.
    pub(super) active: bool,
    /// Its last yield.
    pub(super) yielded: Yield,
    /// Since when it has its pCPU.
    pub(super) picked_ns: u64,
    /// When its pCPU is asked again who shall run.
    pub(super) until_ns: u64,
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
            yielded: Yield::None,
            picked_ns: 0,
            until_ns: 0,
            home: None,
        }
    }

    /// Gets `share_ns`; a boost is over.
    fn earn(&mut self, share_ns: i64) {
        let period_ns = REFILL_NS.cast_signed();
        self.credit_ns = (self.credit_ns + share_ns).max(-period_ns);
        self.priority = match self.credit_ns {
            i64::MIN..0 => Priority::Over,
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
    /// Sum of the credits after the last refill (`credit_balance`).
    balance_ns: i64,
}

impl Refills {
    pub(super) fn new() -> Self {
        Self {
            next_ns: REFILL_NS,
            balance_ns: 0,
        }
    }

    /// Does all refills that are due; true when there was one.
    pub(super) fn run(&mut self, host: &Host<'_>, units: &mut [Unit]) -> bool {
        if host.now_ns < self.next_ns {
            return false;
        }
        let due = (host.now_ns - self.next_ns) / REFILL_NS + 1;
        self.next_ns += due * REFILL_NS;
        for _ in 0..due.min(MAX_REFILLS) {
            self.balance_ns = refill(host, units, self.balance_ns.min(0));
        }
        true
    }
}

/// One refill: the host's CPU time of a period and what all `owe_ns` (negative),
/// divided between the active vCPUs by the weight of their VMs ("Make weight
/// per-vcpu" in Xen). A vCPU gets one pCPU's time and its part of the debt at
/// most. Returns the balance.
fn refill(host: &Host<'_>, units: &mut [Unit], owe_ns: i64) -> i64 {
    let weights = host.tasks.iter().map(|t| i64::from(t.vm_weight.max(1)));
    let active = units.iter().zip(weights.clone()).filter(|(u, _)| u.active);
    let total: i64 = active.map(|(_, weight)| weight).sum();
    let period_ns = REFILL_NS.cast_signed();
    let host_ns = host.cpus.iter().map(|_| period_ns).sum::<i64>() - owe_ns;
    let active = units.iter_mut().zip(weights).filter(|(u, _)| u.active);
    let mut balance_ns = 0;
    for (unit, weight) in active {
        let most_ns = period_ns - owe_ns * weight / total;
        unit.earn((host_ns * weight / total).min(most_ns));
        balance_ns += unit.credit_ns;
    }
    balance_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refill_ends_a_boost() {
        let mut unit = Unit::new();
        unit.priority = Priority::Boost;
        unit.earn(1);
        assert_eq!(unit.priority, Priority::Under);
        unit.earn(-2);
        assert_eq!(unit.priority, Priority::Over);
    }
}
