// SPDX-License-Identifier: GPL-2.0-only
//! `corun sim repro`.

use super::input::load_models;
use super::progress::Progress;
use anyhow::{Context, Result};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use corun_sim::repro::html::{self, number};
use corun_sim::repro::{
    CellReport, ClaimReport, Interval, Library, Plan, Report, Score, Summary, Table as Published,
    TableReport,
};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Re-create published experiments, compare with what was published
///
/// Runs what the tables in `experiments/` need, and shows published and
/// simulated values side by side. A value passes within a factor of 1.25 where
/// parameters were fitted to it (fit), within 1.40 where nothing was
/// (predicted). Says which directions, that is, who wins, are right. A figure
/// that was not counted fails.
///
/// Examples:
///
///   corun sim repro
///   corun sim repro 000 --html shoot4u.html
///   corun sim repro shoot4u/table-1 --seeds 10
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Experiments, for example 000, shoot4u or 000/table-1 [default: all]
    #[arg(value_name = "SEED[/TABLE]")]
    wanted: Vec<String>,
    /// Runs of every scenario, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// Print the report as JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Write the report as JSON into this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the report as an HTML page with figures into this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Read the experiments of this folder instead of corun's own
    #[arg(long, value_name = "DIR")]
    experiments: Option<PathBuf>,
    /// Also use the workload models of this folder; they go before shipped ones
    #[arg(long, value_name = "DIR")]
    models: Option<PathBuf>,
    /// Threads [default: all that this machine has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// List the experiments and run nothing
    #[arg(long)]
    list: bool,
    /// Exit with 2 if a direction is wrong, or fewer than nine of ten ratio cells pass
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &Args, stop: &Arc<AtomicBool>) -> Result<ExitCode> {
    let models = load_models(args.models.as_ref())?;
    let library = match &args.experiments {
        Some(folder) => Library::from_folder(folder)?,
        None => Library::embedded(),
    };
    let names = library.select(&args.wanted)?;
    let read = |name: &String| library.table(name, &models);
    let tables = names.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if args.list {
        list(&tables);
        return Ok(ExitCode::SUCCESS);
    }
    let plan = Plan::new(&tables, args.seeds, &models)?;
    eprintln!(
        "{} tables, {} runs ({} with those that are the same)",
        tables.len(),
        plan.jobs.len(),
        plan.wanted
    );
    let threads = args
        .threads
        .map_or_else(corun_sim::batch::threads, usize::from);
    let progress = Progress::new(plan.jobs.len(), stop, "stopped");
    let results = plan.run(&models, threads, &|done| progress.set(done), stop);
    drop(progress);
    let report = Report::new(&tables, &results?);
    let json = serde_json::to_string_pretty(&report)?;
    if let Some(out) = &args.out {
        std::fs::write(out, &json).with_context(|| format!("writing {}", out.display()))?;
    }
    if let Some(file) = &args.html {
        let page = html::page(&report);
        std::fs::write(file, page).with_context(|| format!("writing {}", file.display()))?;
    }
    if args.json {
        println!("{json}");
    } else {
        print(&report);
    }
    if args.strict && !report.summary.reached() {
        return Ok(ExitCode::from(2));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(tables: &[Published]) {
    let width = tables.iter().map(|t| t.id.len()).max().unwrap_or(0);
    for table in tables {
        let (cells, claims) = (table.checks.len(), table.claims.len());
        println!(
            "{:<width$}  {} ({cells} values, {claims} directions)",
            table.id, table.file.title
        );
    }
}

fn print(report: &Report) {
    for table in &report.tables {
        println!("\n{}: {}\n{}", table.id, table.title, table.source);
        if !table.cells.is_empty() {
            println!("{}", cells(table));
        }
        for claim in &table.claims {
            println!("  {}", direction(claim));
        }
        println!("  {}", line(&table.summary));
    }
    println!(
        "\nAll, {} seeds a run: {}",
        report.seeds,
        line(&report.summary)
    );
}

fn line(s: &Summary) -> String {
    let score = |s: Score| format!("{}/{}", s.right, s.of);
    let mut text = format!(
        "directions {}; ratio cells {} (fit {}, predicted {}); other cells {} (fit {}, predicted {})",
        score(s.directions),
        score(s.ratios()),
        score(s.ratios_fit),
        score(s.ratios_predicted),
        score(s.others_fit.plus(s.others_predicted)),
        score(s.others_fit),
        score(s.others_predicted),
    );
    if s.missing > 0 {
        let _ = write!(text, "; {} without a simulated value", s.missing);
    }
    text
}

fn cells(report: &TableReport) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header([
            "row",
            "column",
            "kind",
            "published",
            "simulated",
            "factor",
            "verdict",
        ]);
    for cell in &report.cells {
        table.add_row(row(cell));
    }
    table
}

fn row(c: &CellReport) -> Vec<Cell> {
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let name = match &c.over {
        Some(over) => format!("{} by {over}", c.row),
        None => c.row.clone(),
    };
    let kind = c.kind.name();
    let kind = if c.ratio {
        format!("{kind} ratio")
    } else {
        kind.to_owned()
    };
    let (low, high) = (c.published.low, c.published.high);
    let published = if high > low {
        format!("{} to {}", number(low), number(high))
    } else {
        number(low)
    };
    let simulated = c.simulated.as_ref().map(interval);
    let verdict = match &c.problem {
        Some(problem) => format!("FAIL: {problem}"),
        None if c.pass => "pass".to_owned(),
        None => "FAIL".to_owned(),
    };
    vec![
        Cell::new(name),
        Cell::new(&c.column),
        Cell::new(kind),
        right(format!("{published} {}", c.unit).trim_end().to_owned()),
        right(simulated.unwrap_or_else(|| "-".to_owned())),
        right(
            c.factor
                .map_or_else(|| "-".to_owned(), |f| format!("{f:.2}")),
        ),
        Cell::new(verdict),
    ]
}

fn interval(i: &Interval) -> String {
    match i.half {
        Some(half) if half > 0.0 => format!("{} ± {}", number(i.mean), number(half)),
        _ => number(i.mean),
    }
}

fn direction(c: &ClaimReport) -> String {
    let verdict = if c.pass { "right" } else { "WRONG" };
    let why = match (&c.left, &c.right, &c.problem) {
        (_, _, Some(problem)) => problem.clone(),
        (Some(left), Some(right), None) => format!(
            "{} against {}; {} of {} seeds",
            interval(left),
            interval(right),
            c.seeds_agree,
            left.n
        ),
        _ => "nothing was counted".to_owned(),
    };
    format!("{verdict}: {} ({why})", c.text)
}
