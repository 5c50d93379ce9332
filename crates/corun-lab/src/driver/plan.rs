// SPDX-License-Identifier: GPL-2.0-only
//! The order of a boot's windows: a pure function of the case.

use crate::case::Case;
use std::time::Duration;

/// One step of a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Schedule the host by the case's scheduler with this index from now on.
    Use(usize),
    /// Measure one window.
    Window(Window),
}

/// One window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Index of the phase in the case.
    pub phase: usize,
    /// Index of the scheduler in the case.
    pub scheduler: usize,
    /// Repeat, from 0.
    pub repeat: u32,
    /// The guest that runs alone, or `None` for the co-run of all guests.
    pub solo: Option<String>,
}

/// All steps of a boot. Schedulers alternate (A B, B A, A B, ...) so that a slow
/// drift of the machine hits all alike, and stay loaded over a turn: each
/// attachment of a BPF program patches L1's kernel text, which is what the
/// emulator is worst at. Solo windows belong to the first scheduler.
pub fn plan(case: &Case) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut current = None;
    for repeat in 0..case.case.repeats {
        let mut order: Vec<usize> = (0..case.schedulers.len()).collect();
        if repeat % 2 == 1 {
            order.reverse();
        }
        for scheduler in order {
            if current != Some(scheduler) {
                steps.push(Step::Use(scheduler));
                current = Some(scheduler);
            }
            steps.extend(block(case, scheduler, repeat));
        }
    }
    steps
}

/// The windows of one repeat under one scheduler.
fn block(case: &Case, scheduler: usize, repeat: u32) -> impl Iterator<Item = Step> {
    case.phases.iter().enumerate().flat_map(move |(phase, p)| {
        let alone = (p.solo && scheduler == 0).then_some(&p.measure);
        alone
            .into_iter()
            .flatten()
            .cloned()
            .map(Some)
            .chain([None])
            .map(move |solo| {
                Step::Window(Window {
                    phase,
                    scheduler,
                    repeat,
                    solo,
                })
            })
    })
}

/// About how long a boot of `case` takes, from L1's start to the driver's end.
/// Generous: it becomes a deadline.
pub fn estimate(case: &Case) -> Duration {
    let mut seconds = 0.0;
    let mut gate_and_calibration = 30.0;
    for step in plan(case) {
        seconds += match step {
            // Loading takes seconds under emulation; scx_lavd is far larger.
            Step::Use(i) if case.schedulers[i].kind.comparator().is_some() => 40.0,
            Step::Use(_) => 15.0,
            Step::Window(w) => {
                let phase = &case.phases[w.phase];
                case.warmup_s(phase) + case.measure_s(phase) + WINDOW_OVERHEAD_S
            }
        };
    }
    if case.gate.enabled {
        gate_and_calibration +=
            9.0 * (case.case.warmup_s + case.case.measure_s.max(15.0) + WINDOW_OVERHEAD_S);
    }
    let boot = 20.0 + 20.0 * case.guests.len() as f64;
    Duration::from_secs_f64(boot + gate_and_calibration + seconds)
}

/// Start and end of the workloads around a window, in a slow guest.
const WINDOW_OVERHEAD_S: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const HEAD: &str = r#"
[case]
name = "x"
repeats = 3
[gate]
enabled = false
[[guest]]
name = "a"
[[guest]]
name = "b"
[[phase]]
name = "p"
measure = ["a", "b"]
solo = true
run = { a = { workload = "tlb" }, b = { workload = "cpu" } }
[[phase]]
name = "q"
measure = ["a"]
run = { a = { workload = "tlb" } }
[[scheduler]]
label = "A"
kind = "kernel"
"#;

    fn letters(text: &str) -> String {
        let case = crate::case::parse(text, Path::new("x.toml")).expect("is good");
        let name = |w: &Window| {
            let phase = &case.phases[w.phase].name;
            w.solo
                .as_ref()
                .map_or_else(|| phase.clone(), |g| format!("{phase}:{g}"))
        };
        plan(&case)
            .iter()
            .map(|s| match s {
                Step::Use(i) => format!("<{}>", case.schedulers[*i].label),
                Step::Window(w) => format!("{}{}", name(w), w.repeat),
            })
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn two_schedulers_alternate_and_stay_loaded_over_a_turn() {
        let text = format!("{HEAD}[[scheduler]]\nlabel = \"B\"\nkind = \"corun\"\n");
        assert_eq!(
            letters(&text),
            "<A> p:a0 p:b0 p0 q0 <B> p0 q0 p1 q1 <A> p:a1 p:b1 p1 q1 p:a2 p:b2 p2 q2 <B> p2 q2"
        );
    }

    #[test]
    fn one_scheduler_is_chosen_once() {
        assert_eq!(
            letters(HEAD),
            "<A> p:a0 p:b0 p0 q0 p:a1 p:b1 p1 q1 p:a2 p:b2 p2 q2"
        );
    }

    #[test]
    fn more_repeats_take_longer() {
        let parse = |t: &str| crate::case::parse(t, Path::new("x.toml")).expect("is good");
        let more = HEAD.replace("repeats = 3", "repeats = 4");
        assert!(estimate(&parse(&more)) > estimate(&parse(HEAD)));
    }
}
