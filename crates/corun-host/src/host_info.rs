// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel says of itself, KVM and sched_ext.

use crate::root::Root;
use crate::text::first_line;
use std::path::Path;

/// The host's name (`uname -n`).
pub(crate) fn host_name() -> String {
    nix::sys::utsname::uname().map_or_else(
        |_| "unknown".to_owned(),
        |u| u.nodename().to_string_lossy().into_owned(),
    )
}

/// True while the kernel's own scheduler schedules all tasks.
pub(crate) fn kernel_schedules() -> bool {
    let state = Root::default().sched_ext_state();
    state.is_none_or(|state| state == "disabled")
}

/// Name of the BPF scheduler that is loaded now.
pub(crate) fn loaded_scheduler() -> Option<String> {
    Root::default().loaded_scheduler()
}

/// True while corun's scheduler is loaded, by whatever process.
pub(crate) fn corun_is_loaded() -> bool {
    Root::default().runs_corun()
}

/// True when KVM can run guests and be listened to: its module has types, and the
/// vendor's module is there. Without the latter nobody uses kvm, and it should be
/// free to be unloaded.
pub(crate) fn kvm_is_ready() -> bool {
    kvm_has_btf()
        && ["kvm_amd", "kvm_intel"]
            .iter()
            .any(|vendor| Path::new("/sys/module").join(vendor).exists())
}

/// True when KVM's types can be read.
pub(crate) fn kvm_has_btf() -> bool {
    Path::new("/sys/kernel/btf/kvm").exists()
}

/// True when guests' registers can be read from KVM's memory: on AMD they are in
/// the VMCB, whose layout is in the vendor module's types.
pub(crate) fn vmcb_is_readable() -> bool {
    Path::new("/sys/kernel/btf/kvm_amd").exists()
}

/// Number of `cpu`'s last-level cache; 0 where the kernel does not say: one for all.
pub(crate) fn llc_of_cpu(cpu: usize) -> u16 {
    let cache = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    (2..=4)
        .rev()
        .find_map(|index| first_line(format!("{cache}/index{index}/id")))
        .and_then(|id| id.parse().ok())
        .unwrap_or(0)
}
