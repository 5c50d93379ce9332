// SPDX-License-Identifier: GPL-2.0-only
//! Exits by reason, a second and a transaction (seed 003, "`VMEXITs` of
//! `TCP_RR`").

use super::share;
use crate::{Event, Header, Kind, Times, TimesSummary};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Exits of a VM.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Exits {
    /// Transactions: units of work that the recording has, or as given.
    pub transactions: u64,
    /// By reason.
    pub by_reason: BTreeMap<String, Reason>,
}

/// Exits for one reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Reason {
    /// How many.
    pub count: u64,
    /// A second of the recording.
    pub per_second: f64,
    /// A transaction; `None` without any.
    pub per_transaction: Option<f64>,
    /// From exit to entry, for those after which the vCPU kept its pCPU.
    pub handled: TimesSummary,
}

#[derive(Debug, Default)]
struct Counted {
    count: u64,
    handled: Times,
}

/// Collects exits.
#[derive(Debug, Default)]
pub(super) struct Collector {
    counted: BTreeMap<(u32, u64), Counted>,
    units: BTreeMap<u32, u64>,
    /// By VM and vCPU: the exit that is being handled.
    open: HashMap<(u32, u32), (u64, u64)>,
}

impl Collector {
    pub(super) fn take(&mut self, event: &Event) {
        let vcpu = (event.vm, event.vcpu);
        match event.kind {
            Kind::Exit => {
                let reason = event.reason();
                self.counted.entry((event.vm, reason)).or_default().count += 1;
                self.open.insert(vcpu, (reason, event.at_ns));
            }
            Kind::SwitchOut | Kind::Halt => {
                self.open.remove(&vcpu);
            }
            Kind::Enter => {
                if let Some((reason, since_ns)) = self.open.remove(&vcpu) {
                    let counted = self.counted.entry((event.vm, reason)).or_default();
                    counted.handled.record(event.at_ns.saturating_sub(since_ns));
                }
            }
            Kind::Unit => *self.units.entry(event.vm).or_default() += 1,
            _ => {}
        }
    }

    pub(super) fn of(&self, vm: u32, given: Option<u64>, end_ns: u64, header: &Header) -> Exits {
        let transactions = given.or_else(|| self.units.get(&vm).copied()).unwrap_or(0);
        let mut by_reason = BTreeMap::new();
        for ((_, reason), counted) in self.counted.range((vm, 0)..=(vm, u64::MAX)) {
            let count = counted.count;
            let figures = Reason {
                count,
                per_second: share(count, end_ns) * 1e9,
                per_transaction: (transactions > 0).then(|| share(count, transactions)),
                handled: counted.handled.summary(),
            };
            by_reason.insert(header.exit_name(*reason).to_owned(), figures);
        }
        Exits {
            transactions,
            by_reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{at, header};
    use super::*;
    use crate::exit;

    fn of(given: Option<u64>) -> Exits {
        let mut collector = Collector::default();
        let (icr, hlt) = (exit::ICR as u64, exit::HLT as u64);
        let events = [
            at(1, 0, Kind::Exit, icr),
            at(4, 0, Kind::Enter, 0),
            at(5, 0, Kind::Exit, icr),
            at(10, 0, Kind::Enter, 0),
            at(11, 0, Kind::Unit, 0),
            at(12, 0, Kind::Unit, 0),
            at(13, 0, Kind::Exit, hlt),
            at(14, 0, Kind::SwitchOut, 0),
            at(90, 0, Kind::SwitchIn, 0),
            at(91, 0, Kind::Enter, 0),
        ];
        for event in &events {
            collector.take(event);
        }
        collector.of(0, given, 1_000_000, &header())
    }

    #[test]
    fn exits_are_counted_by_reason_second_and_transaction() {
        let exits = of(None);
        let icr = &exits.by_reason["icr"];
        assert_eq!((icr.count, icr.per_transaction), (2, Some(1.0)));
        assert!((icr.per_second - 2000.0).abs() < 1e-6);
        assert_eq!((icr.handled.count, icr.handled.mean_us), (2, 4.0));
        assert_eq!(of(Some(4)).by_reason["icr"].per_transaction, Some(0.5));
    }

    #[test]
    fn time_asleep_is_not_time_of_the_handler() {
        assert_eq!(of(None).by_reason["hlt"].handled.count, 0);
    }
}
