// SPDX-License-Identifier: GPL-2.0-only
//! The sanity gate: may this boot's figures be used?
//!
//! A burner with one thread per pCPU runs in the first guest alone, then in the
//! first two guests together, under the kernel's scheduler. Alone it must use
//! all pCPUs; together the two must do, in sum, what one did alone: a slowdown
//! of 2.0 for the average of the two. The sum does not depend on weights, nor on
//! who happened to get the last slice of a window, so the gate judges the
//! machine (stolen time, idle pCPUs, lost work) and not the scheduler.

use super::error::Result;
use super::session::Session;
use super::window::{self, Measured, WindowSpec};
use crate::case::Case;
use corun_lab_proto::agent::WorkloadSpec;
use corun_lab_proto::control::Report;
use std::collections::BTreeMap;
use std::time::Duration;

/// Measures the gate, reports it, and tells whether the boot passed.
pub(super) fn pass(session: &mut Session, case: &Case) -> Result<bool> {
    let names: Vec<&str> = case
        .guests
        .iter()
        .take(2)
        .map(|g| g.name.as_str())
        .collect();
    let alone = window::measure(session, &burners(case, &names[..1]))?;
    let together = window::measure(session, &burners(case, &names))?;
    let slowdown = slowdown(&alone, &together);
    let solo_pcpus = pcpus_used(&alone, names[0]);
    let passed = passes(slowdown, solo_pcpus, case);
    session.report(&Report::Gate {
        slowdown,
        solo_pcpus,
        passed,
    })?;
    Ok(passed)
}

fn passes(slowdown: f64, solo_pcpus: f64, case: &Case) -> bool {
    let tolerance = case.gate.tolerance;
    let full = f64::from(case.host.pcpus) * (1.0 - tolerance);
    (slowdown / 2.0 - 1.0).abs() <= tolerance && solo_pcpus >= full
}

/// How much slower the average of the two guests is than the first alone.
fn slowdown(alone: &Measured, together: &Measured) -> f64 {
    let mean = |m: &Measured| {
        m.results.values().map(|r| r.rate_per_s).sum::<f64>() / m.results.len() as f64
    };
    // A guest that did no work at all must not pass, nor give a number that
    // JSON cannot say.
    if mean(together) > 0.0 {
        mean(alone) / mean(together)
    } else {
        0.0
    }
}

fn pcpus_used(m: &Measured, guest: &str) -> f64 {
    let used = m.cpu_ns.get(guest).copied().unwrap_or(0);
    used as f64 / 1e9 / m.elapsed.as_secs_f64().max(1e-9)
}

fn burners(case: &Case, guests: &[&str]) -> WindowSpec {
    let burner = WorkloadSpec {
        name: "cpu".to_owned(),
        threads: Some(case.host.pcpus),
        params: BTreeMap::new(),
    };
    WindowSpec {
        measured: guests
            .iter()
            .map(|g| ((*g).to_owned(), burner.clone()))
            .collect(),
        warmup: Duration::from_secs_f64(case.case.warmup_s),
        measure: Duration::from_secs_f64(case.case.measure_s),
        ..WindowSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    fn measured(rates: &[f64]) -> Measured {
        let (mut session, _reports) = fake::session(vec![]);
        let mut spec = WindowSpec::default();
        for (i, rate) in rates.iter().enumerate() {
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

    fn case() -> Case {
        let text = "[case]\nname='x'\n[[scheduler]]\nlabel='k'\nkind='kernel'\n\
            [[guest]]\nname='g0'\n[[guest]]\nname='g1'\n\
            [[phase]]\nname='p'\nmeasure=['g0']\nrun={g0={workload='cpu'}}\n";
        crate::case::parse(text, std::path::Path::new("x")).expect("is good")
    }

    #[test]
    fn unequal_shares_of_the_whole_are_no_fault_of_the_machine() {
        let s = slowdown(&measured(&[100.0]), &measured(&[25.0, 75.0]));
        assert!((s - 2.0).abs() < 1e-9);
    }

    #[test]
    fn lost_work_and_an_idle_solo_run_are() {
        let lost = slowdown(&measured(&[100.0]), &measured(&[40.0, 40.0]));
        assert!(!passes(lost, 2.0, &case()));
        let idle = slowdown(&measured(&[70.0]), &measured(&[50.0, 50.0]));
        assert!(!passes(idle, 1.4, &case()));
        assert!(!passes(2.0, 1.4, &case()));
        assert!(!passes(
            slowdown(&measured(&[1.0]), &measured(&[0.0, 0.0])),
            2.0,
            &case()
        ));
        assert!(passes(2.09, 1.91, &case()));
    }
}
