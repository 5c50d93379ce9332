// SPDX-License-Identifier: GPL-2.0-only
//! IPIs from sending to receipt, by what the target did when they were sent.

use crate::state::{Follower, State};
use crate::{Event, Header, Kind, Times, TimesSummary};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// IPIs of a VM.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ipis {
    /// Sent, those too that joined one that was pending.
    pub sent: u64,
    /// All that were taken.
    pub all: TimesSummary,
    /// By the target's state when they were sent.
    pub by_target: BTreeMap<&'static str, TimesSummary>,
}

/// An IPI on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    /// When the oldest was sent. Nanoseconds.
    pub(crate) since_ns: u64,
    /// Who sent it.
    pub(crate) from: u32,
    /// What the target did.
    pub(crate) target: State,
}

/// Pairs IPIs with their receipt: the oldest of each target and vector that was
/// not taken yet stands for those that join it.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pending: HashMap<(u32, u32, u8), Pending>,
}

impl Pairs {
    /// Takes `event`; the IPI that it receives.
    pub(crate) fn take(&mut self, event: &Event, follower: &Follower) -> Option<Pending> {
        match event.kind {
            Kind::IpiSend => {
                let key = (event.vm, event.target(), event.vector());
                self.pending.entry(key).or_insert(Pending {
                    since_ns: event.at_ns,
                    from: event.vcpu,
                    target: follower.state(event.vm, event.target()),
                });
                None
            }
            Kind::IpiTake if event.may_take_ipi() => {
                let key = (event.vm, event.vcpu, event.vector());
                self.pending.remove(&key)
            }
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
struct OfVm {
    sent: u64,
    all: Times,
    by_target: BTreeMap<&'static str, Times>,
}

/// Collects IPIs.
#[derive(Debug)]
pub(super) struct Collector {
    follower: Follower,
    pairs: Pairs,
    vms: BTreeMap<u32, OfVm>,
}

impl Collector {
    pub(super) fn new(header: &Header) -> Self {
        Self {
            follower: Follower::new(header),
            pairs: Pairs::default(),
            vms: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, event: &Event) {
        self.follower.take(event);
        if event.kind == Kind::IpiSend {
            self.vms.entry(event.vm).or_default().sent += 1;
        }
        let Some(ipi) = self.pairs.take(event, &self.follower) else {
            return;
        };
        let vm = self.vms.entry(event.vm).or_default();
        let ns = event.at_ns.saturating_sub(ipi.since_ns);
        vm.all.record(ns);
        vm.by_target
            .entry(ipi.target.name())
            .or_default()
            .record(ns);
    }

    pub(super) fn of(&self, vm: u32) -> Ipis {
        let Some(of) = self.vms.get(&vm) else {
            return Ipis::default();
        };
        Ipis {
            sent: of.sent,
            all: of.all.summary(),
            by_target: of
                .by_target
                .iter()
                .map(|(n, t)| (*n, t.summary()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{at, header};
    use super::*;
    use crate::{interrupt_arg, out};

    #[test]
    fn the_targets_state_at_the_sending_counts() {
        let mut collector = Collector::new(&header());
        let events = [
            at(0, 1, Kind::SwitchOut, out::PREEMPTED),
            at(1, 0, Kind::IpiSend, interrupt_arg(1, 0xfc)),
            at(2, 0, Kind::IpiSend, interrupt_arg(1, 0xfc)),
            at(3, 0, Kind::IpiSend, interrupt_arg(1, 0xfd)),
            at(50, 1, Kind::SwitchIn, 0),
            at(51, 1, Kind::IpiTake, interrupt_arg(0, 0xec)),
            at(51, 1, Kind::IpiTake, interrupt_arg(0, 0xfc)),
            at(60, 0, Kind::IpiSend, interrupt_arg(1, 0xfc)),
            at(62, 1, Kind::IpiTake, interrupt_arg(0, 0xfc)),
        ];
        for event in &events {
            collector.take(event);
        }
        let ipis = collector.of(0);
        assert_eq!((ipis.sent, ipis.all.count), (4, 2));
        assert!((ipis.by_target["ready: preempted"].max_us - 50.0).abs() < 1e-9);
        assert!((ipis.by_target["running"].max_us - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_timer_does_not_take_the_simulators_ipi() {
        let mut collector = Collector::new(&header());
        for event in [
            at(1, 0, Kind::IpiSend, 1),
            at(2, 1, Kind::IpiTake, 4),
            at(5, 1, Kind::IpiTake, 4 | 2),
        ] {
            collector.take(&event);
        }
        assert!((collector.of(0).all.max_us - 4.0).abs() < 1e-9);
    }
}
