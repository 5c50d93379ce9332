// SPDX-License-Identifier: GPL-2.0-only
//! `timer`: how late a sleeping thread gets to run. What a guest sees of its vCPUs'
//! way from a wake-up to a pCPU: its vCPUs halt between two timers.

use super::{Setup, ThreadRule, Workload};
use crate::error::Error;
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};
use std::thread;
use std::time::{Duration, Instant};

pub(super) static WORKLOAD: Workload = Workload {
    name: "timer",
    about: "sleeps and tells how late it woke: wake-ups of halted vCPUs by their own timers",
    unit: "timers",
    latency: "how late one timer's thread ran",
    threads: ThreadRule::Any,
    program: None,
    params: &[Param {
        name: "period_us",
        about: "how long each thread sleeps, in microseconds",
        kind: Kind::Int {
            default: 5_000,
            min: 1,
            max: 1_000_000,
        },
    }],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let period = Duration::from_micros(setup.params.int("period_us"));
    let workers = (0..setup.threads).map(|_| Box::new(Sleeper::new(period)) as Box<dyn Worker>);
    Ok(Box::new(Threads::start(
        workers.collect(),
        &setup.cpus,
        &setup.control,
    )?))
}

/// Sleeps for one period after another.
pub(super) struct Sleeper {
    period: Duration,
    precise: bool,
}

impl Sleeper {
    pub(super) fn new(period: Duration) -> Self {
        Self {
            period,
            precise: false,
        }
    }

    /// One period; returns how late it ended.
    pub(super) fn sleep(&mut self) -> Result<Duration, Error> {
        if !self.precise {
            expire_exactly()?;
            self.precise = true;
        }
        let due = Instant::now() + self.period;
        thread::sleep(self.period);
        Ok(due.elapsed())
    }
}

impl Worker for Sleeper {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        meter.record(self.sleep()?);
        Ok(Flow::Continue)
    }
}

/// Takes the slack from this thread's timers: with the usual 50 us of it, half of
/// these would expire together with others.
fn expire_exactly() -> Result<(), Error> {
    // SAFETY: takes numbers alone; concerns the calling thread.
    let failed = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0, 0, 0) };
    if failed == 0 {
        Ok(())
    } else {
        Err(Error::last_os("prctl(PR_SET_TIMERSLACK)"))
    }
}
