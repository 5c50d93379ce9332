// SPDX-License-Identifier: GPL-2.0-only
//! The tables that people read.

use super::format::{count, nanos, number, share, slowdown};
use super::latency_tables;
use super::model::{CaseResult, SchedulerInfo};
use super::summary::{CounterSums, GuestSummary, LatencyFigures, SchedulerFigures};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The whole report of `result` as text, for a terminal or a log.
pub fn render(result: &CaseResult) -> String {
    let mut text = header(result);
    let mut part = |title: &str, table: Option<Table>| {
        if let Some(table) = table {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n{title}\n{table}\n");
        }
    };
    part(
        "Throughput: slowdown against running alone, median [min..max] over repeats; p99 of all repeats merged",
        Some(throughput(result)),
    );
    part(
        "Directed yields (KVM's yield_to) and their fate, summed over co-run windows",
        yields(result),
    );
    part(
        "Host CPU time of each VM in co-run windows, as a share of all VMs, median [min..max]",
        shares(result),
    );
    part(
        "A small task of the host's own beside the guests: its timer's end to its work's end",
        latency_tables::host_task(result),
    );
    part(
        "What vCPUs waited for, on the host's clock; time preempted is of all vCPUs together",
        latency_tables::vcpus(result),
    );
    part(
        "Latency of single operations, on the guest's clock",
        latency_tables::operations(result),
    );
    text
}

fn header(r: &CaseResult) -> String {
    let case = &r.case.case;
    let mut text = format!("Case {}: {}\n", case.name, case.title);
    let mut line = |s: String| {
        text.push_str("  ");
        text.push_str(&s);
        text.push('\n');
    };
    if let Some(h) = &r.host {
        line(format!(
            "host: kernel {}, {} pCPUs, accel {}",
            h.kernel, h.pcpus, r.accel
        ));
    }
    for g in &r.case.guests {
        line(format!(
            "guest {}: {} vCPUs, weight {}, kernel {}",
            g.name, g.vcpus, g.weight, g.kernel
        ));
    }
    for s in r.schedulers.iter().filter(|s| s.program != "kernel") {
        line(scheduler(s));
    }
    if let Some(c) = &r.calibration {
        line(format!(
            "time scale {} (auto would be {}): slice {} for the kernel's scheduler and corun; exit {}, vCPU switch {}",
            number(c.factor),
            number(c.auto_factor),
            nanos(c.slice_ns as f64),
            nanos(c.exit_ns),
            nanos(c.switch_ns),
        ));
    }
    line(match &r.gate {
        Some(g) => format!(
            "sanity gate passed: CPU-only slowdown {:.3} (2.0 +- {} %), solo used {:.2} pCPUs",
            g.slowdown,
            number(r.case.gate.tolerance * 100.0),
            g.solo_pcpus
        ),
        None => "sanity gate off: absolute figures prove nothing".to_owned(),
    });
    line(format!(
        "{} repeats of {} s; boots: {} started, {} lost to emulator faults, {} rejected by the gate",
        case.repeats,
        number(case.measure_s),
        r.boots.started,
        r.boots.emulator_faults.len(),
        r.boots.gate_rejected.len()
    ));
    line(noise(r));
    for w in &r.warnings {
        line(format!("warning: {w}"));
    }
    text
}

fn scheduler(s: &SchedulerInfo) -> String {
    let mut text = format!("scheduler {}: {}", s.label, s.program);
    for argument in &s.arguments {
        text.push(' ');
        text.push_str(argument);
    }
    if !s.not_scaled.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(text, "; built in, not scaled: {}", s.not_scaled);
    }
    text
}

fn noise(r: &CaseResult) -> String {
    let accepted = || r.windows.iter().filter(|w| w.accepted);
    let worst =
        |of: fn(&super::MachineWindow) -> f64| accepted().map(of).fold(0.0, f64::max) * 100.0;
    format!(
        "this machine: steal at most {:.1} %, other programs at most {:.1} % of a kept window; \
         {} of {} windows refused, {} kept although disturbed",
        worst(|w| w.disturbance.steal),
        worst(|w| w.disturbance.foreign),
        r.windows.iter().filter(|w| !w.accepted).count(),
        r.windows.len(),
        r.samples.iter().filter(|s| s.disturbed).count()
    )
}

pub(super) fn new_table(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table
}

pub(super) fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn throughput(r: &CaseResult) -> Table {
    let labels: Vec<&str> = r.case.schedulers.iter().map(|s| s.label.as_str()).collect();
    let mut header: Vec<String> = ["phase", "guest", "workload", "solo/s"]
        .map(str::to_owned)
        .into();
    header.extend(labels.iter().map(|l| format!("{l} slowdown")));
    header.push("ideal".to_owned());
    header.push("solo p99".to_owned());
    header.extend(labels.iter().map(|l| format!("{l} p99")));
    let mut table = new_table(header);
    for g in &r.summary.guests {
        table.add_row(throughput_row(g));
    }
    table
}

fn throughput_row(g: &GuestSummary) -> Vec<Cell> {
    let mut row: Vec<Cell> = [&g.phase, &g.guest, &g.workload].map(Cell::new).into();
    row.push(right(or_dash(
        g.solo.map(|s| format!("{} {}", number(s.median), g.unit)),
    )));
    row.extend(g.schedulers.iter().map(|s| right(slowdown_or_rate(g, s))));
    row.push(right(or_dash(g.ideal_slowdown.map(|i| format!("{i:.2}x")))));
    row.push(right(p99(&g.solo_latency)));
    row.extend(g.schedulers.iter().map(|s| right(p99(&s.latency))));
    row
}

/// Without a solo run there is no slowdown: the rate itself, then.
fn slowdown_or_rate(g: &GuestSummary, s: &SchedulerFigures) -> String {
    match (&s.slowdown, &s.rate) {
        (Some(s), _) => slowdown(s),
        (None, Some(r)) => format!(
            "{} [{}..{}] {}/s",
            number(r.median),
            number(r.min),
            number(r.max),
            g.unit
        ),
        (None, None) => "-".to_owned(),
    }
}

fn p99(latency: &[LatencyFigures]) -> String {
    or_dash(latency.first().map(|l| nanos(l.p99_ns as f64)))
}

/// Prefix of the yields' counters.
const YIELD: &str = "yield.";

fn yields(r: &CaseResult) -> Option<Table> {
    let sums = &r.summary.counters;
    // The driver's order is alphabetical and so puts "asked" and "honoured"
    // before "refused_...", which is the order to read them in.
    let names: BTreeSet<&str> = sums
        .iter()
        .flat_map(|s| s.counters.keys())
        .filter_map(|n| n.strip_prefix(YIELD))
        .collect();
    if names.is_empty() {
        return None;
    }
    let mut header: Vec<String> = ["phase", "scheduler"].map(str::to_owned).into();
    header.extend(
        names
            .iter()
            .map(|n| n.replacen("refused_", "refused: ", 1).replace('_', " ")),
    );
    header.push("honoured".to_owned() + " %");
    let mut table = new_table(header);
    for s in sums {
        let get = |name: &str| {
            s.counters
                .get(&format!("{YIELD}{name}"))
                .copied()
                .unwrap_or(0)
        };
        let mut row: Vec<Cell> = [&s.phase, &s.scheduler].map(Cell::new).into();
        row.extend(names.iter().map(|n| right(count(get(n)))));
        row.push(right(percent(get("honoured"), get("asked"))));
        table.add_row(row);
    }
    Some(table)
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1}", part as f64 / whole as f64 * 100.0)
}

fn shares(r: &CaseResult) -> Option<Table> {
    let guests: Vec<&str> = r.case.guests.iter().map(|g| g.name.as_str()).collect();
    let mut header: Vec<String> = ["phase", "scheduler"].map(str::to_owned).into();
    for g in &guests {
        let of_fair = format!("{g} of its fair share");
        header.extend([(*g).to_owned(), format!("{g} entitled to"), of_fair]);
    }
    header.push("busy pCPUs".to_owned());
    let mut table = new_table(header);
    for s in &r.summary.counters {
        table.add_row(share_row(s, &guests));
    }
    (!r.summary.counters.is_empty()).then_some(table)
}

fn share_row(s: &CounterSums, guests: &[&str]) -> Vec<Cell> {
    let mut row: Vec<Cell> = [&s.phase, &s.scheduler].map(Cell::new).into();
    for g in guests {
        row.push(right(or_dash(s.cpu_share.get(*g).map(share))));
        let ideal = s.ideal_cpu_share.get(*g);
        row.push(right(or_dash(ideal.map(|i| format!("{:.1} %", i * 100.0)))));
        row.push(right(or_dash(s.fair_use.get(*g).map(share))));
    }
    row.push(right(or_dash(
        s.busy_pcpus.map(|b| format!("{:.2}", b.median)),
    )));
    row
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
