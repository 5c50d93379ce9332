// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel says of itself, KVM and sched_ext.

use crate::text::first_line;
use std::path::Path;

/// Release of the running kernel (`uname -r`).
pub(crate) fn kernel_release() -> String {
    nix::sys::utsname::uname().map_or_else(
        |_| "unknown".to_owned(),
        |u| u.release().to_string_lossy().into_owned(),
    )
}

/// sched_ext's state as the kernel prints it; `None` without sched_ext.
pub(crate) fn sched_ext_state() -> Option<String> {
    first_line("/sys/kernel/sched_ext/state")
}

/// Name of the BPF scheduler that is loaded now.
pub(crate) fn loaded_scheduler() -> Option<String> {
    if sched_ext_state()? != "enabled" {
        return None;
    }
    first_line("/sys/kernel/sched_ext/root/ops").or_else(|| Some("unknown".to_owned()))
}

/// True while corun's scheduler is loaded, by whatever process.
pub(crate) fn corun_is_loaded() -> bool {
    loaded_scheduler().is_some_and(|name| name.starts_with("corun"))
}

/// True when the kvm module is there with the types that discovery reads.
pub(crate) fn kvm_is_loaded() -> bool {
    Path::new("/sys/kernel/btf/kvm").exists() || Path::new("/sys/module/kvm/initstate").exists()
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

/// A parameter of one of KVM's modules; `None` when the module or it is missing.
pub(crate) fn module_parameter(module: &str, parameter: &str) -> Option<String> {
    first_line(format!("/sys/module/{module}/parameters/{parameter}"))
}

/// True when the CPU has `flag` in /proc/cpuinfo.
pub(crate) fn cpu_has(flag: &str) -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
        text.lines()
            .find(|line| line.starts_with("flags"))
            .is_some_and(|line| line.split_whitespace().any(|word| word == flag))
    })
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
