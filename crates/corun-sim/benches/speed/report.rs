// SPDX-License-Identifier: GPL-2.0-only
//! Samples and their tables.

use serde_json::{Value, json};

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) events: u64,
    pub(crate) seconds: f64,
}

/// What is measured.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) run: Box<dyn FnMut() -> Result<Sample, String>>,
    pub(crate) samples: Vec<Sample>,
}

impl Subject {
    pub(crate) fn new(
        name: &'static str,
        run: impl FnMut() -> Result<Sample, String> + 'static,
    ) -> Self {
        Self {
            name,
            run: Box::new(run),
            samples: Vec::new(),
        }
    }

    /// Events a second: least, median, most.
    fn rates(&self) -> [f64; 3] {
        let rates = self.samples.iter().map(|s| s.events as f64 / s.seconds);
        spread(rates.collect())
    }

    pub(crate) fn json(&self) -> Value {
        let [least, median, most] = self.rates();
        let events = self.samples.first().map_or(0, |s| s.events);
        json!({
            "name": self.name, "events": events,
            "median": median.round(), "min": least.round(), "max": most.round(),
        })
    }
}

/// Least, median and most of `values`.
pub(crate) fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let at = |i: usize| values.get(i).copied().unwrap_or(f64::NAN);
    [at(0), at(values.len() / 2), at(values.len().max(1) - 1)]
}

/// Prints a table of events a second.
pub(crate) fn print(title: &str, subjects: &[Subject]) {
    println!("\n{title}: million events a second");
    println!(
        "{:<44} {:>8} {:>8} {:>8} {:>10}",
        "", "median", "min", "max", "events"
    );
    for subject in subjects {
        let [least, median, most] = subject.rates().map(|r| r / 1e6);
        let events = subject.samples.first().map_or(0, |s| s.events);
        let name = subject.name;
        println!("{name:<44} {median:>8.3} {least:>8.3} {most:>8.3} {events:>10}");
    }
}
