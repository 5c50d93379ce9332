// SPDX-License-Identifier: GPL-2.0-only
//! What a recording tells: the tables of the publications that corun's
//! mechanisms are from, for any host and any simulated run.
//!
//! Each analysis is a module that takes events one by one and gives figures at
//! the end; [`Analysis`] runs them all in one pass.

pub mod accounts;
pub mod bursts;
pub mod exits;
pub mod ipis;
pub mod locks;
pub mod places;
pub mod shootdowns;
pub mod wakes;

use crate::{Event, Header, Symbols};
use serde::Serialize;
use std::collections::BTreeMap;

/// All figures of a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What was recorded.
    pub title: String,
    /// "sim" or "host".
    pub source: String,
    /// Length. Seconds.
    pub seconds: f64,
    /// Events in the recording.
    pub events: u64,
    /// Events that it lacks because a buffer was full.
    pub dropped: u64,
    /// What the host could not show.
    pub missing: Vec<String>,
    /// By VM, in the recording's order.
    pub vms: Vec<VmReport>,
}

/// The figures of one VM.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VmReport {
    /// Its name.
    pub name: String,
    /// Where each vCPU's time went.
    pub vcpus: Vec<accounts::Account>,
    /// Exits by reason.
    pub exits: exits::Exits,
    /// Spinning: runs of pause exits.
    pub bursts: bursts::Bursts,
    /// Where vCPUs gave up their pCPU, and asked for others to run.
    pub places: places::Places,
    /// Waits for spinlocks by lock; empty where nobody tells of them.
    pub locks: BTreeMap<String, crate::TimesSummary>,
    /// TLB shootdowns.
    pub shootdowns: shootdowns::Shootdowns,
    /// IPIs from sending to receipt.
    pub ipis: ipis::Ipis,
    /// Wake-ups in stages.
    pub wakes: wakes::Wakes,
}

/// All analyses, side by side.
#[derive(Debug)]
pub struct Analysis<'a> {
    header: &'a Header,
    symbols: &'a Symbols,
    /// Transactions by VM's name, for VMs that do not tell of their own.
    transactions: BTreeMap<String, u64>,
    events: u64,
    end_ns: u64,
    accounts: accounts::Collector,
    exits: exits::Collector,
    bursts: bursts::Collector,
    places: places::Collector,
    locks: locks::Collector,
    shootdowns: shootdowns::Collector,
    ipis: ipis::Collector,
    wakes: wakes::Collector,
}

impl<'a> Analysis<'a> {
    /// Analyses a recording with this `header`.
    pub fn new(
        header: &'a Header,
        symbols: &'a Symbols,
        transactions: BTreeMap<String, u64>,
    ) -> Self {
        Self {
            header,
            symbols,
            transactions,
            events: 0,
            end_ns: header.duration_ns,
            accounts: accounts::Collector::new(header),
            exits: exits::Collector::default(),
            bursts: bursts::Collector::new(header),
            places: places::Collector::default(),
            locks: locks::Collector::default(),
            shootdowns: shootdowns::Collector::new(header),
            ipis: ipis::Collector::new(header),
            wakes: wakes::Collector::new(header),
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        self.events += 1;
        self.end_ns = self.end_ns.max(event.at_ns);
        self.accounts.take(event);
        self.exits.take(event);
        self.bursts.take(event, self.symbols);
        self.places.take(event, self.symbols);
        self.locks.take(event);
        self.shootdowns.take(event);
        self.ipis.take(event);
        self.wakes.take(event);
    }

    /// The figures.
    pub fn finish(mut self) -> Report {
        let mut accounts = self.accounts.finish(self.end_ns);
        self.bursts.end();
        let mut vms = Vec::new();
        let numbered = self.header.vms.iter().zip(0..);
        // A number that no VM has got is none.
        for (vm, number) in numbered.filter(|(vm, _)| vm.vcpus > 0) {
            let given = self.transactions.get(&vm.name).copied();
            vms.push(VmReport {
                name: vm.name.clone(),
                vcpus: accounts.remove(&number).unwrap_or_default(),
                exits: self.exits.of(number, given, self.end_ns, self.header),
                bursts: self.bursts.of(number),
                places: self.places.of(number),
                locks: self.locks.of(number, self.header),
                shootdowns: self.shootdowns.of(number),
                ipis: self.ipis.of(number),
                wakes: self.wakes.of(number),
            });
        }
        Report {
            title: self.header.title.clone(),
            source: self.header.source.clone(),
            seconds: self.end_ns as f64 / 1e9,
            events: self.events,
            dropped: self.header.dropped(),
            missing: self.header.missing.clone(),
            vms,
        }
    }
}

/// `n` of `whole`, 0 when there is nothing.
fn share(n: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    n as f64 / whole as f64
}

/// Recordings for the tests of the analyses.
#[cfg(test)]
mod fixture {
    use crate::{Event, Header, Kind, NO_PCPU, Symbol, Vm};

    /// An address inside `native_queued_spin_lock_slowpath`.
    pub(super) const IN_SPIN: u64 = 0xffff_ffff_8100_0010;
    /// An address inside `smp_call_function_many_cond`.
    pub(super) const IN_CALL: u64 = 0xffff_ffff_8100_0110;

    pub(super) fn header() -> Header {
        let mut header = Header::new("sim", "test", 2, vec![Vm::new("a", 2), Vm::new("b", 2)]);
        for (offset, name) in [
            (0, "native_queued_spin_lock_slowpath"),
            (0x100, "smp_call_function_many_cond"),
            (0x200, "vfs_read"),
        ] {
            header.symbols.push(Symbol {
                start: 0xffff_ffff_8100_0000 + offset,
                name: name.to_owned(),
            });
        }
        header
    }

    /// An event of vCPU `vcpu` of VM 0, `us` after the start.
    pub(super) fn at(us: u64, vcpu: u32, kind: Kind, arg: u64) -> Event {
        Event {
            at_ns: us * 1000,
            kind,
            pcpu: NO_PCPU,
            vm: 0,
            vcpu,
            arg,
            ip: 0,
        }
    }

    /// The same with an instruction pointer.
    pub(super) fn at_ip(us: u64, vcpu: u32, kind: Kind, arg: u64, ip: u64) -> Event {
        Event {
            ip,
            ..at(us, vcpu, kind, arg)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{at, header};
    use super::*;
    use crate::Kind;
    use corun_symbols::Library;

    #[test]
    fn one_pass_gives_all_figures_of_each_vm() {
        let mut header = header();
        header.duration_ns = 1_000_000;
        header.drops = vec![3, 4];
        let symbols = Symbols::new(&header, &Library::default()).expect("no maps");
        let given = BTreeMap::from([("a".to_owned(), 2)]);
        let mut analysis = Analysis::new(&header, &symbols, given);
        for event in [
            at(0, 0, Kind::SwitchIn, 0),
            at(10, 0, Kind::Exit, 0),
            at(20, 0, Kind::Enter, 0),
        ] {
            analysis.take(&event);
        }
        let report = analysis.finish();
        assert_eq!((report.events, report.dropped), (3, 7));
        assert_eq!(report.vms.len(), 2);
        assert!((report.seconds - 0.001).abs() < 1e-12);
        let a = &report.vms[0];
        assert_eq!(a.vcpus[0].running_ns, 1_000_000);
        assert_eq!(a.exits.by_reason["icr"].per_transaction, Some(0.5));
        assert!(report.vms[1].exits.by_reason.is_empty());
    }
}
