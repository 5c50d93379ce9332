// SPDX-License-Identifier: GPL-2.0-only
//! A small task of the host's own, such as every host has: it wakes, computes a
//! little, and sleeps again. How late it comes shows whether guests starve it.

use super::error::{Context, Result};
use corun_lab_proto::LatencySummary;
use hdrhistogram::Histogram;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between the end of one turn and the beginning of the next.
const PERIOD: Duration = Duration::from_millis(50);
/// Steps of arithmetic in a turn: some 0.1 ms under emulation.
const STEPS: u64 = 10_000;
/// What one sample measures.
const WHAT: &str = "host task: delay from its timer to the end of its work";

/// The running task; ends with this value.
pub(super) struct HostTask {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    seen: Mutex<Seen>,
}

struct Seen {
    delays_ns: Histogram<u64>,
    /// When its turn came that is not over yet: a task that starves has no
    /// delays to show, only this.
    due: Instant,
    /// The window's beginning.
    begin: Instant,
}

impl Default for Seen {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            // An hour, to three digits.
            delays_ns: Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
                .expect("constant bounds are valid"),
            due: now,
            begin: now,
        }
    }
}

impl Seen {
    /// How long the turn that is not over yet has been due, within the window.
    fn waiting(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.due.max(self.begin))
    }
}

impl HostTask {
    /// Starts the task, of the host's ordinary scheduling class: to be called
    /// before the caller makes itself responsive, or from a thread whose class is
    /// not passed on.
    pub(super) fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        thread::spawn(move || {
            while !its.stop.load(Ordering::Relaxed) {
                turn(&its);
            }
        });
        Self { shared }
    }

    /// A window begins.
    pub(super) fn begin(&self) {
        let mut seen = self.shared.seen();
        seen.delays_ns.reset();
        seen.begin = Instant::now();
    }

    /// The delays since then. The turn that is still waited for counts as well,
    /// with the time that it has taken so far within the window.
    pub(super) fn read(&self) -> Result<LatencySummary> {
        let seen = self.shared.seen();
        let mut delays_ns = seen.delays_ns.clone();
        let waiting = seen.waiting(Instant::now());
        if !waiting.is_zero() {
            delays_ns.saturating_record(nanos(waiting));
        }
        LatencySummary::from_histogram(WHAT, &delays_ns)
            .doing(|| "sum up the host's task".to_owned())
    }
}

impl Drop for HostTask {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn turn(shared: &Shared) {
    let due = Instant::now() + PERIOD;
    shared.seen().due = due;
    thread::sleep(PERIOD);
    let sum = (0..STEPS).fold(1_u64, |sum, i| black_box(sum.wrapping_mul(i | 1)));
    black_box(sum);
    let late = Instant::now().saturating_duration_since(due);
    shared.seen().delays_ns.saturating_record(nanos(late));
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(seen: Seen) -> HostTask {
        let shared = Shared {
            seen: Mutex::new(seen),
            ..Shared::default()
        };
        HostTask {
            shared: Arc::new(shared),
        }
    }

    #[test]
    fn a_task_that_never_gets_a_turn_is_seen() {
        let due = Instant::now();
        let after = |s| due + Duration::from_secs(s);
        let seen = |begin| Seen {
            due,
            begin,
            ..Seen::default()
        };
        // Five seconds late, three of them in the window.
        assert_eq!(seen(after(2)).waiting(after(5)).as_secs(), 3);
        assert_eq!(seen(due).waiting(after(5)).as_secs(), 5);
        assert!(seen(due).waiting(due).is_zero());
        assert_eq!(with(seen(due)).read().expect("sums up").count, 1);
    }

    #[test]
    fn turns_are_counted_and_forgotten_at_a_window() {
        let task = with(Seen {
            due: Instant::now() + Duration::from_hours(1),
            ..Seen::default()
        });
        task.shared.seen().delays_ns.saturating_record(5);
        assert_eq!(task.read().expect("sums up").count, 1);
        task.begin();
        assert_eq!(task.read().expect("sums up").count, 0);
    }

    #[test]
    fn the_thread_takes_turns() {
        let task = HostTask::start();
        while task.shared.seen().delays_ns.is_empty() {
            thread::yield_now();
        }
    }
}
