// SPDX-License-Identifier: GPL-2.0-only
//! The format of `experiments/SEED/TABLE.toml`. `experiments/README.md` explains
//! it with examples.

use super::verdict::{Kind, Target};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A published table or figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableFile {
    /// One line for people.
    pub title: String,
    /// Paper or talk, and the place in it.
    pub source: String,
    /// What it says, in our own words.
    pub says: String,
    /// What was fitted to which of its values; "nothing" if nothing was.
    pub fitted: String,
    /// Assumptions where the source is silent, and its known slips.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The setup: a case file in the same folder.
    #[serde(default = "default_case")]
    pub case: String,
    /// Lists for `{name}` in functions' arguments.
    #[serde(default)]
    pub each: BTreeMap<String, Vec<String>>,
    /// Names for expressions.
    #[serde(default, rename = "let")]
    pub lets: BTreeMap<String, String>,
    /// Changes to the case; the first is what is meant without a name. None:
    /// the case as it is.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
    /// Values.
    #[serde(default, rename = "cell")]
    pub cells: Vec<Cell>,
    /// Directions.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// Figures to draw.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
}

fn default_case() -> String {
    "case.toml".to_owned()
}

/// The case with some keys set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Name in expressions.
    pub name: String,
    /// `key=value`, as `corun sim run --set` takes them.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A published value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Row of the published table.
    pub row: String,
    /// Column of it.
    pub column: String,
    /// The value as it was published.
    pub published: Published,
    /// What the published value is divided by before it is compared, where only
    /// ratios can be: another published value.
    #[serde(default)]
    pub published_base: Option<f64>,
    /// What the published value means.
    #[serde(default)]
    pub form: Form,
    /// Unit of the simulated value.
    #[serde(default)]
    pub unit: String,
    /// Whether anything may be fitted to it.
    pub kind: Kind,
    /// The value is a ratio of two measured values.
    #[serde(default)]
    pub ratio: bool,
    /// The expression that gives it.
    pub value: String,
    /// Row and column of the cell that this one is also judged relative to.
    #[serde(default)]
    pub over: Option<[String; 2]>,
    /// Absolute distance allowed, for values published as about zero.
    #[serde(default)]
    pub within: Option<f64>,
    /// A remark.
    #[serde(default)]
    pub note: String,
}

/// A value as it was published.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Published {
    /// One number.
    Value(f64),
    /// From, to.
    Range([f64; 2]),
}

/// What a published value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// What the expression gives.
    #[default]
    Plain,
    /// Per cent less; the expression gives the ratio (30 % saved: 0.7).
    Saved,
    /// Per cent more; the expression gives the ratio (30 % gained: 1.3).
    Gained,
}

impl Cell {
    /// What the expression's value is compared with.
    pub fn target(&self) -> Target {
        let convert = |value: f64| match self.form {
            Form::Plain => value / self.published_base.unwrap_or(1.0),
            Form::Saved => 1.0 - value / 100.0,
            Form::Gained => 1.0 + value / 100.0,
        };
        let (a, b) = match self.published {
            Published::Value(v) => (convert(v), convert(v)),
            Published::Range([a, b]) => (convert(a), convert(b)),
        };
        Target {
            low: a.min(b),
            high: a.max(b),
        }
    }

    /// The published value as text, in the source's own terms.
    pub fn published_text(&self) -> String {
        let value = match self.published {
            Published::Value(v) => v.to_string(),
            Published::Range([a, b]) => format!("{a} to {b}"),
        };
        match (self.form, self.published_base) {
            (Form::Saved, _) => format!("{value} % less"),
            (Form::Gained, _) => format!("{value} % more"),
            (Form::Plain, Some(base)) => format!("{value} / {base}"),
            (Form::Plain, None) => value,
        }
    }
}

/// A direction: who wins.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim, in our own words.
    pub text: String,
    /// Comparison of two expressions.
    pub holds: String,
    /// Whether it is about runs that parameters may be fitted to.
    #[serde(default = "predicted")]
    pub kind: Kind,
}

fn predicted() -> Kind {
    Kind::Predicted
}

/// A figure to draw.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Figure {
    /// Bars: cells of this table, published beside simulated.
    Cells {
        /// Heading.
        title: String,
        /// Rows; each is a group of bars.
        rows: Vec<String>,
        /// Columns; absent: all that the rows have.
        #[serde(default)]
        columns: Vec<String>,
        /// What the values are.
        unit: String,
        /// Logarithmic axis.
        #[serde(default)]
        log: bool,
    },
    /// Bars: expressions for every word of an `[each]` list.
    Each {
        /// Heading.
        title: String,
        /// The list's name.
        each: String,
        /// The bars of each group.
        series: Vec<Series>,
        /// What the values are.
        unit: String,
        /// Logarithmic axis.
        #[serde(default)]
        log: bool,
    },
    /// Stacked bars: where a guest's own time went.
    Profile {
        /// Heading.
        title: String,
        /// The bars; `of` is `guest.share[run]`.
        bars: Vec<Place>,
    },
    /// Cumulative distributions, logarithmic x.
    Cdf {
        /// Heading.
        title: String,
        /// The curves; `of` is `guest.HISTOGRAM[run]`.
        curves: Vec<Place>,
    },
}

/// One bar of each group.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Name in the legend.
    pub label: String,
    /// Expression with `{name}` in it.
    pub value: String,
    /// Published values, by word.
    #[serde(default)]
    pub published: BTreeMap<String, f64>,
}

/// Where something of a figure comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Name in the figure.
    pub label: String,
    /// `guest.NAME[run]`.
    pub of: String,
}
