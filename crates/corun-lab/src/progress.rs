// SPDX-License-Identifier: GPL-2.0-only
//! Progress on standard error: bars for people, plain lines for logs.

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::io::{IsTerminal, stderr};

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Bars that move.
    Bars,
    /// A line when a task begins, at each quarter and at its end.
    Lines,
    /// Nothing.
    Quiet,
}

/// What a task counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Items,
    /// Bytes.
    Bytes,
}

impl Progress {
    /// Bars on a terminal, lines elsewhere.
    pub fn detect() -> Self {
        if stderr().is_terminal() {
            Self::Bars
        } else {
            Self::Lines
        }
    }

    /// One line about something that is done.
    pub fn note(self, text: &str) {
        if self != Self::Quiet {
            eprintln!("{text}");
        }
    }

    /// Begins a task of `total` units.
    pub fn task(self, what: &str, total: u64, unit: Unit) -> Task {
        let bar = (self == Self::Bars).then(|| new_bar(what, total, unit));
        if self == Self::Lines {
            eprintln!("{what} ({}) ...", show(total, unit));
        }
        Task {
            progress: self,
            bar,
            what: what.to_owned(),
            total,
            unit,
            quarter: Cell::new(0),
        }
    }
}

/// A task under way.
#[derive(Debug)]
pub struct Task {
    progress: Progress,
    bar: Option<ProgressBar>,
    what: String,
    total: u64,
    unit: Unit,
    quarter: Cell<u64>,
}

impl Task {
    /// `done` units of the total are done.
    pub fn set(&self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done.min(self.total));
        }
        let quarter = (done * 4).checked_div(self.total).unwrap_or(0).min(3);
        if self.progress == Progress::Lines && quarter > self.quarter.get() {
            self.quarter.set(quarter);
            eprintln!("{}: {} %", self.what, quarter * 25);
        }
    }

    /// The task is done.
    pub fn finish(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.progress.note(&format!(
            "{}: done ({})",
            self.what,
            show(self.total, self.unit)
        ));
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn show(amount: u64, unit: Unit) -> String {
    match unit {
        Unit::Items => amount.to_string(),
        Unit::Bytes => HumanBytes(amount).to_string(),
    }
}

fn new_bar(what: &str, total: u64, unit: Unit) -> ProgressBar {
    let counts = match unit {
        Unit::Items => "{pos}/{len}",
        Unit::Bytes => "{bytes}/{total_bytes} ({bytes_per_sec})",
    };
    let bar = ProgressBar::new(total).with_message(what.to_owned());
    // A template that does not parse costs the looks of the bar only.
    if let Ok(style) = ProgressStyle::with_template(&format!("{{msg}} {{wide_bar}} {counts}")) {
        bar.set_style(style);
    }
    bar
}
