// SPDX-License-Identifier: GPL-2.0-only
//! The vCPUs, and pinning to them.

use crate::error::Error;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Numbers of the vCPUs that this process may use: at least one.
pub(crate) fn cpus() -> Vec<usize> {
    let found: Vec<usize> = match sched_getaffinity(Pid::from_raw(0)) {
        Ok(set) => (0..CpuSet::count())
            .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
            .collect(),
        Err(_) => Vec::new(),
    };
    if found.is_empty() { vec![0] } else { found }
}

/// Pins the calling thread to vCPU `cpu`.
pub(crate) fn pin(cpu: usize) -> Result<(), Error> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|e| Error::os(format!("cannot pin a thread to vCPU {cpu}"), e))
}
