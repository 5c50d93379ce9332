// SPDX-License-Identifier: GPL-2.0-only
//! Counters read around each window.

use super::error::{Context, Result};
use corun_host::observe::YieldObserver;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Values by name.
pub(super) type Counters = BTreeMap<String, u64>;

/// KVM's debugfs counters worth keeping: how vCPUs leave, halt, and yield.
const KVM_STATS: &[&str] = &[
    "directed_yield_attempted",
    "directed_yield_successful",
    "exits",
    "halt_attempted_poll",
    "halt_exits",
    "halt_poll_fail_ns",
    "halt_poll_success_ns",
    "halt_successful_poll",
    "halt_wakeup",
    "hypercalls",
    "irq_exits",
    "irq_injections",
    "preemption_reported",
    "req_event",
    "request_irq_exits",
    "tlb_flush",
];

/// Where counters come from.
pub(super) trait CounterSource {
    /// Cumulative values now.
    fn read(&self) -> Result<Counters>;
}

/// No counters: nothing is measured.
pub(super) struct None;

impl CounterSource for None {
    fn read(&self) -> Result<Counters> {
        Ok(Counters::new())
    }
}

/// The counters of the host that the driver runs on.
pub(super) struct HostCounters {
    yields: YieldObserver,
    kvm: PathBuf,
}

impl HostCounters {
    /// Attaches what has to be attached; once per boot.
    pub(super) fn attach() -> Result<Self> {
        let yields = YieldObserver::attach()
            .map_err(|e| format!("{e:#}"))
            .doing(|| "observe KVM's directed yields".to_owned())?;
        Ok(Self {
            yields,
            kvm: "/sys/kernel/debug/kvm".into(),
        })
    }
}

impl CounterSource for HostCounters {
    fn read(&self) -> Result<Counters> {
        let doing = |what: &str| format!("read the counters of {what}");
        let mut all = Counters::new();
        let yields = self.yields.counters().map_err(|e| format!("{e:#}"));
        add(
            &mut all,
            "yield",
            yields.doing(|| doing("directed yields"))?,
        );
        let corun = corun_host::counters::of_running_scheduler().map_err(|e| format!("{e:#}"));
        add(
            &mut all,
            "corun",
            corun.doing(|| doing("corun"))?.unwrap_or_default(),
        );
        // Statistics differ by kernel: those that are absent are left out.
        let kvm = KVM_STATS.iter().filter_map(|name| {
            let text = fs::read_to_string(self.kvm.join(name)).ok()?;
            Some(((*name).to_owned(), text.trim().parse().ok()?))
        });
        add(&mut all, "kvm", kvm.collect());
        Ok(all)
    }
}

fn add(all: &mut Counters, prefix: &str, some: Counters) {
    all.extend(
        some.into_iter()
            .map(|(name, v)| (format!("{prefix}.{name}"), v)),
    );
}

/// Growth from `before` to `after`. Zeros are kept: "refused: 0" is a finding.
/// A value that shrank belongs to a new counter and counts whole.
pub(super) fn growth(before: &Counters, after: &Counters) -> Counters {
    after
        .iter()
        .map(|(name, now)| {
            let then = before.get(name).copied().unwrap_or(0);
            (name.clone(), now.checked_sub(then).unwrap_or(*now))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, u64)]) -> Counters {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect()
    }

    #[test]
    fn growth_keeps_zeros_and_survives_new_counters() {
        let before = of(&[("a", 3), ("b", 5), ("gone", 1), ("restarted", 9)]);
        let after = of(&[("a", 10), ("b", 5), ("new", 2), ("restarted", 4)]);
        let expected = of(&[("a", 7), ("b", 0), ("new", 2), ("restarted", 4)]);
        assert_eq!(growth(&before, &after), expected);
    }
}
