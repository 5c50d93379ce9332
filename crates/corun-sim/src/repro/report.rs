// SPDX-License-Identifier: GPL-2.0-only
//! What was published beside what was simulated.

use super::expr::{Expr, Probe};
use super::plan::Results;
use super::stats::Interval;
use super::table::{Check, Table};
use super::verdict::{self, Kind, Target};
use super::{draw, draw::Chart};
use serde::Serialize;

/// The whole report.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Repeats of every run.
    pub seeds: u32,
    /// All tables together.
    pub summary: Summary,
    /// The tables.
    pub tables: Vec<TableReport>,
}

/// One table.
#[derive(Debug, Serialize)]
pub struct TableReport {
    /// `SEED/TABLE`.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// What it says.
    pub says: String,
    /// What was fitted to which of its values.
    pub fitted: String,
    /// Assumptions and slips.
    pub notes: Vec<String>,
    /// How it came out.
    pub summary: Summary,
    /// Values.
    pub cells: Vec<CellReport>,
    /// Directions.
    pub claims: Vec<ClaimReport>,
    /// Figures.
    pub charts: Vec<Chart>,
}

/// A value.
#[derive(Debug, Serialize)]
pub struct CellReport {
    /// Row.
    pub row: String,
    /// Column.
    pub column: String,
    /// Fitted to, or predicted.
    pub kind: Kind,
    /// Counts as a ratio cell.
    pub ratio: bool,
    /// For a derived ratio: the cell that this one is divided by.
    pub over: Option<String>,
    /// The published value in the source's words.
    pub published_text: String,
    /// The published value as it is compared.
    pub published: Target,
    /// Unit of both; empty for ratios.
    pub unit: String,
    /// The simulated value.
    pub simulated: Option<Interval>,
    /// Simulated by published.
    pub factor: Option<f64>,
    /// Near enough.
    pub pass: bool,
    /// Why there is no simulated value.
    pub problem: Option<String>,
    /// A remark.
    pub note: String,
}

/// A direction.
#[derive(Debug, Serialize)]
pub struct ClaimReport {
    /// The claim.
    pub text: String,
    /// How it is checked.
    pub holds: String,
    /// About runs that parameters may be fitted to, or a prediction.
    pub kind: Kind,
    /// Left side.
    pub left: Option<Interval>,
    /// Right side.
    pub right: Option<Interval>,
    /// In how many seeds it holds.
    pub seeds_agree: u32,
    /// The means agree with it.
    pub pass: bool,
    /// Why there is no value.
    pub problem: Option<String>,
}

/// `right` of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Score {
    /// Passed.
    pub right: u32,
    /// Judged.
    pub of: u32,
}

impl Score {
    fn add(&mut self, pass: bool) {
        self.of += 1;
        self.right += u32::from(pass);
    }

    fn merge(&mut self, other: Self) {
        self.right += other.right;
        self.of += other.of;
    }

    /// Both scores together.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.merge(other);
        self
    }
}

/// How it came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// Claims.
    pub directions: Score,
    /// Ratio cells of kind fit.
    pub ratios_fit: Score,
    /// Ratio cells of kind predicted.
    pub ratios_predicted: Score,
    /// Other cells of kind fit.
    pub others_fit: Score,
    /// Other cells of kind predicted.
    pub others_predicted: Score,
    /// Cells and claims without a simulated value; they count as wrong.
    pub missing: u32,
}

impl Summary {
    fn merge(&mut self, other: &Self) {
        self.directions.merge(other.directions);
        self.ratios_fit.merge(other.ratios_fit);
        self.ratios_predicted.merge(other.ratios_predicted);
        self.others_fit.merge(other.others_fit);
        self.others_predicted.merge(other.others_predicted);
        self.missing += other.missing;
    }

    /// All ratio cells.
    pub fn ratios(&self) -> Score {
        self.ratios_fit.plus(self.ratios_predicted)
    }

    /// The aim: every direction right, and nine of ten ratio cells near enough.
    pub fn reached(&self) -> bool {
        let ratios = self.ratios();
        self.directions.right == self.directions.of && ratios.right * 10 >= ratios.of * 9
    }
}

impl Report {
    /// Of `tables` with their `results`.
    pub fn new(tables: &[Table], results: &Results) -> Self {
        let of = |(number, table)| TableReport::new(table, &View { number, results });
        let tables: Vec<TableReport> = tables.iter().enumerate().map(of).collect();
        let mut summary = Summary::default();
        for table in &tables {
            summary.merge(&table.summary);
        }
        Self {
            seeds: results.seeds,
            summary,
            tables,
        }
    }
}

/// One table's view of the results.
pub(super) struct View<'a> {
    /// The table's number.
    pub(super) number: usize,
    /// All results.
    pub(super) results: &'a Results,
}

impl View<'_> {
    /// An expression's value in every seed, or why one has none.
    fn values(&self, expr: &Expr<Probe>) -> Result<Vec<f64>, String> {
        (0..self.results.seeds)
            .map(|seed| expr.eval(&|probe| self.results.read(self.number, probe, seed)))
            .collect()
    }

    /// The same as an interval.
    pub(super) fn interval(&self, expr: &Expr<Probe>) -> Result<Interval, String> {
        Interval::of(&self.values(expr)?).ok_or_else(|| "no seeds".to_owned())
    }
}

impl TableReport {
    fn new(table: &Table, view: &View<'_>) -> Self {
        let cells: Vec<CellReport> = table.checks.iter().map(|c| cell(c, view)).collect();
        let claims: Vec<ClaimReport> = (0..table.claims.len())
            .map(|i| claim(table, i, view))
            .collect();
        let charts = draw::charts(table, &cells, view);
        Self {
            id: table.id.clone(),
            title: table.file.title.clone(),
            source: table.file.source.clone(),
            says: table.file.says.clone(),
            fitted: table.file.fitted.clone(),
            notes: table.file.notes.clone(),
            summary: summary(&cells, &claims),
            cells,
            claims,
            charts,
        }
    }
}

fn cell(check: &Check, view: &View<'_>) -> CellReport {
    let cell = &check.cell;
    let simulated = view.interval(&check.value);
    let mean = simulated.as_ref().ok().map(|i| i.mean);
    let judge = |m| verdict::passes(m, check.target, cell.kind, cell.within);
    CellReport {
        row: cell.row.clone(),
        column: cell.column.clone(),
        kind: cell.kind,
        ratio: check.ratio,
        over: check.derived.clone(),
        published_text: check.published.clone(),
        published: check.target,
        unit: cell.unit.clone(),
        factor: mean.and_then(|m| verdict::ratio(m, check.target)),
        pass: mean.is_some_and(judge),
        problem: simulated.as_ref().err().cloned(),
        simulated: simulated.ok(),
        note: cell.note.clone(),
    }
}

fn claim(table: &Table, index: usize, view: &View<'_>) -> ClaimReport {
    let (claim, comparison) = &table.claims[index];
    let sides = view
        .values(&comparison.left)
        .and_then(|left| Ok((left, view.values(&comparison.right)?)));
    let mut report = ClaimReport {
        text: claim.text.clone(),
        holds: claim.holds.clone(),
        kind: claim.kind,
        left: None,
        right: None,
        seeds_agree: 0,
        pass: false,
        problem: None,
    };
    match sides {
        Ok((left, right)) => {
            let agree = left.iter().zip(&right);
            let agree = agree.filter(|(l, r)| comparison.holds(**l, **r)).count();
            report.seeds_agree = u32::try_from(agree).unwrap_or(u32::MAX);
            report.left = Interval::of(&left);
            report.right = Interval::of(&right);
            report.pass = matches!((report.left, report.right),
                (Some(l), Some(r)) if comparison.holds(l.mean, r.mean));
        }
        Err(problem) => report.problem = Some(problem),
    }
    report
}

fn summary(cells: &[CellReport], claims: &[ClaimReport]) -> Summary {
    let mut s = Summary::default();
    for cell in cells {
        let score = match (cell.ratio, cell.kind) {
            (true, Kind::Fit) => &mut s.ratios_fit,
            (true, Kind::Predicted) => &mut s.ratios_predicted,
            (false, Kind::Fit) => &mut s.others_fit,
            (false, Kind::Predicted) => &mut s.others_predicted,
        };
        score.add(cell.pass);
        s.missing += u32::from(cell.problem.is_some());
    }
    for claim in claims {
        s.directions.add(claim.pass);
        s.missing += u32::from(claim.problem.is_some());
    }
    s
}
