// SPDX-License-Identifier: GPL-2.0-only
//! Waits for spinlocks by the kernel component that the lock is of (seed 004,
//! "spinlock waiting time"). Only recordings that tell of locks have them: the
//! simulator's. On a host, [`super::bursts`] has the spinning by function.

use crate::{Event, Header, Kind, Times, TimesSummary};
use std::collections::{BTreeMap, HashMap};

/// Collects waits.
#[derive(Debug, Default)]
pub(super) struct Collector {
    waiting: HashMap<(u32, u32, u64), u64>,
    waits: BTreeMap<(u32, u64), Times>,
}

impl Collector {
    pub(super) fn take(&mut self, event: &Event) {
        let key = (event.vm, event.vcpu, event.arg);
        match event.kind {
            Kind::LockSpin => {
                self.waiting.insert(key, event.at_ns);
            }
            Kind::LockTaken => {
                if let Some(since_ns) = self.waiting.remove(&key) {
                    let waited_ns = event.at_ns.saturating_sub(since_ns);
                    let times = self.waits.entry((event.vm, event.arg)).or_default();
                    times.record(waited_ns);
                }
            }
            _ => {}
        }
    }

    pub(super) fn of(&self, vm: u32, header: &Header) -> BTreeMap<String, TimesSummary> {
        let mut by_name: BTreeMap<String, Times> = BTreeMap::new();
        for ((_, lock), times) in self.waits.range((vm, 0)..=(vm, u64::MAX)) {
            let index = usize::try_from(*lock).unwrap_or(usize::MAX);
            let name = header.locks.get(index);
            let name = name.map_or_else(|| format!("lock {lock}"), String::clone);
            by_name.entry(name).or_default().merge(times);
        }
        let summaries = by_name.into_iter();
        summaries
            .map(|(name, times)| (name, times.summary()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{at, header};
    use super::*;

    #[test]
    fn locks_of_one_component_are_one_row() {
        let mut header = header();
        header.locks = vec!["dentry".to_owned(), "dentry".to_owned()];
        let mut collector = Collector::default();
        let events = [
            at(1, 0, Kind::LockSpin, 0),
            at(2, 1, Kind::LockSpin, 1),
            at(4, 0, Kind::LockTaken, 0),
            at(9, 1, Kind::LockTaken, 1),
            at(9, 1, Kind::LockTaken, 1),
        ];
        for event in &events {
            collector.take(event);
        }
        let waits = collector.of(0, &header);
        assert_eq!((waits["dentry"].count, waits["dentry"].mean_us), (2, 5.0));
        assert!(collector.of(1, &header).is_empty());
    }
}
