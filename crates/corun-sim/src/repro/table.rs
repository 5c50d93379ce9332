// SPDX-License-Identifier: GPL-2.0-only
//! A table with its case read and its expressions resolved.

use super::expr::{Comparison, Expr, Names, Probe};
use super::format::{Cell, Claim, Figure, Form, Published, TableFile};
use super::verdict::{Kind, Target};
use crate::batch::Models;
use corun_case::{Case, Override, Target as RunBy, parse_for};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A table, ready to plan.
#[derive(Debug)]
pub struct Table {
    /// `SEED/TABLE`.
    pub id: String,
    /// The file.
    pub file: TableFile,
    /// The case of every variant; one if there are no variants.
    pub cases: Vec<Arc<Case>>,
    /// Values to judge, the derived ratios included.
    pub checks: Vec<Check>,
    /// Claims to judge.
    pub claims: Vec<(Claim, Comparison<Probe>)>,
    /// Figures to draw.
    pub figures: Vec<Drawing>,
}

/// A value to judge.
#[derive(Debug, Clone)]
pub struct Check {
    /// The cell.
    pub cell: Cell,
    /// What it is compared with.
    pub target: Target,
    /// The published value as text.
    pub published: String,
    /// A ratio of two measured values.
    pub ratio: bool,
    /// The cell that this ratio was derived from is divided by this one.
    pub derived: Option<String>,
    /// Its value.
    pub value: Expr<Probe>,
}

/// A figure's data.
#[derive(Debug)]
pub enum Drawing {
    /// Published and simulated cells, by their indices in [`Table::checks`].
    Cells {
        /// Groups: label, and one cell for every column.
        groups: Vec<(String, Vec<Option<usize>>)>,
        /// The columns.
        columns: Vec<String>,
    },
    /// Groups of expressions with their published values.
    Each {
        /// Groups.
        groups: Vec<(String, Vec<Bar>)>,
    },
    /// Stacked bars or curves.
    Places(Vec<(String, Probe)>),
}

/// An expression and its published value.
pub(super) type Bar = (Expr<Probe>, Option<f64>);

impl Table {
    /// Reads the case in `case` and resolves `file`'s expressions.
    pub fn new(
        id: &str,
        file: TableFile,
        case: &str,
        case_path: &Path,
        models: &Models,
    ) -> Result<Self, String> {
        let cases = cases(&file, case, case_path, models)?;
        let names = names(&file, &cases[0])?;
        let checks = checks(&file, &names)?;
        let claims: Result<Vec<_>, String> = file
            .claims
            .iter()
            .map(|c| Ok((c.clone(), names.comparison(&c.holds)?)))
            .collect();
        let figures: Result<Vec<_>, String> = file
            .figures
            .iter()
            .map(|f| drawing(f, &checks, &names))
            .collect();
        Ok(Self {
            id: id.to_owned(),
            claims: claims?,
            figures: figures?,
            cases,
            checks,
            file,
        })
    }

    /// Every figure of a run that anything here needs.
    pub fn probes(&self) -> Vec<&Probe> {
        let mut all = Vec::new();
        for check in &self.checks {
            check.value.each_leaf(&mut |p| all.push(p));
        }
        for (_, comparison) in &self.claims {
            comparison.left.each_leaf(&mut |p| all.push(p));
            comparison.right.each_leaf(&mut |p| all.push(p));
        }
        for drawing in &self.figures {
            match drawing {
                Drawing::Cells { .. } => {}
                Drawing::Each { groups } => {
                    for (value, _) in groups.iter().flat_map(|(_, bars)| bars) {
                        value.each_leaf(&mut |p| all.push(p));
                    }
                }
                Drawing::Places(places) => all.extend(places.iter().map(|(_, p)| p)),
            }
        }
        all
    }
}

fn cases(
    file: &TableFile,
    text: &str,
    path: &Path,
    models: &Models,
) -> Result<Vec<Arc<Case>>, String> {
    let read = |set: &[String]| {
        let overrides: Result<Vec<Override>, String> = set
            .iter()
            .map(|s| s.parse().map_err(|e| format!("{e}")))
            .collect();
        parse_for(text, path, RunBy::Sim(models), &overrides?)
            .map(Arc::new)
            .map_err(|e| e.to_string())
    };
    if file.variants.is_empty() {
        return Ok(vec![read(&[])?]);
    }
    let read =
        |v: &super::format::Variant| read(&v.set).map_err(|e| format!("variant {}: {e}", v.name));
    file.variants.iter().map(read).collect()
}

fn names(file: &TableFile, case: &Case) -> Result<Names, String> {
    let names = Names {
        lets: file.lets.clone(),
        each: file.each.clone(),
        variants: file.variants.iter().map(|v| v.name.clone()).collect(),
        schedulers: case.schedulers.iter().map(|s| s.label.clone()).collect(),
        phases: case
            .phases
            .iter()
            .map(|p| (p.name.clone(), p.run.keys().cloned().collect()))
            .collect(),
    };
    let mut seen: BTreeSet<&str> = BTreeSet::from(["solo"]);
    for name in names.variants.iter().chain(&names.schedulers) {
        if !seen.insert(name) {
            return Err(format!(
                "`{name}` is used twice: variants and schedulers need names of their own"
            ));
        }
    }
    Ok(names)
}

fn checks(file: &TableFile, names: &Names) -> Result<Vec<Check>, String> {
    let mut plain = Vec::new();
    for cell in &file.cells {
        let at = |e: String| format!("cell {} / {}: {e}", cell.row, cell.column);
        let target = cell.target();
        if cell.within.is_none() && target.low <= 0.0 {
            let what = "not above 0, so no ratio can be judged; give `within`";
            return Err(at(format!("{}: {what}", cell.published_text())));
        }
        plain.push(Check {
            target,
            published: cell.published_text(),
            ratio: cell.ratio,
            derived: None,
            value: names.expr(&cell.value).map_err(at)?,
            cell: cell.clone(),
        });
    }
    let mut all = Vec::new();
    for check in &plain {
        all.push(check.clone());
        if let Some([row, column]) = &check.cell.over {
            let base = plain
                .iter()
                .find(|c| c.cell.row == *row && c.cell.column == *column);
            let derived = base.map(|base| derive(check, base));
            all.push(derived.flatten().ok_or_else(|| {
                let cell = &check.cell;
                let of = format!("cell {} / {}", cell.row, cell.column);
                format!("{of}: over = {row} / {column}, which is no cell with one value")
            })?);
        }
    }
    Ok(all)
}

/// The ratio of two cells, as a cell of its own.
fn derive(check: &Check, base: &Check) -> Option<Check> {
    let (Published::Value(a), Published::Value(b)) = (check.cell.published, base.cell.published)
    else {
        return None;
    };
    if b <= 0.0 || check.cell.form != Form::Plain || base.cell.form != Form::Plain {
        return None;
    }
    let kind = if check.cell.kind == Kind::Fit && base.cell.kind == Kind::Fit {
        Kind::Fit
    } else {
        Kind::Predicted
    };
    let cell = Cell {
        published_base: Some(b),
        unit: String::new(),
        kind,
        ratio: true,
        within: None,
        note: String::new(),
        ..check.cell.clone()
    };
    let over = format!("{} / {}", base.cell.row, base.cell.column);
    let (value, base) = (Box::new(check.value.clone()), Box::new(base.value.clone()));
    Some(Check {
        target: cell.target(),
        published: format!("{a} / {b}"),
        ratio: true,
        derived: Some(over),
        value: Expr::Binary(super::expr::Op::Divide, value, base),
        cell,
    })
}

fn drawing(figure: &Figure, checks: &[Check], names: &Names) -> Result<Drawing, String> {
    match figure {
        Figure::Cells { rows, columns, .. } => cells_drawing(rows, columns, checks),
        Figure::Each { each, series, .. } => {
            let words = names.each.get(each);
            let words = words.ok_or_else(|| format!("figure: no [each] `{each}`"))?;
            let mut groups = Vec::new();
            for word in words {
                let bars: Result<Vec<Bar>, String> = series
                    .iter()
                    .map(|s| {
                        let value = names.expr_for(&s.value, each, word)?;
                        Ok((value, s.published.get(word).copied()))
                    })
                    .collect();
                groups.push((word.clone(), bars?));
            }
            Ok(Drawing::Each { groups })
        }
        Figure::Profile { bars: places, .. } | Figure::Cdf { curves: places, .. } => {
            let places: Result<Vec<_>, String> = places
                .iter()
                .map(|p| Ok((p.label.clone(), names.place(&p.of)?)))
                .collect();
            Ok(Drawing::Places(places?))
        }
    }
}

fn cells_drawing(rows: &[String], columns: &[String], checks: &[Check]) -> Result<Drawing, String> {
    let cells = || checks.iter().filter(|c| c.derived.is_none());
    let mut used = columns.to_vec();
    if used.is_empty() {
        for check in cells().filter(|c| rows.contains(&c.cell.row)) {
            if !used.contains(&check.cell.column) {
                used.push(check.cell.column.clone());
            }
        }
    }
    let at = |row: &str, column: &str| {
        checks
            .iter()
            .position(|c| c.derived.is_none() && c.cell.row == row && c.cell.column == column)
    };
    let mut groups = Vec::new();
    for row in rows {
        let found: Vec<Option<usize>> = used.iter().map(|c| at(row, c)).collect();
        if found.iter().all(Option::is_none) {
            return Err(format!("figure: no cells in row `{row}`"));
        }
        groups.push((row.clone(), found));
    }
    Ok(Drawing::Cells {
        groups,
        columns: used,
    })
}
