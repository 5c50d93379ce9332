// SPDX-License-Identifier: GPL-2.0-only
//! The case's phases, window by window.

use super::error::Result;
use super::plan::{Step, Window, plan};
use super::scheduler::HostScheduler;
use super::session::Session;
use super::window::{self, Measured, WindowSpec};
use crate::case::Case;
use corun_lab_proto::control::{Report, Sample};
use std::path::Path;
use std::time::Duration;

/// Measures all windows of `case`.
pub(super) fn run(session: &mut Session, case: &Case, corun: &Path, factor: f64) -> Result<()> {
    let steps = plan(case);
    let total = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let mut scheduler = HostScheduler::new(corun.to_owned(), factor);
    for (done, step) in (0..).zip(&steps) {
        let text = describe(case, step);
        session.report(&Report::Progress { text, done, total })?;
        match step {
            Step::Use(index) => scheduler.select(&case.schedulers[*index])?,
            Step::Window(w) => {
                let measured = window::measure(session, &spec(case, w))?;
                let mut sample = sample(case, w, factor, measured);
                sample.sched_ext = scheduler.check()?;
                session.report(&Report::Sample(Box::new(sample)))?;
            }
        }
    }
    scheduler.release()
}

fn describe(case: &Case, step: &Step) -> String {
    match step {
        Step::Use(i) => format!("choosing {}", case.schedulers[*i].label),
        Step::Window(w) => format!(
            "{} {}, {}, repeat {}",
            case.phases[w.phase].name,
            w.solo
                .as_ref()
                .map_or_else(|| "co-run".to_owned(), |g| format!("solo ({g})")),
            case.schedulers[w.scheduler].label,
            w.repeat + 1
        ),
    }
}

fn spec(case: &Case, w: &Window) -> WindowSpec {
    let phase = &case.phases[w.phase];
    let mut spec = WindowSpec {
        warmup: Duration::from_secs_f64(case.warmup_s(phase)),
        measure: Duration::from_secs_f64(case.measure_s(phase)),
        ..WindowSpec::default()
    };
    for (guest, work) in &phase.run {
        let measured = phase.measure.contains(guest);
        match &w.solo {
            Some(alone) if alone != guest => {}
            _ if measured => {
                spec.measured.insert(guest.clone(), work.to_spec());
            }
            _ => {
                spec.load.insert(guest.clone(), work.to_spec());
            }
        }
    }
    spec
}

fn sample(case: &Case, w: &Window, factor: f64, m: Measured) -> Sample {
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    Sample {
        window: m.window,
        phase: case.phases[w.phase].name.clone(),
        scheduler: case.schedulers[w.scheduler].label.clone(),
        solo: w.solo.is_some(),
        repeat: w.repeat,
        factor,
        sched_ext: None,
        disturbed: m.disturbed,
        redone: m.redone,
        start_spread_ns: nanos(m.start_spread),
        elapsed_ns: nanos(m.elapsed),
        guests: m.results,
        vm_cpu_ns: m.cpu_ns,
        busy_ns: m.busy_ns,
        counters: m.counters,
        vcpu_latency: m.vcpu_latency,
        host_task: m.host_task,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        let text = "[case]\nname='x'\nmeasure_s=2.5\n[[scheduler]]\nlabel='k'\nkind='kernel'\n\
            [[guest]]\nname='a'\n[[guest]]\nname='b'\n\
            [[phase]]\nname='p'\nmeasure=['a']\nwarmup_s=0.5\n\
            run={a={workload='tlb', threads=3}, b={workload='cpu'}}\n";
        crate::case::parse(text, Path::new("x")).expect("is good")
    }

    fn window(solo: Option<&str>) -> Window {
        Window {
            phase: 0,
            scheduler: 0,
            repeat: 0,
            solo: solo.map(str::to_owned),
        }
    }

    #[test]
    fn in_a_co_run_the_others_are_load() {
        let spec = spec(&case(), &window(None));
        assert_eq!(spec.measured["a"].threads, Some(3));
        assert_eq!(spec.load.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(spec.warmup, Duration::from_millis(500));
        assert_eq!(spec.measure, Duration::from_millis(2500));
    }

    #[test]
    fn solo_is_alone() {
        let spec = spec(&case(), &window(Some("a")));
        assert_eq!(spec.measured.keys().collect::<Vec<_>>(), ["a"]);
        assert!(spec.load.is_empty());
    }
}
