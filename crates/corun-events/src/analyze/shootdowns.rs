// SPDX-License-Identifier: GPL-2.0-only
//! How long TLB shootdowns take (seed 000, table 1 and figure 5).
//!
//! Guests that tell of their shootdowns (the simulator's) give the initiator's
//! own view. On a host the calls are seen from outside: from the first interrupt
//! of a function call to the moment the last of its targets takes it, and as their
//! initiators must have seen them ([`seen`]). Other function calls of the guest's
//! kernel look the same.

mod seen;

use crate::{Event, Header, Kind, Point, Times, TimesSummary};
use seen::Seen;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Vectors of Linux's function calls: to many, and to one
/// (`CALL_FUNCTION_VECTOR`, `CALL_FUNCTION_SINGLE_VECTOR`).
const CALL_MANY: u8 = 0xfc;
const CALL_SINGLE: u8 = 0xfb;

/// Is the interrupt of `event` a function call's?
fn is_call(event: &Event) -> bool {
    matches!(event.vector(), CALL_MANY | CALL_SINGLE)
}

/// Shootdowns of a VM.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Shootdowns {
    /// As the initiators saw them.
    pub told: Latency,
    /// Function calls as the host saw them, until the last target took it.
    pub calls: Latency,
    /// ... as their initiators must have seen them: from the exit that sent the
    /// first interrupt until the initiator, in the guest, could see all answers.
    /// Only calls that they waited for.
    pub calls_seen: Latency,
}

/// A latency with its distribution.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Latency {
    /// In figures.
    #[serde(flatten)]
    pub times: TimesSummary,
    /// Cumulative.
    pub cdf: Vec<Point>,
}

impl Latency {
    fn of(times: Option<&Times>) -> Self {
        times.map_or_else(Self::default, |times| Self {
            times: times.summary(),
            cdf: times.cdf(),
        })
    }
}

/// A call whose targets have not all taken it.
#[derive(Debug)]
struct Call {
    since_ns: u64,
    targets: Vec<u32>,
}

/// Collects shootdowns.
#[derive(Debug)]
pub(super) struct Collector {
    told: BTreeMap<u32, Times>,
    calls: BTreeMap<u32, Times>,
    /// By VM, initiator and vector.
    open: HashMap<(u32, u32, u8), Call>,
    seen: Seen,
}

impl Collector {
    pub(super) fn new(header: &Header) -> Self {
        Self {
            told: BTreeMap::new(),
            calls: BTreeMap::new(),
            open: HashMap::new(),
            seen: Seen::new(header),
        }
    }

    pub(super) fn take(&mut self, event: &Event) {
        self.seen.take(event);
        match event.kind {
            Kind::ShootdownEnd => self.told.entry(event.vm).or_default().record(event.arg),
            Kind::IpiSend if is_call(event) => self.send(event),
            Kind::IpiTake if is_call(event) => self.taken(event),
            _ => {}
        }
    }

    fn send(&mut self, event: &Event) {
        let key = (event.vm, event.vcpu, event.vector());
        let call = self.open.entry(key).or_insert(Call {
            since_ns: event.at_ns,
            targets: Vec::new(),
        });
        if !call.targets.contains(&event.target()) {
            call.targets.push(event.target());
        }
    }

    /// One interrupt answers the calls of all who sent it.
    fn taken(&mut self, event: &Event) {
        let times = self.calls.entry(event.vm).or_default();
        self.open.retain(|(vm, _, vector), call| {
            if (*vm, *vector) != (event.vm, event.vector()) {
                return true;
            }
            let before = call.targets.len();
            call.targets.retain(|to| *to != event.vcpu);
            if call.targets.is_empty() && before > 0 {
                times.record(event.at_ns.saturating_sub(call.since_ns));
            }
            !call.targets.is_empty()
        });
    }

    pub(super) fn of(&mut self, vm: u32) -> Shootdowns {
        Shootdowns {
            told: Latency::of(self.told.get(&vm)),
            calls: Latency::of(self.calls.get(&vm)),
            calls_seen: Latency::of(self.seen.of(vm)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{at, header};
    use super::*;
    use crate::interrupt_arg;

    #[test]
    fn a_call_lasts_until_its_last_target_took_it() {
        let send = |us, from, to| at(us, from, Kind::IpiSend, interrupt_arg(to, 0xfc));
        let take = |us, who| at(us, who, Kind::IpiTake, interrupt_arg(0, 0xfc));
        let mut collector = Collector::new(&header());
        let events = [
            send(1, 0, 1),
            send(2, 0, 2),
            send(3, 1, 2),
            take(5, 1),
            take(11, 2),
            take(12, 2),
        ];
        for event in &events {
            collector.take(event);
        }
        let calls = collector.of(0).calls;
        assert_eq!((calls.times.count, calls.times.max_us), (2, 10.0));
        assert!((calls.times.mean_us - 9.0).abs() < 1e-9);
        assert_eq!(calls.cdf.len(), 2);
    }

    #[test]
    fn what_guests_tell_is_taken_as_told() {
        let mut collector = Collector::new(&header());
        collector.take(&at(9, 0, Kind::ShootdownEnd, 7000));
        // A reschedule is no call.
        collector.take(&at(9, 0, Kind::IpiSend, interrupt_arg(1, 0xfd)));
        collector.take(&at(10, 1, Kind::IpiTake, interrupt_arg(0, 0xfd)));
        let of = collector.of(0);
        assert_eq!((of.told.times.count, of.calls.times.count), (1, 0));
        assert!((of.told.times.mean_us - 7.0).abs() < 1e-9);
    }
}
