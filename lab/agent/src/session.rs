// SPDX-License-Identifier: GPL-2.0-only
//! What a running workload is to the code that measures it.

use crate::control::Control;
use crate::error::Error;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::Instant;

/// Longest latency told apart from longer ones, in nanoseconds: one hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A workload that has been started. Dropping it ends it.
pub(crate) trait Session {
    /// Worker threads or processes in use.
    fn threads(&self) -> usize;

    /// Lets the work go on until `deadline` (for ever when there is none) or until
    /// `control` stops the run. May come back later than that, at the next moment
    /// where the work can be counted exactly.
    fn run_until(&mut self, deadline: Option<Instant>, control: &Control) -> Result<(), Error>;

    /// Forgets what was counted so far: the window begins.
    fn open_window(&mut self);

    /// The window is over: what was counted in it.
    fn close_window(&mut self) -> Window;
}

/// What was counted in one window.
#[derive(Debug)]
pub(crate) struct Window {
    /// When it began.
    pub(crate) begin: Instant,
    /// When it ended.
    pub(crate) end: Instant,
    /// Work done in it.
    pub(crate) work: f64,
    /// Latencies in it, nanoseconds.
    pub(crate) latency: Histogram<u64>,
    /// What a kernel module that does the work counted, or the workload beside its
    /// work, by name.
    pub(crate) module_counts: BTreeMap<String, u64>,
}

/// An empty histogram of nanoseconds that never allocates when recording: an
/// allocation would show up in what is measured.
///
/// # Panics
/// Never: the bounds are valid.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are valid")
}
