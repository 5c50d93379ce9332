// SPDX-License-Identifier: GPL-2.0-only
//! Where the kernel and we keep what concerns halt polling.

use std::path::{Path, PathBuf};

/// Files and folders; tests put them elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// KVM's parameter `halt_poll_ns`. Nanoseconds.
    pub(super) parameter: PathBuf,
    /// KVM's counters, summed over the VMs that live.
    pub(super) counters: PathBuf,
    /// Which pCPUs are online.
    pub(super) online: PathBuf,
    /// procfs: boot id, processes, waiting times.
    pub(super) proc: PathBuf,
    /// What is to be undone if we are killed.
    pub(super) left: PathBuf,
}

impl Places {
    /// Below `root`; `/` is the host.
    pub(crate) fn below(root: &Path) -> Self {
        Self {
            parameter: root.join("sys/module/kvm/parameters/halt_poll_ns"),
            counters: root.join("sys/kernel/debug/kvm"),
            online: root.join("sys/devices/system/cpu/online"),
            proc: root.join("proc"),
            left: root.join("run/corun/halt-polling.json"),
        }
    }
}

impl Default for Places {
    fn default() -> Self {
        Self::below(Path::new("/"))
    }
}
