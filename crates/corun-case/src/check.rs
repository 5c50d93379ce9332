// SPDX-License-Identifier: GPL-2.0-only
//! What a well-formed case file can still get wrong.

use crate::MIN_GUEST_MIB_WITH_TOOLS;
use crate::locate::Step;
use crate::{Case, Phase, SchedulerKind, WORKLOADS, suggest};
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

/// Checks `case` and returns the first problem.
pub(super) fn check(case: &Case) -> Result<(), Problem> {
    check_general(case)?;
    check_host(case)?;
    check_schedulers(case)?;
    check_guests(case)?;
    ensure!(
        !case.phases.is_empty(),
        ["phase"],
        "no phases: expected at least one [[phase]]"
    );
    unique("phase", "name", case.phases.iter().map(|p| p.name.as_str()))?;
    for (i, phase) in case.phases.iter().enumerate() {
        check_phase(case, i, phase)?;
    }
    check_gate(case)
}

fn check_general(case: &Case) -> Result<(), Problem> {
    let g = &case.case;
    ensure!(is_name(&g.name), ["case", "name"], "{}", bad_name(&g.name));
    ensure!(
        (1..=1000).contains(&g.repeats),
        ["case", "repeats"],
        "{} repeats: expected 1 to 1000",
        g.repeats
    );
    check_seconds(&["case".into(), "warmup_s".into()], g.warmup_s, 0.0)?;
    check_seconds(&["case".into(), "measure_s".into()], g.measure_s, 0.1)
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

fn check_host(case: &Case) -> Result<(), Problem> {
    let h = &case.host;
    ensure!(
        (1..=64).contains(&h.pcpus),
        ["host", "pcpus"],
        "{} pCPUs: expected 1 to 64",
        h.pcpus
    );
    ensure!(
        h.memory_mib >= 512,
        ["host", "memory_mib"],
        "{} MiB: expected at least 512",
        h.memory_mib
    );
    let guests: u32 = case
        .guests
        .iter()
        .map(|g| g.memory_mib)
        .fold(0, u32::saturating_add);
    ensure!(
        guests.saturating_add(512) <= h.memory_mib,
        ["host", "memory_mib"],
        "{} MiB are too few: the guests have {guests} MiB and the host itself needs 512",
        h.memory_mib
    );
    ensure!(
        is_kernel(&h.kernel),
        ["host", "kernel"],
        "{}",
        bad_kernel(&h.kernel)
    );
    Ok(())
}

fn check_schedulers(case: &Case) -> Result<(), Problem> {
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
        ensure!(
            s.options.is_empty() || s.kind == SchedulerKind::Corun,
            ["scheduler", i, "options"],
            "options are for kind = \"corun\"; the kernel's scheduler takes none"
        );
        ensure!(
            !s.options.iter().any(|o| o == "--json"),
            ["scheduler", i, "options"],
            "--json: the lab reads corun's plain output and its counters; leave it out"
        );
        let scaled = s.options.iter().any(|o| o.starts_with("--time-scale"));
        ensure!(
            !scaled,
            ["scheduler", i, "options"],
            "--time-scale is set by the lab, from case.time_scale, for all schedulers alike"
        );
    }
    Ok(())
}

fn check_guests(case: &Case) -> Result<(), Problem> {
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
            (1..=64).contains(&g.vcpus),
            ["guest", i, "vcpus"],
            "{} vCPUs: expected 1 to 64",
            g.vcpus
        );
        ensure!(
            (1..=10_000).contains(&g.weight),
            ["guest", i, "weight"],
            "weight {}: expected 1 to 10000 (100 is the default)",
            g.weight
        );
        ensure!(
            g.memory_mib >= 96,
            ["guest", i, "memory_mib"],
            "{} MiB: expected at least 96",
            g.memory_mib
        );
        ensure!(
            g.memory_mib >= MIN_GUEST_MIB_WITH_TOOLS || !case.guest_needs_tools(&g.name),
            ["guest", i, "memory_mib"],
            "{} MiB: stress-ng and sysbench live in the guest's memory, expected at least {}",
            g.memory_mib,
            MIN_GUEST_MIB_WITH_TOOLS
        );
        ensure!(
            is_kernel(&g.kernel),
            ["guest", i, "kernel"],
            "{}",
            bad_kernel(&g.kernel)
        );
        ensure!(
            g.pv.steal_time || !g.pv.sched_yield,
            ["guest", i, "pv"],
            "sched_yield without steal_time has no effect: Linux asks for a yield only when it can see preempted vCPUs"
        );
    }
    Ok(())
}

fn check_phase(case: &Case, i: usize, phase: &Phase) -> Result<(), Problem> {
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
    for (guest, work) in &phase.run {
        let names = || case.guests.iter().map(|g| g.name.as_str());
        ensure!(
            names().any(|n| n == guest),
            ["phase", i, "run", guest.as_str()],
            "unknown guest `{guest}`: expected one of {}{}",
            names().collect::<Vec<_>>().join(", "),
            suggest::hint(guest, names())
        );
        ensure!(
            WORKLOADS.contains(&work.workload.as_str()),
            ["phase", i, "run", guest.as_str(), "workload"],
            "unknown workload `{}`: expected one of {}{}",
            work.workload,
            WORKLOADS.join(", "),
            suggest::hint(&work.workload, WORKLOADS.iter().copied())
        );
        ensure!(
            work.threads != Some(0),
            ["phase", i, "run", guest.as_str(), "threads"],
            "0 threads: expected at least 1"
        );
    }
    check_measured(i, phase)?;
    if let Some(s) = phase.warmup_s {
        check_seconds(&["phase".into(), i.into(), "warmup_s".into()], s, 0.0)?;
    }
    if let Some(s) = phase.measure_s {
        check_seconds(&["phase".into(), i.into(), "measure_s".into()], s, 0.1)?;
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
    let able = case
        .guests
        .iter()
        .take(2)
        .filter(|g| g.vcpus >= case.host.pcpus)
        .count();
    ensure!(
        !gate.enabled || able == 2,
        ["gate", "enabled"],
        "the gate needs the first two guests to have at least {} vCPUs each (one per pCPU); give them more, or set enabled = false in [gate]",
        case.host.pcpus
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

fn is_kernel(kernel: &str) -> bool {
    let mut parts = kernel.split('.');
    let number =
        |p: Option<&str>| p.is_some_and(|p| !p.is_empty() && p.chars().all(|c| c.is_ascii_digit()));
    number(parts.next()) && number(parts.next()) && parts.next().is_none()
}

fn bad_kernel(kernel: &str) -> String {
    format!("kernel `{kernel}`: expected a series such as \"7.3\"")
}
