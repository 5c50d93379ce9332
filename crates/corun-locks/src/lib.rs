// SPDX-License-Identifier: GPL-2.0-only
//! Test beds for the lock algorithms of the guest module (`guest/locks`), which are
//! compiled here from the same headers: a search through schedules, and real threads.

pub mod figures;

use std::sync::{Mutex, PoisonError};

/// A lock algorithm. The numbers are those of `enum corun_lock_kind` and, for the
/// ones with known faults, of `src/c/flawed.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Test-and-set.
    Tas = 0,
    /// Ticket lock.
    Ticket = 1,
    /// Paravirtual ticket lock.
    PvTicket = 2,
    /// Preemptable ticket lock.
    Pmt = 3,
    /// The module's negative control.
    Broken = 4,
    /// The published unlock, which may wipe out a new waiter's flag.
    SeedUnlock = 16,
    /// A waiter that does not look again after it has set the flag.
    NoSecondLook = 17,
    /// A waiter that says too late where it sleeps.
    LateCell = 18,
    /// A preemptable ticket lock that takes its turn for the lock.
    TrustingPmt = 19,
}

/// What is tested.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Spec {
    kind: u32,
    threads: u32,
    rounds: u32,
    spin_threshold: u32,
    pmt_timeout: u32,
}

/// Most threads of a test.
const MAX_THREADS: u32 = 8;

impl Spec {
    /// `threads` threads (1 to 8) that take a lock of `kind` `rounds` times each,
    /// as impatient as they can be.
    ///
    /// # Panics
    /// When there are too many threads or none.
    pub fn new(kind: Kind, threads: u32, rounds: u32) -> Self {
        assert!((1..=MAX_THREADS).contains(&threads), "{threads} threads");
        Self {
            kind: kind as u32,
            threads,
            rounds,
            spin_threshold: 1,
            pmt_timeout: 1,
        }
    }

    /// With waiters that look `looks` times (at least 1) before they halt or leave
    /// the line.
    #[must_use]
    pub fn patience(mut self, looks: u32) -> Self {
        self.spin_threshold = looks.max(1);
        self.pmt_timeout = looks;
        self
    }
}

/// What a test came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// Nothing was wrong.
    Passed = 0,
    /// Two held the lock, or an update under it was lost.
    Overlap = 1,
    /// All that were left slept, and nobody was left to kick them.
    LostWakeup = 2,
    /// The threads ran on and on without an end.
    Stuck = 3,
    /// All was done, but the lock was not as it was in the beginning.
    NotFree = 4,
}

/// What came out of a test.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// The first fault found.
    pub verdict: Verdict,
    /// Schedules that were tried.
    pub schedules: u64,
    /// Waits given up for a halt.
    pub halts: u64,
    /// Kicks sent.
    pub kicks: u64,
    /// Waits that left the line.
    pub timeouts: u64,
}

#[derive(Debug, Default)]
#[repr(C)]
struct RawOutcome {
    verdict: u32,
    reserved: u32,
    schedules: u64,
    halts: u64,
    kicks: u64,
    timeouts: u64,
}

impl From<RawOutcome> for Outcome {
    fn from(raw: RawOutcome) -> Self {
        Self {
            verdict: match raw.verdict {
                0 => Verdict::Passed,
                1 => Verdict::Overlap,
                2 => Verdict::LostWakeup,
                4 => Verdict::NotFree,
                _ => Verdict::Stuck,
            },
            schedules: raw.schedules,
            halts: raw.halts,
            kicks: raw.kicks,
            timeouts: raw.timeouts,
        }
    }
}

unsafe extern "C" {
    fn corun_model_explore(spec: *const Spec, preemptions: u32, out: *mut RawOutcome);
    fn corun_model_sample(spec: *const Spec, seed: u64, schedules: u64, out: *mut RawOutcome);
    fn corun_hammer(spec: *const Spec, out: *mut RawOutcome);
}

/// Both test beds keep their state in static storage.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn run(test: impl FnOnce(*mut RawOutcome)) -> Outcome {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut out = RawOutcome::default();
    test(&raw mut out);
    out.into()
}

/// Tries every schedule with at most `preemptions` preemptions, up to the first one
/// that shows a fault.
pub fn explore(spec: &Spec, preemptions: u32) -> Outcome {
    // SAFETY: both pointers are valid for the call, the spec's thread count was
    // checked, and the lock in run() keeps the static state to one test.
    run(|out| unsafe { corun_model_explore(spec, preemptions, out) })
}

/// Tries `schedules` random schedules, up to the first one that shows a fault.
pub fn sample(spec: &Spec, seed: u64, schedules: u64) -> Outcome {
    // SAFETY: as in explore(); xorshift needs a seed that is not 0.
    run(|out| unsafe { corun_model_sample(spec, seed.max(1), schedules, out) })
}

/// Runs real threads.
pub fn hammer(spec: &Spec) -> Outcome {
    // SAFETY: as in explore(); all threads have ended when it returns.
    run(|out| unsafe { corun_hammer(spec, out) })
}
