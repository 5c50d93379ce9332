// SPDX-License-Identifier: GPL-2.0-only
//! The identity that accounts must keep: their parts make up the wall time.

use super::Snapshot;

/// A vCPU whose times do not add up.
#[derive(Debug, Clone, PartialEq)]
pub struct Imbalance {
    /// VM and vCPU.
    pub who: String,
    /// Wall time. Nanoseconds.
    pub wall_ns: u64,
    /// Its parts together. Nanoseconds.
    pub total_ns: u64,
    /// Their difference as a share of wall time, 0 to 1.
    pub error: f64,
}

/// The vCPU whose times are furthest from its wall time; `None` without vCPUs that
/// existed for a while.
pub fn imbalance(snapshot: &Snapshot) -> Option<Imbalance> {
    let vcpus = snapshot
        .vms
        .iter()
        .flat_map(|vm| vm.vcpus.iter().map(move |v| (vm, v)));
    vcpus
        .filter(|(_, v)| v.account.wall_ns > 0)
        .map(|(vm, v)| {
            let (wall_ns, total_ns) = (v.account.wall_ns, v.account.times.total_ns());
            Imbalance {
                who: format!("{}/{}", vm.name, v.vcpu),
                wall_ns,
                total_ns,
                error: wall_ns.abs_diff(total_ns) as f64 / wall_ns as f64,
            }
        })
        .max_by(|a, b| a.error.total_cmp(&b.error))
}
