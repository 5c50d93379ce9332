// SPDX-License-Identifier: GPL-2.0-only
//! What this host has and lacks, and the known hazards that corun refuses to
//! run into. Features are probed, never inferred from a version; a hazard that
//! is a kernel bug can only be known by its version, and says so.

use crate::{host_info, kfuncs};
use serde::Serialize;
use std::path::Path;

/// Something corun can use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Feature {
    /// Short name.
    pub name: &'static str,
    /// Whether this host has it.
    pub found: bool,
    /// What was seen, or what is lost without it.
    pub detail: String,
}

/// Why corun does not load its scheduler here.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refusal {
    /// Not root.
    #[error("loading a scheduler needs root (CAP_SYS_ADMIN and CAP_BPF): run `sudo corun run`")]
    NotRoot,
    /// Kernel without sched_ext.
    #[error(
        "kernel {release} has no sched_ext: corun's scheduler needs a kernel built with \
         CONFIG_SCHED_CLASS_EXT=y (Debian has it in the kernels of trixie-backports and sid); \
         nothing was changed"
    )]
    NoSchedExt {
        /// `uname -r`.
        release: String,
    },
    /// Kernel without type information.
    #[error(
        "kernel {release} has no BTF (/sys/kernel/btf/vmlinux): corun needs a kernel built with \
         CONFIG_DEBUG_INFO_BTF=y"
    )]
    NoBtf {
        /// `uname -r`.
        release: String,
    },
    /// Kernel whose type information was made by too old a tool.
    #[error(
        "kernel {release} cannot run any sched_ext scheduler: its BTF has no {kfunc}_impl, which \
         the verifier needs for {kfunc} (the kernel was built with a pahole that loses kfuncs' \
         tags). Next: another build of this kernel, or another version; Debian's 7.2.12 of \
         trixie-backports is affected, its 7.2.13 and 7.3.4 are not; nothing was changed"
    )]
    BrokenKfuncs {
        /// `uname -r`.
        release: String,
        /// The first function that cannot be called.
        kfunc: &'static str,
    },
    /// Another scheduler is loaded.
    #[error(
        "the sched_ext scheduler {name:?} is loaded already: stop it first (its process, or \
         `systemctl stop scx`), then start corun again"
    )]
    OtherScheduler {
        /// Its name.
        name: String,
    },
    /// Tasks with core-scheduling cookies.
    #[error(
        "hazard core-sched: process {pid} ({comm}) has a core-scheduling cookie, and some kernels \
         hang with cookies under sched_ext (sched_ext/scx issue 3715). Cloud Hypervisor sets them \
         by default: start it with `--core-scheduling off`, or switch SMT off; if your kernel is \
         known good: `--ignore-hazard core-sched`"
    )]
    CoreSchedCookies {
        /// A task that has one.
        pid: i32,
        /// Its name.
        comm: String,
    },
    /// PSI triggers on a kernel that can deadlock.
    #[error(
        "hazard psi-trigger: kernel {release} can deadlock when a sched_ext scheduler is loaded \
         while PSI triggers are armed (sched_ext/scx issue 3716), and process {pid} ({comm}) has \
         one open. Use another kernel, stop that process (systemd-oomd is a usual one), or take \
         the risk: `--ignore-hazard psi-trigger`"
    )]
    PsiTrigger {
        /// `uname -r`.
        release: String,
        /// Who has a trigger.
        pid: i32,
        /// Its name.
        comm: String,
    },
}

/// Names that `--ignore-hazard` takes.
pub const HAZARDS: [&str; 2] = ["core-sched", "psi-trigger"];

/// Refuses when the scheduler cannot or should not be loaded here.
pub fn check(ignored_hazards: &[String]) -> Result<(), Refusal> {
    let release = host_info::kernel_release();
    // What the kernel lacks is told to everybody; only then are rights asked for.
    if host_info::sched_ext_state().is_none() {
        return Err(Refusal::NoSchedExt { release });
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Refusal::NoBtf { release });
    }
    if let Some(kfunc) = kfuncs::first_broken() {
        return Err(Refusal::BrokenKfuncs { release, kfunc });
    }
    if !nix::unistd::geteuid().is_root() {
        return Err(Refusal::NotRoot);
    }
    if let Some(name) = host_info::loaded_scheduler() {
        return Err(Refusal::OtherScheduler { name });
    }
    let ignored = |hazard: &str| ignored_hazards.iter().any(|h| h == hazard);
    if !ignored("core-sched")
        && let Some((pid, comm)) = first_task_with_cookie()
    {
        return Err(Refusal::CoreSchedCookies { pid, comm });
    }
    if !ignored("psi-trigger")
        && has_psi_deadlock(&release)
        && let Some((pid, comm)) = first_psi_trigger()
    {
        return Err(Refusal::PsiTrigger { release, pid, comm });
    }
    Ok(())
}

/// The 7.1 series deadlocks between PSI triggers and enabling a scheduler.
fn has_psi_deadlock(release: &str) -> bool {
    release.starts_with("7.1.") || release == "7.1"
}

fn processes() -> impl Iterator<Item = i32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn comm_of(pid: i32) -> String {
    crate::text::first_line(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// A task that shares its core only with its like (prctl `PR_SCHED_CORE`).
fn first_task_with_cookie() -> Option<(i32, String)> {
    for pid in processes() {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten();
        for tid in tasks.filter_map(|t| t.ok()?.file_name().to_str()?.parse::<i32>().ok()) {
            match core_cookie(tid) {
                Some(0) => {}
                Some(_) => return Some((tid, comm_of(pid))),
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
fn first_psi_trigger() -> Option<(i32, String)> {
    processes().find_map(|pid| {
        let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        fds.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok())
            .any(|target| is_pressure_file(&target))
            .then(|| (pid, comm_of(pid)))
    })
}

fn is_pressure_file(path: &Path) -> bool {
    path.starts_with("/proc/pressure")
        || path
            .file_name()
            .and_then(|n| n.to_str())
            .is_some_and(|n| n.ends_with(".pressure"))
}

/// Everything that corun can make use of, found or not.
pub fn features() -> Vec<Feature> {
    vec![
        sched_ext(),
        kvm_types(),
        ple(),
        ipi_visibility(),
        halt_polling(),
    ]
}

fn feature(name: &'static str, found: bool, detail: impl Into<String>) -> Feature {
    Feature {
        name,
        found,
        detail: detail.into(),
    }
}

fn sched_ext() -> Feature {
    match host_info::sched_ext_state() {
        Some(state) => feature("sched_ext", true, format!("state {state}")),
        None => feature("sched_ext", false, "kernel without CONFIG_SCHED_CLASS_EXT"),
    }
}

fn kvm_types() -> Feature {
    if host_info::kvm_has_btf() {
        feature("kvm", true, "loaded, with type information")
    } else if host_info::kvm_is_loaded() {
        feature(
            "kvm",
            false,
            "loaded without BTF: VMs cannot be discovered, all tasks are equal",
        )
    } else {
        feature(
            "kvm",
            false,
            "not loaded yet: VMs are discovered once it is",
        )
    }
}

fn ple() -> Feature {
    let intel = host_info::module_parameter("kvm_intel", "ple_gap");
    let amd = host_info::module_parameter("kvm_amd", "pause_filter_count");
    match (intel, amd) {
        (Some(gap), _) if gap != "0" => feature("PLE", true, format!("kvm_intel ple_gap {gap}")),
        (_, Some(count)) if count != "0" && host_info::cpu_has("pausefilter") => {
            feature("PLE", true, format!("kvm_amd pause_filter_count {count}"))
        }
        _ => feature(
            "PLE",
            false,
            "no PLE: a spinning vCPU is noticed only by paravirtual yields and kicks",
        ),
    }
}

fn ipi_visibility() -> Feature {
    let yes = |value: Option<String>| value.is_some_and(|v| v == "Y" || v == "1");
    let avic = yes(host_info::module_parameter("kvm_amd", "avic"));
    let ipiv = yes(host_info::module_parameter("kvm_intel", "enable_ipiv"));
    if avic || ipiv {
        feature(
            "IPI exits",
            false,
            "IPI virtualization is on: IPIs between running vCPUs are not seen",
        )
    } else {
        feature(
            "IPI exits",
            true,
            "every IPI exits, so sender and target are known",
        )
    }
}

fn halt_polling() -> Feature {
    match host_info::module_parameter("kvm", "halt_poll_ns") {
        Some(ns) => feature("halt polling", true, format!("halt_poll_ns {ns}")),
        None => feature("halt polling", false, "kvm not loaded"),
    }
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

    #[test]
    fn a_host_without_sched_ext_is_refused_by_name() {
        if host_info::sched_ext_state().is_some() {
            println!("SKIP: this kernel has sched_ext");
            return;
        }
        let refusal = check(&[]).unwrap_err();
        assert!(matches!(refusal, Refusal::NoSchedExt { .. }), "{refusal}");
        assert!(
            refusal.to_string().contains("CONFIG_SCHED_CLASS_EXT"),
            "{refusal}"
        );
    }

    #[test]
    fn every_feature_explains_itself() {
        for f in features() {
            assert!(!f.detail.is_empty(), "{}", f.name);
        }
    }
}
