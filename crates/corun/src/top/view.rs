// SPDX-License-Identifier: GPL-2.0-only
//! What is shown of an interval: its rows, sorted and filtered.

use super::column::Column;
use super::figures::Figures;
use corun_events::account::{Snapshot, Vm};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A VM, or one of its vCPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) vm: u64,
    pub(super) vcpu: Option<u32>,
}

/// A line of the table.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) key: Key,
    pub(super) name: String,
    pub(super) figures: Figures,
}

/// Which VMs are shown, how, in what order.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) sort: Column,
    /// The other way around: the smallest first, names from Z to A.
    pub(super) reversed: bool,
    /// Only VMs whose name contains it.
    pub(super) filter: String,
    /// VMs whose vCPUs are shown.
    pub(super) expanded: BTreeSet<u64>,
    /// ... those of all.
    pub(super) all_expanded: bool,
}

impl Choice {
    pub(super) fn new(sort: Column, filter: &str, all_expanded: bool) -> Self {
        Self {
            sort,
            reversed: false,
            filter: filter.to_owned(),
            expanded: BTreeSet::new(),
            all_expanded,
        }
    }

    /// Whether the vCPUs of VM `id` are shown.
    pub(super) fn shows_vcpus(&self, id: u64) -> bool {
        self.all_expanded != self.expanded.contains(&id)
    }

    /// The rows of `interval`.
    pub(super) fn rows(&self, interval: &Snapshot) -> Vec<Row> {
        let seconds = interval.length_ns as f64 / 1e9;
        let wanted = interval
            .vms
            .iter()
            .filter(|vm| vm.name.contains(&self.filter));
        let mut vms: Vec<(Row, &Vm)> = wanted.map(|vm| (self.vm_row(vm, seconds), vm)).collect();
        vms.sort_by(|a, b| self.compare(&a.0, &b.0));
        let mut rows = Vec::new();
        for (row, vm) in vms {
            rows.push(row);
            if self.shows_vcpus(vm.id) {
                rows.extend(self.vcpu_rows(vm, seconds));
            }
        }
        rows
    }

    fn vm_row(&self, vm: &Vm, seconds: f64) -> Row {
        let mark = if self.shows_vcpus(vm.id) { '-' } else { '+' };
        Row {
            key: Key {
                vm: vm.id,
                vcpu: None,
            },
            name: format!("{mark}{} ({})", vm.name, vm.vcpus.len()),
            figures: Figures::new(vm.total(), seconds),
        }
    }

    fn vcpu_rows(&self, vm: &Vm, seconds: f64) -> Vec<Row> {
        let mut rows: Vec<Row> = vm
            .vcpus
            .iter()
            .map(|v| Row {
                key: Key {
                    vm: vm.id,
                    vcpu: Some(v.vcpu),
                },
                name: format!("   vCPU {}", v.vcpu),
                figures: Figures::new(v.account.clone(), seconds),
            })
            .collect();
        rows.sort_by(|a, b| self.compare(a, b));
        rows
    }

    /// Equal ones are in the order in which they were found.
    fn compare(&self, a: &Row, b: &Row) -> Ordering {
        let order = match self.sort {
            // Without the mark in front.
            Column::Name if a.key.vcpu.is_none() => a.name[1..].cmp(&b.name[1..]),
            Column::Name => a.key.cmp(&b.key),
            sort => sort.order(&b.figures).total_cmp(&sort.order(&a.figures)),
        };
        let order = if self.reversed {
            order.reverse()
        } else {
            order
        };
        order.then_with(|| a.key.cmp(&b.key))
    }
}

/// The name's text cut to `width` characters.
pub(super) fn cut(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_owned();
    }
    let mut short: String = name.chars().take(width.saturating_sub(1)).collect();
    short.push('~');
    short
}

/// One line of the table: `row`, or the headings. `width` characters at most where the
/// columns fit.
pub(super) fn line(columns: &[Column], row: Option<&Row>, width: usize) -> String {
    let used: usize = columns.iter().map(|c| c.width() + 1).sum();
    let spare = (width + 1).saturating_sub(used).min(24);
    let cells = columns.iter().map(|column| {
        let width = column.width() + if *column == Column::Name { spare } else { 0 };
        let text = match row {
            None => column.title().to_owned(),
            Some(row) if *column == Column::Name => cut(&row.name, width),
            Some(row) => column.cell(&row.figures),
        };
        if column.is_text() {
            format!("{text:<width$}")
        } else {
            format!("{text:>width$}")
        }
    });
    cells.collect::<Vec<_>>().join(" ")
}
