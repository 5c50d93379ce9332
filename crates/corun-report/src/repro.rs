// SPDX-License-Identifier: GPL-2.0-only
//! Reads a result of `corun sim repro` and shows it.

use crate::latency::round;
use crate::model::{Block, Cell, Chart, Curve, Dots, Fact, Mark, Plot, Section, Table};
use crate::sections::slowdown::chart;
use corun_lab::results::Spread;
use corun_lab::results::format::number;
use serde::Deserialize;
use serde_json::Value;

/// The result.
#[derive(Debug, Deserialize)]
pub(crate) struct Repro {
    seeds: u32,
    summary: Summary,
    pub(crate) tables: Vec<Published>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Score {
    right: u32,
    of: u32,
}

#[derive(Debug, Deserialize)]
struct Summary {
    directions: Score,
    ratios_fit: Score,
    ratios_predicted: Score,
    others_fit: Score,
    others_predicted: Score,
    missing: u32,
}

/// One published table.
#[derive(Debug, Deserialize)]
pub(crate) struct Published {
    pub(crate) id: String,
    title: String,
    source: String,
    says: String,
    fitted: String,
    pub(crate) cells: Vec<Compared>,
    claims: Vec<Claim>,
    charts: Vec<Drawn>,
}

/// One published value beside the simulated one.
#[derive(Debug, Deserialize)]
pub(crate) struct Compared {
    pub(crate) row: String,
    pub(crate) column: String,
    kind: String,
    pub(crate) published_text: String,
    pub(crate) unit: String,
    pub(crate) simulated: Option<Interval>,
    factor: Option<f64>,
    pub(crate) pass: bool,
    problem: Option<String>,
}

/// A mean over seeds and half of its 95 % confidence interval.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Interval {
    pub(crate) mean: f64,
    pub(crate) half: Option<f64>,
    n: usize,
}

impl Interval {
    pub(crate) fn spread(self) -> Spread {
        let half = self.half.unwrap_or(0.0);
        Spread {
            median: self.mean,
            // Nothing that is counted is negative; an interval may reach there.
            min: (self.mean - half).max(0.0),
            max: self.mean + half,
            count: self.n,
        }
    }

    pub(crate) fn text(self) -> String {
        match self.half {
            Some(half) => format!("{} ± {}", number(self.mean), number(half)),
            None => number(self.mean),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Claim {
    text: String,
    left: Option<Interval>,
    right: Option<Interval>,
    seeds_agree: u32,
    pass: bool,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Drawn {
    Bars {
        title: String,
        unit: String,
        series: Vec<String>,
        groups: Vec<Group>,
    },
    Profile {
        title: String,
        parts: Vec<String>,
        bars: Vec<Stacked>,
    },
    Cdf {
        title: String,
        curves: Vec<Points>,
    },
}

#[derive(Debug, Deserialize)]
struct Group {
    label: String,
    bars: Vec<Pair>,
}

#[derive(Debug, Deserialize)]
struct Pair {
    published: Option<f64>,
    simulated: Option<Interval>,
}

#[derive(Debug, Deserialize)]
struct Stacked {
    label: String,
    shares: Vec<f64>,
}

#[derive(Debug, Deserialize)]
struct Points {
    label: String,
    /// Microseconds, share.
    points: Vec<(f64, f64)>,
}

/// Reads `value`, which has been recognised.
pub(crate) fn read(value: &Value) -> Result<Repro, String> {
    Repro::deserialize(value).map_err(|e| e.to_string())
}

impl Repro {
    pub(crate) fn title(&self) -> String {
        format!("Published and simulated: {} tables", self.tables.len())
    }

    pub(crate) fn facts(&self) -> Vec<Fact> {
        let s = &self.summary;
        let score = |name: &str, s: Score| Fact::new(name, format!("{} of {}", s.right, s.of));
        vec![
            Fact::new("seeds of each run", self.seeds.to_string()),
            score("directions right", s.directions),
            score("ratios within tolerance, fit", s.ratios_fit),
            score("ratios within tolerance, predicted", s.ratios_predicted),
            score("others within tolerance, fit", s.others_fit),
            score("others within tolerance, predicted", s.others_predicted),
            Fact::new("tolerance", "a factor of 1.25 (fit) and 1.40 (predicted)"),
        ]
    }

    pub(crate) fn losses(&self) -> Vec<String> {
        vec![format!(
            "{} values could not be simulated; they count as wrong",
            self.summary.missing
        )]
    }

    pub(crate) fn sections(&self) -> Vec<Section> {
        let tables = self.tables.iter().enumerate();
        tables.map(|(i, table)| table.section(i)).collect()
    }
}

impl Published {
    fn section(&self, number: usize) -> Section {
        let text = format!("{} Fitted: {} ({})", self.says, self.fitted, self.source);
        let title = format!("{} ({})", self.title, self.id);
        let mut section = Section::new(&format!("table-{}", number + 1), &title, &text);
        for (i, drawn) in self.charts.iter().enumerate() {
            let id = format!("table-{}-chart-{}", number + 1, i + 1);
            section.blocks.extend(drawn.blocks(&id));
        }
        if !self.cells.is_empty() {
            section.blocks.push(Block::Table(self.values()));
        }
        if !self.claims.is_empty() {
            section.blocks.push(Block::Table(self.directions()));
        }
        section
    }

    fn values(&self) -> Table {
        let columns = [
            "row",
            "column",
            "kind",
            "published",
            "simulated",
            "simulated : published",
        ];
        let mut table = Table::new("Published and simulated values", 3, &columns);
        for cell in &self.cells {
            let simulated = match (&cell.simulated, &cell.problem) {
                (Some(interval), _) => unit(&interval.text(), &cell.unit),
                (None, problem) => problem.clone().unwrap_or_else(|| "–".to_owned()),
            };
            table.rows.push(vec![
                Cell::text(&cell.row),
                Cell::text(&cell.column),
                Cell::text(&cell.kind),
                Cell::text(unit(&cell.published_text, &cell.unit)),
                Cell {
                    text: simulated,
                    value: cell.simulated.map(|i| i.mean),
                    mark: None,
                },
                Cell::number(cell.factor, |f| format!("{f:.2}"))
                    .marked(Some(Mark::passed(cell.pass))),
            ]);
        }
        table
    }

    fn directions(&self) -> Table {
        let columns = [
            "what was published",
            "holds",
            "left",
            "right",
            "seeds that agree",
        ];
        let mut table = Table::new("Directions", 2, &columns);
        for claim in &self.claims {
            let holds = if claim.pass { "yes" } else { "no" };
            let side = |i: Option<Interval>| Cell {
                text: i.map_or_else(|| "–".to_owned(), Interval::text),
                value: i.map(|i| i.mean),
                mark: None,
            };
            table.rows.push(vec![
                Cell::text(&claim.text),
                Cell::text(holds).marked(Some(Mark::passed(claim.pass))),
                side(claim.left),
                side(claim.right),
                Cell::number(Some(f64::from(claim.seeds_agree)), |n| format!("{n:.0}")),
            ]);
        }
        table
    }
}

fn unit(text: &str, unit: &str) -> String {
    format!("{text} {unit}").trim_end().to_owned()
}

impl Drawn {
    fn blocks(&self, id: &str) -> Vec<Block> {
        let block = |title: &String, plot| {
            Block::Chart(Chart {
                id: id.to_owned(),
                title: title.clone(),
                text: String::new(),
                plot,
            })
        };
        match self {
            Self::Bars {
                title,
                unit,
                series,
                groups,
            } => bars(id, title, unit, series, groups),
            Self::Profile { title, parts, bars } => {
                let full = || bars.iter().filter(|b| !b.shares.is_empty());
                vec![block(
                    title,
                    Plot::Stack {
                        rows: full().map(|b| b.label.clone()).collect(),
                        parts: parts.clone(),
                        shares: full()
                            .map(|b| b.shares.iter().copied().map(round).collect())
                            .collect(),
                    },
                )]
            }
            Self::Cdf { title, curves } => cdf(curves)
                .map(|plot| block(title, plot))
                .into_iter()
                .collect(),
        }
    }
}

fn bars(id: &str, title: &str, x_label: &str, series: &[String], groups: &[Group]) -> Vec<Block> {
    let mut rows = Vec::new();
    let (mut published, mut simulated) = (Vec::new(), Vec::new());
    for group in groups {
        for (i, pair) in group.bars.iter().enumerate() {
            let name = series.get(i).filter(|_| series.len() > 1);
            rows.push(
                name.map_or_else(|| group.label.clone(), |n| format!("{} · {n}", group.label)),
            );
            published.push(pair.published.map(|value| Spread {
                median: value,
                min: value,
                max: value,
                count: 1,
            }));
            simulated.push(pair.simulated.map(Interval::spread));
        }
    }
    let mut table = Table::new(title, 1, &["", "published", "simulated"]);
    for (i, row) in rows.iter().enumerate() {
        table.rows.push(vec![
            Cell::text(row),
            Cell::number(published[i].map(|s| s.median), number),
            Cell::spread(simulated[i], |s| {
                format!("{} ± {}", number(s.median), number(s.max - s.median))
            }),
        ]);
    }
    let dots = Dots {
        x_label: x_label.to_owned(),
        log: false,
        references: vec![None; rows.len()],
        rows,
        reference: String::new(),
        series: vec![
            "published".to_owned(),
            "simulated, 95 % interval".to_owned(),
        ],
        values: vec![published, simulated],
    };
    vec![chart(id, title, dots), Block::Table(table.folded())]
}

/// Curves of points on one axis of times.
fn cdf(curves: &[Points]) -> Option<Plot> {
    let full: Vec<&Points> = curves.iter().filter(|c| !c.points.is_empty()).collect();
    let mut at: Vec<f64> = full
        .iter()
        .flat_map(|c| &c.points)
        .map(|(us, _)| (us * 1e3).max(1.0))
        .collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    // No axis has more pixels than this; the last place must stay.
    let keep = at.len().div_ceil(400).max(1);
    let last = at.last().copied()?;
    let mut at: Vec<f64> = at.into_iter().step_by(keep).collect();
    if at.last() != Some(&last) {
        at.push(last);
    }
    let share = |c: &Points, ns: f64| {
        let upto = c.points.partition_point(|(us, _)| us * 1e3 <= ns);
        upto.checked_sub(1).map_or(0.0, |i| c.points[i].1)
    };
    let curve = |c: &&Points| {
        let quantile = |q: f64| {
            let at = c
                .points
                .iter()
                .find(|(_, share)| *share >= q)
                .or(c.points.last());
            at.map_or(0, |(us, _)| whole(us * 1e3))
        };
        let mean = c.points.iter().scan(0.0, |before, (us, share)| {
            let part = (share - *before) * us * 1e3;
            *before = *share;
            Some(part)
        });
        Curve {
            name: c.label.clone(),
            shares: at.iter().map(|ns| round(share(c, *ns))).collect(),
            // Points do not say how many samples they are of.
            count: None,
            mean_ns: mean.sum::<f64>().round(),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            max_ns: quantile(1.0),
        }
    };
    Some(Plot::Cdf {
        curves: full.iter().map(curve).collect(),
        at_ns: at,
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Times, from 0; `as` saturates.
fn whole(ns: f64) -> u64 {
    ns.round() as u64
}
