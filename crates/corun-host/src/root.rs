// SPDX-License-Identifier: GPL-2.0-only
//! The host's files. `/` is this host; tests lay a tree elsewhere.

use crate::text::first_line;
use std::io::Result;
use std::path::{Path, PathBuf};

/// Where the host's files begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self::below(Path::new("/"))
    }
}

impl Root {
    /// A host whose `/proc`, `/sys` and `/run` are in `folder`.
    pub fn below(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// A file, by its path without the leading slash.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.0.join(relative.trim_start_matches('/'))
    }

    pub(crate) fn exists(&self, relative: &str) -> bool {
        self.path(relative).exists()
    }

    pub(crate) fn text(&self, relative: &str) -> Result<String> {
        std::fs::read_to_string(self.path(relative))
    }

    /// First line; `None` when the file cannot be read.
    pub(crate) fn line(&self, relative: &str) -> Option<String> {
        first_line(self.path(relative))
    }

    /// Release of the running kernel (`uname -r`).
    pub(crate) fn kernel_release(&self) -> String {
        self.line("proc/sys/kernel/osrelease")
            .unwrap_or_else(|| "unknown".to_owned())
    }

    /// sched_ext's state as the kernel prints it; `None` without sched_ext.
    pub(crate) fn sched_ext_state(&self) -> Option<String> {
        self.line("sys/kernel/sched_ext/state")
    }

    /// Name of the BPF scheduler that is loaded now.
    pub(crate) fn loaded_scheduler(&self) -> Option<String> {
        if self.sched_ext_state()? != "enabled" {
            return None;
        }
        self.line("sys/kernel/sched_ext/root/ops")
            .or_else(|| Some("unknown".to_owned()))
    }

    /// True while corun's scheduler is loaded, by whatever process.
    pub(crate) fn runs_corun(&self) -> bool {
        self.loaded_scheduler()
            .is_some_and(|name| name.starts_with("corun"))
    }

    /// True while kvm is there, built in or as a module.
    pub(crate) fn kvm_is_loaded(&self) -> bool {
        self.has_types("kvm") || self.exists("sys/module/kvm/initstate")
    }

    /// True when the types of a module, or of `vmlinux`, can be read.
    pub(crate) fn has_types(&self, module: &str) -> bool {
        self.exists(&format!("sys/kernel/btf/{module}"))
    }

    /// A module's parameter; `None` when the module or it is missing.
    pub(crate) fn parameter(&self, module: &str, parameter: &str) -> Option<String> {
        self.line(&format!("sys/module/{module}/parameters/{parameter}"))
    }

    /// A parameter that is on or off.
    pub(crate) fn switch(&self, module: &str, parameter: &str) -> Option<bool> {
        self.parameter(module, parameter)
            .map(|v| v == "Y" || v == "1")
    }

    /// The first line of /proc/cpuinfo that is named `key`, without the name.
    pub(crate) fn cpuinfo(&self, key: &str) -> Option<String> {
        let text = self.text("proc/cpuinfo").ok()?;
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    }

    /// True when the CPU has `flag`, of the CPU itself or of VMX.
    pub(crate) fn cpu_has(&self, flag: &str) -> bool {
        ["flags", "vmx flags"].iter().any(|key| {
            self.cpuinfo(key)
                .is_some_and(|flags| flags.split_whitespace().any(|word| word == flag))
        })
    }

    /// Processes, by number.
    pub(crate) fn processes(&self) -> Vec<i32> {
        self.numbers("proc")
    }

    /// Threads of a process, by number.
    pub(crate) fn threads(&self, pid: i32) -> Vec<i32> {
        self.numbers(&format!("proc/{pid}/task"))
    }

    fn numbers(&self, folder: &str) -> Vec<i32> {
        let mut numbers: Vec<i32> = std::fs::read_dir(self.path(folder))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// What a process has open; an error without the right to look.
    pub(crate) fn descriptors(&self, pid: i32) -> Result<Vec<PathBuf>> {
        let folder = std::fs::read_dir(self.path(&format!("proc/{pid}/fd")))?;
        // A descriptor that was closed meanwhile is no loss.
        Ok(folder
            .filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok())
            .collect())
    }

    /// A process' name, empty when it has ended.
    pub(crate) fn comm(&self, pid: i32) -> String {
        self.line(&format!("proc/{pid}/comm")).unwrap_or_default()
    }
}
