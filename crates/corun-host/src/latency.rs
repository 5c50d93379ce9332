// SPDX-License-Identifier: GPL-2.0-only
//! How long vCPUs wait for each other and for a pCPU, whatever scheduler runs:
//! IPIs from sending to injection, wake-ups, time spent preempted. Reads only,
//! but costs some microseconds on each switch and IPI of a vCPU.

mod distribution;
mod kvm_stats;

pub use distribution::Distribution;

use crate::error::{During, HostError, Result};
use crate::host_info;
use crate::skel::latency::{LatencySkel, LatencySkelBuilder};
use crate::text::c_string;
use libbpf_rs::OpenObject;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use serde::Serialize;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::path::Path;

/// What was seen of one VM since the last [`LatencyObserver::reset`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VmLatency {
    /// Process of the VMM.
    pub pid: u32,
    /// Times on the host's clock by name; intervals count when they end.
    ///
    /// `ipi` is a sibling's IPI from sending to injection; `ipi_to_running`,
    /// `_preempted`, `_queued` (woken, waits for a pCPU) and `_halted` are the
    /// parts of it by what the target did when it was sent. `wake_to_run` is a
    /// vCPU thread's wake-up until it runs; `preempted` how long one is off its
    /// pCPU though runnable, and `preempted_with_ipi` the part of that in which
    /// a sibling's IPI waited for it.
    pub times: BTreeMap<String, Distribution>,
    /// Counts by name: `spins` (calls of `kvm_vcpu_on_spin()`: pause exits and
    /// Hyper-V's long spins), `yields` (of `yield_to()`), and what KVM's debugfs has of `exits`,
    /// `halt_exits`, `hypercalls`.
    pub counts: BTreeMap<String, u64>,
}

/// Measures while it lives.
pub struct LatencyObserver {
    skel: LatencySkel<'static>,
    /// KVM's own counts when the observation began, by pid.
    base: BTreeMap<u32, BTreeMap<String, u64>>,
}

impl std::fmt::Debug for LatencyObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LatencyObserver").finish_non_exhaustive()
    }
}

impl LatencyObserver {
    /// Attaches to the kernel's and KVM's events. Needs root, a kernel with BTF,
    /// and the kvm module, loaded with type information.
    pub fn attach() -> Result<Self> {
        if !host_info::kvm_has_btf() {
            return Err(HostError::NoKvm);
        }
        // The skeleton borrows its object; one observer lives as long as the process.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = LatencySkelBuilder::default()
            .open(object)
            .during("opening the latency observer's BPF object")?;
        for mut program in open.open_object_mut().progs_mut() {
            // A helper of scx's headers that nothing here uses.
            let unused = program.name() == "scx_lib_init_probe";
            program.set_autoload(!unused);
        }
        let mut skel = open
            .load()
            .during("loading the latency observer (root and BTF needed)")?;
        skel.attach()
            .during("attaching the latency observer to KVM and the scheduler")?;
        let mut observer = Self {
            skel,
            base: BTreeMap::new(),
        };
        observer.reset()?;
        Ok(observer)
    }

    /// Forgets what was seen: a new window begins.
    pub fn reset(&mut self) -> Result<()> {
        let bss = self.skel.maps.bss_data.as_mut();
        let bss = bss.ok_or(HostError::Section(".bss"))?;
        self.base.clear();
        for vm in bss.vms.iter_mut().filter(|vm| vm.kvm != 0) {
            (vm.spins, vm.yields) = (0, 0);
            for time in &mut vm.times {
                (time.count, time.sum_ns, time.max_ns) = (0, 0, 0);
                time.buckets.fill(0);
            }
            self.base.insert(vm.tgid, kvm_counts(vm.tgid));
        }
        Ok(())
    }

    /// What was seen since the last reset, of each VM that exists.
    pub fn read(&self) -> Result<Vec<VmLatency>> {
        let names = self.skel.maps.rodata_data.as_ref();
        let names = names.ok_or(HostError::Section(".rodata"))?;
        let bss = self.skel.maps.bss_data.as_ref();
        let bss = bss.ok_or(HostError::Section(".bss"))?;
        let names: Vec<String> = names.latency_names.iter().map(|n| c_string(n)).collect();
        let vms = bss.vms.iter().filter(|vm| vm.kvm != 0);
        Ok(vms
            .map(|vm| {
                let times = vm
                    .times
                    .iter()
                    .map(|t| Distribution::new(t.count, t.sum_ns, t.max_ns, &t.buckets));
                VmLatency {
                    pid: vm.tgid,
                    times: with_all_ipis(names.iter().cloned().zip(times).collect()),
                    counts: self.counts(vm.tgid, [("spins", vm.spins), ("yields", vm.yields)]),
                }
            })
            .collect())
    }

    /// VMs and vCPUs that found no place in the tables since the attachment.
    pub fn unobserved(&self) -> u64 {
        let bss = self.skel.maps.bss_data.as_ref();
        bss.map_or(0, |bss| bss.unobserved)
    }

    fn counts(&self, pid: u32, seen: [(&str, u64); 2]) -> BTreeMap<String, u64> {
        let base = self.base.get(&pid);
        let mut counts = kvm_counts(pid);
        for (name, value) in &mut counts {
            let before = base.and_then(|b| b.get(name)).copied().unwrap_or(0);
            *value = value.saturating_sub(before);
        }
        counts.extend(seen.map(|(name, n)| (name.to_owned(), n)));
        counts
    }
}

fn kvm_counts(pid: u32) -> BTreeMap<String, u64> {
    kvm_stats::of(Path::new("/sys/kernel/debug/kvm"), pid)
}

/// Adds the sum of all kinds of IPIs.
fn with_all_ipis(mut times: BTreeMap<String, Distribution>) -> BTreeMap<String, Distribution> {
    let mut all = Distribution::default();
    for (name, kind) in &times {
        if name.starts_with("ipi_to_") {
            all.merge(kind);
        }
    }
    times.insert("ipi".to_owned(), all);
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_ipis_and_nothing_else_are_summed() {
        let one = Distribution::new(1, 3, 3, &[0, 0, 0, 1]);
        let names = ["ipi_to_running", "ipi_to_halted", "wake_to_run"];
        let times = names.map(|n| (n.to_owned(), one.clone())).into();
        let all = with_all_ipis(times);
        assert_eq!((all["ipi"].count, all["ipi"].sum_ns), (2, 6));
        assert_eq!(all.len(), 4);
    }
}
