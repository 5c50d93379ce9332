// SPDX-License-Identifier: GPL-2.0-only
//! The same scenario gives the same run: twice in a row, in every build, and
//! from one version to the next.

mod common;

use common::{Build, random};
use corun_case::SchedulerKind;
use corun_case::sim::{CoschedKind, HaltPoll, Hypervisor, SpinHandler, SpinlockKind, TlbKind};
use corun_sim::trace::{Event, Sink};
use corun_sim::{Outcome, Scenario, run, run_traced};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Sees every event and keeps none.
struct Counts(u64);

impl Sink for Counts {
    fn take(&mut self, _event: &Event) {
        self.0 += 1;
    }
}

/// All figures of a run as text, equal for equal runs.
fn figures(outcome: &Outcome) -> String {
    let mut text = format!(
        "{:016x} {} {:?}\n",
        outcome.trace_hash, outcome.events, outcome.pcpus
    );
    for vm in &outcome.vms {
        let (name, units) = (&vm.name, &vm.units);
        writeln!(text, "{name} {units:?} {:?} {:?}", vm.accounts, vm.counters).expect("text");
        for (name, h) in &vm.histograms {
            writeln!(text, "{name} {} {} {}", h.len(), h.max(), h.mean()).expect("text");
        }
    }
    text
}

proptest! {
    #![proptest_config(random::config())]

    /// With the checkers on, twice, once watched: nothing differs, and all time
    /// of all pCPUs is in the accounts.
    #[test]
    fn a_random_scenario_runs_the_same_twice(scenario in random::scenario()) {
        let first = run(&scenario).expect("first run");
        let mut seen = Counts(0);
        let second = run_traced(&scenario, &mut seen).expect("second run");
        prop_assert_eq!(figures(&first), figures(&second));
        let booked: u64 = first.pcpus.iter().sum();
        prop_assert_eq!(booked, u64::from(scenario.pcpus) * scenario.measure_ns);
        let of_guests: u64 = first.vms.iter().flat_map(|vm| vm.accounts).sum();
        prop_assert!(of_guests <= booked);
        prop_assert!(seen.0 > 0);
    }
}

/// Scenarios that use most paths between them, with models of their own.
fn golden() -> Vec<(&'static str, Scenario)> {
    let fixed = |pcpus, kind| Build::new(pcpus, kind).seconds(0.15);

    let mut ticket = fixed(4, SchedulerKind::Cfs)
        .fixed_vm("a", 4, &["storm"])
        .fixed_vm("b", 4, &["burn"])
        .scenario();
    ticket.vms[0].kernel.spinlock = SpinlockKind::Ticket;
    ticket.kvm.spin_handler = SpinHandler::Y2012;

    let mut polling = fixed(2, SchedulerKind::Eevdf)
        .fixed_vm("a", 2, &["pipe"])
        .fixed_vm("b", 2, &["pipe", "burn"])
        .scenario();
    polling.kvm.halt_poll = HaltPoll::Adaptive;
    polling.kvm.posted_interrupts = true;

    let mut xen = fixed(4, SchedulerKind::Credit)
        .fixed_vm("a", 2, &["wire", "burn"])
        .fixed_vm("b", 4, &["storm"])
        .scenario();
    xen.kvm.hypervisor = Hypervisor::Xen;
    xen.scheduler.settings.credit.micro_pcpus = 1;

    let mut gangs = fixed(4, SchedulerKind::Cosched)
        .fixed_vm("a", 4, &["gang"])
        .fixed_vm("b", 3, &["storm"])
        .scenario();
    gangs.scheduler.settings.cosched.kind = CoschedKind::Strict;
    gangs.vms[1].kernel.spinlock = SpinlockKind::Pmt;

    let mut mixed = fixed(6, SchedulerKind::Corun)
        .fixed_vm("a", 4, &["storm"])
        .fixed_vm("b", 6, &["gang"])
        .fixed_vm("c", 2, &["pipe"])
        .fixed_vm("d", 2, &["wire", "burn"])
        .scenario();
    mixed.threads_per_core = 2;
    mixed.pcpus_per_llc = 4;
    mixed.vms[0].kernel.spinlock = SpinlockKind::PvQueued;
    mixed.vms[0].kernel.tlb = TlbKind::Kvmtlb;
    mixed.vms[1].weight = 300;
    mixed.vms[2].kernel.pinned = true;
    mixed.costs.noise_every_ns = 500_000;
    mixed.costs.noise_ns = 20_000;

    let mut boosts = fixed(4, SchedulerKind::Corun)
        .fixed_vm("a", 8, &["storm"])
        .fixed_vm("b", 4, &["storm"])
        .scenario();
    boosts.vms[0].kernel.spinlock = SpinlockKind::PvTicket;
    boosts.vms[0].kernel.tlb = TlbKind::Shoot4u;
    boosts.vms[0].pv.sched_yield = true;
    boosts.vms[1].kernel.spinlock = SpinlockKind::TestAndSet;
    boosts.vms[1].pv.ipi = true;
    boosts.kvm.spin_handler = SpinHandler::Strict;
    boosts.kvm.debooster = true;

    vec![
        ("ticket-cfs", ticket),
        ("polling-eevdf", polling),
        ("xen-credit", xen),
        ("gangs-cosched", gangs),
        ("mixed-corun", mixed),
        ("boosts-corun", boosts),
    ]
}

/// `scripts/sim-determinism` compares what this prints in two builds.
#[test]
fn golden_hashes_are_as_recorded() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hashes.txt");
    let mut now = String::from(
        "# Hashes of the traces of tests/determinism.rs, and their events.\n\
         # Renew: UPDATE_GOLDEN=1 cargo test -p corun-sim --test determinism\n",
    );
    for (name, scenario) in golden() {
        let outcome = run(&scenario).unwrap_or_else(|e| panic!("{name}: {e}"));
        let line = format!("{name} {:016x} {}", outcome.trace_hash, outcome.events);
        println!("golden {line}");
        now += &line;
        now.push('\n');
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, now).expect("hashes.txt");
        return;
    }
    let recorded = std::fs::read_to_string(&file).expect("tests/golden/hashes.txt");
    assert!(
        recorded == now,
        "The traces are not those of tests/golden/hashes.txt.\n\
         recorded:\n{recorded}\nnow:\n{now}\n\
         When the model was to change, renew the file and commit it with the change:\n\
         UPDATE_GOLDEN=1 cargo test -p corun-sim --test determinism\n\
         When only the speed was to change, this is a defect."
    );
}
