// SPDX-License-Identifier: GPL-2.0-only
//! One table from several result files: a row for each measured guest of each
//! phase, a column for each scheduler.
//!
//! Each file is of one boot, so that a row's figures are of one boot, too. A
//! cell is judged against the first column of its row: `+` or `-` when it is
//! better or worse in every repeat than the first column is in any, which is
//! what the measured spread allows to say.

use super::format::{number, slowdown};
use super::spread::Spread;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// What is read of a result file; all else in it is left alone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MatrixInput {
    case: CaseName,
    #[serde(default)]
    host: Option<Host>,
    #[serde(default)]
    calibration: Option<Factor>,
    summary: Guests,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct CaseName {
    case: Name,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Name {
    name: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Host {
    kernel: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Factor {
    factor: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Guests {
    guests: Vec<Measured>,
}

/// One measured guest of one phase.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Measured {
    phase: String,
    guest: String,
    ideal_slowdown: Option<f64>,
    schedulers: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Column {
    scheduler: String,
    slowdown: Option<Spread>,
}

/// The table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    /// Labels of the schedulers, in the order of their first mention.
    pub schedulers: Vec<String>,
    /// Its rows, in the order of the files.
    pub rows: Vec<Row>,
}

/// One measured guest of one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the case.
    pub case: String,
    /// The phase.
    pub phase: String,
    /// The guest.
    pub guest: String,
    /// `uname -r` of the emulated host.
    pub host_kernel: String,
    /// Time scale of the boot; 0 when it is not known.
    pub factor: f64,
    /// Slowdown of a CPU-bound guest on a perfectly fair host.
    pub ideal_slowdown: Option<f64>,
    /// One for each of [`Matrix::schedulers`]; `None`: not measured.
    pub cells: Vec<Option<Figure>>,
}

/// One scheduler's figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// Slowdown against running alone, over repeats.
    pub slowdown: Spread,
    /// Against the first column.
    pub verdict: Verdict,
}

/// What the spreads allow to say of a figure against the first column's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every repeat is better than any of the first column's.
    Better,
    /// The spreads overlap, there is no first column, or one has one repeat alone.
    Same,
    /// Every repeat is worse.
    Worse,
}

impl Verdict {
    /// Of `figure` against `first`, which may be missing.
    pub fn of(figure: &Spread, first: Option<&Spread>) -> Self {
        // One repeat has no spread to judge by.
        let first = first.filter(|f| f.count.min(figure.count) > 1);
        match first {
            Some(first) if figure.max < first.min => Self::Better,
            Some(first) if figure.min > first.max => Self::Worse,
            _ => Self::Same,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Better => " +",
            Self::Same => "  ",
            Self::Worse => " -",
        }
    }
}

impl Matrix {
    /// The table of `inputs`.
    pub fn of(inputs: &[MatrixInput]) -> Self {
        let mut schedulers: Vec<String> = Vec::new();
        let columns = inputs.iter().flat_map(|i| &i.summary.guests);
        for column in columns.flat_map(|g| &g.schedulers) {
            if !schedulers.contains(&column.scheduler) {
                schedulers.push(column.scheduler.clone());
            }
        }
        let mut rows = Vec::new();
        for input in inputs {
            rows.extend(
                input
                    .summary
                    .guests
                    .iter()
                    .map(|g| row(input, g, &schedulers)),
            );
        }
        Self { schedulers, rows }
    }

    /// As text.
    pub fn render(&self) -> String {
        let mut table = Table::new();
        let mut header: Vec<String> = ["case", "phase", "guest"].map(str::to_owned).into();
        header.extend(self.schedulers.iter().cloned());
        header.extend(["ideal".to_owned(), "time scale".to_owned()]);
        table
            .load_style(presets::ASCII_MARKDOWN)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(header);
        for row in &self.rows {
            table.add_row(cells(row));
        }
        table.add_row(self.totals());
        let mut text = String::from(
            "Slowdown against running alone, median [min..max] over repeats in one boot; \
             + and -: better and worse than the first column beyond the spreads\n",
        );
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{table}");
        text
    }

    /// How many rows each scheduler wins and loses against the first column.
    fn totals(&self) -> Vec<Cell> {
        let count = |column: usize, verdict| {
            let figures = self.rows.iter().filter_map(|r| r.cells[column]);
            figures.filter(|f| f.verdict == verdict).count()
        };
        let mut row = vec![
            Cell::new("rows better / worse"),
            Cell::new(""),
            Cell::new(""),
        ];
        row.extend((0..self.schedulers.len()).map(|i| {
            let (better, worse) = (count(i, Verdict::Better), count(i, Verdict::Worse));
            right(format!("{better} / {worse}"))
        }));
        row.extend([Cell::new(""), Cell::new("")]);
        row
    }
}

fn row(input: &MatrixInput, guest: &Measured, schedulers: &[String]) -> Row {
    let of = |label: &String| {
        let column = guest.schedulers.iter().find(|c| c.scheduler == *label);
        column.and_then(|c| c.slowdown)
    };
    let first = schedulers.first().and_then(of);
    let cells = schedulers.iter().map(|label| {
        of(label).map(|slowdown| Figure {
            slowdown,
            verdict: Verdict::of(&slowdown, first.as_ref()),
        })
    });
    Row {
        case: input.case.case.name.clone(),
        phase: guest.phase.clone(),
        guest: guest.guest.clone(),
        host_kernel: input
            .host
            .as_ref()
            .map(|h| h.kernel.clone())
            .unwrap_or_default(),
        factor: input.calibration.as_ref().map_or(0.0, |c| c.factor),
        ideal_slowdown: guest.ideal_slowdown,
        cells: cells.collect(),
    }
}

fn cells(row: &Row) -> Vec<Cell> {
    let mut cells: Vec<Cell> = [&row.case, &row.phase, &row.guest].map(Cell::new).into();
    cells.extend(row.cells.iter().map(|figure| {
        right(figure.as_ref().map_or_else(
            || "-".to_owned(),
            |f| format!("{}{}", slowdown(&f.slowdown), f.verdict.sign()),
        ))
    }));
    let ideal = row.ideal_slowdown.map(|i| format!("{i:.2}x"));
    cells.push(right(ideal.unwrap_or_else(|| "-".to_owned())));
    cells.push(right(number(row.factor)));
    cells
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

#[cfg(test)]
#[path = "matrix_tests.rs"]
mod tests;
