// SPDX-License-Identifier: GPL-2.0-only
//! Findings of the host itself, whatever runs on it.

use super::report::{Finding, Notes, Severity};
use crate::features::{self, Ple};
use crate::hazards;
use crate::kfuncs;
use crate::root::Root;

/// Clocks whose reading costs a microsecond and more: guests on them exit, and the
/// host's scheduler pays at each switch.
const SLOW_CLOCKS: [&str; 3] = ["acpi_pm", "hpet", "jiffies"];

/// Looks at the host. `cookie`: a task with a core-scheduling cookie, if one has it.
pub(super) fn check(root: &Root, cookie: Option<(i32, String)>, notes: &mut Notes) {
    kernel(root, notes);
    weights(root, notes);
    preemption(root, notes);
    clock(root, notes);
    pause_loops(root, notes);
    interrupts(root, notes);
    if root.sched_ext_state().is_some() {
        hazard_of_cookies(root, cookie, notes);
        hazard_of_psi(root, notes);
    }
    if !root.exists("sys/fs/cgroup/cgroup.controllers") {
        notes.find(Finding::new(
            "no-cgroup-v2",
            Severity::Note,
            "cgroup v2 is not mounted on /sys/fs/cgroup: VMs have no weights and limits that corun \
             can see",
            "boot with `systemd.unified_cgroup_hierarchy=1`",
        ));
    }
}

fn kernel(root: &Root, notes: &mut Notes) {
    let release = root.kernel_release();
    if root.kvm_is_loaded() && !(root.has_types("vmlinux") && root.has_types("kvm")) {
        notes.find(Finding::new(
            "no-btf",
            Severity::Warning,
            format!("kernel {release} has no type information for itself and kvm: corun is blind"),
            "use a kernel and kvm modules built with CONFIG_DEBUG_INFO_BTF=y and \
             CONFIG_DEBUG_INFO_BTF_MODULES=y",
        ));
    }
    match root.loaded_scheduler() {
        None if root.sched_ext_state().is_none() => notes.find(Finding::new(
            "no-sched-ext",
            Severity::Note,
            format!("kernel {release} has no sched_ext: corun can watch here, not schedule"),
            "use a kernel with CONFIG_SCHED_CLASS_EXT=y (Debian: trixie-backports, sid)",
        )),
        Some(name) if !name.starts_with("corun") => notes.find(
            Finding::new(
                "other-scheduler",
                Severity::Note,
                format!("the sched_ext scheduler {name} runs"),
                "to schedule with corun: stop it first, then `corun run`",
            )
            .seen(
                "public sched_ext schedulers ignore the target of a directed yield: KVM's yields \
                 to a lock's holder have no effect under them",
            ),
        ),
        _ => {}
    }
    if root.sched_ext_state().is_some()
        && let Some(kfunc) = kfuncs::first_broken(root)
    {
        notes.find(
            Finding::new(
                "broken-kfuncs",
                Severity::Warning,
                format!("no sched_ext scheduler can run on this build of kernel {release}"),
                "use another build of this kernel, or another version",
            )
            .seen(format!(
                "its BTF has no {kfunc}_impl, which the verifier needs for {kfunc}"
            )),
        );
    }
}

/// The kernel's fair class schedules vCPUs, and has chosen `mode` among those that its
/// `file` lists, the chosen one in parentheses.
fn fair_class_has(root: &Root, file: &str, mode: &str) -> bool {
    let modes = root.line(&format!("sys/kernel/debug/sched/{file}"));
    !root.runs_corun() && modes.is_some_and(|modes| modes.contains(&format!("({mode})")))
}

/// `calc_concur_shares()`: a group weighs its weight times its runnable average, rounded
/// down to whole tasks.
fn weights(root: &Root, notes: &mut Notes) {
    if !fair_class_has(root, "cgroup_mode", "concur") {
        return;
    }
    notes.find(
        Finding::new(
            "concurrent-weights",
            Severity::Note,
            "the kernel's scheduler lets a VM weigh less as soon as one of its vCPUs sleeps now \
             and then: of two VMs with two vCPUs each, one that always computes has two thirds of \
             a pCPU that both want",
            "`corun run`, whose shares do not change with sleep; or one weight for the host, as \
             before 7.3: `echo smp > /sys/kernel/debug/sched/cgroup_mode`",
        )
        .seen("cgroup_mode is concur"),
    );
}

/// `resched_curr_lazy()` sends no interrupt: a vCPU in its guest goes on until an exit.
fn preemption(root: &Root, notes: &mut Notes) {
    if !fair_class_has(root, "preempt", "lazy") {
        return;
    }
    notes.find(
        Finding::new(
            "lazy-preemption",
            Severity::Note,
            "the kernel's scheduler does not interrupt a vCPU for one that woke: that waits until \
             the other leaves its guest, at the latest for the host's next tick",
            "`corun run`, which interrupts it; or full preemption: \
             `echo full > /sys/kernel/debug/sched/preempt` (`preempt=full` on the kernel's \
             command line)",
        )
        .seen("preempt is lazy"),
    );
}

fn clock(root: &Root, notes: &mut Notes) {
    let Some(clock) = features::clocksource(root) else {
        return;
    };
    if SLOW_CLOCKS.contains(&clock.as_str()) {
        notes.find(
            Finding::new(
                "slow-clock",
                Severity::Warning,
                format!("the kernel's clock is {clock}: each reading costs a microsecond or more"),
                "find out why the TSC was given up: `dmesg | grep -i -e tsc -e clocksource`",
            )
            .seen(format!("clocksource {clock}")),
        );
    }
}

fn pause_loops(root: &Root, notes: &mut Notes) {
    match features::pause_loop_exiting(root) {
        Ple::Off(module, parameter) => notes.find(
            Finding::new(
                "ple-off",
                Severity::Warning,
                "pause-loop exiting is switched off: a spinning vCPU burns its whole slice",
                format!(
                    "with no VM running: `modprobe -r {module} && modprobe {module}`, and remove \
                     {parameter}=0 from /etc/modprobe.d"
                ),
            )
            .seen(format!("/sys/module/{module}/parameters/{parameter} is 0")),
        ),
        Ple::Absent if root.exists("sys/module/kvm_amd") || root.exists("sys/module/kvm_intel") => {
            notes.find(Finding::new(
                "no-ple",
                Severity::Note,
                "this CPU has no pause-loop exiting: KVM notices a spinning vCPU only when the \
                 guest says so",
                "give Linux guests `kvm-pv-unhalt=on`, so that waiters of a spinlock halt",
            ));
        }
        Ple::Absent | Ple::On(_) => {}
    }
}

fn interrupts(root: &Root, notes: &mut Notes) {
    for (module, parameter) in [("kvm_intel", "enable_ipiv"), ("kvm_amd", "avic")] {
        if root.switch(module, parameter) == Some(true) {
            notes.find(
                Finding::new(
                    "ipi-virtualization",
                    Severity::Note,
                    "IPIs between running vCPUs do not exit: they are fast, and corun cannot count \
                     them",
                    "nothing; only to see all IPIs: reload the module with the parameter off",
                )
                .seen(format!("{module} {parameter} is on")),
            );
        }
    }
}

fn hazard_of_cookies(root: &Root, cookie: Option<(i32, String)>, notes: &mut Notes) {
    let Some((tid, comm)) = cookie else {
        return;
    };
    let (severity, smt) = if features::has_smt(root) {
        (Severity::Warning, "SMT is on")
    } else {
        (Severity::Note, "SMT is off: cookies have no effect")
    };
    notes.find(
        Finding::new(
            "core-scheduling",
            severity,
            "tasks have core-scheduling cookies, with which some kernels hang under sched_ext",
            "start Cloud Hypervisor with `--core-scheduling off`, or do not load a sched_ext \
             scheduler",
        )
        .seen(format!("task {tid} ({comm}) has one; {smt}"))
        .seen("sched_ext/scx issue 3715"),
    );
}

fn hazard_of_psi(root: &Root, notes: &mut Notes) {
    let release = root.kernel_release();
    if !hazards::has_psi_deadlock(&release) {
        return;
    }
    let Some((pid, comm)) = hazards::first_psi_trigger(root) else {
        return;
    };
    notes.find(
        Finding::new(
            "psi-trigger",
            Severity::Warning,
            format!("kernel {release} can deadlock when a sched_ext scheduler is loaded here"),
            "use another kernel, or stop the process before `corun run` (systemd-oomd: \
             `systemctl stop systemd-oomd`)",
        )
        .seen(format!("process {pid} ({comm}) has a PSI trigger armed"))
        .seen("sched_ext/scx issue 3716"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tree::Tree;

    fn ids(tree: &Tree, cookie: Option<(i32, String)>) -> Vec<&'static str> {
        let mut notes = Notes::default();
        check(&tree.root, cookie, &mut notes);
        notes.findings.iter().map(|f| f.id).collect()
    }

    #[test]
    fn a_host_with_everything_has_no_findings() {
        assert!(ids(&Tree::kvm_host(), None).is_empty());
    }

    #[test]
    fn each_lack_is_found_by_its_name() {
        for (path, text, id) in [
            (
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "hpet",
                "slow-clock",
            ),
            (
                "sys/kernel/debug/sched/cgroup_mode",
                "up smp (concur) max tasks",
                "concurrent-weights",
            ),
            (
                "sys/kernel/debug/sched/preempt",
                "full (lazy)",
                "lazy-preemption",
            ),
            (
                "sys/module/kvm_amd/parameters/pause_filter_count",
                "0",
                "ple-off",
            ),
            ("proc/cpuinfo", "flags\t: fpu svm\n", "no-ple"),
            (
                "sys/module/kvm_amd/parameters/avic",
                "Y",
                "ipi-virtualization",
            ),
        ] {
            let tree = Tree::kvm_host();
            tree.put(path, text);
            assert_eq!(ids(&tree, None), [id], "{path}");
        }
        for (path, id) in [
            ("sys/kernel/btf/kvm", "no-btf"),
            ("sys/kernel/sched_ext", "no-sched-ext"),
            ("sys/fs/cgroup/cgroup.controllers", "no-cgroup-v2"),
        ] {
            let tree = Tree::kvm_host();
            tree.remove(path);
            assert_eq!(ids(&tree, None), [id], "{path}");
        }
    }

    #[test]
    fn another_scheduler_is_named() {
        let tree = Tree::kvm_host();
        tree.put("sys/kernel/sched_ext/state", "enabled");
        tree.put("sys/kernel/sched_ext/root/ops", "rusty_1.1");
        tree.put(
            "sys/kernel/debug/sched/cgroup_mode",
            "up (smp) concur max tasks",
        );
        assert_eq!(ids(&tree, None), ["other-scheduler"]);
        tree.put(
            "sys/kernel/debug/sched/cgroup_mode",
            "up smp (concur) max tasks",
        );
        tree.put("sys/kernel/debug/sched/preempt", "full (lazy)");
        tree.put("sys/kernel/sched_ext/root/ops", "corun");
        assert!(ids(&tree, None).is_empty());
    }

    #[test]
    fn hazards_are_told_before_they_strike() {
        let tree = Tree::kvm_host();
        let cookie = Some((812, "cloud-hyperviso".to_owned()));
        assert_eq!(ids(&tree, cookie), ["core-scheduling"]);
        tree.put("proc/sys/kernel/osrelease", "7.1.4-test");
        tree.process(77, "systemd-oomd", &["/proc/pressure/memory"]);
        assert_eq!(ids(&tree, None), ["psi-trigger"]);
        tree.remove("sys/kernel/sched_ext");
        assert_eq!(ids(&tree, None), ["no-sched-ext"], "nothing can be loaded");
    }
}
