// SPDX-License-Identifier: GPL-2.0-only
//! The tables of a case that asks for latencies, and of the host's own task.

use super::format::{count, nanos, number};
use super::model::CaseResult;
use super::summary::{GuestSummary, LatencyFigures};
use super::table::{new_table, or_dash, right};
use super::vcpus::VcpuFigures;
use comfy_table::{Cell, Table};

/// What vCPUs waited for, one row per guest at work.
pub(super) fn vcpus(r: &CaseResult) -> Option<Table> {
    let mut header: Vec<String> = ["phase", "guest", "workload", "under"]
        .map(str::to_owned)
        .into();
    header.extend(
        [
            "IPI p50",
            "IPI p99",
            "target waits",
            "IPI to it p50",
            "p99",
            "wake-to-run p50",
            "p99",
            "preempted ms/s",
            "with IPI ms/s",
            "yields/work",
            "spins/work",
        ]
        .map(str::to_owned),
    );
    let mut table = new_table(header);
    for v in &r.summary.vcpu_latency {
        table.add_row(vcpu_row(v));
    }
    (!r.summary.vcpu_latency.is_empty()).then_some(table)
}

fn vcpu_row(v: &VcpuFigures) -> Vec<Cell> {
    let under = if v.solo { "(alone)" } else { &v.scheduler };
    let mut row: Vec<Cell> = [&v.phase, &v.guest, &v.workload].map(Cell::new).into();
    row.push(Cell::new(under));
    let pair = |what: &str| {
        let quantile = |of: fn(&LatencyFigures) -> u64| {
            right(or_dash(v.of(what).map(|l| nanos(of(l) as f64))))
        };
        [quantile(|l| l.p50_ns), quantile(|l| l.p99_ns)]
    };
    row.extend(pair("ipi"));
    let waiting = v.ipis_to_waiting();
    row.push(right(or_dash(
        waiting.map(|s| format!("{:.1} %", s * 100.0)),
    )));
    row.extend(pair("ipi_to_preempted"));
    row.extend(pair("wake_to_run"));
    row.push(right(number(v.preempted_ms_per_s)));
    row.push(right(number(v.waited_ms_per_s)));
    for name in ["yields", "spins"] {
        row.push(right(or_dash(v.per_work.get(name).map(|n| number(*n)))));
    }
    row
}

/// The latency of single operations, as the measured guests saw it; only beside
/// the other latencies: all tables show its 99th percentile anyway.
pub(super) fn operations(r: &CaseResult) -> Option<Table> {
    let header = [
        "phase",
        "guest",
        "one sample",
        "under",
        "count",
        "mean",
        "p50",
        "p90",
        "p99",
        "max",
    ];
    let mut table = new_table(header.map(str::to_owned).into());
    for g in &r.summary.guests {
        operation_rows(&mut table, g, "(alone)", &g.solo_latency);
        for s in &g.schedulers {
            operation_rows(&mut table, g, &s.scheduler, &s.latency);
        }
    }
    r.case.case.latency.then_some(table)
}

fn operation_rows(table: &mut Table, g: &GuestSummary, under: &str, latency: &[LatencyFigures]) {
    for l in latency {
        let mut row: Vec<Cell> = [&g.phase, &g.guest, &l.what].map(Cell::new).into();
        row.push(Cell::new(under));
        row.push(right(count(l.count)));
        row.push(right(nanos(l.mean_ns)));
        row.extend([l.p50_ns, l.p90_ns, l.p99_ns, l.max_ns].map(|ns| right(nanos(ns as f64))));
        table.add_row(row);
    }
}

/// How late the host's own task came, one row per phase and scheduler.
pub(super) fn host_task(r: &CaseResult) -> Option<Table> {
    let header = ["phase", "scheduler", "turns", "p50", "p99", "longest"];
    let mut table = new_table(header.map(str::to_owned).into());
    for s in &r.summary.counters {
        if let Some(l) = &s.host_task {
            let mut row: Vec<Cell> = [&s.phase, &s.scheduler].map(Cell::new).into();
            row.push(right(count(l.count)));
            row.extend([l.p50_ns, l.p99_ns, l.max_ns].map(|ns| right(nanos(ns as f64))));
            table.add_row(row);
        }
    }
    r.case.case.host_task.then_some(table)
}
