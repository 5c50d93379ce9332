// SPDX-License-Identifier: GPL-2.0-only
//! Costs that depend on what the machine did before, or does elsewhere.

mod common;

use common::{Build, figure, fixed_window, model_of};
use corun_case::SchedulerKind;
use corun_case::sim::{HaltPoll, SpinHandler};
use corun_sim::{Scenario, run};

/// A guest "a" of `vcpus` on as many pCPUs, whose threads do `op`.
fn guest(vcpus: u32, declared: &str, op: &str) -> Scenario {
    let body = format!(
        r#"
        {declared}

        [[role]]
        name = "worker"
        threads = {{ per_vcpu_pm = 1000 }}
        pinned = true
        op = [{op}, {{ do = "unit" }}]
        "#
    );
    let mut s = Build::new(vcpus, SchedulerKind::Cfs)
        .vm_of("a", vcpus, model_of("costs", &body))
        .seconds(0.5)
        .scenario();
    s.costs.noise_every_ns = 0;
    s.kvm.halt_poll = HaltPoll::Never;
    s
}

/// Mean time of a round of guest "a".
fn round_us(scenario: &Scenario) -> f64 {
    figure(&run(scenario).expect("runs"), "unit.mean_us")
}

#[test]
fn a_deep_idle_state_is_left_later_by_who_idled_long_enough() {
    let later_us = |nap: &str| {
        let mut s = guest(1, "", &format!(r#"{{ do = "sleep", time = "{nap}" }}"#));
        let shallow_us = round_us(&s);
        s.costs.deep_idle_after_ns = 300_000;
        s.costs.deep_idle_ns = 100_000;
        round_us(&s) - shallow_us
    };
    let (short_us, long_us) = (later_us("100us"), later_us("1ms"));
    assert!(short_us.abs() < 0.1, "after 100 us: {short_us} us later");
    assert!(
        (long_us - 100.0).abs() < 2.0,
        "after 1 ms: {long_us} us later"
    );
}

#[test]
fn lines_of_other_cpus_lengthen_a_lock() {
    let lock = r#"{ do = "lock", lock = "list", hold = "1us", lines = 10 }"#;
    let mut s = guest(1, r#"lock = [{ name = "list" }]"#, lock);
    s.costs.line_ns = 0;
    let local_us = round_us(&s);
    s.costs.line_ns = 50;
    let later_us = round_us(&s) - local_us;
    assert!((later_us - 0.5).abs() < 0.05, "10 lines take {later_us} us");
}

#[test]
fn spinners_that_look_for_a_target_at_once_hinder_each_other() {
    let lock = r#"{ do = "lock", lock = "hot", hold = "5us" }"#;
    let declared = r#"lock = [{ name = "hot" }]"#;
    let slower = |vcpus| {
        let mut s = guest(vcpus, declared, lock);
        s.kvm.ple = Some(fixed_window());
        s.kvm.spin_handler = SpinHandler::Y2011;
        let alone_us = round_us(&s);
        s.costs.ple_contention_ns = 500;
        round_us(&s) / alone_us
    };
    assert!((slower(2) - 1.0).abs() < 1e-9, "one spinner hinders nobody");
    assert!(slower(8) > 1.3, "seven: rounds {} times as long", slower(8));
}

#[test]
fn a_burst_that_waits_begins_when_the_vcpu_sleeps() {
    let slower_us = |op: &str, waits| {
        let mut s = guest(1, "", op);
        let quiet_us = round_us(&s);
        s.costs.noise_every_ns = 2_000_000;
        s.costs.noise_ns = 200_000;
        s.costs.noise_waits = waits;
        round_us(&s) - quiet_us
    };
    let computes = r#"{ do = "user", time = "100us" }"#;
    assert!(slower_us(computes, true).abs() < 0.01, "nobody gives way");
    assert!(slower_us(computes, false) > 5.0);
    let naps = r#"{ do = "user", time = "100us" }, { do = "sleep", time = "10us" }"#;
    let (waits_us, at_once_us) = (slower_us(naps, true), slower_us(naps, false));
    assert!(
        (waits_us / at_once_us - 1.0).abs() < 0.3,
        "rounds take {waits_us} us longer, {at_once_us} us with bursts that come at once"
    );
}
