// SPDX-License-Identifier: GPL-2.0-only
//! What the guests' vCPUs do and wait for, window by window.

use super::error::{Context, Result};
use corun_events::account::{self, ReadyCause, Snapshot, Vm};
use corun_host::accounts::{AccountOptions, Accounts};
use corun_lab_proto::control::VcpuLatency;
use corun_lab_proto::{HistogramError, LatencySummary};
use hdrhistogram::Histogram;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The host's accounts of vCPUs.
pub(super) struct Latency {
    /// Reading follows KVM's comings and goings, which in the lab there are none of.
    accounts: RefCell<Accounts>,
    /// The accounts at the window's beginning.
    base: Snapshot,
}

impl Latency {
    /// Begins to keep them; once per boot, before there are guests.
    pub(super) fn attach() -> Result<Self> {
        let accounts = Accounts::begin(AccountOptions::default()).map_err(|e| chain(&e));
        Ok(Self {
            accounts: RefCell::new(accounts.doing(|| "keep accounts of vCPUs".to_owned())?),
            base: Snapshot::default(),
        })
    }

    /// A window begins.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.base = self.now()?;
        Ok(())
    }

    /// What happened since then to the guests whose VMMs are `pids`.
    pub(super) fn read(
        &self,
        pids: &BTreeMap<String, u32>,
    ) -> Result<BTreeMap<String, VcpuLatency>> {
        let window = self.now()?.since(&self.base);
        let mut by_guest = BTreeMap::new();
        for (guest, pid) in pids {
            if let Some(vm) = window.vms.iter().find(|vm| vm.pid == *pid) {
                let figures = on_the_wire(vm);
                let figures = figures.doing(|| "read the accounts of vCPUs".to_owned())?;
                by_guest.insert(guest.clone(), figures);
            }
        }
        Ok(by_guest)
    }

    fn now(&self) -> Result<Snapshot> {
        let now = self.accounts.borrow_mut().read().map_err(|e| chain(&e));
        now.doing(|| "read the accounts of vCPUs".to_owned())
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn on_the_wire(vm: &Vm) -> std::result::Result<VcpuLatency, HistogramError> {
    let total = vm.total();
    let times = distributions(&total.latencies);
    let mut sums_ns: BTreeMap<String, u64> = times
        .iter()
        .map(|(name, d)| ((*name).to_owned(), d.sum_ns))
        .collect();
    sums_ns.extend(parts(&total));
    let exits = |reason: &str| total.exits.get(reason).copied().unwrap_or(0);
    let counts = [
        ("spins", total.counts.spins),
        ("yields", total.counts.yields_asked),
        ("exits", total.all_exits()),
        ("halt_exits", exits("hlt")),
        ("hypercalls", exits("hypercall")),
    ];
    Ok(VcpuLatency {
        times: times
            .iter()
            .filter(|(_, d)| d.count > 0)
            .map(|(name, d)| LatencySummary::from_histogram(name, &histogram(d)?))
            .collect::<std::result::Result<_, _>>()?,
        sums_ns,
        counts: counts.map(|(name, n)| (name.to_owned(), n)).into(),
    })
}

/// The distributions that results have, by name.
fn distributions(all: &account::Latencies) -> [(&'static str, account::Histogram); 9] {
    [
        ("ipi", all.ipi()),
        ("ipi_to_running", all.ipi_to_running.clone()),
        ("ipi_to_preempted", all.ipi_to_preempted.clone()),
        ("ipi_to_queued", all.ipi_to_queued.clone()),
        ("ipi_to_halted", all.ipi_to_asleep.clone()),
        ("wake_to_run", all.wake_to_run.clone()),
        ("preempted", all.preempted.clone()),
        ("preempted_with_ipi", all.preempted_with_ipi.clone()),
        ("shootdown", all.shootdown.clone()),
    ]
}

/// The parts of its wall time that are in one state, by name; they and `wall` add up.
fn parts(total: &account::Account) -> impl Iterator<Item = (String, u64)> {
    let t = &total.times;
    let ready = ReadyCause::ALL.map(|c| (format!("ready_{}", c.name()), t.ready.of(c)));
    let others = [
        ("wall", total.wall_ns),
        ("run", t.run_ns),
        ("poll", t.poll_ns),
        ("halted", t.halted_ns),
        ("blocked", t.blocked_ns),
    ];
    let others = others.map(|(name, ns)| (name.to_owned(), ns));
    others.into_iter().chain(ready)
}

/// The form that all latencies of a result have, so that they merge alike.
fn histogram(d: &account::Histogram) -> std::result::Result<Histogram<u64>, HistogramError> {
    let bad = |e: &dyn std::fmt::Debug| HistogramError(format!("{e:?}"));
    let mut h = Histogram::new(3).map_err(|e| bad(&e))?;
    for (ns, count) in d.samples() {
        h.record_n(ns, count).map_err(|e| bad(&e))?;
    }
    Ok(h)
}

#[cfg(test)]
mod tests {
    use super::*;
    use account::{Account, Ready, Times, Vcpu};

    #[test]
    fn a_guests_time_is_all_there_and_no_part_is_twice() {
        let mut account = Account {
            wall_ns: 111_111,
            times: Times {
                run_ns: 1,
                poll_ns: 10,
                halted_ns: 100,
                blocked_ns: 1_000,
                ready: Ready {
                    sibling_ns: 10_000,
                    woken_ns: 100_000,
                    ..Ready::default()
                },
            },
            ..Account::default()
        };
        account.latencies.ipi_to_asleep.record(7);
        account.exits.insert("hlt".to_owned(), 3);
        let vcpu = Vcpu {
            account,
            ..Vcpu::default()
        };
        let vm = Vm {
            vcpus: vec![vcpu.clone(), vcpu],
            ..Vm::default()
        };
        let wire = on_the_wire(&vm).expect("is good");
        let states = ["run", "poll", "halted", "blocked"].map(str::to_owned);
        let ready = ReadyCause::ALL.map(|c| format!("ready_{}", c.name()));
        let parts: u64 = states.iter().chain(&ready).map(|n| wire.sums_ns[n]).sum();
        assert_eq!((parts, wire.sums_ns["wall"]), (222_222, 222_222));
        assert_eq!(
            (wire.counts["halt_exits"], wire.counts["hypercalls"]),
            (6, 0)
        );
        let names: Vec<&str> = wire.times.iter().map(|t| t.what.as_str()).collect();
        assert_eq!(names, ["ipi", "ipi_to_halted"]);
    }
}
