// SPDX-License-Identifier: GPL-2.0-only
//! How long TLB shootdowns take (seed 000, table 1 and figure 5).
//!
//! Guests that tell of their shootdowns (the simulator's) give the initiator's
//! own view. On a host the calls are seen from outside: from the first interrupt
//! of a function call to the moment the last of its targets takes it, and on to the
//! moment from which the initiator, which spins meanwhile, has a pCPU to see that.
//! The flushes, and the initiator's way to its first interrupt, are not in it. Other
//! function calls of the guest's kernel look the same.

use crate::{Event, Kind, Point, Times, TimesSummary};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Vectors of Linux's function calls: to many, and to one
/// (`CALL_FUNCTION_VECTOR`, `CALL_FUNCTION_SINGLE_VECTOR`).
const CALL_VECTORS: [u8; 2] = [0xfc, 0xfb];

/// Shootdowns of a VM.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Shootdowns {
    /// As the initiators saw them.
    pub told: Latency,
    /// Function calls as the host saw them, until the last target took it.
    pub calls: Latency,
    /// ... and the initiator had a pCPU: about what it saw itself.
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
#[derive(Debug, Default)]
pub(super) struct Collector {
    told: BTreeMap<u32, Times>,
    calls: BTreeMap<u32, Times>,
    calls_seen: BTreeMap<u32, Times>,
    /// By VM, initiator and vector.
    open: HashMap<(u32, u32, u8), Call>,
    /// vCPUs off their pCPU, by VM and number.
    off: HashSet<(u32, u32)>,
    /// When calls began that all targets took while their initiator was off its pCPU.
    unseen: HashMap<(u32, u32), Vec<u64>>,
}

impl Collector {
    pub(super) fn take(&mut self, event: &Event) {
        let vector = event.vector();
        match event.kind {
            Kind::ShootdownEnd => self.told.entry(event.vm).or_default().record(event.arg),
            Kind::IpiSend if CALL_VECTORS.contains(&vector) => self.send(event, vector),
            Kind::IpiTake if CALL_VECTORS.contains(&vector) => self.taken(event, vector),
            Kind::SwitchOut => {
                self.off.insert((event.vm, event.vcpu));
            }
            Kind::SwitchIn => self.back(event),
            _ => {}
        }
    }

    fn send(&mut self, event: &Event, vector: u8) {
        let key = (event.vm, event.vcpu, vector);
        let call = self.open.entry(key).or_insert(Call {
            since_ns: event.at_ns,
            targets: Vec::new(),
        });
        if !call.targets.contains(&event.target()) {
            call.targets.push(event.target());
        }
    }

    /// One interrupt answers the calls of all who sent it.
    fn taken(&mut self, event: &Event, vector: u8) {
        let times = self.calls.entry(event.vm).or_default();
        let seen = self.calls_seen.entry(event.vm).or_default();
        self.open.retain(|(vm, initiator, of), call| {
            if (*vm, *of) != (event.vm, vector) {
                return true;
            }
            let before = call.targets.len();
            call.targets.retain(|to| *to != event.vcpu);
            if call.targets.is_empty() && before > 0 {
                let took_ns = event.at_ns.saturating_sub(call.since_ns);
                times.record(took_ns);
                let initiator = (*vm, *initiator);
                if self.off.contains(&initiator) {
                    let unseen = self.unseen.entry(initiator).or_default();
                    unseen.push(call.since_ns);
                } else {
                    seen.record(took_ns);
                }
            }
            !call.targets.is_empty()
        });
    }

    /// A vCPU has a pCPU again: it sees that its calls are over.
    fn back(&mut self, event: &Event) {
        let vcpu = (event.vm, event.vcpu);
        self.off.remove(&vcpu);
        let seen = self.calls_seen.entry(event.vm).or_default();
        for since_ns in self.unseen.remove(&vcpu).into_iter().flatten() {
            seen.record(event.at_ns.saturating_sub(since_ns));
        }
    }

    pub(super) fn of(&self, vm: u32) -> Shootdowns {
        Shootdowns {
            told: Latency::of(self.told.get(&vm)),
            calls: Latency::of(self.calls.get(&vm)),
            calls_seen: Latency::of(self.calls_seen.get(&vm)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::at;
    use super::*;
    use crate::interrupt_arg;

    #[test]
    fn a_call_lasts_until_its_last_target_took_it() {
        let send = |us, from, to| at(us, from, Kind::IpiSend, interrupt_arg(to, 0xfc));
        let take = |us, who| at(us, who, Kind::IpiTake, interrupt_arg(0, 0xfc));
        let mut collector = Collector::default();
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
    fn an_initiator_without_a_pcpu_sees_the_end_when_it_is_back() {
        let send = |us, from, to| at(us, from, Kind::IpiSend, interrupt_arg(to, 0xfc));
        let take = |us, who| at(us, who, Kind::IpiTake, interrupt_arg(0, 0xfc));
        let mut collector = Collector::default();
        let events = [
            send(1, 0, 1),
            at(2, 0, Kind::SwitchOut, 1),
            take(3, 1),
            at(9, 0, Kind::SwitchIn, 0),
            send(10, 0, 1),
            take(12, 1),
            // Not its call.
            at(13, 1, Kind::SwitchOut, 1),
            at(14, 1, Kind::SwitchIn, 0),
        ];
        for event in &events {
            collector.take(event);
        }
        let of = collector.of(0);
        assert_eq!((of.calls.times.count, of.calls_seen.times.count), (2, 2));
        assert!((of.calls.times.mean_us - 2.0).abs() < 1e-9);
        assert!((of.calls_seen.times.mean_us - 5.0).abs() < 1e-9);
    }

    #[test]
    fn what_guests_tell_is_taken_as_told() {
        let mut collector = Collector::default();
        collector.take(&at(9, 0, Kind::ShootdownEnd, 7000));
        // A reschedule is no call.
        collector.take(&at(9, 0, Kind::IpiSend, interrupt_arg(1, 0xfd)));
        collector.take(&at(10, 1, Kind::IpiTake, interrupt_arg(0, 0xfd)));
        let of = collector.of(0);
        assert_eq!((of.told.times.count, of.calls.times.count), (1, 0));
        assert!((of.told.times.mean_us - 7.0).abs() < 1e-9);
    }
}
