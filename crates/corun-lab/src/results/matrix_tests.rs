// SPDX-License-Identifier: GPL-2.0-only
//! Two small result files, one table.

use super::*;
use serde_json::json;

/// A result with one row; figures are (scheduler, median, min, max).
fn input(phase: &str, figures: &[(&str, f64, f64, f64)]) -> MatrixInput {
    let schedulers: Vec<_> = figures
        .iter()
        .map(|(label, median, min, max)| {
            let slowdown = json!({ "median": median, "min": min, "max": max, "count": 3 });
            json!({ "scheduler": label, "rate": null, "slowdown": slowdown, "latency": [] })
        })
        .collect();
    let value = json!({
        "schema_version": 1,
        "case": { "case": { "name": "m", "repeats": 3 } },
        "host": { "kernel": "7.3.4", "pcpus": 2 },
        "calibration": { "factor": 60.0 },
        "summary": { "guests": [{
            "phase": phase, "guest": "a", "ideal_slowdown": 2.0, "schedulers": schedulers,
        }], "counters": [] },
    });
    serde_json::from_value(value).expect("is a result")
}

fn inputs() -> [MatrixInput; 2] {
    [
        input("tlb", &[("eevdf", 4.0, 3.0, 5.0), ("corun", 2.5, 2.0, 2.9)]),
        input(
            "cpu",
            &[
                ("eevdf", 2.0, 1.9, 2.1),
                ("lavd", 2.3, 2.2, 2.4),
                ("corun", 2.1, 2.0, 2.2),
            ],
        ),
    ]
}

#[test]
fn columns_are_joined_and_judged_by_spreads() {
    let matrix = Matrix::of(&inputs());
    assert_eq!(matrix.schedulers, ["eevdf", "corun", "lavd"]);
    let verdicts: Vec<Vec<_>> = matrix
        .rows
        .iter()
        .map(|r| r.cells.iter().map(|c| c.map(|f| f.verdict)).collect())
        .collect();
    let (same, better, worse) = (Verdict::Same, Verdict::Better, Verdict::Worse);
    assert_eq!(
        verdicts,
        [
            [Some(same), Some(better), None],
            [Some(same), Some(same), Some(worse)]
        ]
    );
}

#[test]
fn one_repeat_is_not_judged() {
    let mut one = input("tlb", &[("eevdf", 4.0, 4.0, 4.0), ("corun", 2.0, 2.0, 2.0)]);
    for column in &mut one.summary.guests[0].schedulers {
        column.slowdown = Spread::of(&[column.slowdown.expect("is there").median]);
    }
    let matrix = Matrix::of(&[one]);
    let verdict = matrix.rows[0].cells[1].map(|f| f.verdict);
    assert_eq!(verdict, Some(Verdict::Same));
}

#[test]
fn the_table_says_what_was_not_measured_and_sums_up() {
    let text = Matrix::of(&inputs()).render();
    let line = |start: &str| {
        let line = text.lines().find(|l| l.starts_with(start));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert!(
        line("| m    ").contains("| 2.50x [2.00..2.90] + |"),
        "{text}"
    );
    assert!(line("| m    ").contains("| 2.00x |"), "{text}");
    let totals = line("| rows better");
    let cells: Vec<&str> = totals.split('|').map(str::trim).collect();
    assert_eq!(cells[4..7], ["0 / 0", "1 / 0", "0 / 1"], "{text}");
}
