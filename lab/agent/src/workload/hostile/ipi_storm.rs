// SPDX-License-Identifier: GPL-2.0-only
//! `ipi-storm`: every vCPU sends IPIs to all others, without a pause and without
//! doing anything with them: against schedulers that hurry the receivers of IPIs.

use super::super::tlb::Shooter;
use super::super::{Setup, ThreadRule, Workload};
use super::membarrier;
use crate::error::Error;
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};

pub(in super::super) static WORKLOAD: Workload = Workload {
    name: "ipi-storm",
    about: "hostile: all threads make the kernel send IPIs to all vCPUs without a pause",
    unit: "calls",
    latency: "one call",
    threads: ThreadRule::Any,
    program: None,
    params: &[Param {
        name: "op",
        about: "what makes the kernel send them: membarrier (nothing but the IPIs) or mprotect (TLB shootdowns)",
        kind: Kind::Choice {
            default: "membarrier",
            of: &["membarrier", "mprotect"],
        },
    }],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    membarrier::register()?;
    let by_membarrier = setup.params.text("op") == "membarrier";
    let mut workers: Vec<Box<dyn Worker>> = Vec::new();
    for _ in 0..setup.threads {
        workers.push(if by_membarrier {
            Box::new(Caller)
        } else {
            Box::new(Shooter::protecting_one_page()?)
        });
    }
    Ok(Box::new(Threads::start(
        workers,
        &setup.cpus,
        &setup.control,
    )?))
}

/// Calls membarrier again and again.
pub(super) struct Caller;

impl Worker for Caller {
    fn step(&mut self, meter: &Meter) -> Result<Flow, Error> {
        meter.time(membarrier::everywhere)?;
        Ok(Flow::Continue)
    }
}
