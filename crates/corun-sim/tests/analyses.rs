// SPDX-License-Identifier: GPL-2.0-only
//! The analyses of recordings against the simulator's own counters: two ways to
//! the same figures that share nothing but the run.

mod common;

use common::Build;
use corun_case::SchedulerKind;
use corun_case::sim::{HaltPoll, SpinHandler};
use corun_events::analyze::{Analysis, Report, VmReport};
use corun_events::{Event, Header, Symbols, TimesSummary, Vm};
use corun_sim::outcome::Account;
use corun_sim::trace::{self, Sink};
use corun_sim::{Outcome, Scenario, VmOutcome, run_traced};
use corun_symbols::Library;
use std::collections::BTreeMap;

/// Keeps all events.
#[derive(Default)]
struct Kept(Vec<Event>);

impl Sink for Kept {
    fn take(&mut self, event: &Event) {
        self.0.push(*event);
    }
}

fn run_and_analyze(mut scenario: Scenario) -> (Outcome, Report, Scenario) {
    // The simulator's counters leave the warm-up out, recordings do not.
    scenario.warmup_ns = 0;
    let mut kept = Kept::default();
    let outcome = run_traced(&scenario, &mut kept).expect("runs");
    let vms = scenario.vms.iter().map(|vm| Vm::new(&vm.name, vm.vcpus));
    let mut header = Header::new("sim", "test", scenario.pcpus, vms.collect());
    let names = trace::names(&scenario).expect("a scenario");
    header.symbols = names.symbols;
    header.locks = names.locks;
    header.duration_ns = scenario.measure_ns;
    let symbols = Symbols::new(&header, &Library::default()).expect("no maps");
    let mut analysis = Analysis::new(&header, &symbols, BTreeMap::new());
    for event in &kept.0 {
        analysis.take(event);
    }
    let report = analysis.finish();
    (outcome, report, scenario)
}

/// Two overcommitted guests with locks and shootdowns, under pause-loop exiting.
fn storm() -> Scenario {
    let mut scenario = Build::new(4, SchedulerKind::Eevdf)
        .fixed_vm("a", 4, &["storm"])
        .fixed_vm("b", 4, &["storm", "burn"])
        .seconds(0.4)
        .scenario();
    scenario.kvm.spin_handler = SpinHandler::Y2019;
    scenario
}

/// Guests that sleep and wake each other, polled for.
fn pipes() -> Scenario {
    let mut scenario = Build::new(2, SchedulerKind::Eevdf)
        .fixed_vm("a", 2, &["pipe"])
        .fixed_vm("b", 2, &["pipe", "burn"])
        .seconds(0.3)
        .scenario();
    scenario.kvm.halt_poll = HaltPoll::Adaptive;
    scenario
}

fn pairs<'a>(
    outcome: &'a Outcome,
    report: &'a Report,
) -> impl Iterator<Item = (&'a VmOutcome, &'a VmReport)> {
    assert_eq!(outcome.vms.len(), report.vms.len());
    outcome.vms.iter().zip(&report.vms)
}

/// The same number of times, and all figures within a bucket.
fn assert_agree(name: &str, vm: &VmOutcome, ours: &TimesSummary) {
    let theirs = &vm.histograms[name];
    assert_eq!(ours.count, theirs.len(), "{} {name}", vm.name);
    if theirs.is_empty() {
        return;
    }
    let at = |q| theirs.value_at_quantile(q) as f64 / 1e3;
    for (what, ours, theirs) in [
        ("mean", ours.mean_us, theirs.mean() / 1e3),
        ("p50", ours.p50_us, at(0.5)),
        ("p99", ours.p99_us, at(0.99)),
        ("max", ours.max_us, theirs.max() as f64 / 1e3),
    ] {
        assert!(
            (ours - theirs).abs() <= theirs * 0.011,
            "{} {name} {what}: {ours} us, the simulator counted {theirs}",
            vm.name
        );
    }
}

#[test]
fn shootdowns_lock_waits_and_waits_for_a_pcpu_are_the_simulators() {
    let (outcome, report, _) = run_and_analyze(storm());
    for (sim, vm) in pairs(&outcome, &report) {
        assert!(vm.shootdowns.told.times.count > 100);
        assert_agree("tlb", sim, &vm.shootdowns.told.times);
        let mut ready = TimesSummary::default();
        for vcpu in &vm.vcpus {
            ready.count += vcpu.ready.count;
            ready.mean_us += vcpu.ready.mean_us * vcpu.ready.count as f64;
        }
        let theirs = &sim.histograms["ready"];
        assert_eq!(ready.count, theirs.len());
        assert!((ready.mean_us / ready.count as f64 / theirs.mean() * 1e3 - 1.0).abs() < 0.01);
        let locks = sim
            .histograms
            .keys()
            .filter_map(|n| n.strip_prefix("lock."));
        let waited: Vec<_> = locks
            .filter(|n| !sim.histograms[&format!("lock.{n}")].is_empty())
            .collect();
        assert!(!waited.is_empty());
        for lock in waited {
            assert_agree(&format!("lock.{lock}"), sim, &vm.locks[lock]);
        }
    }
}

#[test]
fn exits_yields_and_turns_are_the_simulators() {
    for scenario in [storm(), pipes()] {
        let (outcome, report, _) = run_and_analyze(scenario);
        for (sim, vm) in pairs(&outcome, &report) {
            let exits = sim
                .counters
                .iter()
                .filter_map(|(name, n)| Some((name.strip_prefix("exit.")?, *n)));
            for (reason, theirs) in exits {
                let ours = vm.exits.by_reason.get(reason).map_or(0, |r| r.count);
                assert_eq!(ours, theirs, "{} {reason}", vm.name);
            }
            assert_eq!(vm.exits.transactions, sim.units.iter().sum::<u64>());
            assert_eq!(vm.places.yields_asked, sim.counters["yield.asked"]);
            assert_eq!(vm.places.yields_granted, sim.counters["yield.honoured"]);
            let sum = |f: fn(&corun_events::analyze::accounts::Account) -> u64| -> u64 {
                vm.vcpus.iter().map(f).sum()
            };
            assert_eq!(sum(|v| v.preemptions), sim.counters["preempted"]);
            assert_eq!(sum(|v| v.halts), sim.counters["halts"]);
            assert_eq!(sum(|v| v.poll_hits), sim.counters["poll.hits"]);
            assert_eq!(sum(|v| v.poll_misses), sim.counters["poll.misses"]);
        }
    }
}

#[test]
fn each_vcpus_time_adds_up_and_pcpu_time_is_the_simulators() {
    for scenario in [storm(), pipes()] {
        let (outcome, report, scenario) = run_and_analyze(scenario);
        for (sim, vm) in pairs(&outcome, &report) {
            for vcpu in &vm.vcpus {
                assert_eq!(
                    vcpu.wall_ns(),
                    scenario.measure_ns,
                    "{} {}",
                    vm.name,
                    vcpu.vcpu
                );
            }
            let polled: u64 = vm.vcpus.iter().map(|v| v.polling_ns).sum();
            assert_eq!(polled, sim.accounts[Account::Poll as usize]);
            let ran: u64 = vm.vcpus.iter().map(|v| v.running_ns).sum();
            let theirs: u64 = sim.accounts.iter().sum::<u64>() - polled;
            assert!(
                ran.abs_diff(theirs) * 100 <= theirs,
                "{}: ran {ran} ns, the simulator booked {theirs}",
                vm.name
            );
        }
    }
}

#[test]
fn runs_of_pause_exits_are_the_simulators() {
    let (outcome, report, _) = run_and_analyze(storm());
    for (sim, vm) in pairs(&outcome, &report) {
        let theirs = &sim.histograms["ple_run"];
        assert!(theirs.len() > 10, "{}: the case does not spin", vm.name);
        assert_eq!(vm.bursts.spins, sim.counters["exit.pause"]);
        // From outside the end of a spin is inferred, and the simulator does not
        // count those that the recording ends in.
        let (ours, theirs) = (vm.bursts.runs, theirs.len());
        let slack = theirs / 10 + vm.vcpus.len() as u64;
        assert!(ours.abs_diff(theirs) <= slack, "{ours} runs of {theirs}");
        assert!(vm.bursts.share_in_runs > 0.0);
        let classes: Vec<_> = vm.bursts.places.iter().map(|p| p.class.name()).collect();
        assert!(
            classes.contains(&"lock-wait") || classes.contains(&"ack-wait"),
            "{classes:?}"
        );
        assert!(vm.places.by_class.contains_key("user"));
    }
}

#[test]
fn ipis_and_wake_ups_are_the_simulators() {
    let (outcome, report, scenario) = run_and_analyze(pipes());
    for (sim, vm) in pairs(&outcome, &report) {
        let theirs = &sim.histograms["ipi"];
        assert!(vm.ipis.all.count > 100);
        // The simulator adds the injection, and forgets an IPI when a timer is
        // taken before it.
        let inject_us = scenario.costs.inject_ns as f64 / 1e3;
        let close = |ours: f64, theirs: f64, by: f64| (ours / theirs - 1.0).abs() < by;
        assert!(close(vm.ipis.all.count as f64, theirs.len() as f64, 0.02));
        assert!(close(
            vm.ipis.all.mean_us + inject_us,
            theirs.mean() / 1e3,
            0.05
        ));
    }
    // The other guest computes: it never sleeps.
    let w = &report.vms[0].wakes;
    assert!(w.causes["ipi"] > 0, "{:?}", w.causes);
    assert!(w.send_to_enter.count > 0 && w.run_to_enter.mean_us > 0.0);
}
