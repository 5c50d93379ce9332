// SPDX-License-Identifier: GPL-2.0-only
//! Ways to flush the TLBs of vCPUs that do not run.

mod common;

use common::{Build, figure, model_of};
use corun_case::SchedulerKind;
use corun_case::sim::TlbKind;
use corun_sim::workload::Model;
use corun_sim::{Outcome, Scenario, run};

/// What a target does that never sleeps.
const COMPUTES: &str = r#"{ do = "user", time = "1ms" }"#;

/// A program whose thread on vCPU 0 does `target`, and whose `flushers` others shoot TLBs
/// down.
fn flushers(flushers: u32, target: &str) -> Model {
    let body = format!(
        r#"
        [[role]]
        name = "target"
        threads = {{ fixed = 1 }}
        pinned = true
        op = [{target}]

        [[role]]
        name = "flusher"
        threads = {{ fixed = {flushers} }}
        pinned = true
        first_vcpu = 1
        op = [{{ do = "user", time = "exp 100us" }}, {{ do = "shootdown" }}, {{ do = "unit" }}]
        "#
    );
    model_of("flushers", &body)
}

/// Guest "a" with so many flushers; guest "b" has one vCPU, which takes turns with the
/// target.
fn scenario(nr: u32, tlb: TlbKind) -> Scenario {
    scenario_of(nr, tlb, COMPUTES)
}

/// The same with another target.
fn scenario_of(nr: u32, tlb: TlbKind, target: &str) -> Scenario {
    let mut s = Build::new(nr + 1, SchedulerKind::Cfs)
        .vm_of("a", nr + 1, flushers(nr, target))
        .fixed_vm("b", 1, &["burn"])
        .seconds(2.0)
        .scenario();
    for vm in &mut s.vms {
        vm.kernel.pinned = true;
        vm.kernel.tlb = tlb;
    }
    s.costs.noise_every_ns = 0;
    s
}

fn outcome(nr: u32, tlb: TlbKind) -> Outcome {
    run(&scenario(nr, tlb)).expect("runs")
}

#[test]
fn kvmtlb_waits_for_nobody_who_does_not_run() {
    let ipi = outcome(2, TlbKind::Ipi);
    let spared = outcome(2, TlbKind::Kvmtlb);
    assert!(figure(&ipi, "tlb.max_us") > 2_000.0);
    // But for who is preempted with the interrupt on its way.
    assert!(figure(&spared, "tlb.p99_us") < 200.0);
    assert!(figure(&spared, "rate") > 1.5 * figure(&ipi, "rate"));
}

#[test]
fn kvmtlb_as_ported_waits_once_for_a_target_that_does_not_run() {
    let ipi = outcome(2, TlbKind::Ipi);
    let ported = outcome(2, TlbKind::KvmtlbV4);
    let spared = outcome(2, TlbKind::Kvmtlb);
    // Of two flushers the first waits for the turn's end, the second goes on.
    assert!(figure(&ported, "tlb.max_us") > 2_000.0);
    let (low, high) = (figure(&ipi, "rate"), figure(&spared, "rate"));
    let between = figure(&ported, "rate");
    assert!(
        between > 1.2 * low && between < 0.9 * high,
        "{low} by IPI, {between} as ported, {high} as meant"
    );
    // Alone it has nobody to go before it.
    let alone = |tlb| figure(&outcome(1, tlb), "tlb.mean_us");
    let (ported_us, ipi_us) = (alone(TlbKind::KvmtlbV4), alone(TlbKind::Ipi));
    assert!(
        (ported_us / ipi_us - 1.0).abs() < 0.1,
        "{ported_us} us, {ipi_us} us by IPI"
    );
}

#[test]
fn shoot4u_calls_each_target_wherever_it_is() {
    let mean_us = |nr, beside: bool| {
        let mut s = scenario(nr, TlbKind::Shoot4u);
        s.vms.truncate(if beside { 2 } else { 1 });
        figure(&run(&s).expect("runs"), "tlb.mean_us")
    };
    let (alone_us, beside_us) = (mean_us(2, false), mean_us(2, true));
    assert!(
        (beside_us / alone_us - 1.0).abs() < 0.05,
        "{alone_us} us, {beside_us} us beside a burner"
    );
    let costs = scenario(1, TlbKind::Shoot4u).costs;
    let call_ns = costs.host_call_ns + costs.host_ipi_ns + costs.exit_ns + costs.host_flush_ns;
    let three_us = 3.0 * call_ns as f64 / 1e3;
    let more_us = mean_us(4, false) - mean_us(1, false);
    assert!(
        (more_us / three_us - 1.0).abs() < 0.1,
        "three more targets take {more_us} us, not {three_us}"
    );
}

#[test]
fn shoot4u_waits_for_idle_pcpus_to_wake() {
    let mean_us = |target| {
        let mut s = scenario_of(1, TlbKind::Shoot4u, target);
        s.vms.truncate(1);
        figure(&run(&s).expect("runs"), "tlb.mean_us")
    };
    let busy_us = mean_us(COMPUTES);
    let idle_us = mean_us(r#"{ do = "user", time = "10us" }, { do = "sleep", time = "10ms" }"#);
    let wake_us = scenario(1, TlbKind::Shoot4u).costs.wake_idle_ns as f64 / 1e3;
    assert!(
        ((idle_us - busy_us) / wake_us - 1.0).abs() < 0.2,
        "{busy_us} us if the target computes, {idle_us} us if it sleeps"
    );
}
