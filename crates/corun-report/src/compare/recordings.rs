// SPDX-License-Identifier: GPL-2.0-only
//! Two recordings, VM by VM.

use super::CompareError;
use crate::model::{Block, Cell, Section, Table};
use crate::recording::{Recording, STATES, TIMES, Tally};
use crate::sections::distributions::{anchor, chart};
use corun_lab::results::format::number;
use std::collections::BTreeSet;

pub(super) fn sections(a: &Recording, b: &Recording) -> Result<Vec<Section>, CompareError> {
    let pairs: Vec<(&Tally, &Tally)> = a
        .vms()
        .iter()
        .filter_map(|vm| Some((vm, b.vms().iter().find(|other| other.name == vm.name)?)))
        .collect();
    if pairs.is_empty() {
        return Err(CompareError::Nothing("no VM's name is in both".to_owned()));
    }
    let sections = [Some(accounts(a, b, &pairs)), distributions(a, b)];
    Ok(sections.into_iter().flatten().collect())
}

fn accounts(a: &Recording, b: &Recording, pairs: &[(&Tally, &Tally)]) -> Section {
    let mut section = Section::new("accounts", "Where vCPUs' time went, A and B", "");
    let mut shares = Table::new("Shares of the vCPUs' time", 2, &["VM", "state", "A", "B"]);
    let mut counts = Table::new("Events each second", 2, &["VM", "event", "A", "B", "B : A"]);
    for (of_a, of_b) in pairs {
        let share = |vm: &Tally, state: usize| {
            let all = vm.states_ns.iter().sum::<u64>().max(1);
            let share = vm.states_ns[state] as f64 / all as f64;
            Cell::number(Some(share), |s| format!("{:.1} %", s * 100.0))
        };
        for (state, name) in STATES.iter().enumerate() {
            let names = [&of_a.name, *name].map(Cell::text);
            shares
                .rows
                .push([&names[..], &[share(of_a, state), share(of_b, state)]].concat());
        }
        let names: BTreeSet<String> = counted(a, of_a).chain(counted(b, of_b)).collect();
        for name in names {
            counts.rows.push(count(&name, (a, of_a), (b, of_b)));
        }
    }
    section.blocks.extend([shares, counts].map(Block::Table));
    section
}

fn counted(of: &Recording, vm: &Tally) -> impl Iterator<Item = String> {
    of.counted([vm]).into_iter().map(|(name, _)| name)
}

/// A row of events each second. The two may number exits differently, so that
/// names are what is compared.
fn count(name: &str, a: (&Recording, &Tally), b: (&Recording, &Tally)) -> Vec<Cell> {
    let per_s = |(of, vm): (&Recording, &Tally)| {
        let keys = of.counted([vm]).into_iter().filter(|(n, _)| n == name);
        let count: u64 = keys.filter_map(|(_, key)| vm.counts.get(&key)).sum();
        count as f64 / (of.length_ns.max(1) as f64 / 1e9)
    };
    let (in_a, in_b) = (per_s(a), per_s(b));
    let ratio = in_b / in_a;
    vec![
        Cell::text(&a.1.name),
        Cell::text(name),
        Cell::number(Some(in_a), number),
        Cell::number(Some(in_b), number),
        Cell::number(ratio.is_finite().then_some(ratio), |r| format!("{r:.2}")),
    ]
}

fn distributions(a: &Recording, b: &Recording) -> Option<Section> {
    let text = "How long it took in A and in B, by VM.";
    let mut section = Section::new("latency", "How long things took, A and B", text);
    for of_a in a.times() {
        let Some(of_b) = b.times().iter().find(|t| t.name == of_a.name) else {
            continue;
        };
        for (what, name) in TIMES.iter().enumerate() {
            let named = [
                ("A".to_owned(), &of_a.histograms[what]),
                ("B".to_owned(), &of_b.histograms[what]),
            ];
            let id = anchor("latency", section.blocks.len());
            let title = format!("{}: {name}", of_a.name);
            section.blocks.extend(chart(&id, &title, &named));
        }
    }
    (!section.blocks.is_empty()).then_some(section)
}
