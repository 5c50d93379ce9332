// SPDX-License-Identifier: GPL-2.0-only
//! Two files of a kind side by side: A is before, B is after.

mod outcomes;
mod recordings;
mod repros;

use crate::input::{Content, Input};
use crate::model::{Block, Cell, Fact, Report, SCHEMA_VERSION, Section, Table};

/// Two files that have no figure in common.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// They are of different kinds.
    #[error(
        "a {a} and a {b} have no figures in common; two can be compared that are both recordings, \
         both results of `corun sim repro`, or both results of a case (lab or simulator)"
    )]
    Kinds {
        /// The first one's.
        a: &'static str,
        /// The second one's.
        b: &'static str,
    },
    /// They are of one kind, but nothing of them matches.
    #[error("nothing to compare: {0}")]
    Nothing(String),
}

/// The report of `a` against `b`.
pub fn compare(a: &Input, b: &Input, generator: &str) -> Result<Report, CompareError> {
    let mut sections = match (&a.content, &b.content) {
        (Content::Outcome(a), Content::Outcome(b)) => outcomes::sections(a, b)?,
        (Content::Repro(a), Content::Repro(b)) => repros::sections(a, b)?,
        (Content::Recording(a), Content::Recording(b)) => recordings::sections(a, b)?,
        _ => {
            return Err(CompareError::Kinds {
                a: a.kind.name(),
                b: b.kind.name(),
            });
        }
    };
    let sources = vec![a.source("A"), b.source("B")];
    sections.push(configuration(&sources[0].facts, &sources[1].facts));
    let title = match (&sources[0].title, &sources[1].title) {
        (a, b) if a == b => format!("A and B: {a}"),
        (a, b) => format!("A: {a} / B: {b}"),
    };
    Ok(Report {
        schema_version: SCHEMA_VERSION,
        generator: generator.to_owned(),
        title,
        sources,
        sections,
    })
}

/// What differs in the configuration.
fn configuration(a: &[Fact], b: &[Fact]) -> Section {
    let text = "What is not listed is the same in both.";
    let mut section = Section::new("differences", "Differences of the configuration", text);
    let of = |facts: &[Fact], name: &str| {
        let fact = facts.iter().find(|f| f.name == name);
        fact.map_or_else(|| "–".to_owned(), |f| f.value.clone())
    };
    let mut table = Table::new("Configuration", 3, &["", "A", "B"]);
    let only_b = b
        .iter()
        .filter(|f| a.iter().all(|other| other.name != f.name));
    for name in a.iter().chain(only_b).map(|f| f.name.as_str()) {
        let (in_a, in_b) = (of(a, name), of(b, name));
        if in_a != in_b {
            table
                .rows
                .push([name, &in_a, &in_b].map(Cell::text).to_vec());
        }
    }
    section.blocks.push(if table.rows.is_empty() {
        Block::Note {
            text: "None.".to_owned(),
        }
    } else {
        Block::Table(table)
    });
    section
}
