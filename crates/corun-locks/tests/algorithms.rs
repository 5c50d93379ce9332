// SPDX-License-Identifier: GPL-2.0-only
//! Mutual exclusion and no lost wake-up, for every algorithm of the module; and that
//! both test beds find the faults of the flawed ones.

use corun_locks::{Kind, Outcome, Spec, Verdict, explore, hammer, sample};

const SOUND: [Kind; 4] = [Kind::Tas, Kind::Ticket, Kind::PvTicket, Kind::Pmt];

/// Enough for every known fault: the published unlock's needs three.
const PREEMPTIONS: u32 = 3;

/// Acquisitions by each real thread.
const ROUNDS: u32 = 5_000;

fn passed(outcome: &Outcome, what: &str) {
    assert_eq!(outcome.verdict, Verdict::Passed, "{what}: {outcome:?}");
}

#[test]
fn every_schedule_of_two_threads_is_sound() {
    for kind in SOUND {
        let outcome = explore(&Spec::new(kind, 2, 2), PREEMPTIONS + 1);
        passed(&outcome, &format!("{kind:?}"));
        assert!(outcome.schedules > 1000, "{kind:?}: {outcome:?}");
    }
}

#[test]
fn every_schedule_of_three_threads_is_sound() {
    for kind in SOUND {
        passed(
            &explore(&Spec::new(kind, 3, 1), PREEMPTIONS),
            &format!("{kind:?}"),
        );
    }
}

#[test]
fn random_schedules_of_four_threads_are_sound() {
    for kind in SOUND {
        for patience in [1, 3] {
            let spec = Spec::new(kind, 4, 4).patience(patience);
            passed(&sample(&spec, 1, 5_000), &format!("{kind:?} {patience}"));
        }
    }
}

/// A search that never halts anybody, or never runs out of patience, shows nothing.
#[test]
fn the_schedules_reach_the_slow_paths() {
    let pv = explore(&Spec::new(Kind::PvTicket, 3, 1), PREEMPTIONS);
    assert!(pv.halts > 0 && pv.kicks > 0, "{pv:?}");
    let pmt = explore(&Spec::new(Kind::Pmt, 3, 1), PREEMPTIONS);
    assert!(pmt.timeouts > 0, "{pmt:?}");
}

#[test]
fn the_search_finds_what_is_wrong() {
    for (kind, threads, fault) in [
        (Kind::Broken, 2, Verdict::Overlap),
        (Kind::TrustingPmt, 3, Verdict::Overlap),
        (Kind::SeedUnlock, 3, Verdict::LostWakeup),
        (Kind::NoSecondLook, 2, Verdict::LostWakeup),
        (Kind::LateCell, 2, Verdict::LostWakeup),
    ] {
        let outcome = explore(&Spec::new(kind, threads, 1), PREEMPTIONS);
        assert_eq!(outcome.verdict, fault, "{kind:?}: {outcome:?}");
    }
}

#[test]
fn real_threads_exclude_each_other_and_are_all_woken() {
    for kind in SOUND {
        for (threads, patience) in [(2, 1), (4, 1), (4, 50)] {
            let spec = Spec::new(kind, threads, ROUNDS).patience(patience);
            passed(&hammer(&spec), &format!("{kind:?} {threads} {patience}"));
        }
    }
}

#[test]
fn real_threads_halt_and_are_kicked() {
    let outcome = hammer(&Spec::new(Kind::PvTicket, 4, ROUNDS));
    passed(&outcome, "pv ticket");
    assert!(outcome.halts > 0 && outcome.kicks > 0, "{outcome:?}");
}

#[test]
fn real_threads_show_that_the_negative_control_excludes_nobody() {
    let outcome = hammer(&Spec::new(Kind::Broken, 4, ROUNDS));
    assert_eq!(outcome.verdict, Verdict::Overlap, "{outcome:?}");
}

#[test]
fn real_threads_show_that_a_lost_wakeup_is_noticed() {
    let outcome = hammer(&Spec::new(Kind::NoSecondLook, 4, ROUNDS));
    assert_eq!(outcome.verdict, Verdict::LostWakeup, "{outcome:?}");
}
