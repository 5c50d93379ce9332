// SPDX-License-Identifier: GPL-2.0-only
//! The lab's workloads on the lab's machine, as models.

use corun_case::{Case, Target, parse_for};
use corun_sim::Outcome;
use corun_sim::batch::{Models, jobs, run_all};
use corun_sim::machines::Machine;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const FULL: &str = include_str!("../../../lab/cases/full.toml");
const YIELDS: &str = include_str!("../../../lab/cases/yields.toml");

/// The case in `text` on the lab's machine, once, in short windows.
fn case(text: &str, models: &Models) -> Arc<Case> {
    let machine = Machine::find("lab").expect("there is one");
    let mut sets = machine.overrides(text).expect("overrides");
    for set in ["case.repeats=1", "case.warmup_s=0.1", "case.measure_s=1.0"] {
        sets.push(set.parse().expect("an override"));
    }
    let case = parse_for(text, Path::new("x.toml"), Target::Sim(models), &sets);
    Arc::new(case.expect("valid"))
}

fn run(case: &Arc<Case>, models: &Models) -> Vec<Outcome> {
    let stop = AtomicBool::new(false);
    run_all(&jobs(case), models, 2, &|_| {}, &stop).expect("runs")
}

#[test]
fn every_workload_of_the_lab_has_a_model_that_works_at_the_labs_speed() {
    let models = Models::shipped().expect("models");
    let case = case(FULL, &models);
    // Rates alone, a second, as the result `full` has them; sysbench's model says
    // why it is not among them.
    let lab = [
        ("cpu", 48_064.0),
        ("tlb", 1_354.0),
        ("lock-dentry", 35_004.0),
        ("lock-pipe", 331_064.0),
        ("lock-futex", 759_848.0),
        ("hackbench", 65_335.0),
        ("pingpong-tcp", 942.0),
        ("pingpong-pipe", 3_305.0),
        ("pingpong-futex", 3_965.0),
        ("forkexec", 71.6),
        ("stress-ng", 66_879.0),
    ];
    for (job, outcome) in jobs(&case).iter().zip(run(&case, &models)) {
        let rate = outcome.vms[0].figure("rate", outcome.measured_ns);
        let rate = rate.expect("a unit of work");
        if job.solo.is_none() {
            continue;
        }
        assert!(rate > 0.0, "{}", job.phase);
        if let Some((_, measured)) = lab.iter().find(|(phase, _)| *phase == job.phase) {
            let ratio = rate / measured;
            assert!((0.75..1.25).contains(&ratio), "{}: {ratio}", job.phase);
        }
    }
}

/// An idle vCPU that waits for a pCPU must not hold up those that flush.
#[test]
fn idle_vcpus_of_new_kernels_get_no_shootdowns() {
    let models = Models::shipped().expect("models");
    let mut case = Arc::unwrap_or_clone(case(YIELDS, &models));
    case.phases.truncate(1);
    let sent = |case: &Case| -> f64 {
        let outcomes = run(&Arc::new(case.clone()), &models);
        let vm = &outcomes[0].vms[0];
        vm.counters["calls.sent"] as f64 / vm.counters["shootdowns"] as f64
    };
    let lazy = sent(&case);
    for kernel in case.sim.guest.values_mut() {
        kernel.lazy_tlb = false;
    }
    let eager = sent(&case);
    assert!(lazy < eager, "{lazy} {eager}");
}
