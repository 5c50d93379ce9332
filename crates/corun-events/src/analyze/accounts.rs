// SPDX-License-Identifier: GPL-2.0-only
//! Where each vCPU's time went: run + ready + halted + polling = wall time.

use crate::state::{Cause, Follower, State, Stretch};
use crate::{Event, Header, Kind, Times, TimesSummary, out};
use serde::Serialize;
use std::collections::BTreeMap;

/// One vCPU's time and turns. Nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Account {
    /// Its number in the VM.
    pub vcpu: u32,
    /// On a pCPU, in the guest or in the host on its behalf.
    pub running_ns: u64,
    /// On a pCPU from halting on: polling for its wake-up, if KVM does, and the
    /// way to sleep.
    pub polling_ns: u64,
    /// Runnable, after the host took its pCPU.
    pub preempted_ns: u64,
    /// Runnable, after a directed yield of its own.
    pub yielded_ns: u64,
    /// Runnable, woken and not yet run.
    pub woken_ns: u64,
    /// Asleep.
    pub halted_ns: u64,
    /// Before its first event.
    pub unseen_ns: u64,
    /// How often it lost its pCPU though runnable.
    pub preemptions: u64,
    /// Halts.
    pub halts: u64,
    /// Halts that a poll ended: the vCPU never left its pCPU.
    pub poll_hits: u64,
    /// Halts that ended in sleep after some time on the pCPU: polls in vain where
    /// KVM polls.
    pub poll_misses: u64,
    /// Waits for a pCPU that ended.
    pub ready: TimesSummary,
}

impl Account {
    /// Runnable without a pCPU: what guests see as steal. Nanoseconds.
    pub fn ready_ns(&self) -> u64 {
        self.preempted_ns + self.yielded_ns + self.woken_ns
    }

    /// All of it: the recording's length. Nanoseconds.
    pub fn wall_ns(&self) -> u64 {
        self.running_ns + self.polling_ns + self.ready_ns() + self.halted_ns + self.unseen_ns
    }

    fn add(&mut self, stretch: Stretch) {
        let sum_ns = match stretch.state {
            State::Unseen => &mut self.unseen_ns,
            State::Running => &mut self.running_ns,
            State::Polling => &mut self.polling_ns,
            State::Ready(Cause::Preempted) => &mut self.preempted_ns,
            State::Ready(Cause::Yielded) => &mut self.yielded_ns,
            State::Ready(Cause::Woken) => &mut self.woken_ns,
            State::Halted => &mut self.halted_ns,
        };
        *sum_ns += stretch.ns();
    }

    /// Counts what `event` says, which ended `ended`.
    fn count(&mut self, event: &Event, ended: Option<Stretch>) {
        let polled = ended.is_some_and(|s| s.state == State::Polling && s.ns() > 0);
        match event.kind {
            Kind::SwitchOut if event.arg == out::PREEMPTED => self.preemptions += 1,
            Kind::SwitchOut if polled => self.poll_misses += 1,
            Kind::Halt => self.halts += 1,
            Kind::HaltEnd if polled => self.poll_hits += 1,
            _ => {}
        }
    }
}

/// Collects accounts.
#[derive(Debug)]
pub(super) struct Collector {
    follower: Follower,
    vcpus: BTreeMap<(u32, u32), (Account, Times)>,
}

impl Collector {
    pub(super) fn new(header: &Header) -> Self {
        Self {
            follower: Follower::new(header),
            vcpus: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, event: &Event) {
        let ended = self.follower.take(event);
        let key = (event.vm, event.vcpu);
        let counted = matches!(
            event.kind,
            Kind::SwitchOut | Kind::Halt | Kind::HaltEnd | Kind::SwitchIn
        );
        if !counted && ended.is_none() {
            return;
        }
        let (account, ready) = self.vcpus.entry(key).or_default();
        account.count(event, ended);
        if let Some(stretch) = ended {
            account.add(stretch);
            if matches!(stretch.state, State::Ready(_)) {
                ready.record(stretch.ns());
            }
        }
    }

    /// Accounts by VM, its vCPUs in order.
    pub(super) fn finish(mut self, end_ns: u64) -> BTreeMap<u32, Vec<Account>> {
        let mut by_vm: BTreeMap<u32, Vec<Account>> = BTreeMap::new();
        for (vm, vcpu, last) in self.follower.end(end_ns) {
            let (mut account, ready) = self.vcpus.remove(&(vm, vcpu)).unwrap_or_default();
            account.vcpu = vcpu;
            account.add(last);
            account.ready = ready.summary();
            by_vm.entry(vm).or_default().push(account);
        }
        by_vm
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{at, header};
    use super::*;

    #[test]
    fn all_time_is_in_one_account() {
        let mut collector = Collector::new(&header());
        let events = [
            at(10, 0, Kind::Wake, 0),
            at(13, 0, Kind::SwitchIn, 0),
            at(20, 0, Kind::SwitchOut, out::PREEMPTED),
            at(25, 0, Kind::SwitchIn, 0),
            at(26, 0, Kind::SwitchIn, 0),
            at(30, 0, Kind::Halt, 0),
            at(34, 0, Kind::HaltEnd, 0),
            at(40, 0, Kind::Halt, 0),
            at(42, 0, Kind::SwitchOut, out::BLOCKED),
            at(50, 0, Kind::Wake, 0),
            at(51, 0, Kind::SwitchIn, 0),
            at(60, 0, Kind::SwitchOut, out::YIELDED),
        ];
        for event in &events {
            collector.take(event);
        }
        let by_vm = collector.finish(100_000);
        let a = &by_vm[&0][0];
        assert_eq!(a.wall_ns(), 100_000);
        assert_eq!(
            (a.unseen_ns, a.running_ns, a.polling_ns),
            (10_000, 27_000, 6_000)
        );
        assert_eq!(
            (a.preempted_ns, a.yielded_ns, a.woken_ns),
            (5_000, 40_000, 4_000)
        );
        assert_eq!(a.halted_ns, 8_000);
        assert_eq!((a.preemptions, a.halts), (1, 2));
        assert_eq!((a.poll_hits, a.poll_misses), (1, 1));
        assert_eq!(a.ready.count, 3);
        assert_eq!(by_vm[&1][1].unseen_ns, 100_000);
    }
}
