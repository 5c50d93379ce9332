// SPDX-License-Identifier: GPL-2.0-only
//! The cases in `lab/cases` are valid, and keep what their names promise.

use corun_lab::case::{Case, ParamValue, SchedulerKind, TimeScale, load};
use corun_lab::driver::{Step, plan};
use std::path::PathBuf;

fn dir() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/cases"))
}

fn case(name: &str) -> Case {
    match load(&dir().join(format!("{name}.toml"))) {
        Ok((case, _)) => case,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn every_case_is_valid_and_named_after_its_file() {
    let mut seen = 0;
    for entry in std::fs::read_dir(dir()).expect("lab/cases") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|e| e == "toml") {
            let name = path
                .file_stem()
                .expect("stem")
                .to_string_lossy()
                .into_owned();
            assert_eq!(case(&name).case.name, name);
            seen += 1;
        }
    }
    assert!(seen >= 7, "{seen} cases");
}

#[test]
fn every_case_compares_corun_with_the_kernel() {
    for name in [
        "demo",
        "smoke",
        "full",
        "hostile",
        "locks",
        "locks-smoke",
        "fair-equal",
        "fair-weights",
        "timescale",
        "yields",
    ] {
        let kinds: Vec<_> = case(name).schedulers.iter().map(|s| s.kind).collect();
        assert_eq!(
            kinds[0],
            SchedulerKind::Kernel,
            "{name}: the baseline comes first"
        );
        assert!(kinds.contains(&SchedulerKind::Corun), "{name}");
    }
}

/// The demo's windows alone: 15 minutes on a fresh machine, 6 on a second run
/// include all else.
#[test]
fn the_demo_is_short() {
    let case = case("demo");
    let windows = plan(&case)
        .iter()
        .filter(|s| matches!(s, Step::Window(_)))
        .count();
    let seconds = windows as f64 * (case.case.warmup_s + case.case.measure_s);
    assert!(seconds <= 240.0, "{seconds} s");
    assert!(case.case.repeats >= 3 && case.gate.enabled);
}

#[test]
fn the_smoke_case_claims_no_figures() {
    let case = case("smoke");
    assert!(!case.gate.enabled);
    assert_eq!(
        (case.case.repeats, case.case.time_scale),
        (1, TimeScale::Factor(1.0))
    );
    assert!(
        case.guests
            .iter()
            .all(|g| g.pv.sched_yield && !g.pv.tlb_flush && !g.pv.ipi)
    );
}

/// The matrix of issue 4: every workload, next to burners and to copies of itself.
#[test]
fn the_matrix_is_whole() {
    let case = case("mechanisms");
    assert_eq!(case.schedulers[0].kind, SchedulerKind::Kernel);
    assert_eq!(case.comparators().len(), 2);
    let works = [
        "cpu",
        "forkexec",
        "hackbench",
        "lock",
        "pingpong",
        "stress-ng",
        "sysbench",
        "tlb",
    ];
    for work in works {
        let load = |phase: &str, guest: &str| {
            let phase = case.phase(phase).unwrap_or_else(|| panic!("no {phase}"));
            assert!(phase.solo && phase.measure == ["a"]);
            assert_eq!(phase.run["a"].workload, work);
            phase.run.get(guest).map(|w| w.workload.clone())
        };
        let burner = Some("cpu".to_owned());
        assert_eq!(load(&format!("{work}-vs-cpu"), "b"), burner);
        assert_eq!(load(&format!("{work}-vs-cpu"), "c"), None);
        assert_eq!(load(&format!("{work}-vs-2-cpu"), "c"), burner);
        if work != "cpu" {
            let itself = Some(work.to_owned());
            assert_eq!(load(&format!("{work}-vs-itself"), "b"), itself);
            assert_eq!(load(&format!("{work}-vs-2-itself"), "c"), itself);
        }
    }
}

/// The lock table of issue 5: each algorithm at each overcommit, in equal guests with
/// paravirtual features.
#[test]
fn the_lock_table_is_whole() {
    let case = case("locks");
    for algorithm in ["qspinlock", "tas", "ticket", "pv-ticket", "pmt"] {
        for guests in 1..=3 {
            let name = format!("{algorithm}-{guests}x");
            let phase = case.phase(&name).unwrap_or_else(|| panic!("no {name}"));
            assert_eq!(
                (phase.run.len(), phase.measure.as_slice()),
                (guests, &["a".to_owned()][..])
            );
            let wanted = ParamValue::Text(algorithm.to_owned());
            assert!(
                phase
                    .run
                    .values()
                    .all(|w| w.workload == "klock" && w.params["algorithm"] == wanted),
                "{name}"
            );
        }
    }
    let pcpus = case.host.pcpus;
    assert!(case.guests.iter().all(|g| g.vcpus == pcpus && g.pv.unhalt));
}

/// What the tools cost is seen against the same work with nothing beside it.
#[test]
fn the_overheads_baseline_has_nothing_beside_it() {
    let case = case("overhead");
    let (first, tools) = case.schedulers.split_first().expect("schedulers");
    assert!(first.beside.is_none() && tools.len() == 3);
    for tool in tools {
        assert_eq!(tool.kind, SchedulerKind::Kernel, "{}", tool.label);
        assert!(tool.beside.is_some(), "{}", tool.label);
    }
    assert!(case.case.repeats >= 5);
}
