// SPDX-License-Identifier: GPL-2.0-only
//! `corun top --batch`, `--json`.

use super::column::Column;
use super::render;
use super::view::{self, Choice};
use super::{Args, Intervals, wait};
use anyhow::{Context, Result};
use corun_events::account::Snapshot;
use corun_host::HookCost;
use corun_host::accounts::Accounts;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Characters of a table's line.
const WIDTH: usize = 150;

pub(super) fn run(args: &Args, accounts: &mut Accounts, stop: &AtomicBool) -> Result<()> {
    let choice = Choice::new(args.sort, &args.filter, args.vcpus);
    let mut intervals = Intervals::begin(accounts)?;
    let mut deadline = Instant::now();
    let mut done = 0;
    while args.iterations.is_none_or(|n| done < n) {
        deadline += args.interval;
        if !wait(deadline, stop) {
            break;
        }
        let interval = intervals.next(accounts)?;
        let text = if args.json {
            json(interval, &args.filter)?
        } else {
            table(&interval, &choice)
        };
        print(&text)?;
        done += 1;
    }
    if args.hook_costs {
        print(&costs(&accounts.costs(), args.json)?)?;
    }
    Ok(())
}

fn json(mut interval: Snapshot, filter: &str) -> Result<String> {
    interval.vms.retain(|vm| vm.name.contains(filter));
    let mut line = serde_json::to_string(&interval).context("writing JSON")?;
    line.push('\n');
    Ok(line)
}

/// The interval as text: the head, then the table.
pub(super) fn table(interval: &Snapshot, choice: &Choice) -> String {
    let mut text = String::new();
    for line in render::head(interval) {
        text.push_str(&line);
        text.push('\n');
    }
    let columns = Column::fitting(WIDTH);
    let rows = choice.rows(interval);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", view::line(&columns, None, WIDTH));
    for row in &rows {
        let _ = writeln!(text, "{}", view::line(&columns, Some(row), WIDTH));
    }
    if rows.is_empty() {
        let _ = writeln!(text, "{}", render::nothing(interval, choice));
    }
    text.push('\n');
    text
}

fn costs(costs: &[HookCost], json: bool) -> Result<String> {
    if json {
        let value = serde_json::json!({ "hook_costs": costs });
        return Ok(format!("{value}\n"));
    }
    let mut text = String::from("program           verified    insns        runs   ns a run\n");
    for c in costs {
        writeln!(
            text,
            "{:<16} {:>9} {:>8} {:>11} {:>10}",
            c.name,
            c.verified_insns,
            c.insns,
            c.runs,
            c.mean_ns()
        )?;
    }
    Ok(text)
}

fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("writing to standard output")
}
