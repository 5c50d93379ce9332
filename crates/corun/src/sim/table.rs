// SPDX-License-Identifier: GPL-2.0-only
//! The tables of `corun sim run`.

use super::result::SimResult;
use super::summary::{Figures, GuestSummary, PROFILE};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use corun_lab::results::Spread;
use corun_lab::results::format::{count, nanos, number, share, slowdown};
use std::fmt::Write as _;

/// Distributions that `--latency` shows.
const LATENCIES: [(&str, &str); 4] = [
    ("tlb", "TLB shootdown"),
    ("ipi", "IPI until received"),
    ("ready", "vCPU ready until it runs"),
    ("wake", "thread woken until it runs"),
];

/// The report of `result` as text.
pub(crate) fn render(result: &SimResult, profile: bool, latency: bool) -> String {
    let mut text = header(result);
    // Writing to a String cannot fail.
    let mut part = |title: &str, table: Table| {
        let _ = write!(text, "\n{title}\n{table}\n");
    };
    part(
        "Rates a second, and slowdown against running alone: median [min..max] over seeds",
        rates(&result.summary),
    );
    if profile {
        part(
            "Guests' own time by kind, percent: median over seeds",
            profiles(&result.summary),
        );
    }
    if latency {
        part("Latencies, all seeds merged", latencies(&result.summary));
    }
    text
}

fn header(r: &SimResult) -> String {
    let case = &r.case.case;
    let seed = r.case.sim.seed;
    let mut text = format!(
        "Case {}: {}\n  simulated: {} pCPUs, {} seeds from {seed}, {} s each after {} s\n",
        case.name,
        case.title,
        r.case.host.pcpus,
        case.repeats,
        number(case.measure_s),
        number(case.warmup_s),
    );
    for g in &r.case.guests {
        let _ = writeln!(
            text,
            "  guest {}: {} vCPUs, weight {}",
            g.name, g.vcpus, g.weight
        );
    }
    if let Some(machine) = &r.machine {
        let factor = case.time_scale;
        let _ = writeln!(text, "  machine {machine}, time scale {factor}");
    }
    for set in r.set.iter().skip(r.by_machine) {
        let _ = writeln!(text, "  set {set}");
    }
    text
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().map(|h| (*h).to_owned()));
    table
}

fn right(text: Option<String>) -> Cell {
    Cell::new(text.unwrap_or_else(|| "-".to_owned())).set_alignment(CellAlignment::Right)
}

fn spread(s: &Spread) -> String {
    if s.count == 1 {
        return number(s.median);
    }
    let [median, min, max] = [s.median, s.min, s.max].map(number);
    format!("{median} [{min}..{max}]")
}

fn rates(guests: &[GuestSummary]) -> Table {
    let mut table = table(&[
        "phase",
        "guest",
        "workload",
        "scheduler",
        "solo/s",
        "co-run/s",
        "slowdown",
        "ideal",
        "CPU share",
        "entitled to",
    ]);
    for g in guests {
        let solo = g.solo.as_ref().and_then(|s| s.rate);
        for s in &g.schedulers {
            table.add_row(vec![
                Cell::new(&g.phase),
                Cell::new(&g.guest),
                Cell::new(&g.workload),
                Cell::new(&s.scheduler),
                right(solo.as_ref().map(spread)),
                right(s.figures.rate.as_ref().map(spread)),
                right(s.slowdown.as_ref().map(slowdown)),
                right(g.ideal_slowdown.map(|i| format!("{i:.2}x"))),
                right(s.cpu_share.as_ref().map(share)),
                right(g.ideal_cpu_share.map(|i| format!("{:.1} %", i * 100.0))),
            ]);
        }
    }
    table
}

/// Each guest alone and under each scheduler, by name.
fn columns(g: &GuestSummary) -> impl Iterator<Item = (&str, &Figures)> {
    let solo = g.solo.iter().map(|figures| ("(solo)", figures));
    let schedulers = g.schedulers.iter();
    solo.chain(schedulers.map(|s| (s.scheduler.as_str(), &s.figures)))
}

fn profiles(guests: &[GuestSummary]) -> Table {
    let mut header = vec!["phase", "guest", "scheduler"];
    header.extend(PROFILE);
    let mut table = table(&header);
    for g in guests {
        for (scheduler, figures) in columns(g) {
            let mut row: Vec<Cell> = [&g.phase, &g.guest, scheduler].map(Cell::new).into();
            let percent = |s: &Spread| format!("{:.1}", s.median * 100.0);
            row.extend(PROFILE.map(|account| right(figures.profile.get(account).map(percent))));
            table.add_row(row);
        }
    }
    table
}

fn latencies(guests: &[GuestSummary]) -> Table {
    let mut table = table(&[
        "phase",
        "guest",
        "scheduler",
        "latency",
        "count",
        "mean",
        "p50",
        "p99",
    ]);
    for g in guests {
        for (scheduler, figures) in columns(g) {
            for (name, title) in LATENCIES {
                let Some(l) = figures.latency.get(name) else {
                    continue;
                };
                let mut row: Vec<Cell> =
                    [&g.phase, &g.guest, scheduler, title].map(Cell::new).into();
                row.push(right(Some(count(l.count))));
                let times = [l.mean_ns, l.p50_ns as f64, l.p99_ns as f64];
                row.extend(times.map(|ns| right(Some(nanos(ns)))));
                table.add_row(row);
            }
        }
    }
    table
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
