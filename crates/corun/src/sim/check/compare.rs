// SPDX-License-Identifier: GPL-2.0-only
//! Figures of lab and simulator side by side.

use super::super::summary::GuestSummary;
use super::lab::{Figures, LabResult, Measured};
use corun_lab::results::Spread;
use serde::Serialize;
use std::path::Path;

/// Version of the report's form.
const SCHEMA_VERSION: u32 = 2;
/// What a single window's figure may be off by (docs/src/explanation/lab.md).
const NOISE: f64 = 0.10;
/// Medians this near to each other are alike.
const ALIKE: f64 = 0.02;

/// All comparisons.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) schema_version: u32,
    /// corun's version.
    pub(super) version: &'static str,
    pub(super) results: Vec<Comparison>,
    pub(super) totals: Totals,
}

/// One result of the lab.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    pub(super) file: String,
    pub(super) case: String,
    /// The machine that was simulated.
    pub(super) machine: String,
    pub(super) factor: f64,
    pub(super) exit_ns: f64,
    pub(super) switch_ns: f64,
    pub(super) rows: Vec<Row>,
    pub(super) directions: Vec<Direction>,
}

/// One guest in one phase under one scheduler.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) phase: String,
    pub(super) guest: String,
    pub(super) scheduler: String,
    /// Simulated solo rate by the lab's: what models were fitted to.
    pub(super) solo_ratio: Option<f64>,
    pub(super) lab_slowdown: Option<Spread>,
    pub(super) sim_slowdown: Option<Spread>,
    /// Of the medians: simulated by measured, less 1.
    pub(super) error: Option<f64>,
    pub(super) lab_share: Option<Spread>,
    pub(super) sim_share: Option<Spread>,
}

/// Who wins: two schedulers of one phase, by slowdown.
#[derive(Debug, Serialize)]
pub(super) struct Direction {
    pub(super) phase: String,
    pub(super) guest: String,
    pub(super) schedulers: [String; 2],
    pub(super) lab: Winner,
    /// By the same rule as the lab's.
    pub(super) sim: Winner,
    /// By medians alone, whatever the spreads.
    pub(super) sim_by_median: Winner,
}

/// The scheduler with the smaller slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Winner {
    First,
    Second,
    /// The difference is within the spread.
    Neither,
}

/// All results together.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Totals {
    pub(super) slowdowns: usize,
    /// Median of the errors' absolute values.
    pub(super) median_error: Option<f64>,
    pub(super) within_25_percent: usize,
    pub(super) within_50_percent: usize,
    pub(super) shares: usize,
    /// Largest difference of CPU shares, of 1.
    pub(super) largest_share_error: Option<f64>,
    /// Pairs of schedulers of which the lab says who wins.
    pub(super) decided: usize,
    /// Those where the simulator's spreads leave the same.
    pub(super) agreed: usize,
    /// Those where they leave the other one.
    pub(super) opposite: usize,
    /// Those where the simulator's medians say the same.
    pub(super) agreed_by_median: usize,
    /// Those where they say the opposite.
    pub(super) opposite_by_median: usize,
}

impl Report {
    pub(super) fn new(results: Vec<Comparison>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            totals: Totals::of(&results),
            results,
        }
    }
}

impl Comparison {
    pub(super) fn new(
        file: &Path,
        lab: &LabResult,
        machine: String,
        simulated: &[GuestSummary],
    ) -> Self {
        let (mut rows, mut directions) = (Vec::new(), Vec::new());
        for guest in &lab.summary.guests {
            let same = |s: &&GuestSummary| s.phase == guest.phase && s.guest == guest.guest;
            let Some(sim) = simulated.iter().find(same) else {
                continue;
            };
            let new = guest.schedulers.iter().map(|f| row(lab, guest, f, sim));
            let new: Vec<Row> = new.collect();
            directions.extend(direct(&new));
            rows.extend(new);
        }
        let name = file.file_name().unwrap_or(file.as_os_str());
        Self {
            machine,
            file: name.to_string_lossy().into_owned(),
            case: lab.case.case.name.clone(),
            factor: lab.calibration.factor,
            exit_ns: lab.calibration.exit_ns,
            switch_ns: lab.calibration.switch_ns,
            rows,
            directions,
        }
    }
}

fn row(lab: &LabResult, guest: &Measured, figures: &Figures, sim: &GuestSummary) -> Row {
    let same = sim.schedulers.iter();
    let simulated = same.clone().find(|s| s.scheduler == figures.scheduler);
    let sim_slowdown = simulated.and_then(|s| s.slowdown);
    let sim_solo = sim.solo.as_ref().and_then(|s| s.rate);
    let ratio = |sim: Option<Spread>, lab: Option<Spread>| Some(sim?.median / lab?.median);
    let share = |s: &str| lab.summary.share(&guest.phase, s, &guest.guest);
    Row {
        phase: guest.phase.clone(),
        guest: guest.guest.clone(),
        scheduler: figures.scheduler.clone(),
        solo_ratio: ratio(sim_solo, guest.solo),
        lab_slowdown: figures.slowdown,
        sim_slowdown,
        error: ratio(sim_slowdown, figures.slowdown).map(|r| r - 1.0),
        lab_share: share(&figures.scheduler),
        sim_share: simulated.and_then(|s| s.cpu_share),
    }
}

/// The first scheduler, the baseline, against each of the others.
fn direct(rows: &[Row]) -> Vec<Direction> {
    let Some((base, others)) = rows.split_first() else {
        return Vec::new();
    };
    let pair = |other: &Row| {
        Some(Direction {
            phase: base.phase.clone(),
            guest: base.guest.clone(),
            schedulers: [base.scheduler.clone(), other.scheduler.clone()],
            lab: winner(base.lab_slowdown?, other.lab_slowdown?),
            sim: winner(base.sim_slowdown?, other.sim_slowdown?),
            sim_by_median: by_median(base.sim_slowdown?, other.sim_slowdown?, ALIKE),
        })
    };
    others.iter().filter_map(pair).collect()
}

/// Spreads that overlap leave no winner; single windows have the usual noise.
fn winner(first: Spread, second: Spread) -> Winner {
    if first.count.min(second.count) < 2 {
        return by_median(first, second, NOISE);
    }
    if first.max < second.min {
        Winner::First
    } else if second.max < first.min {
        Winner::Second
    } else {
        Winner::Neither
    }
}

fn by_median(first: Spread, second: Spread, noise: f64) -> Winner {
    let ratio = first.median / second.median;
    if ratio < 1.0 - noise {
        Winner::First
    } else if ratio > 1.0 / (1.0 - noise) {
        Winner::Second
    } else {
        Winner::Neither
    }
}

impl Direction {
    /// Whether they agree; `None` where the lab has no winner.
    pub(super) fn agrees(&self) -> Option<bool> {
        (self.lab != Winner::Neither).then_some(self.lab == self.sim)
    }
}

impl Totals {
    fn of(results: &[Comparison]) -> Self {
        let rows = || results.iter().flat_map(|r| &r.rows);
        let mut errors: Vec<f64> = rows().filter_map(|r| r.error).map(f64::abs).collect();
        errors.sort_by(f64::total_cmp);
        let within = |limit: f64| errors.iter().filter(|e| **e <= limit).count();
        let share = |r: &Row| Some((r.sim_share?.median - r.lab_share?.median).abs());
        let shares: Vec<f64> = rows().filter_map(share).collect();
        let decided: Vec<&Direction> = results
            .iter()
            .flat_map(|r| &r.directions)
            .filter(|d| d.lab != Winner::Neither)
            .collect();
        let count = |of: &dyn Fn(&Direction) -> bool| decided.iter().filter(|d| of(d)).count();
        let opposite = |d: &Direction, sim| sim != Winner::Neither && sim != d.lab;
        Self {
            slowdowns: errors.len(),
            median_error: Spread::of(&errors).map(|s| s.median),
            within_25_percent: within(0.25),
            within_50_percent: within(0.50),
            shares: shares.len(),
            largest_share_error: Spread::of(&shares).map(|s| s.max),
            decided: decided.len(),
            agreed: count(&|d| d.sim == d.lab),
            opposite: count(&|d| opposite(d, d.sim)),
            agreed_by_median: count(&|d| d.sim_by_median == d.lab),
            opposite_by_median: count(&|d| opposite(d, d.sim_by_median)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(min: f64, median: f64, max: f64, count: usize) -> Spread {
        Spread {
            median,
            min,
            max,
            count,
        }
    }

    fn row(scheduler: &str, lab: Spread, sim: Spread) -> Row {
        Row {
            phase: "p".to_owned(),
            guest: "a".to_owned(),
            scheduler: scheduler.to_owned(),
            solo_ratio: None,
            lab_slowdown: Some(lab),
            sim_slowdown: Some(sim),
            error: Some(sim.median / lab.median - 1.0),
            lab_share: None,
            sim_share: None,
        }
    }

    #[test]
    fn the_lab_has_a_winner_only_beyond_its_spread() {
        let slow = spread(2.0, 2.2, 2.4, 3);
        assert_eq!(winner(slow, spread(1.5, 1.6, 1.9, 3)), Winner::Second);
        assert_eq!(winner(slow, spread(1.5, 1.6, 2.1, 3)), Winner::Neither);
        assert_eq!(winner(slow, spread(2.5, 3.0, 3.1, 3)), Winner::First);
        let one = |median| spread(median, median, median, 1);
        assert_eq!(winner(one(2.0), one(1.9)), Winner::Neither);
        assert_eq!(winner(one(2.0), one(1.5)), Winner::Second);
    }

    #[test]
    fn the_simulator_is_held_to_the_same_rule() {
        let wide = spread(1.0, 2.0, 3.0, 7);
        let lower = spread(1.0, 1.5, 2.5, 7);
        assert_eq!(winner(wide, lower), Winner::Neither);
        assert_eq!(by_median(wide, lower, ALIKE), Winner::Second);
    }

    #[test]
    fn totals_count_errors_and_directions() {
        let one = |median| spread(median, median, median, 3);
        let rows = vec![
            row("eevdf", one(2.0), one(2.2)),
            row("corun", one(1.0), one(1.4)),
            row("deaf", one(4.0), one(1.0)),
        ];
        let comparison = Comparison {
            machine: "lab".to_owned(),
            file: "x.json".to_owned(),
            case: "x".to_owned(),
            factor: 1.0,
            exit_ns: 1.0,
            switch_ns: 1.0,
            directions: direct(&rows),
            rows,
        };
        let totals = Totals::of(&[comparison]);
        assert_eq!((totals.slowdowns, totals.within_25_percent), (3, 1));
        assert_eq!(totals.within_50_percent, 2);
        assert_eq!((totals.decided, totals.agreed, totals.opposite), (2, 1, 1));
        let medians = (totals.agreed_by_median, totals.opposite_by_median);
        assert_eq!(medians, (1, 1));
        assert!(totals.median_error.is_some_and(|e| (e - 0.4).abs() < 1e-9));
    }
}
