// SPDX-License-Identifier: GPL-2.0-only
//! Why corun's scheduler cannot or should not be loaded on this host.

use crate::hazards::{first_psi_trigger, first_task_with_cookie, has_psi_deadlock};
use crate::kfuncs;
use crate::root::Root;

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

/// Refuses when the scheduler cannot or should not be loaded here.
pub fn check(root: &Root, ignored_hazards: &[String]) -> Result<(), Refusal> {
    let release = root.kernel_release();
    // What the kernel lacks is told to everybody; only then are rights asked for.
    if root.sched_ext_state().is_none() {
        return Err(Refusal::NoSchedExt { release });
    }
    if !root.has_types("vmlinux") {
        return Err(Refusal::NoBtf { release });
    }
    if let Some(kfunc) = kfuncs::first_broken(root) {
        return Err(Refusal::BrokenKfuncs { release, kfunc });
    }
    if !nix::unistd::geteuid().is_root() {
        return Err(Refusal::NotRoot);
    }
    if let Some(name) = root.loaded_scheduler() {
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
        && let Some((pid, comm)) = first_psi_trigger(root)
    {
        return Err(Refusal::PsiTrigger { release, pid, comm });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_sched_ext_is_refused_by_name() {
        let root = Root::default();
        if root.sched_ext_state().is_some() {
            println!("SKIP: this kernel has sched_ext");
            return;
        }
        let refusal = check(&root, &[]).unwrap_err();
        assert!(matches!(refusal, Refusal::NoSchedExt { .. }), "{refusal}");
        assert!(
            refusal.to_string().contains("CONFIG_SCHED_CLASS_EXT"),
            "{refusal}"
        );
    }
}
