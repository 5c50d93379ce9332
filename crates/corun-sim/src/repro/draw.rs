// SPDX-License-Identifier: GPL-2.0-only
//! The data of figures.

use super::expr::Probe;
use super::format::Figure;
use super::report::{CellReport, View};
use super::stats::Interval;
use super::table::{Bar, Drawing, Table};
use hdrhistogram::Histogram;
use serde::Serialize;

/// A figure.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chart {
    /// Groups of bars.
    Bars {
        /// Heading.
        title: String,
        /// What the values are.
        unit: String,
        /// Logarithmic axis.
        log: bool,
        /// Bars of each group, in order.
        series: Vec<String>,
        /// The groups.
        groups: Vec<Group>,
    },
    /// Stacked bars of shares.
    Profile {
        /// Heading.
        title: String,
        /// Parts of each bar, in order.
        parts: Vec<String>,
        /// The bars: shares of the parts, means over seeds.
        bars: Vec<Stack>,
    },
    /// Cumulative distributions.
    Cdf {
        /// Heading.
        title: String,
        /// The curves.
        curves: Vec<Curve>,
    },
}

/// A group of bars.
#[derive(Debug, Serialize)]
pub struct Group {
    /// Name.
    pub label: String,
    /// The bars.
    pub bars: Vec<Pair>,
}

/// Published beside simulated.
#[derive(Debug, Default, Serialize)]
pub struct Pair {
    /// Published; none where the source has no number.
    pub published: Option<f64>,
    /// Simulated; none where nothing was counted.
    pub simulated: Option<Interval>,
}

/// A stacked bar.
#[derive(Debug, Serialize)]
pub struct Stack {
    /// Name.
    pub label: String,
    /// Shares; empty where nothing was counted.
    pub shares: Vec<f64>,
}

/// A curve.
#[derive(Debug, Serialize)]
pub struct Curve {
    /// Name.
    pub label: String,
    /// Microseconds and the share of values up to there; empty where nothing
    /// was counted.
    pub points: Vec<(f64, f64)>,
}

/// Parts of a guest's own time.
const PARTS: [&str; 4] = ["user", "k:lock", "k:tlb", "k:other"];

/// The figures of `table`.
pub(super) fn charts(table: &Table, cells: &[CellReport], view: &View<'_>) -> Vec<Chart> {
    let pairs = table.file.figures.iter().zip(&table.figures);
    pairs
        .map(|(spec, drawing)| chart(spec, drawing, cells, view))
        .collect()
}

fn chart(spec: &Figure, drawing: &Drawing, cells: &[CellReport], view: &View<'_>) -> Chart {
    let places = match drawing {
        Drawing::Places(places) => places.as_slice(),
        _ => &[],
    };
    match spec {
        Figure::Cells {
            title, unit, log, ..
        } => {
            let (series, groups) = match drawing {
                Drawing::Cells { groups, columns } => (columns.clone(), cell_groups(groups, cells)),
                _ => (Vec::new(), Vec::new()),
            };
            bars(title, unit, *log, series, groups)
        }
        Figure::Each {
            title,
            unit,
            log,
            series,
            ..
        } => {
            let groups = match drawing {
                Drawing::Each { groups } => groups.iter().map(|g| each_group(g, view)).collect(),
                _ => Vec::new(),
            };
            let labels = series.iter().map(|s| s.label.clone()).collect();
            bars(title, unit, *log, labels, groups)
        }
        Figure::Profile { title, .. } => Chart::Profile {
            title: title.clone(),
            parts: PARTS.map(str::to_owned).to_vec(),
            bars: places.iter().map(|p| stack(p, view)).collect(),
        },
        Figure::Cdf { title, .. } => Chart::Cdf {
            title: title.clone(),
            curves: places.iter().map(|p| curve(p, view)).collect(),
        },
    }
}

fn bars(title: &str, unit: &str, log: bool, series: Vec<String>, groups: Vec<Group>) -> Chart {
    Chart::Bars {
        title: title.to_owned(),
        unit: unit.to_owned(),
        log,
        series,
        groups,
    }
}

fn cell_groups(groups: &[(String, Vec<Option<usize>>)], cells: &[CellReport]) -> Vec<Group> {
    let pair = |index: &Option<usize>| {
        let cell = index.and_then(|i| cells.get(i));
        cell.map_or_else(Pair::default, |c| Pair {
            published: Some(f64::midpoint(c.published.low, c.published.high)),
            simulated: c.simulated,
        })
    };
    groups
        .iter()
        .map(|(label, indices)| Group {
            label: label.clone(),
            bars: indices.iter().map(pair).collect(),
        })
        .collect()
}

fn each_group((label, group): &(String, Vec<Bar>), view: &View<'_>) -> Group {
    let pair = |(value, published): &Bar| Pair {
        published: *published,
        simulated: view.interval(value).ok(),
    };
    Group {
        label: label.clone(),
        bars: group.iter().map(pair).collect(),
    }
}

fn stack((label, probe): &(String, Probe), view: &View<'_>) -> Stack {
    let share = |part: &&str| {
        let probe = Probe {
            figure: format!("share.{part}"),
            ..probe.clone()
        };
        let seeds = 0..view.results.seeds;
        let values: Result<Vec<f64>, String> = seeds
            .map(|seed| view.results.read(view.number, &probe, seed))
            .collect();
        Interval::of(&values.ok()?).map(|i| i.mean)
    };
    let shares: Option<Vec<f64>> = PARTS.iter().map(share).collect();
    Stack {
        label: label.clone(),
        shares: shares.unwrap_or_default(),
    }
}

/// All seeds' values together.
fn curve((label, probe): &(String, Probe), view: &View<'_>) -> Curve {
    let mut all: Option<Histogram<u64>> = None;
    for seed in 0..view.results.seeds {
        let outcome = view.results.outcome(view.number, &probe.run, seed);
        let vm = outcome.ok().and_then(|o| o.vm(&probe.guest));
        let Some(one) = vm.and_then(|vm| vm.histograms.get(&probe.figure)) else {
            continue;
        };
        match &mut all {
            None => all = Some(one.clone()),
            // Made by the same code with the same bounds.
            Some(sum) => drop(sum.add(one)),
        }
    }
    let mut points = Vec::new();
    if let Some(h) = all.filter(|h| !h.is_empty()) {
        let mut sum = 0;
        let total = h.len();
        for step in h.iter_recorded() {
            sum += step.count_at_value();
            points.push((
                step.value_iterated_to() as f64 / 1e3,
                sum as f64 / total as f64,
            ));
        }
    }
    Curve {
        label: label.clone(),
        points,
    }
}
