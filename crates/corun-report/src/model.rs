// SPDX-License-Identifier: GPL-2.0-only
//! The document: what the page shows and the JSON says.

use corun_lab::results::{Spread, Verdict};
use serde::Serialize;

/// Version of the JSON's form. Additions keep it; changes raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// A report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The program and version that made it.
    pub generator: String,
    /// What it is about, one line.
    pub title: String,
    /// The one or two files that it is made from.
    pub sources: Vec<SourceInfo>,
    /// Its parts, in the order of reading.
    pub sections: Vec<Section>,
}

/// A file that a report is made from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceInfo {
    /// "A" or "B" in a comparison; empty otherwise.
    pub label: String,
    /// What kind of file it is, for people.
    pub kind: String,
    /// Its name as it was given.
    pub file: String,
    /// What it is about.
    pub title: String,
    /// The configuration: case, versions, time scale and the like.
    pub facts: Vec<Fact>,
    /// What was lost, dropped, measured again or refused; never empty: nothing
    /// lost is said, too.
    pub losses: Vec<String>,
}

/// A name and a value, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What.
    pub name: String,
    /// How much.
    pub value: String,
}

impl Fact {
    pub(crate) fn new(name: &str, value: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            value: value.into(),
        }
    }
}

/// A part of the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// Anchor: letters, digits and `-`.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What is shown and how to read it; may be empty.
    pub text: String,
    /// What it has.
    pub blocks: Vec<Block>,
}

impl Section {
    pub(crate) fn new(id: &str, title: &str, text: &str) -> Self {
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
            blocks: Vec::new(),
        }
    }
}

/// One thing in a section.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "block", rename_all = "snake_case")]
pub enum Block {
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Chart),
    /// A paragraph.
    Note {
        /// The text.
        text: String,
    },
    /// A file's text.
    Listing {
        /// Heading.
        title: String,
        /// The text.
        text: String,
    },
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Heading.
    pub title: String,
    /// Its columns; the first ones, which are not numeric, name the rows.
    pub columns: Vec<Column>,
    /// As many cells in each as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// Long and seldom read: the page shows it when asked.
    pub folded: bool,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Heading, with the unit if the cells do not have it.
    pub name: String,
    /// Numbers, set to the right.
    pub numeric: bool,
}

/// A cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// What people read.
    pub text: String,
    /// The number behind it, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// What is to be made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
}

/// What is to be made of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Better than what it is compared with, in every repeat.
    Better,
    /// Worse in every repeat.
    Worse,
    /// Within tolerance; true.
    Pass,
    /// Beyond it; false.
    Fail,
}

impl Mark {
    /// Of a comparison; `None` within the spread.
    pub(crate) fn of(verdict: Verdict) -> Option<Self> {
        match verdict {
            Verdict::Better => Some(Self::Better),
            Verdict::Worse => Some(Self::Worse),
            Verdict::Same => None,
        }
    }

    pub(crate) fn passed(pass: bool) -> Self {
        if pass { Self::Pass } else { Self::Fail }
    }
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Of a number that may be missing; `show` makes it text.
    pub(crate) fn number(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        Self {
            text: value.map_or_else(|| "–".to_owned(), show),
            value,
            mark: None,
        }
    }

    /// Of a spread that may be missing: its median is the value.
    pub(crate) fn spread(value: Option<Spread>, show: impl Fn(&Spread) -> String) -> Self {
        Self {
            text: value.as_ref().map_or_else(|| "–".to_owned(), show),
            value: value.map(|s| s.median),
            mark: None,
        }
    }

    pub(crate) fn marked(mut self, mark: Option<Mark>) -> Self {
        self.mark = mark;
        self
    }
}

impl Table {
    /// A table whose first `names` columns are text and the others numbers.
    pub(crate) fn new(title: &str, names: usize, columns: &[&str]) -> Self {
        let column = |(i, name): (usize, &&str)| Column {
            name: (*name).to_owned(),
            numeric: i >= names,
        };
        Self {
            title: title.to_owned(),
            columns: columns.iter().enumerate().map(column).collect(),
            rows: Vec::new(),
            folded: false,
        }
    }

    pub(crate) fn folded(mut self) -> Self {
        self.folded = true;
        self
    }
}

/// A chart. Charts of kind `dots` are followed by their table; the page makes
/// the tables of the others from their data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Anchor, one of a kind in the report.
    pub id: String,
    /// Heading.
    pub title: String,
    /// How to read it.
    pub text: String,
    /// What is drawn.
    #[serde(flatten)]
    pub plot: Plot,
}

/// What a chart draws.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "plot", rename_all = "snake_case")]
pub enum Plot {
    /// Medians with their spread, a line for each row, a colour for each series.
    Dots(Dots),
    /// Stacked shares of a whole, a bar for each row.
    Stack {
        /// Names of the bars.
        rows: Vec<String>,
        /// Names of the parts.
        parts: Vec<String>,
        /// For each bar its parts' shares, 0 to 1.
        shares: Vec<Vec<f64>>,
    },
    /// Cumulative distributions on one axis of times.
    Cdf {
        /// Nanoseconds, rising.
        at_ns: Vec<f64>,
        /// The distributions.
        curves: Vec<Curve>,
    },
    /// Values over time.
    Lines {
        /// What the horizontal axis is, with its unit.
        x_label: String,
        /// What the values are, with their unit.
        y_label: String,
        /// Rising.
        x: Vec<f64>,
        /// The values.
        series: Vec<Series>,
    },
    /// Who did what when.
    Spans {
        /// Names of the lanes.
        lanes: Vec<String>,
        /// Names of the states.
        states: Vec<String>,
        /// First moment that is shown. Nanoseconds since the recording's start.
        from_ns: u64,
        /// Last moment that is shown.
        to_ns: u64,
        /// Lanes are empty where there is none.
        spans: Vec<Span>,
    },
}

/// Medians with their spread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dots {
    /// What the values are, with their unit.
    pub x_label: String,
    /// Logarithmic axis.
    pub log: bool,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// What the reference mark means; empty: there is none.
    pub reference: String,
    /// Value of the reference mark in each row.
    pub references: Vec<Option<f64>>,
    /// Names of the series.
    pub series: Vec<String>,
    /// For each series, a value for each row.
    pub values: Vec<Vec<Option<Spread>>>,
}

/// A distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Name.
    pub name: String,
    /// Share of the samples up to each time of the axis, 0 to 1.
    pub shares: Vec<f64>,
    /// Samples; `None`: the file does not say.
    pub count: Option<u64>,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// Values over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Name.
    pub name: String,
    /// One for each place of the axis.
    pub values: Vec<Option<f64>>,
}

/// An interval of a lane. Nanoseconds since the recording's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Number of the lane.
    pub lane: u32,
    /// Number of the state.
    pub state: u32,
    /// Begin.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
}
