// SPDX-License-Identifier: GPL-2.0-only
//! Slowdowns: dots, and the table with the same figures.

use crate::model::{Block, Cell, Chart, Dots, Mark, Plot, Section, Table};
use crate::outcome::{Measured, Outcome};
use corun_lab::results::format::{number, slowdown};
use corun_lab::results::{Spread, Verdict};

const TEXT: &str = "How much slower a guest's work goes beside its neighbours than with the host \
     to itself. Dots are medians over repeats, lines go from the smallest to the largest. \
     The tick is what a perfectly fair host would cost a guest that only computes. Green and red \
     figures are better and worse than the first scheduler's in every repeat; others are within \
     the spread.";

/// From this ratio of the largest to the smallest, an axis is logarithmic.
const LOG_FROM: f64 = 6.0;

/// Slowdown of each measured guest under each scheduler.
pub(super) fn slowdowns(outcome: &Outcome) -> Option<Section> {
    let rows: Vec<&Measured> = outcome.rows.iter().filter(|r| has_slowdown(r)).collect();
    let mut section = Section::new("slowdown", "Slowdown", TEXT);
    if rows.is_empty() {
        rates(&mut section, outcome);
        return (!section.blocks.is_empty()).then_some(section);
    }
    let of = |label: &String| -> Vec<Option<Spread>> {
        rows.iter().map(|r| r.of(label)?.slowdown).collect()
    };
    let dots = Dots {
        x_label: "times slower than alone".to_owned(),
        log: false,
        rows: rows.iter().map(|r| r.name()).collect(),
        reference: "fair host, computing guest".to_owned(),
        references: rows.iter().map(|r| r.ideal).collect(),
        series: outcome.schedulers.clone(),
        values: outcome.schedulers.iter().map(of).collect(),
    };
    section
        .blocks
        .push(chart("slowdown-chart", "Slowdown beside neighbours", dots));
    section
        .blocks
        .push(Block::Table(table(&rows, &outcome.schedulers)));
    rates(&mut section, outcome);
    Some(section)
}

fn has_slowdown(row: &Measured) -> bool {
    row.under.iter().any(|(_, f)| f.slowdown.is_some())
}

/// A chart of dots; its axis is logarithmic if its values ask for it.
pub(crate) fn chart(id: &str, title: &str, mut dots: Dots) -> Block {
    let values = dots.values.iter().flatten().flatten();
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), s| {
        (low.min(s.min), high.max(s.max))
    });
    dots.log = low > 0.0 && high / low >= LOG_FROM;
    if dots.references.iter().all(Option::is_none) {
        dots.reference.clear();
    }
    Block::Chart(Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        text: String::new(),
        plot: Plot::Dots(dots),
    })
}

fn table(rows: &[&Measured], schedulers: &[String]) -> Table {
    let mut names = vec!["phase", "guest", "workload", "ideal"];
    names.extend(schedulers.iter().map(String::as_str));
    let first = schedulers.first().map(String::as_str).unwrap_or_default();
    let gains: Vec<String> = schedulers
        .iter()
        .skip(1)
        .map(|s| format!("{s} : {first}"))
        .collect();
    names.extend(gains.iter().map(String::as_str));
    let mut table = Table::new("Slowdown, median [smallest..largest]", 3, &names);
    for row in rows {
        let of = |label: &String| row.of(label).and_then(|f| f.slowdown);
        let before = schedulers.first().and_then(of);
        let mut cells = vec![
            Cell::text(&row.phase),
            Cell::text(&row.guest),
            Cell::text(&row.workload),
            Cell::number(row.ideal, |i| format!("{i:.2}x")),
        ];
        for (i, label) in schedulers.iter().enumerate() {
            let after = of(label);
            let judge = |s: Spread| Mark::of(Verdict::of(&s, before.as_ref()));
            let mark = after.filter(|_| i > 0).and_then(judge);
            cells.push(Cell::spread(after, slowdown).marked(mark));
        }
        for label in schedulers.iter().skip(1) {
            cells.push(Cell::number(ratio(of(label), before), |r| {
                format!("{r:.2}")
            }));
        }
        table.rows.push(cells);
    }
    table
}

/// Median by median.
pub(crate) fn ratio(after: Option<Spread>, before: Option<Spread>) -> Option<f64> {
    let ratio = after?.median / before?.median;
    ratio.is_finite().then_some(ratio)
}

/// "1,234 [1,200..1,300]".
pub(crate) fn plain(s: &Spread) -> String {
    format!(
        "{} [{}..{}]",
        number(s.median),
        number(s.min),
        number(s.max)
    )
}

fn rates(section: &mut Section, outcome: &Outcome) {
    let mut names = vec!["phase", "guest", "workload", "unit", "alone"];
    names.extend(outcome.schedulers.iter().map(String::as_str));
    let mut table = Table::new("Work a second, median [smallest..largest]", 4, &names);
    for row in &outcome.rows {
        let mut cells = [&row.phase, &row.guest, &row.workload]
            .map(Cell::text)
            .to_vec();
        cells.push(Cell::text(format!("{}/s", row.unit)));
        cells.push(Cell::spread(row.alone.as_ref().and_then(|f| f.rate), plain));
        for label in &outcome.schedulers {
            cells.push(Cell::spread(row.of(label).and_then(|f| f.rate), plain));
        }
        table.rows.push(cells);
    }
    if !table.rows.is_empty() {
        section.blocks.push(Block::Table(table));
    }
}
