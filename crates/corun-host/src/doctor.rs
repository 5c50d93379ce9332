// SPDX-License-Identifier: GPL-2.0-only
//! `corun doctor`: what is wrong on this host, and how to put it right.

use crate::counters;
use crate::halt::Places;
use crate::halt::left::{self, Left};
use crate::host_info;
use serde::Serialize;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing to do.
    Ok,
    /// Something to do.
    Problem,
    /// It was put right just now.
    Repaired,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check; stable.
    pub check: &'static str,
    /// How it came out.
    pub outcome: Outcome,
    /// What was found.
    pub text: String,
    /// What to do about a problem.
    pub next_step: Option<String>,
}

/// Runs all checks; `repair`: puts right what corun can put right.
pub fn check(repair: bool) -> Vec<Finding> {
    let left = counters::is_pinned() && !host_info::corun_is_loaded();
    vec![
        halt_polling(&Places::default(), repair),
        pinned_map(left, repair, counters::unpin),
    ]
}

/// True when no problem is left.
pub fn is_healthy(findings: &[Finding]) -> bool {
    findings.iter().all(|f| f.outcome != Outcome::Problem)
}

/// Has a corun that was killed left its halt polling in force?
fn halt_polling(places: &Places, repair: bool) -> Finding {
    let found = if repair {
        left::repair(places)
    } else {
        left::inspect(places)
    };
    let (outcome, text, next_step) = match found {
        Ok(Left::Nothing) => (
            Outcome::Ok,
            "halt_poll_ns is as it was set".to_owned(),
            None,
        ),
        Ok(Left::InUse { pid }) => {
            let text = format!("steered by corun (pid {pid}), which runs");
            (Outcome::Ok, text, None)
        }
        Ok(Left::Void { why }) => {
            let text = format!("a killed corun left a record, but nothing to undo: {why}");
            (Outcome::Ok, text, None)
        }
        Ok(Left::Changed {
            pid,
            present_ns,
            operator_ns,
        }) => {
            let text = format!(
                "corun (pid {pid}) was killed and left halt_poll_ns at {present_ns}; the \
                 operator's value is {operator_ns}"
            );
            if repair {
                (Outcome::Repaired, text, None)
            } else {
                let next = "run `corun doctor --repair` as root, or start `corun run`";
                (Outcome::Problem, text, Some(next.to_owned()))
            }
        }
        Err(e) => {
            let text = format!("cannot tell whether halt_poll_ns is as it was set: {e}");
            (
                Outcome::Problem,
                text,
                Some("run `corun doctor` as root".to_owned()),
            )
        }
    };
    Finding {
        check: "halt-polling",
        outcome,
        text,
        next_step,
    }
}

/// Has a corun that was killed left its counters' map (some 10 KiB)?
fn pinned_map(left: bool, repair: bool, unpin: impl FnOnce()) -> Finding {
    let (outcome, text, next_step) = match (left, repair) {
        (false, _) => (Outcome::Ok, "no map was left behind", None),
        (true, false) => (
            Outcome::Problem,
            "a killed corun left its counters' map in /sys/fs/bpf/corun",
            Some("run `corun doctor --repair` as root, or start `corun run`".to_owned()),
        ),
        (true, true) => {
            unpin();
            (
                Outcome::Repaired,
                "removed the counters' map of a killed corun",
                None,
            )
        }
    };
    Finding {
        check: "pinned-map",
        outcome,
        text: text.to_owned(),
        next_step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::halt::tests::{FakeHost, killed};

    #[test]
    fn a_host_that_nobody_changed_is_healthy() {
        let host = FakeHost::new();
        for repair in [false, true] {
            let findings = [halt_polling(&host.places, repair)];
            assert_eq!(findings[0].outcome, Outcome::Ok);
            assert!(is_healthy(&findings));
        }
    }

    #[test]
    fn a_map_that_was_left_is_a_problem_until_it_is_removed() {
        let mut removed = false;
        assert_eq!(pinned_map(false, true, || ()).outcome, Outcome::Ok);
        assert_eq!(pinned_map(true, false, || ()).outcome, Outcome::Problem);
        let found = pinned_map(true, true, || removed = true);
        assert_eq!(found.outcome, Outcome::Repaired);
        assert!(removed);
    }

    #[test]
    fn what_a_killed_corun_left_is_a_problem_until_it_is_repaired() {
        let host = FakeHost::new();
        killed::leave(&host);
        let found = halt_polling(&host.places, false);
        assert_eq!(found.outcome, Outcome::Problem);
        assert!(
            found
                .next_step
                .as_ref()
                .is_some_and(|s| s.contains("--repair"))
        );
        assert!(!is_healthy(&[found]));
        assert_eq!(host.value_ns(), 0, "looking changed it");
        let repaired = halt_polling(&host.places, true);
        assert_eq!(
            (repaired.outcome, host.value_ns()),
            (Outcome::Repaired, 200_000)
        );
        assert_eq!(halt_polling(&host.places, false).outcome, Outcome::Ok);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_told() {
        let host = FakeHost::new();
        host.block_record();
        let found = halt_polling(&host.places, false);
        assert_eq!(found.outcome, Outcome::Problem, "{}", found.text);
    }
}
