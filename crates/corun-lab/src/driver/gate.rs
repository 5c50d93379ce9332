// SPDX-License-Identifier: GPL-2.0-only
//! The sanity gate: may this boot's figures be used?
//!
//! A burner with one thread per vCPU (idle vCPUs would cost wake-ups) runs in each
//! of the first two guests alone, then in both together, under the kernel's
//! scheduler. Alone each must use all pCPUs; together the parts that they do of what they did alone must add up to
//! one: a slowdown of 2.0 for the average of the two. The sum depends neither on
//! weights nor on who happened to get the last slice of a window, so the gate
//! judges the machine (stolen time, idle pCPUs, lost work) and not the
//! scheduler; and a guest is compared with itself, so the two may differ.

use super::error::Result;
use super::session::Session;
use super::window::{self, Measured, WindowSpec};
use crate::case::Case;
use corun_lab_proto::agent::{RunResult, WorkloadSpec};
use corun_lab_proto::control::Report;
use std::collections::BTreeMap;
use std::time::Duration;

/// Shortest window in slices: a guest counts its work when it happens to run, so
/// each end of a window is off by up to a turn of both guests.
const MIN_SLICES: u32 = 50;

/// Measures the gate, reports it, and tells whether the boot passed. What is off
/// the first time is measured twice more, and the median decides: the machine's
/// speed drifts, and solo and co-run windows cannot be at the same time.
pub(super) fn pass(session: &mut Session, case: &Case, slice: Duration) -> Result<bool> {
    let mut seen = vec![measure(session, case, slice)?];
    if !passes(seen[0], case) {
        seen.push(measure(session, case, slice)?);
        seen.push(measure(session, case, slice)?);
    }
    let reading = median(&mut seen);
    let passed = passes(reading, case);
    session.report(&Report::Gate {
        slowdown: reading.slowdown,
        solo_pcpus: reading.solo_pcpus,
        passed,
    })?;
    Ok(passed)
}

/// What the gate saw once.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reading {
    slowdown: f64,
    solo_pcpus: f64,
}

fn median(readings: &mut [Reading]) -> Reading {
    readings.sort_by(|a, b| a.slowdown.total_cmp(&b.slowdown));
    readings[readings.len() / 2]
}

fn measure(session: &mut Session, case: &Case, slice: Duration) -> Result<Reading> {
    let guests = case.guests.iter().take(2);
    let names: Vec<&str> = guests.map(|g| g.name.as_str()).collect();
    let mut alone = Vec::new();
    for name in &names {
        alone.push(window::measure(session, &burners(case, &[name], slice))?);
    }
    let together = window::measure(session, &burners(case, &names, slice))?;
    let used = alone
        .iter()
        .zip(&names)
        .map(|(m, name)| pcpus_used(m, name));
    Ok(Reading {
        slowdown: slowdown(&alone, &together),
        solo_pcpus: used.fold(f64::INFINITY, f64::min),
    })
}

fn passes(reading: Reading, case: &Case) -> bool {
    let tolerance = case.gate.tolerance;
    let full = f64::from(case.host.pcpus) * (1.0 - tolerance);
    (reading.slowdown / 2.0 - 1.0).abs() <= tolerance && reading.solo_pcpus >= full
}

/// How much slower the average of the guests is together than alone.
fn slowdown(alone: &[Measured], together: &Measured) -> f64 {
    let part = |m: &Measured| -> f64 {
        let mut results = m.results.iter();
        let alone = |(name, alone): (&String, &RunResult)| {
            let together = together.results.get(name)?;
            (alone.rate_per_s > 0.0).then(|| together.rate_per_s / alone.rate_per_s)
        };
        results.next().and_then(alone).unwrap_or(0.0)
    };
    let parts: f64 = alone.iter().map(part).sum();
    // Guests that did no work at all must not pass, nor give a number that
    // JSON cannot say.
    if parts > 0.0 {
        alone.len() as f64 / parts
    } else {
        0.0
    }
}

fn pcpus_used(m: &Measured, guest: &str) -> f64 {
    let used = m.cpu_ns.get(guest).copied().unwrap_or(0);
    used as f64 / 1e9 / m.elapsed.as_secs_f64().max(1e-9)
}

fn burners(case: &Case, guests: &[&str], slice: Duration) -> WindowSpec {
    let measure = Duration::from_secs_f64(case.case.measure_s);
    let burner = WorkloadSpec {
        name: "cpu".to_owned(),
        threads: None,
        params: BTreeMap::new(),
    };
    WindowSpec {
        measured: guests
            .iter()
            .map(|g| ((*g).to_owned(), burner.clone()))
            .collect(),
        warmup: Duration::from_secs_f64(case.case.warmup_s),
        measure: measure.max(slice * MIN_SLICES),
        ..WindowSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    /// A window of guests named g0, g1, ... by position; 0 means not taking part.
    fn measured(rates: &[f64]) -> Measured {
        let (mut session, _reports) = fake::session(vec![]);
        let mut spec = WindowSpec::default();
        for (i, rate) in rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            let name = format!("g{i}");
            fake::add_guest(&mut session, &name, fake::worker(*rate));
            let workload = WorkloadSpec {
                name: "cpu".to_owned(),
                threads: None,
                params: BTreeMap::new(),
            };
            spec.measured.insert(name, workload);
        }
        window::measure(&mut session, &spec).expect("measures")
    }

    /// Slowdown of two guests from what each did alone and together.
    fn of(alone: [f64; 2], together: [f64; 2]) -> f64 {
        let alone = [measured(&[alone[0], 0.0]), measured(&[0.0, alone[1]])];
        slowdown(&alone, &measured(&together))
    }

    fn reading(slowdown: f64, solo_pcpus: f64) -> Reading {
        Reading {
            slowdown,
            solo_pcpus,
        }
    }

    fn case() -> Case {
        let text = "[case]\nname='x'\n[[scheduler]]\nlabel='k'\nkind='kernel'\n\
            [[guest]]\nname='g0'\n[[guest]]\nname='g1'\n\
            [[phase]]\nname='p'\nmeasure=['g0']\nrun={g0={workload='cpu'}}\n";
        crate::case::parse(text, std::path::Path::new("x")).expect("is good")
    }

    #[test]
    fn unequal_shares_and_unequal_guests_are_no_fault_of_the_machine() {
        assert!((of([100.0, 100.0], [25.0, 75.0]) - 2.0).abs() < 1e-9);
        assert!((of([100.0, 80.0], [50.0, 40.0]) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn lost_work_and_an_idle_solo_run_are() {
        assert!(!passes(
            reading(of([100.0, 100.0], [40.0, 40.0]), 2.0),
            &case()
        ));
        assert!(!passes(
            reading(of([70.0, 70.0], [50.0, 50.0]), 1.4),
            &case()
        ));
        assert!(!passes(reading(2.0, 1.4), &case()));
        assert!(passes(reading(2.09, 1.91), &case()));
    }

    #[test]
    fn of_three_readings_the_median_decides() {
        let mut seen = [2.3, 2.0, 2.04].map(|slowdown| reading(slowdown, 2.0));
        assert_eq!(median(&mut seen), reading(2.04, 2.0));
        assert_eq!(median(&mut seen[..1]), seen[0]);
    }

    #[test]
    fn guests_that_did_nothing_do_not_pass() {
        let nothing = slowdown(&[], &measured(&[]));
        assert!(!passes(reading(nothing, 2.0), &case()));
    }
}
