// SPDX-License-Identifier: GPL-2.0-only
//! Whom a spinner's pause-loop exit gives the pCPU to.

mod common;

use common::{Build, figure, model_of};
use corun_case::SchedulerKind;
use corun_case::sim::{SpinHandler, TlbKind};
use corun_sim::{Scenario, run};

/// A thread that shoots down the TLBs of siblings, all of which are in user mode, beside
/// a guest that computes.
fn flusher_beside_a_burner(handler: SpinHandler) -> Scenario {
    let body = r#"
        [[role]]
        name = "flusher"
        threads = { fixed = 1 }
        pinned = true
        op = [{ do = "user", time = "exp 50us" }, { do = "shootdown" }, { do = "unit" }]

        [[role]]
        name = "target"
        threads = { fixed = 3 }
        pinned = true
        op = [{ do = "user", time = "10ms" }]
    "#;
    let mut scenario = Build::new(4, SchedulerKind::Cfs)
        .vm_of("a", 4, model_of("flusher", body))
        .vm("b", 4, "cpu")
        .seconds(1.0)
        .scenario();
    scenario.scheduler.settings.cfs.per_vm = true;
    scenario.kvm.spin_handler = handler;
    scenario.vms[0].kernel.tlb = TlbKind::Ipi;
    scenario
}

#[test]
fn strict_boost_finds_in_user_mode_who_owes_the_spinner_an_answer() {
    let rate = |handler| {
        figure(
            &run(&flusher_beside_a_burner(handler)).expect("runs"),
            "rate",
        )
    };
    let (kernel, strict) = (rate(SpinHandler::Y2019), rate(SpinHandler::Strict));
    assert!(
        strict > 1.3 * kernel,
        "{strict} shootdowns, {kernel} by 2019's"
    );
    // That of 2013 looks for whoever is preempted.
    let all = rate(SpinHandler::Y2013);
    assert!(strict > 0.9 * all, "{strict} shootdowns, {all} by 2013's");
}
