// SPDX-License-Identifier: GPL-2.0-only
//! CPU shares by phase, VM and scheduler.

use super::slowdown::chart;
use crate::model::{Block, Cell, Dots, Section, Table};
use crate::outcome::Outcome;
use corun_lab::results::Spread;
use corun_lab::results::format::share;

const TEXT: &str = "What each VM got of the CPU time that all VMs used, and what its weight and \
     vCPUs entitle it to while all want to run.";

/// Phase and VM.
type Key<'a> = (&'a str, &'a str);

/// Shares as dots and as a table; `None` without any.
pub(super) fn section(outcome: &Outcome) -> Option<Section> {
    let keys = keys(outcome);
    let mut section = Section::new("shares", "CPU shares", TEXT);
    let dots = dots(outcome, &keys);
    section
        .blocks
        .push(chart("shares-chart", "CPU shares", dots));
    section.blocks.push(Block::Table(table(outcome, &keys)));
    (!keys.is_empty()).then_some(section)
}

fn keys(outcome: &Outcome) -> Vec<Key<'_>> {
    let mut keys = Vec::new();
    for shares in &outcome.shares {
        for (vm, ..) in &shares.vms {
            let key = (shares.phase.as_str(), vm.as_str());
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    keys
}

/// A VM's share under a scheduler, and what it is entitled to.
fn of(outcome: &Outcome, (phase, vm): Key<'_>, scheduler: &str) -> Option<(Spread, Option<f64>)> {
    let mut shares = outcome.shares.iter();
    let shares = shares.find(|s| s.phase == phase && s.scheduler == scheduler)?;
    let (_, share, ideal) = shares.vms.iter().find(|(name, ..)| name == vm)?;
    Some((*share, *ideal))
}

fn ideal(outcome: &Outcome, key: Key<'_>) -> Option<f64> {
    let mut labels = outcome.schedulers.iter();
    labels.find_map(|label| of(outcome, key, label)?.1)
}

fn table(outcome: &Outcome, keys: &[Key<'_>]) -> Table {
    let mut names = vec!["phase", "VM", "entitled"];
    names.extend(outcome.schedulers.iter().map(String::as_str));
    let title = "Share of all VMs' CPU time, median [smallest..largest]";
    let mut table = Table::new(title, 2, &names);
    for key in keys {
        let mut cells = [key.0, key.1].map(Cell::text).to_vec();
        let percent = |i: f64| format!("{:.1} %", i * 100.0);
        cells.push(Cell::number(ideal(outcome, *key), percent));
        for label in &outcome.schedulers {
            cells.push(Cell::spread(
                of(outcome, *key, label).map(|(s, _)| s),
                share,
            ));
        }
        table.rows.push(cells);
    }
    table
}

fn dots(outcome: &Outcome, keys: &[Key<'_>]) -> Dots {
    let percent = |(s, _): (Spread, Option<f64>)| Spread {
        median: s.median * 100.0,
        min: s.min * 100.0,
        max: s.max * 100.0,
        count: s.count,
    };
    let column = |label: &String| -> Vec<Option<Spread>> {
        let values = keys.iter().map(|key| of(outcome, *key, label));
        values.map(|value| value.map(percent)).collect()
    };
    let references = keys.iter().map(|key| ideal(outcome, *key));
    Dots {
        x_label: "share of all VMs' CPU time, %".to_owned(),
        log: false,
        rows: keys
            .iter()
            .map(|(phase, vm)| format!("{phase} · {vm}"))
            .collect(),
        reference: "entitled by weight".to_owned(),
        references: references.map(|i| i.map(|i| i * 100.0)).collect(),
        series: outcome.schedulers.clone(),
        values: outcome.schedulers.iter().map(column).collect(),
    }
}
