// SPDX-License-Identifier: GPL-2.0-only
//! The sections of one case's result.

mod counters;
pub(crate) mod distributions;
mod machine;
mod shares;
pub(crate) mod slowdown;

use crate::model::{Block, Cell, Fact, Section, Table};
use crate::outcome::Outcome;

/// All sections that `outcome` has figures for.
pub(crate) fn of(outcome: &Outcome) -> Vec<Section> {
    let sections = [
        slowdown::slowdowns(outcome),
        shares::section(outcome),
        distributions::profiles(outcome),
        distributions::operations(outcome),
        distributions::waits(outcome),
        counters::section(outcome),
        machine::section(outcome),
        configuration(outcome),
    ];
    sections.into_iter().flatten().collect()
}

fn configuration(outcome: &Outcome) -> Option<Section> {
    let mut section = Section::new("configuration", "Schedulers and case", "");
    let schedulers = Table::new("Schedulers", 2, &["scheduler", "as it was run"]);
    let models = Table::new("Workload models", 2, &["model", "SHA-256"]).folded();
    for (mut table, facts) in [(schedulers, &outcome.programs), (models, &outcome.models)] {
        let row = |fact: &Fact| vec![Cell::text(&fact.name), Cell::text(&fact.value)];
        table.rows.extend(facts.iter().map(row));
        if !facts.is_empty() {
            section.blocks.push(Block::Table(table));
        }
    }
    if !outcome.case_text.is_empty() {
        section.blocks.push(Block::Listing {
            title: "The case file".to_owned(),
            text: outcome.case_text.clone(),
        });
    }
    (!section.blocks.is_empty()).then_some(section)
}
