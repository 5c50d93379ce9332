// SPDX-License-Identifier: GPL-2.0-only
//! `cpu`: computing alone, no system call in the loop. The sanity gate's workload:
//! whatever it loses beside a co-runner is its share of the processors.

use super::{Setup, ThreadRule, Workload};
use crate::error::Error;
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};
use std::hint::black_box;

pub(super) static WORKLOAD: Workload = Workload {
    name: "cpu",
    about: "burns CPU time in counted blocks of integer arithmetic, without system calls",
    unit: "blocks",
    latency: "one block",
    threads: ThreadRule::Any,
    program: None,
    params: &[Param {
        name: "iterations",
        about: "steps of arithmetic in one block; the default takes about 50 us on real hardware",
        kind: Kind::Int {
            default: 32_768,
            min: 1,
            max: 1_000_000_000,
        },
    }],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    let iterations = setup.params.int("iterations");
    let workers = (0..setup.threads)
        .map(|i| {
            Box::new(Burner {
                iterations,
                state: i as u64 + 1,
            }) as Box<dyn Worker>
        })
        .collect();
    Ok(Box::new(Threads::start(
        workers,
        &setup.cpus,
        &setup.control,
    )?))
}

/// Computes; also what other workloads keep otherwise idle vCPUs busy with.
pub(super) struct Burner {
    pub(super) iterations: u64,
    pub(super) state: u64,
}

impl Burner {
    /// One block.
    pub(super) fn block(&mut self) {
        // Each step needs the one before, so the time does not depend on how many
        // a processor can do at once, and there is no shorter way to the last one.
        let mut state = self.state;
        for _ in 0..self.iterations {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(7);
        }
        self.state = black_box(state);
    }
}

impl Worker for Burner {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        meter.time(|| self.block());
        Ok(Flow::Continue)
    }
}
