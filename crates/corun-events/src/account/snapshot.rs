// SPDX-License-Identifier: GPL-2.0-only
//! The accounts of all vCPUs of a host at one moment.

use super::additive::{Additive, additive};
use super::{Counts, Latencies, Times};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is known of a vCPU, or of several together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Time since it was found, of several: the sum. Nanoseconds.
    pub wall_ns: u64,
    /// Where it went.
    pub times: Times,
    /// How often what happened.
    pub counts: Counts,
    /// VM exits by reason, named as in recordings ([`EXITS`](crate::EXITS) and
    /// others); those that never happened are left out.
    pub exits: BTreeMap<String, u64>,
    /// How long what took.
    pub latencies: Latencies,
}

additive!(Account {
    wall_ns,
    times,
    counts,
    exits,
    latencies
});

impl Account {
    /// Adds the figures of `other`.
    pub fn add(&mut self, other: &Self) {
        Additive::add(self, other);
    }

    /// Share of wall time that `ns` is, 0 to 1.
    pub fn share(&self, ns: u64) -> f64 {
        if self.wall_ns == 0 {
            return 0.0;
        }
        ns as f64 / self.wall_ns as f64
    }

    /// All exits.
    pub fn all_exits(&self) -> u64 {
        self.exits.values().sum()
    }
}

/// A vCPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vcpu {
    /// Its number in its VM, from 0.
    pub vcpu: u32,
    /// Its thread.
    pub tid: u32,
    /// When it was found: its account begins there. Nanoseconds of `CLOCK_MONOTONIC`.
    pub found_ns: u64,
    /// Its account.
    pub account: Account,
}

/// A VM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vm {
    /// Counts the VMs that were found; none has another's.
    pub id: u64,
    /// Name from the VMM's command line, else `pid-<VMM's pid>`.
    pub name: String,
    /// Process of the VMM.
    pub pid: u32,
    /// Its vCPUs, by number. Those that slept since the accounts began are not known yet.
    pub vcpus: Vec<Vcpu>,
}

impl Vm {
    /// Its vCPUs' accounts together.
    pub fn total(&self) -> Account {
        let mut total = Account::default();
        for vcpu in &self.vcpus {
            total.add(&vcpu.account);
        }
        total
    }
}

/// The host: what runs on its pCPUs, VMs or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// pCPUs online.
    pub pcpus: u32,
    /// Name of the scheduler: `kernel`, or a `sched_ext` scheduler's.
    pub scheduler: String,
    /// pCPUs' time in guests. Nanoseconds, as all of these; 10 ms precise.
    pub guest_ns: u64,
    /// ... in other processes, kernel and interrupts.
    pub host_ns: u64,
    /// ... idle.
    pub idle_ns: u64,
    /// ... taken by the hypervisor below this host, if there is one.
    pub stolen_ns: u64,
    /// corun's own counters by name, while its scheduler runs (`urgent_slices`,
    /// `yields_accepted`, ...).
    pub corun: BTreeMap<String, u64>,
}

additive!(Host {
    guest_ns,
    host_ns,
    idle_ns,
    stolen_ns,
    corun
});

/// What the accounts lack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// vCPUs that found no place in the kernel's table, counted each time that they were
    /// looked at.
    pub vcpus: u64,
    /// IPIs that joined one that the target had pending already: counted as sent,
    /// but not timed.
    pub ipis_joined: u64,
    /// Accounts that changed each time that they were read; last figures stand.
    pub torn_reads: u64,
    /// Events that the kernel did not tell, because another BPF program was under way
    /// on that pCPU.
    #[serde(default)]
    pub skipped_runs: u64,
}

additive!(Drops {
    vcpus,
    ipis_joined,
    torn_reads,
    skipped_runs
});

/// Version of [`Snapshot`]'s JSON.
pub const SNAPSHOT_VERSION: u32 = 1;

/// The accounts at one moment, or of one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SNAPSHOT_VERSION`].
    pub corun_accounts: u32,
    /// When. Nanoseconds of `CLOCK_MONOTONIC`; of the simulator: since its start.
    pub at_ns: u64,
    /// How long the accounts have been kept, or the interval's length. Nanoseconds.
    pub length_ns: u64,
    /// The host.
    pub host: Host,
    /// VMs, by id.
    pub vms: Vec<Vm>,
    /// What is missing in the figures.
    pub drops: Drops,
    /// Names of the kernel's events that could not be listened to, each with what is
    /// 0 or counted elsewhere for it.
    pub missing: Vec<String>,
}

impl Snapshot {
    /// What happened between `before` and this. A vCPU that `before` does not have is new:
    /// it counts from when it was found. VMs that are gone are in neither.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut interval = self.clone();
        interval.length_ns = self.at_ns.saturating_sub(before.at_ns);
        interval.host.subtract(&before.host);
        interval.drops.subtract(&before.drops);
        let known: BTreeMap<_, _> = before
            .vms
            .iter()
            .flat_map(|vm| vm.vcpus.iter().map(|v| (key(vm, v), &v.account)))
            .collect();
        for vm in &mut interval.vms {
            let id = vm.id;
            for vcpu in &mut vm.vcpus {
                let key = (id, vcpu.vcpu, vcpu.found_ns);
                if let Some(account) = known.get(&key) {
                    vcpu.account.subtract(account);
                }
            }
        }
        interval
    }

    /// All vCPUs' accounts together.
    pub fn total(&self) -> Account {
        let mut total = Account::default();
        for vm in &self.vms {
            total.add(&vm.total());
        }
        total
    }

    /// vCPUs.
    pub fn vcpus(&self) -> usize {
        self.vms.iter().map(|vm| vm.vcpus.len()).sum()
    }
}

/// What tells a vCPU's life from others.
fn key(vm: &Vm, vcpu: &Vcpu) -> (u64, u32, u64) {
    (vm.id, vcpu.vcpu, vcpu.found_ns)
}

#[cfg(test)]
mod tests;
