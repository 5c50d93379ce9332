// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use std::collections::{BTreeMap, BTreeSet};

fn names() -> Names {
    let guests = || BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    let text = |t: &str| t.to_owned();
    Names {
        lets: BTreeMap::from([
            (text("slowdown"), text("a.rate[{p} solo] / a.rate[{p}]")),
            (text("circle"), text("circle + 1")),
        ]),
        each: BTreeMap::from([(text("p"), vec![text("one"), text("two")])]),
        variants: vec![text("base"), text("better")],
        schedulers: vec![text("cfs"), text("other")],
        phases: BTreeMap::from([(text("one"), guests()), (text("two"), guests())]),
    }
}

/// Rate 8 alone, 4 in phase one, 1 in phase two, twice that if better.
fn value(text: &str) -> Result<f64, String> {
    names().expr(text)?.eval(&|p: &Probe| {
        let rate = match (&p.run.solo, p.run.phase.as_str()) {
            (Some(_), _) => 8.0,
            (None, "one") => 4.0,
            _ => 1.0,
        };
        Ok(if p.run.variant == 1 { rate * 2.0 } else { rate })
    })
}

#[test]
fn arithmetic_has_the_usual_order() {
    for (text, expected) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("8 / 4 / 2", 1.0),
        ("5 - 3 - 1", 1.0),
        ("-2 * 3", -6.0),
        ("1_000 * 1.5", 1500.0),
        ("max(1, 3, 2) - min(4, 2)", 1.0),
        ("mean(1, 2, 6)", 3.0),
        ("above(2, 1, 2, 3, 4)", 2.0),
        ("abs(1 - 3)", 2.0),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn figures_find_their_runs() {
    assert_eq!(value("a.rate[one]"), Ok(4.0));
    assert_eq!(value("a.rate[one solo]"), Ok(8.0));
    assert_eq!(value("a.rate[one better]"), Ok(8.0));
    let probe = names().place("b.tlb[two better other solo]");
    let probe = probe.expect("a good place");
    assert_eq!((probe.guest.as_str(), probe.figure.as_str()), ("b", "tlb"));
    let run = RunKey {
        variant: 1,
        phase: "two".to_owned(),
        scheduler: "other".to_owned(),
        solo: Some("b".to_owned()),
    };
    assert_eq!(probe.run, run);
}

#[test]
fn names_stand_for_expressions_and_lists() {
    assert_eq!(value("slowdown[one]"), Ok(2.0));
    assert_eq!(value("max(slowdown)"), Ok(8.0));
    assert_eq!(value("above(4, slowdown)"), Ok(1.0));
    assert_eq!(value("mean(a.rate[{p}])"), Ok(2.5));
    let two = names().expr_for("slowdown", "p", "two");
    assert!(two.is_ok());
}

#[test]
fn mistakes_say_what_is_wrong() {
    for (text, message) in [
        ("slowdown", "no phase `{p}`"),
        ("circle", "circle"),
        ("slowdown[one two]", "takes one word"),
        ("mean(a.rate[{q}])", "no [each] `q`"),
        ("1 +", "at the end"),
        ("1 2", "the end at `2`"),
        ("(1", "`)`"),
        ("1 / (2 - 2)", "divided by zero"),
    ] {
        let error = value(text).expect_err(text);
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn comparisons_hold_or_do_not() {
    let c = names().comparison("a.rate[one] <= 4").expect("it is good");
    assert!(c.holds(4.0, 4.0) && !c.holds(4.1, 4.0));
    let c = names().comparison("1 < 2").expect("it is good");
    assert!(!c.holds(4.0, 4.0) && c.holds(3.9, 4.0));
    assert!(names().comparison("1 = 2").is_err());
}
