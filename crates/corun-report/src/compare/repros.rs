// SPDX-License-Identifier: GPL-2.0-only
//! Two results of `corun sim repro`.

use super::CompareError;
use crate::model::{Block, Cell, Section, Table};
use crate::repro::{Interval, Repro};

pub(super) fn sections(a: &Repro, b: &Repro) -> Result<Vec<Section>, CompareError> {
    let mut sections = Vec::new();
    for (i, table) in a.tables.iter().enumerate() {
        let Some(other) = b.tables.iter().find(|t| t.id == table.id) else {
            continue;
        };
        let columns = ["row", "column", "published", "A", "B", "B : A", "passes"];
        let mut values = Table::new("Published and simulated values", 3, &columns);
        for cell in &table.cells {
            let same = other
                .cells
                .iter()
                .find(|c| c.row == cell.row && c.column == cell.column);
            let Some(same) = same else { continue };
            let show = |i: Option<Interval>| Cell {
                text: i.map_or_else(|| "–".to_owned(), Interval::text),
                value: i.map(|i| i.mean),
                mark: None,
            };
            let ratio = same
                .simulated
                .zip(cell.simulated)
                .map(|(b, a)| b.mean / a.mean);
            values.rows.push(vec![
                Cell::text(&cell.row),
                Cell::text(&cell.column),
                Cell::text(format!("{} {}", cell.published_text, cell.unit)),
                show(cell.simulated),
                show(same.simulated),
                Cell::number(ratio.filter(|r| r.is_finite()), |r| format!("{r:.2}")),
                Cell::text(passes(cell.pass, same.pass)),
            ]);
        }
        if !values.rows.is_empty() {
            let mut section = Section::new(&format!("table-{}", i + 1), &table.id, "");
            section.blocks.push(Block::Table(values));
            sections.push(section);
        }
    }
    if sections.is_empty() {
        return Err(CompareError::Nothing("no table is in both".to_owned()));
    }
    Ok(sections)
}

fn passes(a: bool, b: bool) -> &'static str {
    match (a, b) {
        (true, true) => "both",
        (true, false) => "A alone",
        (false, true) => "B alone",
        (false, false) => "none",
    }
}
