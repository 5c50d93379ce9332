// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use crate::SimError;
use corun_case::sim::{SpinlockKind, TlbKind};
use corun_case::{Override, SchedulerKind, Target, parse_for};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const CASE: &str = r#"
[case]
name = "demo"
repeats = 2
warmup_s = 0.01
measure_s = 0.05

[[scheduler]]
label = "eevdf"
kind = "kernel"

[[scheduler]]
label = "corun"
kind = "corun"
options = ["--slice-us", "1000", "--mechanisms", "none"]

[[guest]]
name = "a"
vcpus = 2
pv = { unhalt = true }

[[guest]]
name = "b"
vcpus = 4
weight = 300

[[guest]]
name = "idle"
vcpus = 1

[[phase]]
name = "cpu"
measure = ["a"]
solo = true
run = { a = { workload = "cpu" }, b = { workload = "cpu", threads = 3 } }

[sim]
seed = 10
guest.a.beside = { workload = "cpu", threads = 1 }
"#;

fn models() -> Models {
    Models::shipped().expect("shipped models are good")
}

fn load(sets: &[&str]) -> Result<Arc<Case>, String> {
    let overrides: Vec<Override> = sets.iter().map(|s| s.parse().expect(s)).collect();
    let models = models();
    parse_for(CASE, Path::new("x.toml"), Target::Sim(&models), &overrides)
        .map(Arc::new)
        .map_err(|e| e.to_string())
}

fn case(sets: &[&str]) -> Arc<Case> {
    load(sets).expect("is good")
}

fn build(case: &Arc<Case>, scheduler: &str, solo: Option<&str>) -> crate::Scenario {
    let job = Job {
        case: Arc::clone(case),
        phase: "cpu".to_owned(),
        scheduler: scheduler.to_owned(),
        solo: solo.map(str::to_owned),
        repeat: 1,
    };
    scenario(&job, &models()).expect("is good")
}

#[test]
fn a_scenario_is_what_the_case_says() {
    let s = build(&case(&[]), "corun", None);
    assert_eq!(
        (s.seed, s.warmup_ns, s.measure_ns),
        (11, 10_000_000, 50_000_000)
    );
    assert_eq!(s.scheduler.kind, SchedulerKind::Corun);
    assert_eq!(s.scheduler.tunables.slice_ns, 1_000_000);
    assert!(s.scheduler.mechanisms == corun_policy::Mechanisms::NONE && !s.check);
    let shape: Vec<_> = s
        .vms
        .iter()
        .map(|vm| (vm.name.as_str(), vm.vcpus, vm.weight, vm.work.len()))
        .collect();
    assert_eq!(
        shape,
        [("a", 2, 100, 2), ("b", 4, 300, 1), ("idle", 1, 100, 0)]
    );
    assert_eq!(s.vms[0].work[1].threads, Some(1));
    assert_eq!(s.vms[1].work[0].threads, Some(3));
}

#[test]
fn a_guests_locks_follow_from_what_it_is_offered() {
    let s = build(&case(&["guest[1].pv.tlb_flush=true"]), "eevdf", None);
    assert_eq!(s.scheduler.kind, SchedulerKind::Eevdf);
    assert_eq!(s.vms[0].kernel.spinlock, SpinlockKind::PvQueued);
    assert_eq!(s.vms[1].kernel.spinlock, SpinlockKind::TestAndSet);
    assert_eq!(s.vms[0].kernel.tlb, TlbKind::Ipi);
    assert_eq!(s.vms[1].kernel.tlb, TlbKind::Kvmtlb);
}

#[test]
fn a_solo_run_has_one_guest_alone() {
    let s = build(&case(&[]), "eevdf", Some("a"));
    assert_eq!(s.vms.len(), 1);
    assert_eq!((s.vms[0].name.as_str(), s.vms[0].work.len()), ("a", 2));
}

#[test]
fn the_time_scale_is_one_unless_given_and_leaves_ticks_alone() {
    let auto = build(&case(&[]), "corun", None).scheduler;
    assert_eq!(auto.settings.eevdf.base_slice_ns, 2_800_000);
    let ten = build(&case(&["case.time_scale=10"]), "corun", None).scheduler;
    assert_eq!(ten.tunables.slice_ns, 10_000_000);
    assert_eq!(ten.settings.eevdf.base_slice_ns, 28_000_000);
    assert_eq!(ten.settings.credit.slice_ns, 300_000_000);
    assert_eq!(ten.settings.eevdf.tick_ns, auto.settings.eevdf.tick_ns);
}

#[test]
fn jobs_are_solo_under_the_first_scheduler_and_together_under_each() {
    let jobs = jobs(&case(&[]));
    let shape: Vec<_> = jobs
        .iter()
        .map(|j| (j.scheduler.as_str(), j.solo.as_deref(), j.repeat))
        .collect();
    assert_eq!(
        shape,
        [
            ("eevdf", Some("a"), 0),
            ("eevdf", Some("a"), 1),
            ("eevdf", None, 0),
            ("eevdf", None, 1),
            ("corun", None, 0),
            ("corun", None, 1),
        ]
    );
}

#[test]
fn what_the_simulator_cannot_run_is_told_with_its_place() {
    for (set, expected) in [
        ("phase[0].run.a.workload=cpus", "did you mean `cpu`?"),
        (
            "phase[0].run.a={ workload = \"lock\", params = { op = \"x\" } }",
            "params.op: x: the simulator has no model of it: expected one called lab-lock-x",
        ),
        (
            "phase[0].run.a.params={ op = \"x\" }",
            "params.op: unknown parameter `op`: `cpu` has iterations",
        ),
        (
            "phase[0].run.a.params={ iterations = 5 }",
            "the default alone, 32768",
        ),
        (
            "sim.guest.a.beside.workload=x",
            "sim.guest.a.beside.workload: unknown workload",
        ),
        (
            "scheduler[1].options=[\"--slice-u\"]",
            "did you mean `--slice-us`?",
        ),
        ("scheduler[1].options=[\"--slice-us\"]", "no value"),
        (
            "scheduler[1].options=[\"--slice-us=1\"]",
            "between 100 and 1000000",
        ),
        (
            "scheduler[1].options=[\"--mechanisms=yields\"]",
            "is no mechanism",
        ),
    ] {
        let error = load(&[set]).expect_err(set);
        assert!(error.contains(expected), "{set}: {error}");
    }
    case(&["phase[0].run.a.params={ iterations = 32768 }"]);
}

#[test]
fn names_that_a_case_lacks_are_errors() {
    let job = Job {
        case: case(&[]),
        phase: "cpu".to_owned(),
        scheduler: "cfs".to_owned(),
        solo: None,
        repeat: 0,
    };
    let error = scenario(&job, &models()).expect_err("no such scheduler");
    assert_eq!(error.to_string(), "case demo: no scheduler \"cfs\"");
}

#[test]
fn a_folder_of_models_adds_to_the_shipped_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = |name: &str| {
        format!(
            "name = \"{name}\"\ntitle = \"\"\nderivation = \"\"\nunit = \"x\"\n\
             [[role]]\nname = \"r\"\nthreads = {{ fixed = 1 }}\nop = [{{ do = \"unit\" }}]\n"
        )
    };
    let error = models().with_folder(folder.path()).expect_err("is empty");
    assert!(
        error.to_string().contains("expected files NAME.toml"),
        "{error}"
    );
    std::fs::write(
        folder.path().join("lab-lock-pipe.toml"),
        text("lab-lock-pipe"),
    )
    .expect("written");
    std::fs::write(folder.path().join("cpu.toml"), text("cpu")).expect("written");
    let models = models().with_folder(folder.path()).expect("both are good");
    assert_eq!(models.get("cpu").map(|m| m.unit.as_str()), Some("x"));
    let pipe = corun_case::Workload {
        workload: "lock".to_owned(),
        threads: None,
        params: [(
            "op".to_owned(),
            corun_case::ParamValue::Text("pipe".to_owned()),
        )]
        .into(),
    };
    assert_eq!(
        models.resolve(&pipe).map(|m| m.name.clone()),
        Ok("lab-lock-pipe".to_owned())
    );
    std::fs::write(folder.path().join("b.toml"), text("c")).expect("written");
    let error = models
        .with_folder(folder.path())
        .expect_err("b is called c");
    assert!(error.to_string().contains("called c.toml"), "{error}");
}

#[test]
fn a_set_stop_flag_runs_nothing() {
    let jobs = jobs(&case(&[]));
    let told = AtomicUsize::new(0);
    let done = |_| {
        told.fetch_add(1, Ordering::Relaxed);
    };
    let error = run_all(&jobs, &models(), 2, &done, &AtomicBool::new(true));
    assert!(matches!(error, Err(SimError::Stopped)));
    assert_eq!(told.into_inner(), 0);
}

#[test]
fn outcomes_are_in_the_order_of_the_jobs_whatever_the_threads() {
    let jobs = jobs(&case(&[]));
    let run = |threads| {
        let outcomes = run_all(&jobs, &models(), threads, &|_| (), &AtomicBool::new(false));
        let outcomes = outcomes.expect("all run");
        outcomes.iter().map(|o| o.trace_hash).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(4));
}
