// SPDX-License-Identifier: GPL-2.0-only
//! One VM runs one program for a while, and tells how it gets on.

use super::error::TinyVmError;
use super::program::Program;
use super::tasks::{self, VcpuThread};
use super::vm::{Kvm, TinyVm};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What [`hold`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldOptions {
    /// What its vCPUs run.
    pub program: Program,
    /// How many they are, 1 to 16.
    pub vcpus: u32,
    /// For how long.
    pub length: Duration,
    /// How often to tell.
    pub every: Duration,
}

/// How a VM got on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HoldReport {
    /// Seconds since its start.
    pub at_s: f64,
    /// Rounds of each vCPU's loop.
    pub rounds: Vec<u32>,
    /// What each vCPU's last hypercall returned (0: success); absent before.
    pub hypercall_status: Vec<Option<u32>>,
}

/// Runs a VM until its time is over.
pub fn hold(options: HoldOptions, mut tell: impl FnMut(&HoldReport)) -> Result<(), TinyVmError> {
    let kvm = Kvm::open()?;
    let vm = Arc::new(TinyVm::new(&kvm, options.vcpus, options.program)?);
    tasks::take_kicks()?;
    let begin = Instant::now();
    let ids = || vm.vcpus.iter().map(|vcpu| vcpu.id);
    let report = || HoldReport {
        at_s: begin.elapsed().as_secs_f64(),
        rounds: ids().map(|id| vm.memory.progress(id)).collect(),
        hypercall_status: ids().map(|id| vm.memory.status(id)).collect(),
    };
    let threads: Vec<_> = ids().map(|id| VcpuThread::start(&vm, id, false)).collect();
    while begin.elapsed() < options.length {
        let left = options.length.saturating_sub(begin.elapsed());
        std::thread::sleep(options.every.min(left));
        tell(&report());
    }
    threads.into_iter().try_for_each(VcpuThread::end)
}
