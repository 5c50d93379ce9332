// SPDX-License-Identifier: GPL-2.0-only
//! The table of a sweep: a row for each guest in each run.

use super::store::Point;
use crate::sim::result::{GuestRun, Run};
use crate::sim::summary::PROFILE;
use anyhow::Result;
use corun_lab::results::Spread;
use std::collections::BTreeSet;

/// What a column holds; any cell may be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Real,
    Text,
}

/// A table: named columns, and rows of cells as text.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<(String, Kind)>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Columns that every sweep has, after the grid's keys.
const FIXED: [(&str, Kind); 14] = [
    ("repeat", Kind::Int),
    ("seed", Kind::Int),
    ("phase", Kind::Text),
    ("scheduler", Kind::Text),
    ("guest", Kind::Text),
    ("solo", Kind::Bool),
    ("measured_s", Kind::Real),
    ("units", Kind::Int),
    ("rate_per_s", Kind::Real),
    ("slowdown", Kind::Real),
    ("cpu_s", Kind::Real),
    ("cpu_share", Kind::Real),
    ("events", Kind::Int),
    ("trace_hash", Kind::Text),
];

/// What is known of a distribution.
const LATENCY: [(&str, Kind); 4] = [
    ("count", Kind::Int),
    ("mean_us", Kind::Real),
    ("p50_us", Kind::Real),
    ("p99_us", Kind::Real),
];

/// The table of `points`, which differ in `keys`.
pub(crate) fn of(keys: &[String], points: &[&Point]) -> Rows {
    let guests = || {
        let runs = points.iter().flat_map(|p| &p.runs);
        runs.flat_map(|r| &r.guests)
    };
    let latencies: BTreeSet<&String> = guests().flat_map(|g| g.latency.keys()).collect();
    let counters: BTreeSet<&String> = guests().flat_map(|g| g.counters.keys()).collect();
    let mut table = Rows::default();
    let columns = &mut table.columns;
    let named = |(name, kind): (&str, Kind)| (name.to_owned(), kind);
    columns.push(named(("point", Kind::Int)));
    columns.extend(keys.iter().map(|key| {
        let values: Vec<String> = points.iter().map(|p| value(p, key)).collect();
        (key.clone(), kind_of(&values))
    }));
    columns.extend(FIXED.map(named));
    columns.extend(PROFILE.map(|account| (format!("share.{account}"), Kind::Real)));
    for name in &latencies {
        columns.extend(LATENCY.map(|(what, kind)| (format!("{name}.{what}"), kind)));
    }
    columns.extend(counters.iter().map(|c| (format!("count.{c}"), Kind::Int)));
    for (index, point) in points.iter().enumerate() {
        for run in &point.runs {
            for guest in &run.guests {
                let mut row = vec![index.to_string()];
                row.extend(keys.iter().map(|k| value(point, k)));
                row.extend(fixed(point, run, guest));
                row.extend(profile(guest));
                row.extend(latencies.iter().flat_map(|name| latency(guest, name)));
                row.extend(counters.iter().map(|c| cell(guest.counters.get(*c))));
                table.rows.push(row);
            }
        }
    }
    table
}

impl Rows {
    /// As CSV.
    pub(crate) fn csv(&self) -> Result<Vec<u8>> {
        let mut csv = csv::Writer::from_writer(Vec::new());
        csv.write_record(self.columns.iter().map(|(name, _)| name))?;
        for row in &self.rows {
            csv.write_record(row)?;
        }
        Ok(csv.into_inner()?)
    }
}

/// The narrowest kind that takes all of `values`.
fn kind_of(values: &[String]) -> Kind {
    if values.iter().all(|v| v.parse::<i64>().is_ok()) {
        Kind::Int
    } else if values.iter().all(|v| v.parse::<f64>().is_ok()) {
        Kind::Real
    } else {
        Kind::Text
    }
}

fn value(point: &Point, key: &str) -> String {
    let value = point.values.get(key).map_or("", String::as_str);
    let bare = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    bare.unwrap_or(value).to_owned()
}

fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

fn fixed(point: &Point, run: &Run, guest: &GuestRun) -> [String; FIXED.len()] {
    let seconds = run.measured_ns as f64 / 1e9;
    let cpu_ns: u64 = guest.accounts.values().sum();
    [
        run.repeat.to_string(),
        run.seed.to_string(),
        run.phase.clone(),
        run.scheduler.clone(),
        guest.name.clone(),
        run.solo.is_some().to_string(),
        seconds.to_string(),
        cell(guest.units.first()),
        cell(guest.rate_per_s),
        cell(slowdown(point, run, guest)),
        (cpu_ns as f64 / 1e9 / seconds).to_string(),
        cell(guest.cpu_share),
        run.events.to_string(),
        run.trace_hash.clone(),
    ]
}

/// The point's median solo rate over the run's; solo runs have none.
fn slowdown(point: &Point, run: &Run, guest: &GuestRun) -> Option<f64> {
    let alone: Vec<f64> = point
        .runs
        .iter()
        .filter(|r| r.phase == run.phase && r.solo.as_ref() == Some(&guest.name))
        .flat_map(|r| &r.guests)
        .filter_map(|g| g.rate_per_s)
        .collect();
    let slowdown = Spread::of(&alone)?.median / guest.rate_per_s?;
    (run.solo.is_none() && slowdown.is_finite()).then_some(slowdown)
}

fn profile(guest: &GuestRun) -> [String; PROFILE.len()] {
    let of = |account: &str| guest.accounts.get(account).copied().unwrap_or(0);
    let all: u64 = PROFILE.into_iter().map(of).sum();
    PROFILE.map(|account| cell((all > 0).then(|| of(account) as f64 / all as f64)))
}

fn latency(guest: &GuestRun, name: &str) -> [String; 4] {
    let l = guest.latency.get(name);
    let us = |ns: f64| ns / 1e3;
    [
        cell(l.map(|l| l.count)),
        cell(l.map(|l| us(l.mean_ns))),
        cell(l.map(|l| us(l.p50_ns as f64))),
        cell(l.map(|l| us(l.p99_ns as f64))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn run(solo: bool, rate: f64) -> Run {
        Run {
            phase: "p".to_owned(),
            scheduler: "s".to_owned(),
            solo: solo.then(|| "a".to_owned()),
            repeat: 0,
            seed: 1,
            measured_ns: 500_000_000,
            events: 3,
            trace_hash: "0f".to_owned(),
            pcpus: BTreeMap::new(),
            guests: vec![GuestRun {
                name: "a".to_owned(),
                units: vec![10],
                rate_per_s: Some(rate),
                cpu_share: Some(1.0),
                accounts: [("user".to_owned(), 750), ("k:tlb".to_owned(), 250)].into(),
                counters: [("yield.asked".to_owned(), 4)].into(),
                latency: BTreeMap::new(),
            }],
        }
    }

    #[test]
    fn rows_are_tidy() {
        let point = Point {
            fingerprint: String::new(),
            values: [("sim.kvm.spin_handler".to_owned(), "\"2011\"".to_owned())].into(),
            runs: vec![run(true, 20.0), run(false, 5.0)],
        };
        let table = of(&["sim.kvm.spin_handler".to_owned()], &[&point]);
        let text = String::from_utf8(table.csv().expect("renders")).expect("is text");
        assert_eq!(
            text,
            "point,sim.kvm.spin_handler,repeat,seed,phase,scheduler,guest,solo,measured_s,units,\
             rate_per_s,slowdown,cpu_s,cpu_share,events,trace_hash,share.user,share.k:lock,\
             share.k:tlb,share.k:other,count.yield.asked\n\
             0,2011,0,1,p,s,a,true,0.5,10,20,,0.000002,1,3,0f,0.75,0,0.25,0,4\n\
             0,2011,0,1,p,s,a,false,0.5,10,5,4,0.000002,1,3,0f,0.75,0,0.25,0,4\n"
        );
    }
}
