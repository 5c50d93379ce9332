// SPDX-License-Identifier: GPL-2.0-only
//! Known hazards of loading a sched_ext scheduler. A hazard that is a kernel bug
//! can only be known by the kernel's version, and says so.

use crate::root::Root;
use std::path::Path;

/// Names that `--ignore-hazard` takes.
pub const HAZARDS: [&str; 2] = ["core-sched", "psi-trigger"];

/// The 7.1 series deadlocks between PSI triggers and enabling a scheduler.
pub(crate) fn has_psi_deadlock(release: &str) -> bool {
    release.starts_with("7.1.") || release == "7.1"
}

/// A task that shares its core only with its like (prctl `PR_SCHED_CORE`), and
/// its name. Asks the running kernel.
pub(crate) fn first_task_with_cookie() -> Option<(i32, String)> {
    let root = Root::default();
    for pid in root.processes() {
        for tid in root.threads(pid) {
            match core_cookie(tid) {
                Some(0) => {}
                Some(_) => return Some((tid, root.comm(pid))),
                // No SMT or no core scheduling in this kernel: no cookies at all.
                None if nix::errno::Errno::last() != nix::errno::Errno::ESRCH => return None,
                None => {}
            }
        }
    }
    None
}

fn core_cookie(tid: i32) -> Option<u64> {
    const PR_SCHED_CORE_GET: libc::c_ulong = 0;
    const PIDTYPE_PID: libc::c_ulong = 0;
    let mut cookie: u64 = 0;
    // SAFETY: the kernel writes one u64 to the pointer, which lives through the call.
    let ret = unsafe {
        libc::prctl(
            libc::PR_SCHED_CORE,
            PR_SCHED_CORE_GET,
            libc::c_ulong::from(tid.unsigned_abs()),
            PIDTYPE_PID,
            &raw mut cookie,
        )
    };
    (ret == 0).then_some(cookie)
}

/// A process that holds a pressure file open for writing: that is a trigger.
pub(crate) fn first_psi_trigger(root: &Root) -> Option<(i32, String)> {
    root.processes().into_iter().find_map(|pid| {
        let open = root.descriptors(pid).ok()?;
        open.iter()
            .any(|target| is_pressure_file(target))
            .then(|| (pid, root.comm(pid)))
    })
}

fn is_pressure_file(path: &Path) -> bool {
    path.starts_with("/proc/pressure")
        || path
            .file_name()
            .and_then(|n| n.to_str())
            .is_some_and(|n| n.ends_with(".pressure"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_71_series_has_the_psi_deadlock() {
        assert!(has_psi_deadlock("7.1.13+deb13-amd64"));
        assert!(!has_psi_deadlock("7.10.1"));
        assert!(!has_psi_deadlock("7.2.12+deb13-amd64"));
    }

    #[test]
    fn pressure_files_are_recognized_in_proc_and_cgroups() {
        assert!(is_pressure_file(Path::new("/proc/pressure/memory")));
        assert!(is_pressure_file(Path::new(
            "/sys/fs/cgroup/x.slice/memory.pressure"
        )));
        assert!(!is_pressure_file(Path::new("/proc/meminfo")));
    }
}
