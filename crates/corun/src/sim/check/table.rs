// SPDX-License-Identifier: GPL-2.0-only
//! The tables of `corun sim check`.

use super::compare::{Comparison, Direction, Report, Row, Totals, Winner};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use corun_lab::results::Spread;
use corun_lab::results::format::{nanos, number, share, slowdown};
use std::fmt::Write as _;

/// `report` as text.
pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    for result in &report.results {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}: case {}, time scale {}, exit {}, vCPU switch {}\n{}",
            result.file,
            result.case,
            number(result.factor),
            nanos(result.exit_ns),
            nanos(result.switch_ns),
            rows(result)
        );
        for direction in result
            .directions
            .iter()
            .filter(|d| d.agrees() == Some(false))
        {
            let _ = writeln!(text, "  {}", disagreement(direction));
        }
        text.push('\n');
    }
    text.push_str(&totals(&report.totals));
    text
}

fn rows(result: &Comparison) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header([
            "phase",
            "guest",
            "scheduler",
            "solo sim/lab",
            "lab slowdown",
            "sim slowdown",
            "error",
            "lab CPU share",
            "sim CPU share",
        ]);
    for r in &result.rows {
        table.add_row(cells(r));
    }
    table
}

fn cells(r: &Row) -> Vec<Cell> {
    let right = |text: Option<String>| {
        Cell::new(text.unwrap_or_else(|| "-".to_owned())).set_alignment(CellAlignment::Right)
    };
    let spread = |s: Option<Spread>, text: fn(&Spread) -> String| right(s.as_ref().map(text));
    vec![
        Cell::new(&r.phase),
        Cell::new(&r.guest),
        Cell::new(&r.scheduler),
        right(r.solo_ratio.map(|x| format!("{x:.2}"))),
        spread(r.lab_slowdown, slowdown),
        spread(r.sim_slowdown, slowdown),
        right(r.error.map(percent)),
        spread(r.lab_share, share),
        spread(r.sim_share, share),
    ]
}

fn percent(error: f64) -> String {
    format!("{:+.0} %", error * 100.0)
}

fn disagreement(d: &Direction) -> String {
    let [first, second] = &d.schedulers;
    let name = |winner: Winner| match winner {
        Winner::First => format!("{first} is better"),
        Winner::Second => format!("{second} is better"),
        Winner::Neither => format!("{first} and {second} are alike"),
    };
    let (phase, guest) = (&d.phase, &d.guest);
    format!(
        "{phase}, guest {guest}: lab: {}; simulator: {}, by medians {}",
        name(d.lab),
        name(d.sim),
        name(d.sim_by_median)
    )
}

fn totals(t: &Totals) -> String {
    let error = t.median_error.map_or_else(String::new, |e| {
        format!(", median error {:.0} %", e * 100.0)
    });
    let share = t.largest_share_error.map_or_else(String::new, |e| {
        format!(
            "CPU shares: {}, largest difference {:.1} % of a host\n",
            t.shares,
            e * 100.0
        )
    });
    format!(
        "slowdowns: {}{error}; {} within 25 %, {} within 50 %\n{share}\
         better scheduler: the lab's spreads leave {} winners; the simulator's leave {} of them, and the other one in {}; \
         its medians have {} of them, and the other one in {}\n",
        t.slowdowns,
        t.within_25_percent,
        t.within_50_percent,
        t.decided,
        t.agreed,
        t.opposite,
        t.agreed_by_median,
        t.opposite_by_median
    )
}
