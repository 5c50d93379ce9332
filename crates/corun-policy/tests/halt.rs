// SPDX-License-Identifier: GPL-2.0-only
//! Halt polling: what must hold for every history, and in hosts that answer.

use corun_policy::halt::{Halt, HaltTunables, HaltVerdict, HaltWindow, judge};
use proptest::prelude::*;

const VERDICTS: [HaltVerdict; 6] = [
    HaltVerdict::Unclear,
    HaltVerdict::Wanted,
    HaltVerdict::Wasted,
    HaltVerdict::Quiet,
    HaltVerdict::Useful,
    HaltVerdict::Pays,
];

fn verdict() -> impl Strategy<Value = HaltVerdict> {
    (0..VERDICTS.len()).prop_map(|i| VERDICTS[i])
}

/// Tunables anywhere in their ranges.
fn tunables() -> impl Strategy<Value = HaltTunables> {
    (1_u64..1_000_000, 1_u64..1_000_000, 1_u32..20, 1_u32..100).prop_map(|(a, b, calm, more)| {
        HaltTunables {
            max_ns: a.max(b),
            floor_ns: a.min(b),
            calm_windows: calm,
            hold_max_windows: calm + more,
            ..HaltTunables::default()
        }
    })
}

/// The state after `history`.
fn after(history: &[HaltVerdict], operator_ns: u64, t: &HaltTunables) -> Halt {
    let mut halt = Halt::new(operator_ns, t);
    for verdict in history {
        halt.step(*verdict, operator_ns, t);
    }
    halt
}

proptest! {
    #[test]
    fn never_above_the_maximum_or_the_operators_value(
        history in proptest::collection::vec(verdict(), 0..300),
        operator_ns in 0_u64..1_000_000, t in tunables(),
    ) {
        let mut halt = Halt::new(operator_ns, &t);
        for verdict in history {
            let poll_ns = halt.step(verdict, operator_ns, &t);
            prop_assert!(poll_ns <= t.max_ns.max(operator_ns));
            prop_assert!(operator_ns > 0 || poll_ns == 0, "an order was not obeyed");
        }
    }

    #[test]
    fn off_in_the_window_in_which_others_want_the_cpu_and_polling_does_not_pay(
        history in proptest::collection::vec(verdict(), 0..300),
        operator_ns in 1_u64..1_000_000, t in tunables(),
    ) {
        let mut halt = after(&history, operator_ns, &t);
        prop_assert_eq!(halt.step(HaltVerdict::Wanted, operator_ns, &t), 0);
    }

    #[test]
    fn back_within_the_longest_hold_of_quiet(
        mut history in proptest::collection::vec(verdict(), 0..300),
        operator_ns in 1_u64..1_000_000, t in tunables(), useful in any::<bool>(),
    ) {
        history.push(HaltVerdict::Wanted);
        let mut halt = after(&history, operator_ns, &t);
        let quiet = if useful { HaltVerdict::Useful } else { HaltVerdict::Quiet };
        for _ in 0..t.hold_max_windows {
            halt.step(quiet, operator_ns, &t);
        }
        prop_assert!(halt.poll_ns >= operator_ns, "{halt:?}");
    }

    #[test]
    fn a_constant_host_meets_one_value_and_keeps_it(
        history in proptest::collection::vec(verdict(), 0..300), verdict in verdict(),
        operator_ns in 1_u64..1_000_000, t in tunables(),
    ) {
        let mut halt = after(&history, operator_ns, &t);
        let first = halt.poll_ns;
        let mut values = vec![first];
        // As long as the doublings from 1 ns to 1 ms take.
        let settled = t.hold_max_windows + 21 * t.hold_max_windows;
        for _ in 0..settled {
            values.push(halt.step(verdict, operator_ns, &t));
        }
        let (up, down) = (values.is_sorted(), values.is_sorted_by(|a, b| a >= b));
        prop_assert!(up || down, "turned: {values:?}");
        let last = halt.poll_ns;
        for _ in 0..t.hold_max_windows {
            prop_assert_eq!(halt.step(verdict, operator_ns, &t), last);
        }
    }

    #[test]
    fn steps_up_are_a_calm_apart(
        history in proptest::collection::vec(verdict(), 0..300),
        operator_ns in 1_u64..1_000_000, t in tunables(),
    ) {
        let mut halt = Halt::new(operator_ns, &t);
        let mut since_change = 0;
        for verdict in history {
            let before = halt.poll_ns;
            let poll_ns = halt.step(verdict, operator_ns, &t);
            since_change += 1;
            if poll_ns > before {
                prop_assert!(since_change >= t.calm_windows, "after {since_change} windows");
            }
            if poll_ns != before {
                since_change = 0;
            }
        }
    }

    #[test]
    fn more_waiting_never_speaks_for_polling(
        mut win in (0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 20, 0_u64..1 << 20,
                    0_u64..1 << 40, 0_u64..1 << 40).prop_map(
            |(cpu_ns, waiting_ns, polls, hits, hit_ns, vain_ns)| HaltWindow {
                cpu_ns, waiting_ns, polls, hits: hits.min(polls), hit_ns, vain_ns, wakeups: 0,
            }),
        more_ns in 0_u64..1 << 40,
    ) {
        let t = HaltTunables::default();
        let speaks_for = |w: &HaltWindow| {
            matches!(judge(w, &t), HaltVerdict::Quiet | HaltVerdict::Useful)
        };
        let before = speaks_for(&win);
        win.waiting_ns += more_ns;
        prop_assert!(before || !speaks_for(&win));
    }
}

/// A host of two pCPUs whose answer to the value in force is `answer`, for
/// `windows` windows of 100 ms; the values that were in force.
fn host(windows: usize, operator_ns: u64, answer: impl Fn(u64) -> HaltWindow) -> Vec<u64> {
    let t = HaltTunables::default();
    let mut halt = Halt::new(operator_ns, &t);
    (0..windows)
        .map(|_| {
            let seen = HaltWindow {
                cpu_ns: 200_000_000,
                ..answer(halt.poll_ns)
            };
            halt.note_load(&seen, &t);
            halt.step(judge(&seen, &t), operator_ns, &t)
        })
        .collect()
}

fn changes(values: &[u64]) -> usize {
    values.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Regretted whenever it is tried; without polls vCPUs sleep as often as `wakeups` says
/// for the window. Windows with polls.
fn tried(windows: usize, wakeups: impl Fn(usize) -> u64) -> usize {
    let window = std::cell::Cell::new(0);
    let values = host(windows, 200_000, |poll_ns| {
        window.set(window.get() + 1);
        let polls = if poll_ns > 0 { 1000 } else { 0 };
        HaltWindow {
            polls,
            vain_ns: polls * 20_000,
            wakeups: wakeups(window.get()),
            waiting_ns: 50_000_000,
            ..HaltWindow::default()
        }
    });
    values.iter().filter(|ns| **ns > 0).count()
}

#[test]
fn loads_that_differ_little_are_one() {
    assert!(tried(1000, |i| 1000 + i as u64 % 3 * 300) <= 1000 / 50 + 5);
}

#[test]
fn a_load_that_changes_at_each_window_is_on_trial_for_a_third_of_the_time_at_most() {
    let tries = tried(1000, |i| i as u64 % 2 * 1000);
    assert!((1000 / 6..=1000 / 3 + 1).contains(&tries), "{tries}");
}

#[test]
fn a_guest_that_only_burns_changes_nothing() {
    let values = host(1000, 200_000, |_| HaltWindow::default());
    assert_eq!((values[0], changes(&values)), (200_000, 0));
}

#[test]
fn idle_guests_shrink_it() {
    // 1,000 halts a second on each pCPU that no interrupt ends early.
    let values = host(1000, 200_000, |poll_ns| HaltWindow {
        polls: 200,
        vain_ns: 200 * poll_ns,
        ..HaltWindow::default()
    });
    let most_ns = values[900..].iter().max().unwrap();
    assert!(*most_ns <= 10_000, "{most_ns}");
    assert!(changes(&values) <= 2 * 1000 / 50 + 20);
}

#[test]
fn message_passing_grows_it_beyond_a_careful_operators_value() {
    let values = host(100, 50_000, |_| HaltWindow {
        polls: 1000,
        hits: 990,
        hit_ns: 30_000_000,
        vain_ns: 100_000,
        ..HaltWindow::default()
    });
    assert_eq!(*values.last().unwrap(), 200_000);
    assert_eq!(changes(&values), 2);
}

#[test]
fn polling_that_makes_others_wait_in_vain_is_tried_ever_more_seldom() {
    for always_busy in [false, true] {
        let values = host(1000, 200_000, |poll_ns| HaltWindow {
            polls: if poll_ns > 0 { 1000 } else { 0 },
            hits: if poll_ns > 0 { 300 } else { 0 },
            hit_ns: 300 * poll_ns.min(30_000),
            vain_ns: 700 * poll_ns.min(30_000),
            waiting_ns: if always_busy || poll_ns > 0 {
                50_000_000
            } else {
                0
            },
            ..HaltWindow::default()
        });
        let polling = values.iter().filter(|ns| **ns > 0).count();
        assert!(polling <= 1000 / 50 + 5, "{polling} of 1000 windows");
    }
}

#[test]
fn polls_that_spare_more_than_they_take_go_on_beside_others() {
    let values = host(100, 200_000, |_| HaltWindow {
        polls: 1000,
        hits: 450,
        hit_ns: 450 * 2_000,
        vain_ns: 550 * 2_000,
        waiting_ns: 50_000_000,
        ..HaltWindow::default()
    });
    assert_eq!(values, [200_000; 100]);
}

#[test]
fn polls_that_mostly_succeed_go_on_beside_others_and_come_back() {
    let message_passing = |poll_ns: u64| HaltWindow {
        polls: if poll_ns < 20_000 { 0 } else { 1000 },
        hits: if poll_ns < 20_000 { 0 } else { 990 },
        hit_ns: if poll_ns < 20_000 { 0 } else { 20_000_000 },
        waiting_ns: 50_000_000,
        ..HaltWindow::default()
    };
    assert_eq!(host(100, 200_000, message_passing), [200_000; 100]);
    let t = HaltTunables::default();
    let mut halt = after(&[HaltVerdict::Wanted], 200_000, &t);
    assert_eq!(halt.poll_ns, 0);
    for _ in 0..t.calm_windows {
        let seen = HaltWindow {
            cpu_ns: 200_000_000,
            ..message_passing(halt.poll_ns)
        };
        halt.step(judge(&seen, &t), 200_000, &t);
    }
    assert_eq!(halt.poll_ns, 200_000);
}

#[test]
fn a_host_that_is_busy_every_other_window_does_not_flap() {
    let t = HaltTunables::default();
    let mut halt = Halt::new(200_000, &t);
    let values: Vec<u64> = (0..1000)
        .map(|i| {
            let verdict = [HaltVerdict::Wanted, HaltVerdict::Useful][i % 2];
            halt.step(verdict, 200_000, &t)
        })
        .collect();
    assert_eq!(changes(&values), 0);
    assert_eq!(values[0], 0);
}
