// SPDX-License-Identifier: GPL-2.0-only
//! The shipped experiments, and a small one made by hand.

use super::format::TableFile;
use super::plan::{Plan, Results};
use super::{Kind, Library, Report, Table};
use crate::batch::{Job, Models};
use crate::outcome::ACCOUNTS;
use crate::{Outcome, VmOutcome};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const CASE: &str = r#"
[case]
name = "small"
measure_s = 1.0
[[scheduler]]
label = "cfs"
kind = "cfs"
[[guest]]
name = "a"
[[guest]]
name = "b"
[[phase]]
name = "busy"
measure = ["a"]
run = { a = { workload = "cpu" }, b = { workload = "cpu" } }
[gate]
enabled = false
"#;

const TABLE: &str = r#"
title = "small"
source = "nowhere"
says = "<nothing> & more"
fitted = "nothing"
cell = [
    { row = "solo", column = "rate", published = 100, kind = "fit", value = "a.rate[busy solo]" },
    { row = "co-run", column = "rate", published = 50, kind = "predicted", value = "a.rate[busy]", over = ["solo", "rate"] },
    { row = "co-run", column = "tlb", published = 3, unit = "us", kind = "predicted", value = "a.tlb.mean_us[busy]" },
    { row = "weight", column = "saved", published = 50, form = "saved", kind = "predicted", ratio = true, value = "a.rate[busy] / a.rate[busy heavy]" },
]
claim = [
    { text = "alone is faster", holds = "a.rate[busy solo] > a.rate[busy]" },
    { text = "together is faster", holds = "a.rate[busy solo] < a.rate[busy]" },
]
[[variant]]
name = "equal"
[[variant]]
name = "heavy"
set = ["guest[1].weight=300"]
[[figure]]
kind = "cells"
title = "rates"
rows = ["solo", "co-run"]
columns = ["rate"]
unit = "units"
[[figure]]
kind = "cdf"
title = "latency"
curves = [{ label = "co-run", of = "a.tlb[busy]" }]
"#;

fn small(table: &str) -> Result<Table, String> {
    let models = Models::shipped().expect("shipped models are good");
    let file: TableFile = toml::from_str(table).map_err(|e| e.to_string())?;
    Table::new(
        "900-test/small",
        file,
        CASE,
        Path::new("case.toml"),
        &models,
    )
}

/// An outcome with this many units in one second.
fn outcome(units: u64) -> Outcome {
    let vm = VmOutcome {
        name: "a".to_owned(),
        units: vec![units],
        accounts: [0; ACCOUNTS],
        histograms: BTreeMap::new(),
        counters: BTreeMap::new(),
    };
    Outcome {
        measured_ns: 1_000_000_000,
        events: 0,
        trace_hash: 0,
        pcpus: [0; ACCOUNTS],
        vms: vec![vm],
    }
}

/// 100 alone, 50 beside b, 90 beside a heavy b; one more a repeat.
fn rates(job: &Job) -> Outcome {
    let heavy = job.case.guests[1].weight == 300;
    let units = match (&job.solo, heavy) {
        (Some(_), _) => 100,
        (None, false) => 50,
        (None, true) => 90,
    };
    outcome(units + u64::from(job.repeat))
}

fn report(make: &dyn Fn(&Job) -> Result<Outcome, String>) -> Report {
    let models = Models::shipped().expect("shipped models are good");
    let tables = [small(TABLE).expect("the table is good")];
    let plan = Plan::new(&tables, 3, &models).expect("the case is good");
    Report::new(&tables, &Results::made_up(plan, make))
}

#[test]
fn equal_runs_are_planned_once() {
    let models = Models::shipped().expect("shipped models are good");
    let one = small(TABLE).expect("the table is good");
    let plan = Plan::new(&[one], 3, &models).expect("the case is good");
    // Solo, co-run and heavy.
    assert_eq!((plan.jobs.len(), plan.wanted), (9, 9));
    // b's weight is nothing to a alone.
    let more = TABLE.replace(
        "a.rate[busy heavy]",
        "a.rate[busy heavy] * a.rate[busy heavy solo]",
    );
    let two = [small(TABLE), small(&more)].map(|t| t.expect("the tables are good"));
    let plan = Plan::new(&two, 3, &models).expect("the case is good");
    assert_eq!((plan.jobs.len(), plan.wanted), (9, 21));
}

#[test]
fn cells_claims_and_derived_ratios_are_judged() {
    let report = report(&|job| Ok(rates(job)));
    let table = &report.tables[0];
    let by_row = |row: &str, column: &str, derived: bool| {
        let cell = table
            .cells
            .iter()
            .find(|c| c.row == row && c.column == column && c.over.is_some() == derived);
        cell.expect("the cell is there")
    };
    let solo = by_row("solo", "rate", false);
    let interval = solo.simulated.expect("it was counted");
    assert!((interval.mean - 101.0).abs() < 1e-9);
    assert!((interval.half.expect("three seeds") - 2.484).abs() < 1e-3);
    assert!(solo.pass && !solo.ratio);
    let derived = by_row("co-run", "rate", true);
    assert!(derived.ratio && derived.pass && derived.kind == Kind::Predicted);
    assert_eq!(derived.over.as_deref(), Some("solo / rate"));
    // 51 / 91 is 0.56, published is half.
    let saved = by_row("weight", "saved", false);
    assert!((saved.published.low - 0.5).abs() < 1e-12 && saved.pass);
    assert!(table.claims[0].pass && table.claims[0].seeds_agree == 3);
    assert!(!table.claims[1].pass && table.claims[1].seeds_agree == 0);
    let s = table.summary;
    assert_eq!((s.directions.right, s.directions.of), (1, 2));
    assert_eq!((s.ratios_predicted.right, s.ratios_predicted.of), (2, 2));
    assert!(!s.reached());
}

#[test]
fn what_was_not_counted_fails_and_says_so() {
    let report = report(&|job| Ok(rates(job)));
    let table = &report.tables[0];
    let tlb = table.cells.iter().find(|c| c.column == "tlb");
    let tlb = tlb.expect("the cell is there");
    assert!(!tlb.pass && tlb.simulated.is_none());
    let problem = tlb.problem.as_deref().unwrap_or_default();
    assert!(
        problem.contains("nothing was counted for a.tlb.mean_us"),
        "{problem}"
    );
    assert_eq!(table.summary.missing, 1);
    assert_eq!(table.summary.others_predicted.of, 2);
}

#[test]
fn a_run_that_fails_costs_what_needs_it() {
    let report = report(&|job| match job.solo {
        Some(_) => Err("broken invariant".to_owned()),
        None => Ok(rates(job)),
    });
    let cells = &report.tables[0].cells;
    let solo = cells.iter().find(|c| c.row == "solo").expect("it is there");
    let problem = solo.problem.as_deref().unwrap_or_default();
    assert!(problem.contains("broken invariant"), "{problem}");
    let saved = cells
        .iter()
        .find(|c| c.row == "weight")
        .expect("it is there");
    assert!(saved.pass);
}

#[test]
fn mistakes_in_tables_are_found_when_they_are_read() {
    let good = "a.rate[busy solo]";
    for (bad, message) in [
        ("a.rte[busy solo]", "no figure `rte`"),
        ("a.tlb.men_us[busy]", "no figure `tlb.men_us`"),
        ("a.rate[bsy]", "no phase `bsy`"),
        ("c.rate[busy]", "guest `c` runs nothing"),
        ("a.rate[busy hevy]", "`hevy` is neither"),
        ("a.rate[busy", "expected `]`"),
        ("a.rate", "expected [phase ...]"),
        ("speed", "no [let] `speed`"),
        ("median(a.rate[busy])", "no function `median`"),
    ] {
        let table = TABLE.replace(&format!("\"{good}\""), &format!("\"{bad}\""));
        let error = small(&table).expect_err(bad);
        assert!(error.contains(message), "{bad}: {error}");
    }
    let zero = TABLE.replace("published = 100", "published = 0");
    let error = small(&zero).expect_err("no ratio to zero");
    assert!(error.contains("within"), "{error}");
    let over = TABLE.replace("[\"solo\", \"rate\"]", "[\"alone\", \"rate\"]");
    let error = small(&over).expect_err("no such cell");
    assert!(error.contains("alone / rate"), "{error}");
}

#[test]
fn the_report_is_json_and_html() {
    let report = report(&|job| Ok(rates(job)));
    let json = serde_json::to_value(&report).expect("it is plain data");
    assert_eq!(json["tables"][0]["cells"][0]["kind"], "fit");
    let page = super::html::page(&report);
    assert!(page.contains("&lt;nothing&gt; &amp; more"));
    assert!(!page.contains("<nothing>"));
    assert!(!page.contains("http"), "the page asks for nothing");
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

#[test]
fn every_shipped_experiment_is_good() {
    let models = Models::shipped().expect("shipped models are good");
    let library = Library::embedded();
    let names = library.names();
    let mut seeds = BTreeSet::new();
    for name in &names {
        let table = library.table(name, &models);
        let table = table.unwrap_or_else(|e| panic!("{e}"));
        seeds.insert(name.split('/').next());
        assert!(
            !table.checks.is_empty() || !table.claims.is_empty(),
            "{name}"
        );
        for cell in &table.file.cells {
            let twice = |c: &&super::format::Cell| c.row == cell.row && c.column == cell.column;
            let count = table.file.cells.iter().filter(twice).count();
            assert_eq!(count, 1, "{name}: {} / {}", cell.row, cell.column);
        }
    }
    assert_eq!(seeds.len(), 5, "five seeds");
}
