// SPDX-License-Identifier: GPL-2.0-only
//! `fake-spin`: a vCPU that pretends without end to wait for its siblings, so that
//! the host runs them: against schedulers that honour directed yields.
//!
//! User code cannot ask for one itself: KVM answers its hypercalls from ring 3
//! with `-KVM_EPERM`, and `kvm_vcpu_on_spin()` takes a PAUSE loop on hardware with
//! pause-loop exiting, or the Hyper-V hypercall from ring 0. But the guest's
//! kernel asks when it sends one function call to several vCPUs and one of them is
//! preempted (with kvm-pv-sched-yield and steal time, from 3 vCPUs on), and
//! membarrier makes it do that at every call.

use super::super::{Setup, ThreadRule, Workload};
use super::ipi_storm::Caller;
use super::membarrier;
use crate::error::Error;
use crate::params::{Kind, Param};
use crate::session::Session;
use crate::threads::{Flow, Meter, Threads, Worker};

/// PAUSE instructions of one step: short, because stopping waits for it.
const PAUSES: u32 = 4096;

pub(in super::super) static WORKLOAD: Workload = Workload {
    name: "fake-spin",
    about: "hostile: some threads make the kernel ask for directed yields to their siblings without end, \
            which burn CPU time in a PAUSE loop; needs kvm-pv-sched-yield and 3 vCPUs, or pause-loop exits",
    unit: "calls",
    latency: "one call",
    threads: ThreadRule::Any,
    program: None,
    params: &[Param {
        name: "callers",
        about: "threads that ask; the others are whom to run",
        kind: Kind::Int {
            default: 1,
            min: 1,
            max: 256,
        },
    }],
    start,
};

fn start(setup: &Setup) -> Result<Box<dyn Session>, Error> {
    membarrier::register()?;
    let callers = usize::try_from(setup.params.int("callers")).unwrap_or(usize::MAX);
    let workers = (0..setup.threads)
        .map(|i| -> Box<dyn Worker> {
            if i < callers {
                Box::new(Caller)
            } else {
                Box::new(Pauser)
            }
        })
        .collect();
    Ok(Box::new(Threads::start(
        workers,
        &setup.cpus,
        &setup.control,
    )?))
}

/// Spins for nothing; counts nothing.
struct Pauser;

impl Worker for Pauser {
    fn step(&mut self, _: &Meter) -> Result<Flow, Error> {
        for _ in 0..PAUSES {
            std::hint::spin_loop();
        }
        Ok(Flow::Continue)
    }
}
