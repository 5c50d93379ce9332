// SPDX-License-Identifier: GPL-2.0-only
//! Where in the guest vCPUs give up their pCPU and ask for others to run (seed
//! 004: yields, told apart by the instruction pointer and the symbol table).

use crate::{Event, Kind, Place, Symbols, out};
use corun_policy::Region;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Yields and preemptions of a VM by place.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Places {
    /// Directed yields that KVM asked for.
    pub yields_asked: u64,
    /// ... and that the scheduler took.
    pub yields_granted: u64,
    /// By function, those with most first.
    pub by_symbol: Vec<AtPlace>,
    /// By class of code.
    pub by_class: BTreeMap<&'static str, Counts>,
}

/// What happened in one function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtPlace {
    /// The function.
    pub symbol: String,
    /// Its class.
    pub class: Region,
    /// What happened there.
    #[serde(flatten)]
    pub counts: Counts,
}

/// How often what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// The host took the pCPU.
    pub preempted: u64,
    /// The vCPU gave way, by a directed yield of its own.
    pub yielded: u64,
    /// It slept.
    pub blocked: u64,
    /// KVM asked for a directed yield while it spun.
    pub yields_asked: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.preempted += other.preempted;
        self.yielded += other.yielded;
        self.blocked += other.blocked;
        self.yields_asked += other.yields_asked;
    }

    fn sum(self) -> u64 {
        self.preempted + self.yielded + self.blocked + self.yields_asked
    }
}

/// Collects places.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// Where each vCPU was at its last exit.
    last_ip: HashMap<(u32, u32), u64>,
    places: BTreeMap<(u32, Place), Counts>,
    granted: BTreeMap<u32, u64>,
}

impl Collector {
    pub(super) fn take(&mut self, event: &Event, symbols: &Symbols) {
        let vcpu = (event.vm, event.vcpu);
        if event.ip != 0 {
            self.last_ip.insert(vcpu, event.ip);
        }
        let mut counts = Counts::default();
        match (event.kind, event.arg) {
            (Kind::SwitchOut, out::BLOCKED) => counts.blocked = 1,
            (Kind::SwitchOut, out::YIELDED) => counts.yielded = 1,
            (Kind::SwitchOut, _) => counts.preempted = 1,
            (Kind::YieldAsk, _) => counts.yields_asked = 1,
            (Kind::YieldGrant, _) => {
                *self.granted.entry(event.vm).or_default() += 1;
                return;
            }
            _ => return,
        }
        let ip = self.last_ip.get(&vcpu).copied().unwrap_or(0);
        let place = symbols.place(event.vm, ip);
        self.places
            .entry((event.vm, place))
            .or_default()
            .add(counts);
    }

    pub(super) fn of(&self, vm: u32) -> Places {
        let mut by_class: BTreeMap<&'static str, Counts> = BTreeMap::new();
        let mut by_symbol = Vec::new();
        for ((_, place), counts) in self.places.iter().filter(|((of, _), _)| *of == vm) {
            by_class
                .entry(place.region.name())
                .or_default()
                .add(*counts);
            by_symbol.push(AtPlace {
                symbol: place.name.clone(),
                class: place.region,
                counts: *counts,
            });
        }
        by_symbol.sort_by_key(|p| std::cmp::Reverse(p.counts.sum()));
        Places {
            yields_asked: by_class.values().map(|c| c.yields_asked).sum(),
            yields_granted: self.granted.get(&vm).copied().unwrap_or(0),
            by_symbol,
            by_class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{IN_CALL, IN_SPIN, at, at_ip, header};
    use super::*;
    use crate::exit;
    use corun_symbols::Library;

    #[test]
    fn what_happens_is_counted_where_the_guest_was() {
        let header = header();
        let symbols = Symbols::new(&header, &Library::default()).expect("no maps");
        let mut collector = Collector::default();
        let pause = exit::PAUSE as u64;
        let events = [
            at_ip(1, 0, Kind::Exit, pause, IN_SPIN),
            at(1, 0, Kind::YieldAsk, 1),
            at(1, 0, Kind::YieldGrant, 1),
            at(2, 0, Kind::SwitchOut, out::YIELDED),
            at_ip(3, 1, Kind::SwitchOut, out::PREEMPTED, IN_CALL),
            at_ip(4, 1, Kind::SwitchOut, out::PREEMPTED, 0x1000),
        ];
        for event in &events {
            collector.take(event, &symbols);
        }
        let places = collector.of(0);
        assert_eq!((places.yields_asked, places.yields_granted), (1, 1));
        let lock = places.by_class["lock-wait"];
        assert_eq!((lock.yielded, lock.yields_asked), (1, 1));
        assert_eq!(places.by_class["ack-wait"].preempted, 1);
        assert_eq!(places.by_class["user"].preempted, 1);
        assert_eq!(
            places.by_symbol[0].symbol,
            "native_queued_spin_lock_slowpath"
        );
        assert_eq!(collector.of(1), Places::default());
    }
}
