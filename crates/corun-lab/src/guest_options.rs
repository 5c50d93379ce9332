// SPDX-License-Identifier: GPL-2.0-only
//! The options that a VM needs so that `corun_guest` can serve it.

/// Added to QEMU's `-cpu`: Hyper-V's flush hypercalls, which KVM implements, sets of
/// any vCPUs, and the features that these two need.
pub const HYPERV: &str = "hv-relaxed=on,hv-vpindex=on,hv-tlbflush=on,hv-tlbflush-ext=on";

/// Taken away from `-cpu`: KVM's features that work by hypercalls of its own, which
/// stop working while the module identifies the guest to the Hyper-V interface.
pub const WITHOUT: [&str; 3] = ["kvm-pv-unhalt", "kvm-pv-ipi", "kvm-pv-sched-yield"];
