// SPDX-License-Identifier: GPL-2.0-only
//! `halt-storm`: all vCPUs fall asleep and wake each other as fast as they can:
//! against schedulers that favour who has just been woken.

use super::super::pingpong::Turns;
use super::super::timer::Sleeper;
use super::super::{Setup, ThreadRule, Workload};
use crate::error::Error;
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};
use std::time::Duration;

pub(in super::super) static WORKLOAD: Workload = Workload {
    name: "halt-storm",
    about: "hostile: pairs of threads on different vCPUs that wake each other, and a short timer on each vCPU",
    unit: "round trips and timers",
    latency: "one round trip or one timer",
    threads: ThreadRule::Pairs,
    program: None,
    params: &[Param {
        name: "timer_us",
        about: "period in microseconds of the timer on each vCPU, 0 for no timers",
        kind: Kind::Int {
            default: 50,
            min: 0,
            max: 1_000_000,
        },
    }],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let period = Duration::from_micros(setup.params.int("timer_us"));
    let mut workers: Vec<Box<dyn Worker>> = Vec::new();
    for _ in 0..setup.threads / 2 {
        let (first, second) = Turns::pair();
        workers.extend([first, second]);
    }
    if !period.is_zero() {
        for _ in &setup.cpus {
            workers.push(Box::new(Timer(Sleeper::new(period))));
        }
    }
    Ok(Box::new(Threads::start(
        workers,
        &setup.cpus,
        &setup.control,
    )?))
}

/// Sleeps for one period after the other.
struct Timer(Sleeper);

impl Worker for Timer {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        meter.time(|| self.0.sleep())?;
        Ok(Flow::Continue)
    }
}
