// SPDX-License-Identifier: GPL-2.0-only
//! Two results of cases.

use super::CompareError;
use crate::model::{Block, Cell, Dots, Mark, Section, Table};
use crate::outcome::{Figures, Latency, Measured, Outcome};
use crate::sections::distributions::{anchor, chart as curves};
use crate::sections::slowdown::{chart, plain, ratio};
use corun_lab::results::format::{nanos, slowdown};
use corun_lab::results::{Spread, Verdict};

/// A guest in a phase under a scheduler that both files have.
struct Pair<'a> {
    row: &'a Measured,
    scheduler: String,
    a: &'a Figures,
    b: &'a Figures,
}

impl Pair<'_> {
    fn name(&self) -> String {
        format!("{} · {}", self.row.name(), self.scheduler)
    }
}

pub(super) fn sections(a: &Outcome, b: &Outcome) -> Result<Vec<Section>, CompareError> {
    let pairs = pairs(a, b);
    if pairs.is_empty() {
        let list = |o: &Outcome| {
            o.rows
                .iter()
                .map(Measured::name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        return Err(CompareError::Nothing(format!(
            "no phase, guest and scheduler is in both; A has {} under {}, B has {} under {}",
            list(a),
            a.schedulers.join(", "),
            list(b),
            b.schedulers.join(", ")
        )));
    }
    let sections = [
        slowdowns(&pairs),
        Some(rates(&pairs)),
        latencies(&pairs),
        left_out(a, b, &pairs),
    ];
    Ok(sections.into_iter().flatten().collect())
}

/// Labels of A's and B's schedulers that belong together. One alone on both
/// sides is what was changed.
fn labels(a: &Outcome, b: &Outcome) -> Vec<(String, String)> {
    match (a.schedulers.as_slice(), b.schedulers.as_slice()) {
        ([a], [b]) => vec![(a.clone(), b.clone())],
        (a, b) => {
            let both = a.iter().filter(|label| b.contains(label));
            both.map(|label| (label.clone(), label.clone())).collect()
        }
    }
}

fn pairs<'a>(a: &'a Outcome, b: &'a Outcome) -> Vec<Pair<'a>> {
    let labels = labels(a, b);
    let mut pairs = Vec::new();
    for row in &a.rows {
        let same = |other: &&Measured| other.phase == row.phase && other.guest == row.guest;
        let Some(other) = b.rows.iter().find(same) else {
            continue;
        };
        for (in_a, in_b) in &labels {
            if let (Some(a), Some(b)) = (row.of(in_a), other.of(in_b)) {
                let scheduler = if in_a == in_b {
                    in_a.clone()
                } else {
                    format!("{in_a} / {in_b}")
                };
                pairs.push(Pair {
                    row,
                    scheduler,
                    a,
                    b,
                });
            }
        }
    }
    pairs
}

fn slowdowns(pairs: &[Pair<'_>]) -> Option<Section> {
    let text = "A is before, B is after. Dots are medians over repeats, lines go from the smallest \
                to the largest. B : A is the ratio of the medians: below 1, B is better. Green and \
                red: better and worse in every repeat.";
    let mut section = Section::new("slowdown", "Slowdown, A and B", text);
    let of = |side: fn(&Pair<'_>) -> Option<Spread>| pairs.iter().map(side).collect();
    let values: Vec<Vec<Option<Spread>>> = vec![of(|p| p.a.slowdown), of(|p| p.b.slowdown)];
    if values.iter().flatten().all(Option::is_none) {
        return None;
    }
    let dots = Dots {
        x_label: "times slower than alone".to_owned(),
        log: false,
        rows: pairs.iter().map(Pair::name).collect(),
        reference: "fair host, computing guest".to_owned(),
        references: pairs.iter().map(|p| p.row.ideal).collect(),
        series: vec!["A".to_owned(), "B".to_owned()],
        values,
    };
    section
        .blocks
        .push(chart("slowdown-chart", "Slowdown beside neighbours", dots));
    let columns = ["phase", "guest", "scheduler", "ideal", "A", "B", "B : A"];
    let mut table = Table::new("Slowdown, median [smallest..largest]", 3, &columns);
    for p in pairs {
        let judge = |s: Spread| Mark::of(Verdict::of(&s, p.a.slowdown.as_ref()));
        let mark = p.b.slowdown.and_then(judge);
        table.rows.push(vec![
            Cell::text(&p.row.phase),
            Cell::text(&p.row.guest),
            Cell::text(&p.scheduler),
            Cell::number(p.row.ideal, |i| format!("{i:.2}x")),
            Cell::spread(p.a.slowdown, slowdown),
            Cell::spread(p.b.slowdown, slowdown).marked(mark),
            Cell::number(ratio(p.b.slowdown, p.a.slowdown), |r| format!("{r:.2}")),
        ]);
    }
    section.blocks.push(Block::Table(table));
    Some(section)
}

fn rates(pairs: &[Pair<'_>]) -> Section {
    let text = "Comparable only where both hosts and time scales are the same.";
    let mut section = Section::new("rates", "Work a second, A and B", text);
    let columns = [
        "phase",
        "guest",
        "workload",
        "scheduler",
        "unit",
        "A",
        "B",
        "B : A",
    ];
    let mut table = Table::new("Work a second, median [smallest..largest]", 5, &columns);
    for p in pairs {
        table.rows.push(vec![
            Cell::text(&p.row.phase),
            Cell::text(&p.row.guest),
            Cell::text(&p.row.workload),
            Cell::text(&p.scheduler),
            Cell::text(format!("{}/s", p.row.unit)),
            Cell::spread(p.a.rate, plain),
            Cell::spread(p.b.rate, plain),
            Cell::number(ratio(p.b.rate, p.a.rate), |r| format!("{r:.2}")),
        ]);
    }
    section.blocks.push(Block::Table(table));
    section
}

fn latencies(pairs: &[Pair<'_>]) -> Option<Section> {
    let text = "How long one operation took, over all repeats.";
    let mut section = Section::new("latency", "Latency, A and B", text);
    let columns = [
        "phase",
        "guest",
        "scheduler",
        "one sample",
        "A p50",
        "B p50",
        "A p99",
        "B p99",
        "p99 B : A",
    ];
    let mut table = Table::new("Percentiles", 4, &columns);
    let mut charts = Vec::new();
    for p in pairs {
        for of_a in &p.a.latency {
            let Some(of_b) = p.b.latency.iter().find(|l| l.what == of_a.what) else {
                continue;
            };
            table.rows.push(percentiles(p, of_a, of_b));
            let named = [
                ("A".to_owned(), &of_a.histogram),
                ("B".to_owned(), &of_b.histogram),
            ];
            let title = format!("{}: {}", p.name(), of_a.what);
            charts.extend(curves(&anchor("latency", charts.len()), &title, &named));
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    section.blocks.push(Block::Table(table));
    section.blocks.extend(charts);
    Some(section)
}

fn percentiles(p: &Pair<'_>, a: &Latency, b: &Latency) -> Vec<Cell> {
    let quantile = |l: &Latency, q| l.histogram.value_at_quantile(q) as f64;
    let time = |l: &Latency, q| Cell::number(Some(quantile(l, q)), nanos);
    let ratio = quantile(b, 0.99) / quantile(a, 0.99);
    vec![
        Cell::text(&p.row.phase),
        Cell::text(&p.row.guest),
        Cell::text(&p.scheduler),
        Cell::text(&a.what),
        time(a, 0.5),
        time(b, 0.5),
        time(a, 0.99),
        time(b, 0.99),
        Cell::number(ratio.is_finite().then_some(ratio), |r| format!("{r:.2}")),
    ]
}

/// What only one of the files has.
fn left_out(a: &Outcome, b: &Outcome, pairs: &[Pair<'_>]) -> Option<Section> {
    let mut section = Section::new("left-out", "Only in one of them", "");
    for (name, of) in [("A", a), ("B", b)] {
        let is_in = |row: &&Measured| {
            let same = |p: &Pair<'_>| p.row.phase == row.phase && p.row.guest == row.guest;
            !pairs.iter().any(same)
        };
        let alone: Vec<String> = of.rows.iter().filter(is_in).map(Measured::name).collect();
        let in_both = labels(a, b);
        let used = |label: &&String| in_both.iter().any(|(x, y)| x == *label || y == *label);
        let labels: Vec<&str> = of
            .schedulers
            .iter()
            .filter(|l| !used(l))
            .map(String::as_str)
            .collect();
        for (what, list) in [
            ("phases and guests", alone.join(", ")),
            ("schedulers", labels.join(", ")),
        ] {
            if !list.is_empty() {
                section.blocks.push(Block::Note {
                    text: format!("Only {name} has the {what} {list}."),
                });
            }
        }
    }
    (!section.blocks.is_empty()).then_some(section)
}
