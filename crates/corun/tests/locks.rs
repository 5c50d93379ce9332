// SPDX-License-Identifier: GPL-2.0-only
//! The lock algorithms of the guest module in real guests of the lab, beside another
//! guest: needs `make guest`, run with `make smoke`. Behaviour is judged by counters,
//! never by time.

use serde_json::Value;
use std::process::{Command, Output};

const CASE: &str = "locks-smoke";

/// Runs the case. No figures are wanted, so no window is measured again because the
/// machine was disturbed.
fn run(options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corun"))
        .args(["lab", "run", CASE, "--json"])
        .args(["--max-steal=100", "--max-foreign=100"])
        .args(options)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("corun starts")
}

/// What corun says when the case fails.
fn refusal(options: &[&str]) -> String {
    let output = run(options);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "nothing failed: {said}");
    said
}

/// What the module counted in the first window of `phase` under `scheduler`.
fn counts<'a>(result: &'a Value, phase: &str, scheduler: &str) -> &'a Value {
    let windows = result["samples"].as_array().expect("samples");
    let window = windows
        .iter()
        .find(|w| w["phase"] == phase && w["scheduler"] == scheduler)
        .unwrap_or_else(|| panic!("no window of {phase} under {scheduler}"));
    let guest = &window["guests"]["a"];
    let work = guest["work"].as_f64();
    assert!(work.is_some_and(|w| w > 0.0), "{phase}: {work:?}");
    &guest["module_counts"]
}

fn count(counts: &Value, name: &str) -> u64 {
    counts[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name} in {counts}"))
}

/// The workload fails when two threads hold the lock. A wake-up lost in the phase with
/// interrupts off would end the guest's work for good. The last phase unloads the
/// module in the middle of a run, and interrupts one.
#[test]
#[ignore = "boots the lab: make smoke"]
fn all_algorithms_exclude_and_wake_beside_another_guest() {
    let output = run(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("the result is JSON");
    for scheduler in ["eevdf", "corun"] {
        for phase in ["tas", "ticket", "qspinlock"] {
            let counts = counts(&result, phase, scheduler);
            assert_eq!(count(counts, "halts"), 0, "{phase}: {counts}");
        }
        for phase in ["pv-ticket", "pv-ticket-irqs-off"] {
            let counts = counts(&result, phase, scheduler);
            for name in ["halts", "kicks"] {
                assert!(count(counts, name) > 0, "{phase}: no {name}: {counts}");
            }
        }
        let pmt = counts(&result, "pmt", scheduler);
        assert!(count(pmt, "timeouts") > 0, "no time-out: {pmt}");
        counts(&result, "comings-and-goings", scheduler);
    }
}

/// What fails the workload when a lock is broken does so.
#[test]
#[ignore = "boots the lab: make smoke"]
fn a_broken_lock_is_noticed() {
    let broken = r#"phase[0].run.a.params.algorithm="broken""#;
    let said = refusal(&["--phase", "tas", "--set", broken]);
    assert!(said.contains("broken does not exclude"), "{said}");
}

/// Kicks need a feature of the VM, and the user is told which.
#[test]
#[ignore = "boots the lab: make smoke"]
fn halting_locks_are_refused_where_nobody_can_be_kicked() {
    let without = "guest[0].pv.unhalt=false";
    let said = refusal(&["--phase", "pv-ticket", "--set", without]);
    assert!(said.contains("kvm-pv-unhalt=on"), "{said}");
}

/// Nor can anybody be kicked while Shoot4U has made the guest a Hyper-V guest to KVM.
#[test]
#[ignore = "boots the lab: make smoke"]
fn halting_locks_are_refused_beside_shoot4u() {
    let said = refusal(&[
        "--phase=pv-ticket",
        "--set=guest[0].pv={ steal_time = true, unhalt = false }",
        "--set=guest[0].hyperv=true",
        r#"--set=guest[0].module="corun_guest""#,
    ]);
    assert!(said.contains("unload corun_guest first"), "{said}");
}
