// SPDX-License-Identifier: GPL-2.0-only

use super::super::fake;
use super::*;

fn workload() -> WorkloadSpec {
    WorkloadSpec {
        name: "cpu".to_owned(),
        threads: None,
        params: BTreeMap::new(),
    }
}

fn spec(measured: &[&str], load: &[&str]) -> WindowSpec {
    let of = |names: &[&str]| {
        names
            .iter()
            .map(|n| ((*n).to_owned(), workload()))
            .collect()
    };
    WindowSpec {
        measured: of(measured),
        load: of(load),
        warmup: Duration::ZERO,
        measure: Duration::from_millis(50),
    }
}

#[test]
fn a_window_gives_results_of_the_measured_guests_alone() {
    let (mut session, reports) = fake::session(vec![]);
    fake::add_guest(&mut session, "a", fake::worker(10.0));
    fake::add_guest(&mut session, "b", fake::worker(20.0));
    let m = measure(&mut session, &spec(&["a"], &["b"])).expect("measures");
    assert_eq!(m.results.keys().collect::<Vec<_>>(), ["a"]);
    assert!((m.results["a"].rate_per_s - 10.0).abs() < 1e-9);
    assert_eq!(m.counters["yield.asked"], 1);
    assert_eq!(m.cpu_ns.len(), 2);
    assert!(!m.disturbed && m.redone == 0);
    let told: Vec<Report> = reports.try_iter().collect();
    assert_eq!(
        told,
        [
            Report::WindowBegin { window: 0 },
            Report::WindowEnd { window: 0 }
        ]
    );
}

#[test]
fn a_refused_window_is_measured_again_under_a_new_number() {
    let (mut session, _reports) = fake::session(vec![false, true]);
    fake::add_guest(&mut session, "a", fake::worker(10.0));
    let m = measure(&mut session, &spec(&["a"], &[])).expect("measures");
    assert_eq!((m.window, m.redone, m.disturbed), (1, 1, false));
}

#[test]
fn the_last_try_is_kept_and_marked() {
    let (mut session, _reports) = fake::session(vec![false; 9]);
    fake::add_guest(&mut session, "a", fake::worker(10.0));
    let m = measure(&mut session, &spec(&["a"], &[])).expect("measures");
    assert_eq!((m.window, m.redone, m.disturbed), (2, 2, true));
}

#[test]
fn a_workloads_failure_is_not_the_emulators() {
    let (mut session, _reports) = fake::session(vec![]);
    fake::add_guest(&mut session, "a", |command| match command {
        Command::Run { id, .. } => vec![Event::Failed {
            id,
            message: "tlb: no memory".to_owned(),
        }],
        _ => vec![],
    });
    let error = measure(&mut session, &spec(&["a"], &[])).expect_err("fails");
    assert!(
        matches!(&error, DriverError::Own(m) if m == "guest a: tlb: no memory"),
        "{error}"
    );
}

#[test]
fn a_guest_that_dies_may_be_the_emulators() {
    let (mut session, _reports) = fake::session(vec![]);
    // The agent's thread ends by panic at the first command, and with it the
    // channel, as when QEMU dies.
    fake::add_guest(&mut session, "a", |_| panic!("this guest dies on purpose"));
    let error = measure(&mut session, &spec(&["a"], &[])).expect_err("fails");
    assert!(
        matches!(&error, DriverError::EmulatorSuspect(m) if m.contains("guest a is gone")),
        "{error}"
    );
}

#[test]
fn an_answer_to_nobodys_question_is_an_error() {
    let (mut session, _reports) = fake::session(vec![]);
    fake::add_guest(&mut session, "a", |_| vec![Event::Started { id: 4711 }]);
    let error = measure(&mut session, &spec(&["a"], &[])).expect_err("fails");
    assert!(error.to_string().contains("4711"), "{error}");
}

#[test]
fn only_guests_at_work_are_observed() {
    let all = ["a", "b", "frozen"].map(|g| (g.to_owned(), g.len()));
    let seen = working(&spec(&["a"], &["b"]), all.into());
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["a", "b"]);
}
