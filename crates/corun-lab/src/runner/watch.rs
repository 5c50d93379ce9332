// SPDX-License-Identifier: GPL-2.0-only
//! Tells people how far a case is.

use corun_lab_proto::control::Report;
use std::time::{Duration, Instant};

/// A speed is not told from less than this.
const MIN_SAMPLE: Duration = Duration::from_secs(10);

/// Sees every report of a boot.
pub trait Watch {
    /// A report has come.
    fn see(&mut self, report: &Report);
}

/// How far a boot is.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What is being done now.
    pub text: String,
    /// Steps done.
    pub done: u32,
    /// Steps in all.
    pub total: u32,
    /// Time left, from the speed so far; `None` in the first seconds.
    pub left: Option<Duration>,
}

/// Calls a function with each step.
#[derive(Debug)]
pub struct Steps<F> {
    show: F,
    begin: Option<Instant>,
}

impl<F: FnMut(&Step)> Steps<F> {
    /// Watches by calling `show`.
    pub fn new(show: F) -> Self {
        Self { show, begin: None }
    }
}

impl<F: FnMut(&Step)> Watch for Steps<F> {
    fn see(&mut self, report: &Report) {
        match report {
            Report::Hello { .. } => self.show_stage("guests boot"),
            Report::Calibration(_) => self.show_stage("calibrated"),
            Report::Progress { text, done, total } => {
                let begin = *self.begin.get_or_insert_with(Instant::now);
                let left = time_left(begin.elapsed(), *done, *total);
                (self.show)(&Step {
                    text: text.clone(),
                    done: *done,
                    total: *total,
                    left,
                });
            }
            _ => {}
        }
    }
}

impl<F: FnMut(&Step)> Steps<F> {
    fn show_stage(&mut self, text: &str) {
        self.begin = None;
        (self.show)(&Step {
            text: text.to_owned(),
            done: 0,
            total: 0,
            left: None,
        });
    }
}

fn time_left(elapsed: Duration, done: u32, total: u32) -> Option<Duration> {
    (done > 0 && elapsed >= MIN_SAMPLE).then(|| elapsed / done * total.saturating_sub(done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_speed_so_far() {
        let minute = Duration::from_mins(1);
        assert_eq!(time_left(minute, 0, 4), None);
        assert_eq!(time_left(Duration::from_millis(3), 1, 4), None);
        assert_eq!(time_left(minute, 1, 4), Some(3 * minute));
        assert_eq!(time_left(minute, 4, 4), Some(Duration::ZERO));
    }
}
