// SPDX-License-Identifier: GPL-2.0-only
//! What is seen of a long run: a bar on a terminal, and a prompt end on Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Shorter waits need no bar.
const SHOW_AFTER: Duration = Duration::from_secs(2);
/// After Ctrl-C runs under way may end by themselves for this long. They touch
/// nothing but memory, so they can be dropped at any point.
const GRACE: Duration = Duration::from_secs(1);

/// Watches a batch until it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    _until: mpsc::Sender<()>,
}

impl Progress {
    /// Of `total` steps; `left` is said when the process ends by Ctrl-C.
    pub(crate) fn new(total: usize, stop: &Arc<AtomicBool>, left: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} runs, {eta} left {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let (until, ended) = mpsc::channel();
        let (watched, stop) = (bar.clone(), Arc::clone(stop));
        std::thread::spawn(move || watch(&watched, &stop, left, &ended));
        Self { bar, _until: until }
    }

    /// `done` steps are done.
    pub(crate) fn set(&self, done: usize) {
        self.bar.set_position(done as u64);
    }

    /// One more step is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn watch(bar: &ProgressBar, stop: &AtomicBool, left: &str, ended: &mpsc::Receiver<()>) {
    let started = Instant::now();
    let mut hidden = std::io::stderr().is_terminal();
    let mut stopped: Option<Instant> = None;
    while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
        if hidden && started.elapsed() >= SHOW_AFTER {
            hidden = false;
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        if stop.load(Ordering::Relaxed)
            && stopped.get_or_insert_with(Instant::now).elapsed() >= GRACE
        {
            bar.finish_and_clear();
            eprintln!("corun: {left}");
            std::process::exit(1);
        }
    }
}
