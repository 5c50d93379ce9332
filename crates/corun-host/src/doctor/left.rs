// SPDX-License-Identifier: GPL-2.0-only
//! What a corun that was killed left behind.

use super::report::{Finding, Notes, Severity};
use crate::halt::Places;
use crate::halt::left::{self, Left};

const REPAIR: &str = "run `corun doctor --repair` as root, or start `corun run`";

/// Has a corun that was killed left its halt polling in force?
pub(super) fn halt_polling(places: &Places, repair: bool, notes: &mut Notes) {
    let found = if repair {
        left::repair(places)
    } else {
        left::inspect(places)
    };
    match found {
        Ok(Left::Nothing | Left::InUse { .. } | Left::Void { .. }) => {}
        Ok(Left::Changed {
            pid,
            present_ns,
            operator_ns,
        }) => {
            let what = format!(
                "corun (pid {pid}) was killed and left halt_poll_ns at {present_ns}; the \
                 operator's value is {operator_ns}"
            );
            if repair {
                notes.repaired.push(what);
            } else {
                notes.find(Finding::new(
                    "left-halt-polling",
                    Severity::Warning,
                    what,
                    REPAIR,
                ));
            }
        }
        Err(e) => notes.blind(
            "whether a killed corun left halt_poll_ns changed",
            format!("{e}; run `corun doctor` as root"),
        ),
    }
}

/// Has a corun that was killed left its counters' map (some 10 KiB)?
pub(super) fn pinned_map(left: bool, repair: bool, unpin: impl FnOnce(), notes: &mut Notes) {
    match (left, repair) {
        (false, _) => {}
        (true, false) => notes.find(Finding::new(
            "left-map",
            Severity::Warning,
            "a killed corun left its counters' map in /sys/fs/bpf/corun",
            REPAIR,
        )),
        (true, true) => {
            unpin();
            let what = "removed the counters' map of a killed corun";
            notes.repaired.push(what.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::report::Verdict;
    use crate::halt::tests::{FakeHost, killed};

    fn look(host: &FakeHost, repair: bool) -> Notes {
        let mut notes = Notes::default();
        halt_polling(&host.places, repair, &mut notes);
        notes
    }

    #[test]
    fn a_host_that_nobody_changed_is_healthy() {
        let host = FakeHost::new();
        for repair in [false, true] {
            assert_eq!(look(&host, repair).verdict(), Verdict::Healthy);
        }
    }

    #[test]
    fn a_map_that_was_left_is_a_problem_until_it_is_removed() {
        let mut removed = false;
        let mut notes = Notes::default();
        pinned_map(false, true, || (), &mut notes);
        assert_eq!(notes.verdict(), Verdict::Healthy);
        pinned_map(true, true, || removed = true, &mut notes);
        assert_eq!(
            (notes.verdict(), notes.repaired.len()),
            (Verdict::Healthy, 1)
        );
        assert!(removed);
        pinned_map(true, false, || (), &mut notes);
        assert_eq!(notes.verdict(), Verdict::Findings);
    }

    #[test]
    fn what_a_killed_corun_left_is_a_problem_until_it_is_repaired() {
        let host = FakeHost::new();
        killed::leave(&host);
        let found = look(&host, false);
        assert_eq!(found.verdict(), Verdict::Findings);
        assert!(found.findings[0].next_step.contains("--repair"));
        assert_eq!(host.value_ns(), 0, "looking changed it");
        let repaired = look(&host, true);
        assert_eq!((repaired.repaired.len(), host.value_ns()), (1, 200_000));
        assert_eq!(look(&host, false).verdict(), Verdict::Healthy);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_told() {
        let host = FakeHost::new();
        host.block_record();
        assert_eq!(look(&host, false).verdict(), Verdict::CouldNotLook);
    }
}
