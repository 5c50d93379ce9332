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

/// The case in `text` on `machine`, with its models, once, in short windows.
fn case(text: &str, machine: &str) -> (Arc<Case>, Models) {
    let machine = Machine::find(machine).expect("there is one");
    let models = Models::shipped()
        .expect("models")
        .of_lab(&machine.lab_models);
    let mut sets = machine.overrides(text).expect("overrides");
    for set in ["case.repeats=1", "case.warmup_s=0.1", "case.measure_s=1.0"] {
        sets.push(set.parse().expect("an override"));
    }
    let case = parse_for(text, Path::new("x.toml"), Target::Sim(&models), &sets);
    (Arc::new(case.expect("valid")), models)
}

fn run(case: &Arc<Case>, models: &Models) -> Vec<Outcome> {
    let stop = AtomicBool::new(false);
    run_all(&jobs(case), models, 2, &|_| {}, &stop).expect("runs")
}

/// Rates alone, a second: in real time (`full-tcg`), and by executed instructions (the
/// mean of `full-siblings` and `full-siblings-host-7.2`).
const ALONE: &[(&str, f64, f64)] = &[
    ("cpu", 48_064.0, 13_301.0),
    ("tlb", 1_354.0, 7_713.0),
    ("lock-dentry", 35_004.0, 63_854.0),
    ("lock-pipe", 331_064.0, 325_384.0),
    ("lock-futex", 759_848.0, 674_306.0),
    ("hackbench", 65_335.0, 153_703.0),
    ("pingpong-tcp", 942.0, 14_317.0),
    ("pingpong-pipe", 3_305.0, 26_489.0),
    ("pingpong-futex", 3_965.0, 28_822.0),
    ("forkexec", 71.6, 102.0),
    ("stress-ng", 66_879.0, 93_261.0),
    ("sysbench", 135.5, 228.8),
];

#[test]
fn every_workload_of_the_lab_has_a_model_that_works_at_the_labs_speed() {
    for machine in ["lab", "lab-icount"] {
        let (case, models) = case(FULL, machine);
        for (job, outcome) in jobs(&case).iter().zip(run(&case, &models)) {
            let rate = outcome.vms[0].figure("rate", outcome.measured_ns);
            let rate = rate.expect("a unit of work");
            if job.solo.is_none() {
                continue;
            }
            let measured = ALONE.iter().find(|(phase, ..)| *phase == job.phase);
            let (_, real_time, icount) = measured.expect("a measured rate");
            let measured = if machine == "lab" { real_time } else { icount };
            let ratio = rate / measured;
            let phase = &job.phase;
            assert!((0.75..1.25).contains(&ratio), "{machine}: {phase}: {ratio}");
        }
    }
}

/// An idle vCPU that waits for a pCPU must not hold up those that flush.
#[test]
fn idle_vcpus_of_new_kernels_get_no_shootdowns() {
    let (case, models) = case(YIELDS, "lab");
    let mut case = Arc::unwrap_or_clone(case);
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
