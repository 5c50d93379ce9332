// SPDX-License-Identifier: GPL-2.0-only
//! Counters by phase, a column for each scheduler.

use crate::model::{Block, Cell, Section, Table};
use crate::outcome::{Counters, Outcome};
use corun_lab::results::format::number;

/// All counters that moved.
pub(super) fn section(outcome: &Outcome) -> Option<Section> {
    let text = "Growth a second, over all windows of a phase; counters that stood still are left \
                out.";
    let mut section = Section::new("counters", "Counters", text);
    let mut phases: Vec<&str> = Vec::new();
    for counters in &outcome.counters {
        if !phases.contains(&counters.phase.as_str()) {
            phases.push(&counters.phase);
        }
    }
    for phase in phases {
        let of: Vec<&Counters> = outcome
            .counters
            .iter()
            .filter(|c| c.phase == phase)
            .collect();
        section.blocks.push(Block::Table(table(phase, &of)));
    }
    (!section.blocks.is_empty()).then_some(section)
}

fn table(phase: &str, of: &[&Counters]) -> Table {
    let moved = |(name, value): (&String, &f64)| (*value > 0.0).then(|| name.clone());
    let mut names: Vec<String> = of.iter().flat_map(|c| &c.per_s).filter_map(moved).collect();
    names.sort_unstable();
    names.dedup();
    let mut columns = vec!["counter"];
    columns.extend(of.iter().map(|c| c.scheduler.as_str()));
    let mut table = Table::new(&format!("{phase}: each second"), 1, &columns).folded();
    for name in names {
        let value = |c: &&Counters| Cell::number(c.per_s.get(&name).copied(), number);
        let mut cells = vec![Cell::text(&name)];
        cells.extend(of.iter().map(value));
        table.rows.push(cells);
    }
    table
}
