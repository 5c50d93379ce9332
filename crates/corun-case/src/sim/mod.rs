// SPDX-License-Identifier: GPL-2.0-only
//! What only the simulator needs to know: the hardware's costs, the host's
//! kernel and KVM, and what kind of kernel the guests have. `[sim]` in a case
//! file; the lab, which has the real things, ignores it.

mod costs;
mod guest;
mod kvm;
mod sched;

pub use costs::Costs;
pub use guest::{GuestKernel, SimGuest, SpinlockKind, TlbKind};
pub use kvm::{HaltPoll, Hypervisor, Kvm, Ple, SpinHandler};
pub use sched::{Cfs, Cosched, CoschedKind, Credit, Eevdf, SchedTunables};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[sim]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimSection {
    /// Seed of the first run; repeat n has seed + n.
    pub seed: u64,
    /// Hardware threads of a core, 1 or 2.
    pub threads_per_core: u32,
    /// pCPUs that share a last-level cache; 0: all.
    pub pcpus_per_llc: u32,
    /// What things cost. Nanoseconds.
    pub costs: Costs,
    /// The host's KVM (or Xen).
    pub kvm: Kvm,
    /// Guests, by name; those not named have the defaults.
    pub guest: BTreeMap<String, GuestKernel>,
    /// Check the simulator's invariants in every run.
    pub check: bool,
}

impl Default for SimSection {
    fn default() -> Self {
        Self {
            seed: 1,
            threads_per_core: 1,
            pcpus_per_llc: 0,
            costs: Costs::default(),
            kvm: Kvm::default(),
            guest: BTreeMap::new(),
            check: false,
        }
    }
}

/// Whether `value` says nothing that its absence would not.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests;
