// SPDX-License-Identifier: GPL-2.0-only
//! What a well-formed case file can still get wrong.

use crate::locate::Step;
use crate::target::WorkloadProblem;
use crate::{Case, Phase, Scheduler, SchedulerKind, Target, Workload, suggest};
use std::collections::BTreeSet;

/// A problem and the key it belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) path: Vec<Step>,
    pub(super) message: String,
}

/// Fails with a [`Problem`] unless the condition holds. Written so that NaN
/// fails too.
macro_rules! ensure {
    ($holds:expr, [$($step:expr),+ $(,)?], $($message:tt)+) => {
        if !$holds {
            return Err(Problem { path: vec![$(Step::from($step)),+], message: format!($($message)+) });
        }
    };
}

mod lab;
mod sim;

/// What differs between the lab and the simulator.
struct Limits {
    pcpus: u32,
    vcpus: u32,
    /// Shortest window. Seconds.
    window_s: f64,
}

const LAB: Limits = Limits {
    pcpus: 64,
    vcpus: 64,
    window_s: 0.1,
};

const SIM: Limits = Limits {
    pcpus: 4096,
    vcpus: 1024,
    window_s: 0.001,
};

/// Checks `case` and returns the first problem.
pub(super) fn check(case: &Case, target: Target<'_>) -> Result<(), Problem> {
    let limits = match target {
        Target::Lab => &LAB,
        Target::Sim(_) => &SIM,
    };
    check_general(case, limits)?;
    let pcpus = case.host.pcpus;
    ensure!(
        (1..=limits.pcpus).contains(&pcpus),
        ["host", "pcpus"],
        "{pcpus} pCPUs: expected 1 to {}",
        limits.pcpus
    );
    check_schedulers(case, target)?;
    check_guests(case, limits)?;
    check_phases(case, target, limits)?;
    check_gate(case)?;
    match target {
        Target::Lab => lab::check(case),
        Target::Sim(_) => sim::check(case, target),
    }
}

fn check_phases(case: &Case, target: Target<'_>, limits: &Limits) -> Result<(), Problem> {
    ensure!(
        !case.phases.is_empty(),
        ["phase"],
        "no phases: expected at least one [[phase]]"
    );
    unique("phase", "name", case.phases.iter().map(|p| p.name.as_str()))?;
    for (i, phase) in case.phases.iter().enumerate() {
        check_phase(case, i, phase, limits)?;
        for (guest, work) in &phase.run {
            let at = [
                "phase".into(),
                i.into(),
                "run".into(),
                guest.as_str().into(),
            ];
            check_workload(&at, work, target)?;
        }
        check_measured(i, phase)?;
    }
    Ok(())
}

/// Checks the workload whose table is at `at`.
fn check_workload(at: &[Step], work: &Workload, target: Target<'_>) -> Result<(), Problem> {
    let problem = |keys: &[&str], message| {
        let keys = keys.iter().map(|k| Step::from(*k));
        let path = at.iter().cloned().chain(keys).collect();
        Err(Problem { path, message })
    };
    match target.abilities().workload(work) {
        Err(WorkloadProblem {
            param: Some(param),
            message,
        }) => problem(&["params", &param], message),
        Err(WorkloadProblem {
            param: None,
            message,
        }) => problem(&["workload"], message),
        Ok(()) if work.threads == Some(0) => {
            problem(&["threads"], "0 threads: expected at least 1".to_owned())
        }
        Ok(()) => Ok(()),
    }
}

fn check_general(case: &Case, limits: &Limits) -> Result<(), Problem> {
    let g = &case.case;
    ensure!(is_name(&g.name), ["case", "name"], "{}", bad_name(&g.name));
    ensure!(
        (1..=1000).contains(&g.repeats),
        ["case", "repeats"],
        "{} repeats: expected 1 to 1000",
        g.repeats
    );
    check_seconds(&["case".into(), "warmup_s".into()], g.warmup_s, 0.0)?;
    check_seconds(
        &["case".into(), "measure_s".into()],
        g.measure_s,
        limits.window_s,
    )
}

fn check_seconds(path: &[Step], value: f64, min: f64) -> Result<(), Problem> {
    if (min..=600.0).contains(&value) {
        return Ok(());
    }
    Err(Problem {
        path: path.to_vec(),
        message: format!("{value} s: expected {min} to 600 seconds"),
    })
}

fn check_schedulers(case: &Case, target: Target<'_>) -> Result<(), Problem> {
    ensure!(
        !case.schedulers.is_empty(),
        ["scheduler"],
        "no schedulers: expected at least one [[scheduler]]"
    );
    unique(
        "scheduler",
        "label",
        case.schedulers.iter().map(|s| s.label.as_str()),
    )?;
    for (i, s) in case.schedulers.iter().enumerate() {
        ensure!(
            is_name(&s.label),
            ["scheduler", i, "label"],
            "{}",
            bad_name(&s.label)
        );
        check_options(i, s)?;
        if let Err(what) = target.abilities().options(&s.options) {
            ensure!(false, ["scheduler", i, "options"], "{what}");
        }
    }
    Ok(())
}

/// Options that no target may be given.
fn check_options(i: usize, s: &Scheduler) -> Result<(), Problem> {
    let comparator = s.kind.comparator();
    ensure!(
        s.options.is_empty() || s.kind == SchedulerKind::Corun || comparator.is_some(),
        ["scheduler", i, "options"],
        "options are for kind = \"corun\" and for comparators; this scheduler takes none"
    );
    ensure!(
        !s.options.iter().any(|o| o == "--json"),
        ["scheduler", i, "options"],
        "--json: the lab reads corun's plain output and its counters; leave it out"
    );
    let scaled = s.options.iter().find(|o| {
        o.starts_with("--time-scale") || comparator.is_some_and(|c| c.time_option(o).is_some())
    });
    if let Some(option) = scaled {
        ensure!(
            false,
            ["scheduler", i, "options"],
            "{option} is set by the lab, from case.time_scale, for all schedulers alike"
        );
    }
    Ok(())
}

fn check_guests(case: &Case, limits: &Limits) -> Result<(), Problem> {
    ensure!(
        !case.guests.is_empty(),
        ["guest"],
        "no guests: expected at least one [[guest]]"
    );
    unique("guest", "name", case.guests.iter().map(|g| g.name.as_str()))?;
    for (i, g) in case.guests.iter().enumerate() {
        ensure!(
            is_name(&g.name),
            ["guest", i, "name"],
            "{}",
            bad_name(&g.name)
        );
        ensure!(
            (1..=limits.vcpus).contains(&g.vcpus),
            ["guest", i, "vcpus"],
            "{} vCPUs: expected 1 to {}",
            g.vcpus,
            limits.vcpus
        );
        ensure!(
            (1..=10_000).contains(&g.weight),
            ["guest", i, "weight"],
            "weight {}: expected 1 to 10000 (100 is the default)",
            g.weight
        );
        ensure!(
            g.pv.steal_time || !g.pv.sched_yield,
            ["guest", i, "pv"],
            "sched_yield without steal_time has no effect: Linux asks for a yield only when it can see preempted vCPUs"
        );
    }
    Ok(())
}

fn check_phase(case: &Case, i: usize, phase: &Phase, limits: &Limits) -> Result<(), Problem> {
    ensure!(
        is_name(&phase.name),
        ["phase", i, "name"],
        "{}",
        bad_name(&phase.name)
    );
    ensure!(
        !phase.run.is_empty(),
        ["phase", i, "run"],
        "nothing runs: expected {{ guest = {{ workload = \"...\" }} }}"
    );
    ensure!(
        !phase.measure.is_empty(),
        ["phase", i, "measure"],
        "nothing is measured: expected at least one guest name"
    );
    for guest in phase.run.keys() {
        let names = || case.guests.iter().map(|g| g.name.as_str());
        ensure!(
            names().any(|n| n == guest),
            ["phase", i, "run", guest.as_str()],
            "unknown guest `{guest}`: expected one of {}{}",
            names().collect::<Vec<_>>().join(", "),
            suggest::hint(guest, names())
        );
    }
    if let Some(s) = phase.warmup_s {
        check_seconds(&["phase".into(), i.into(), "warmup_s".into()], s, 0.0)?;
    }
    if let Some(s) = phase.measure_s {
        check_seconds(
            &["phase".into(), i.into(), "measure_s".into()],
            s,
            limits.window_s,
        )?;
    }
    Ok(())
}

fn check_measured(i: usize, phase: &Phase) -> Result<(), Problem> {
    let mut seen = BTreeSet::new();
    for (j, guest) in phase.measure.iter().enumerate() {
        let runs = || phase.run.keys().map(String::as_str);
        ensure!(
            phase.run.contains_key(guest),
            ["phase", i, "measure", j],
            "`{guest}` runs nothing in this phase: expected one of {}{}",
            runs().collect::<Vec<_>>().join(", "),
            suggest::hint(guest, runs())
        );
        ensure!(
            seen.insert(guest),
            ["phase", i, "measure", j],
            "`{guest}` is named twice"
        );
    }
    Ok(())
}

fn check_gate(case: &Case) -> Result<(), Problem> {
    let gate = &case.gate;
    ensure!(
        gate.tolerance > 0.0 && gate.tolerance <= 0.5,
        ["gate", "tolerance"],
        "{}: expected more than 0, at most 0.5 (0.05 is 5 %)",
        gate.tolerance
    );
    Ok(())
}

fn unique<'a>(table: &str, key: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Problem> {
    let mut seen = BTreeSet::new();
    for (i, name) in names.enumerate() {
        ensure!(
            seen.insert(name),
            [table, i, key],
            "`{name}` is used twice: expected a {key} of its own"
        );
    }
    Ok(())
}

/// Names end up in file, cgroup and socket names.
fn is_name(name: &str) -> bool {
    (1..=40).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn bad_name(name: &str) -> String {
    format!(
        "`{name}`: expected 1 to 40 letters, digits, `-`, `_` or `.`, with a letter or digit first"
    )
}
