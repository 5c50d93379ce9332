// SPDX-License-Identifier: GPL-2.0-only
//! What a host has of all that corun can make use of. Features are probed, never
//! inferred from a kernel's version.

use crate::root::Root;
use serde::Serialize;

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

fn feature(name: &'static str, found: bool, detail: impl Into<String>) -> Feature {
    Feature {
        name,
        found,
        detail: detail.into(),
    }
}

/// What matters to the scheduler.
pub fn of_scheduling(root: &Root) -> Vec<Feature> {
    vec![
        sched_ext(root),
        kvm(root),
        ple(root),
        ipi_exits(root),
        halt_polling(root),
    ]
}

/// All.
pub fn all(root: &Root) -> Vec<Feature> {
    let mut all = vec![cpu(root), clock(root), vmlinux_types(root)];
    all.extend(of_scheduling(root));
    all.extend([
        interrupt_virtualization(root),
        kvm_counters(root),
        waiting_times(root),
        cgroups(root),
    ]);
    all
}

fn cpu(root: &Root) -> Feature {
    let name = root
        .cpuinfo("model name")
        .unwrap_or_else(|| "of an unknown model".to_owned());
    let online = root
        .line("sys/devices/system/cpu/online")
        .and_then(|list| crate::text::cpus_in_list(&list))
        .map_or_else(|| "?".to_owned(), |cpus| cpus.len().to_string());
    let smt = if has_smt(root) { "SMT on" } else { "no SMT" };
    feature("CPU", true, format!("{online} pCPUs, {smt}, {name}"))
}

/// True when two pCPUs share a core.
pub(crate) fn has_smt(root: &Root) -> bool {
    root.line("sys/devices/system/cpu/smt/active")
        .is_some_and(|active| active == "1")
}

/// The clock that the kernel reads.
pub(crate) fn clocksource(root: &Root) -> Option<String> {
    root.line("sys/devices/system/clocksource/clocksource0/current_clocksource")
}

fn clock(root: &Root) -> Feature {
    match clocksource(root) {
        Some(name) => feature("clock", true, name),
        None => feature("clock", false, "sysfs does not say which"),
    }
}

fn vmlinux_types(root: &Root) -> Feature {
    if root.has_types("vmlinux") {
        feature("BTF", true, "the kernel has type information")
    } else {
        feature("BTF", false, "no type information: no BPF program can load")
    }
}

fn sched_ext(root: &Root) -> Feature {
    match (root.sched_ext_state(), root.loaded_scheduler()) {
        (Some(_), Some(name)) => feature("sched_ext", true, format!("scheduler {name} is loaded")),
        (Some(state), None) => feature("sched_ext", true, format!("state {state}")),
        (None, _) => feature("sched_ext", false, "kernel without CONFIG_SCHED_CLASS_EXT"),
    }
}

const NO_VENDOR: &str = "kvm's vendor module is not loaded";

fn vendor_module(root: &Root) -> Option<&'static str> {
    ["kvm_amd", "kvm_intel"]
        .into_iter()
        .find(|module| root.exists(&format!("sys/module/{module}")))
}

fn kvm(root: &Root) -> Feature {
    match (
        root.has_types("kvm"),
        root.kvm_is_loaded(),
        vendor_module(root),
    ) {
        (true, _, Some(vendor)) => feature(
            "kvm",
            true,
            format!("loaded with {vendor}, with type information"),
        ),
        (true, _, None) => feature("kvm", true, "loaded, with type information"),
        (false, true, _) => feature(
            "kvm",
            false,
            "loaded without BTF: VMs cannot be discovered, all tasks are equal",
        ),
        (false, false, _) => feature(
            "kvm",
            false,
            "not loaded yet: VMs are discovered once it is",
        ),
    }
}

/// Pause-loop exiting as it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ple {
    /// A spinning vCPU exits; the parameters.
    On(String),
    /// The CPU can; the parameter that says no, and its module.
    Off(&'static str, &'static str),
    /// The CPU cannot, or kvm's vendor module is not loaded.
    Absent,
}

pub(crate) fn pause_loop_exiting(root: &Root) -> Ple {
    let intel = |name| root.parameter("kvm_intel", name);
    let amd = |name| root.parameter("kvm_amd", name);
    match (intel("ple_gap"), amd("pause_filter_count")) {
        (Some(gap), _) if gap == "0" => Ple::Off("kvm_intel", "ple_gap"),
        (Some(gap), _) => {
            let window = intel("ple_window").unwrap_or_default();
            Ple::On(format!("kvm_intel ple_gap {gap}, ple_window {window}"))
        }
        (None, Some(_)) if !root.cpu_has("pausefilter") => Ple::Absent,
        (None, Some(count)) if count == "0" => Ple::Off("kvm_amd", "pause_filter_count"),
        (None, Some(count)) => {
            let threshold = amd("pause_filter_thresh").unwrap_or_default();
            let filter = if root.cpu_has("pfthreshold") {
                format!(", pause_filter_thresh {threshold}")
            } else {
                ", no threshold in this CPU".to_owned()
            };
            Ple::On(format!("kvm_amd pause_filter_count {count}{filter}"))
        }
        (None, None) => Ple::Absent,
    }
}

/// Does KVM learn of vCPUs that spin, by pause-loop exits?
pub(crate) fn tells_of_spins(root: &Root) -> bool {
    matches!(pause_loop_exiting(root), Ple::On(_))
}

fn ple(root: &Root) -> Feature {
    match pause_loop_exiting(root) {
        Ple::On(parameters) => feature("PLE", true, parameters),
        Ple::Off(module, parameter) => feature(
            "PLE",
            false,
            format!("switched off: {module} {parameter} 0"),
        ),
        Ple::Absent => feature(
            "PLE",
            false,
            "no PLE: a spinning vCPU is noticed only by paravirtual yields and kicks",
        ),
    }
}

fn ipi_exits(root: &Root) -> Feature {
    if vendor_module(root).is_none() {
        return feature("IPI exits", false, NO_VENDOR);
    }
    let avic = root.switch("kvm_amd", "avic") == Some(true);
    let ipiv = root.switch("kvm_intel", "enable_ipiv") == Some(true);
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

fn interrupt_virtualization(root: &Root) -> Feature {
    let known: Vec<String> = [
        ("kvm_intel", "enable_apicv"),
        ("kvm_intel", "enable_ipiv"),
        ("kvm_amd", "avic"),
        ("kvm_amd", "vgif"),
    ]
    .into_iter()
    .filter_map(|(module, name)| {
        let state = if root.switch(module, name)? {
            "on"
        } else {
            "off"
        };
        Some(format!("{module} {name} {state}"))
    })
    .collect();
    let on = ["enable_apicv", "enable_ipiv"]
        .iter()
        .any(|name| root.switch("kvm_intel", name) == Some(true))
        || root.switch("kvm_amd", "avic") == Some(true);
    if known.is_empty() {
        return feature("APICv/AVIC", false, NO_VENDOR);
    }
    feature("APICv/AVIC", on, known.join(", "))
}

fn halt_polling(root: &Root) -> Feature {
    let Some(ns) = root.parameter("kvm", "halt_poll_ns") else {
        return feature("halt polling", false, "kvm not loaded");
    };
    let more: Vec<String> = ["grow", "grow_start", "shrink"]
        .iter()
        .filter_map(|name| {
            let value = root.parameter("kvm", &format!("halt_poll_ns_{name}"))?;
            Some(format!(", {name} {value}"))
        })
        .collect();
    feature(
        "halt polling",
        true,
        format!("halt_poll_ns {ns}{}", more.concat()),
    )
}

fn kvm_counters(root: &Root) -> Feature {
    if root.exists("sys/kernel/debug/kvm/exits") {
        feature("kvm counters", true, "in debugfs")
    } else {
        feature(
            "kvm counters",
            false,
            "none to be seen in /sys/kernel/debug/kvm: exits are not known",
        )
    }
}

fn waiting_times(root: &Root) -> Feature {
    if root.exists("proc/self/schedstat") || root.exists("proc/schedstat") {
        feature("waiting times", true, "/proc/PID/schedstat")
    } else {
        feature(
            "waiting times",
            false,
            "kernel without CONFIG_SCHEDSTATS: who waits for a pCPU is known to BPF alone",
        )
    }
}

fn cgroups(root: &Root) -> Feature {
    let controllers = root.line("sys/fs/cgroup/cgroup.controllers");
    match controllers {
        Some(c) if c.split_whitespace().any(|word| word == "cpu") => {
            feature("cgroup v2", true, format!("controllers {c}"))
        }
        Some(_) => feature("cgroup v2", false, "without the cpu controller: no weights"),
        None => feature("cgroup v2", false, "not in /sys/fs/cgroup: no weights"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tree::Tree;

    #[test]
    fn every_feature_explains_itself() {
        for f in all(&Root::default()) {
            assert!(!f.detail.is_empty(), "{}", f.name);
        }
    }

    #[test]
    fn ple_needs_the_cpu_and_the_parameter() {
        let tree = Tree::new();
        assert_eq!(pause_loop_exiting(&tree.root), Ple::Absent);
        tree.put("sys/module/kvm_amd/parameters/pause_filter_count", "3000");
        assert_eq!(pause_loop_exiting(&tree.root), Ple::Absent, "no flag");
        tree.put("proc/cpuinfo", "flags\t\t: fpu svm pausefilter\n");
        assert!(matches!(pause_loop_exiting(&tree.root), Ple::On(_)));
        tree.put("sys/module/kvm_amd/parameters/pause_filter_count", "0");
        assert_eq!(
            pause_loop_exiting(&tree.root),
            Ple::Off("kvm_amd", "pause_filter_count")
        );
        tree.put("sys/module/kvm_intel/parameters/ple_gap", "0");
        assert_eq!(
            pause_loop_exiting(&tree.root),
            Ple::Off("kvm_intel", "ple_gap")
        );
    }

    #[test]
    fn ipi_virtualization_hides_ipis() {
        let tree = Tree::kvm_host();
        assert!(ipi_exits(&tree.root).found);
        tree.put("sys/module/kvm_intel/parameters/enable_ipiv", "Y");
        assert!(!ipi_exits(&tree.root).found);
        assert!(interrupt_virtualization(&tree.root).found);
    }
}
