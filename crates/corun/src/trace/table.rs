// SPDX-License-Identifier: GPL-2.0-only
//! The tables of `corun trace analyze`.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use corun_events::TimesSummary;
use corun_events::analyze::accounts::Account;
use corun_events::analyze::bursts::Bursts;
use corun_events::analyze::exits::Exits;
use corun_events::analyze::places::Places;
use corun_events::analyze::{Report, VmReport};
use std::fmt::Write as _;

/// Rows of tables by place; the JSON has all.
const PLACES_MAX: usize = 12;

/// The report as text.
pub(super) fn render(report: &Report) -> String {
    let mut text = head(report);
    for vm in &report.vms {
        let _ = writeln!(text, "\nVM {}", vm.name);
        for (title, table) in parts(vm) {
            let _ = write!(text, "\n{title}\n{table}\n");
        }
    }
    text
}

fn head(report: &Report) -> String {
    let mut text = format!(
        "{}: {:.3} s, {} events\n",
        report.title, report.seconds, report.events
    );
    if report.dropped > 0 {
        let all = report.events + report.dropped;
        let percent = report.dropped as f64 / all as f64 * 100.0;
        let _ = writeln!(
            text,
            "{} events are missing ({percent:.1} %): the buffer was full. Counts are too low \
             and times approximate; record again with a larger --buffer.",
            report.dropped
        );
    } else {
        text.push_str("0 events dropped\n");
    }
    for missing in &report.missing {
        let _ = writeln!(text, "not recorded: {missing}");
    }
    text
}

/// Titles and tables of what the recording has of `vm`.
fn parts(vm: &VmReport) -> Vec<(String, Table)> {
    let mut parts = vec![(
        "Where vCPUs' time went, percent".to_owned(),
        accounts(&vm.vcpus),
    )];
    let mut part = |is_there: bool, title: String, table: Table| {
        if is_there {
            parts.push((title, table));
        }
    };
    let transactions = match vm.exits.transactions {
        0 => String::new(),
        n => format!("; {n} transactions"),
    };
    part(
        !vm.exits.by_reason.is_empty(),
        format!("Exits by reason{transactions}"),
        exits(&vm.exits),
    );
    let b = &vm.bursts;
    let lengths = b.by_length;
    part(
        b.spins > 0,
        format!(
            "Spinning: {} exits in {} runs ({:.0} % in runs of several; runs of 1: {}, 2 to 9: {}, \
             10 to 99: {}, 100 and more: {}; longest {}), by function",
            b.spins,
            b.runs,
            b.share_in_runs * 100.0,
            lengths[0],
            lengths[1],
            lengths[2],
            lengths[3],
            b.longest
        ),
        bursts(b),
    );
    let p = &vm.places;
    part(
        !p.by_symbol.is_empty(),
        format!(
            "Where pCPUs were lost; {} directed yields asked, {} granted",
            p.yields_asked, p.yields_granted
        ),
        places(p),
    );
    let locks = vm.locks.iter().map(|(name, times)| (name.clone(), times));
    part(
        !vm.locks.is_empty(),
        "Waits for spinlocks, microseconds".to_owned(),
        times(locks),
    );
    part(
        true,
        "Latencies, microseconds".to_owned(),
        times(latencies(vm).into_iter()),
    );
    parts
}

/// All latencies that were seen.
fn latencies(vm: &VmReport) -> Vec<(String, &TimesSummary)> {
    let w = &vm.wakes;
    let mut rows = vec![
        (
            "TLB shootdown, as told".to_owned(),
            &vm.shootdowns.told.times,
        ),
        (
            "function call to its last receipt".to_owned(),
            &vm.shootdowns.calls.times,
        ),
        (
            "... as its initiator saw it".to_owned(),
            &vm.shootdowns.calls_seen.times,
        ),
        ("IPI sent to taken".to_owned(), &vm.ipis.all),
    ];
    let by_target = vm.ipis.by_target.iter();
    rows.extend(by_target.map(|(state, times)| (format!("... target {state}"), times)));
    let stages = [
        ("sender's exit to IPI", &w.exit_to_send),
        ("IPI to woken", &w.send_to_wake),
        ("woken to pCPU", &w.wake_to_run),
        ("pCPU to guest", &w.run_to_enter),
        ("IPI to guest", &w.send_to_enter),
    ];
    rows.extend(stages.map(|(stage, times)| (format!("wake: {stage}"), times)));
    let woken_for = w.wake_to_enter.iter();
    rows.extend(woken_for.map(|(what, times)| (format!("wake: for {what}, to guest"), times)));
    rows.retain(|(_, times)| times.count > 0);
    rows
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().enumerate().map(|(i, name)| cell(i, name)));
    table
}

/// Names to the left, numbers to the right.
fn cell(column: usize, text: &str) -> Cell {
    let cell = Cell::new(text);
    if column == 0 {
        return cell;
    }
    cell.set_alignment(CellAlignment::Right)
}

fn row(table: &mut Table, cells: &[String]) {
    table.add_row(cells.iter().enumerate().map(|(i, text)| cell(i, text)));
}

fn accounts(vcpus: &[Account]) -> Table {
    let mut t = table(&[
        "vCPU",
        "running",
        "polling",
        "preempted",
        "yielded",
        "woken",
        "halted",
        "unseen",
        "losses",
        "polls won / halts",
        "ready p99 us",
    ]);
    for a in vcpus {
        let wall = a.wall_ns().max(1) as f64;
        let percent = |ns: u64| format!("{:.2}", ns as f64 / wall * 100.0);
        row(
            &mut t,
            &[
                a.vcpu.to_string(),
                percent(a.running_ns),
                percent(a.polling_ns),
                percent(a.preempted_ns),
                percent(a.yielded_ns),
                percent(a.woken_ns),
                percent(a.halted_ns),
                percent(a.unseen_ns),
                a.preemptions.to_string(),
                format!("{}/{}", a.poll_hits, a.halts),
                format!("{:.1}", a.ready.p99_us),
            ],
        );
    }
    t
}

fn exits(exits: &Exits) -> Table {
    let mut t = table(&[
        "reason",
        "count",
        "a second",
        "a transaction",
        "handled, mean us",
    ]);
    let mut reasons: Vec<_> = exits.by_reason.iter().collect();
    reasons.sort_by_key(|(_, r)| std::cmp::Reverse(r.count));
    for (name, r) in reasons {
        let per = r
            .per_transaction
            .map_or_else(|| "-".to_owned(), |n| format!("{n:.2}"));
        row(
            &mut t,
            &[
                name.clone(),
                r.count.to_string(),
                format!("{:.0}", r.per_second),
                per,
                match r.handled.count {
                    0 => "-".to_owned(),
                    _ => format!("{:.1}", r.handled.mean_us),
                },
            ],
        );
    }
    t
}

fn bursts(bursts: &Bursts) -> Table {
    let mut t = table(&["function", "class", "exits", "runs", "spun ms"]);
    for p in bursts.places.iter().take(PLACES_MAX) {
        row(
            &mut t,
            &[
                p.symbol.clone(),
                p.class.name().to_owned(),
                p.spins.to_string(),
                p.runs.to_string(),
                format!("{:.3}", p.lasted_ns as f64 / 1e6),
            ],
        );
    }
    t
}

fn places(places: &Places) -> Table {
    let mut t = table(&[
        "function",
        "class",
        "preempted",
        "gave way",
        "slept",
        "yields asked",
    ]);
    for p in places.by_symbol.iter().take(PLACES_MAX) {
        let c = p.counts;
        row(
            &mut t,
            &[
                p.symbol.clone(),
                p.class.name().to_owned(),
                c.preempted.to_string(),
                c.yielded.to_string(),
                c.blocked.to_string(),
                c.yields_asked.to_string(),
            ],
        );
    }
    t
}

fn times<'a>(rows: impl Iterator<Item = (String, &'a TimesSummary)>) -> Table {
    let mut t = table(&["", "count", "mean", "p50", "p90", "p99", "max"]);
    for (name, s) in rows {
        let figures = [s.mean_us, s.p50_us, s.p90_us, s.p99_us, s.max_us];
        let mut cells = vec![name, s.count.to_string()];
        cells.extend(figures.map(|us| format!("{us:.1}")));
        row(&mut t, &cells);
    }
    t
}
