// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use crate::repro::draw::{Curve, Group, Pair, Stack};
use crate::repro::stats::Interval;

#[test]
fn numbers_show_what_matters() {
    for (value, text) in [
        (0.0, "0"),
        (0.000_02, "2.0e-5"),
        (0.0043, "0.00430"),
        (0.64, "0.640"),
        (4.756, "4.76"),
        (70.6, "70.6"),
        (936.3, "936"),
        (9_048.0, "9,048"),
        (295_262_662.0, "295,262,662"),
        (-1_234.0, "-1,234"),
    ] {
        assert_eq!(number(value), text);
    }
    for (value, text) in [(0.5, "0.5"), (10.0, "10"), (1_000.0, "1,000"), (0.0, "0")] {
        assert_eq!(tick_label(value), text);
    }
}

#[test]
fn bars_have_whiskers_and_names_are_made_safe() {
    let pair = Pair {
        published: Some(70.6),
        simulated: Interval::of(&[60.0, 65.0, 70.0]),
    };
    let groups = [Group {
        label: "<dedup>".to_owned(),
        bars: vec![pair, Pair::default()],
    }];
    let series = ["a & b".to_owned(), "c".to_owned()];
    for log in [false, true] {
        let mut out = String::new();
        bars::write(&mut out, "slow\"down", "times", log, &series, &groups).expect("a String");
        assert!(
            out.contains("whisker") && out.contains("published"),
            "{out}"
        );
        assert!(
            out.contains("&lt;dedup&gt;") && out.contains("slow&quot;down"),
            "{out}"
        );
        assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
    }
}

#[test]
fn empty_figures_are_drawn_without_nonsense() {
    let mut out = String::new();
    bars::write(&mut out, "t", "u", true, &[], &[]).expect("a String");
    let curve = Curve {
        label: "none".to_owned(),
        points: Vec::new(),
    };
    cdf::write(&mut out, "t", &[curve]).expect("a String");
    let stack = Stack {
        label: "none".to_owned(),
        shares: Vec::new(),
    };
    profile::write(&mut out, "t", &["user".to_owned()], &[stack]).expect("a String");
    assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
    assert!(out.contains("nothing was counted"));
}

#[test]
fn curves_are_steps_that_never_fall() {
    let curve = Curve {
        label: "tlb".to_owned(),
        points: vec![(10.0, 0.5), (100.0, 0.9), (1_000.0, 1.0)],
    };
    let mut out = String::new();
    cdf::write(&mut out, "t", &[curve]).expect("a String");
    assert!(
        out.contains("median 10.0 us, 90th percentile 100 us"),
        "{out}"
    );
    assert!(out.contains("<path class=\"curve s0\" d=\"M"), "{out}");
}
