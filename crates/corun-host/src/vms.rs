// SPDX-License-Identifier: GPL-2.0-only
//! What a VM is to an operator: its name and its weight.

use crate::root::Root;
use crate::text::cpus_in_list;
use serde::Serialize;
use std::collections::BTreeSet;

/// Weight of a cgroup that says nothing else (kernel: `CGROUP_WEIGHT_DFL`).
const DEFAULT_WEIGHT: u32 = 100;

/// A VM that the scheduler found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Vm {
    /// Slot in the scheduler's table.
    pub(crate) slot: usize,
    /// Counts the VMs that this slot had.
    pub(crate) generation: u32,
    /// Name from the VMM's command line, else `pid-<VMM's pid>`.
    pub(crate) name: String,
    /// Process of the VMM.
    pub(crate) pid: u32,
    /// vCPU threads seen so far.
    pub(crate) vcpus: u32,
    /// pCPUs that they may run on, all told; 0: not known.
    pub(crate) pcpus: u32,
    /// cgroup v2 cpu.weight.
    pub(crate) weight: u32,
    /// CPU time used by all its threads since it was found. Nanoseconds.
    pub(crate) used_ns: u64,
}

/// The VM's name as its VMM was told: QEMU's `-name guest=NAME,...` or `-name NAME`.
pub(crate) fn name_of(root: &Root, pid: u32) -> String {
    name_from_arguments(&arguments_of(root, pid)).unwrap_or_else(|| format!("pid-{pid}"))
}

/// A process' command line, empty when it cannot be read.
pub(crate) fn arguments_of(root: &Root, pid: u32) -> Vec<String> {
    let bytes = std::fs::read(root.path(&format!("proc/{pid}/cmdline"))).unwrap_or_default();
    bytes
        .split(|b| *b == 0)
        .map(|a| String::from_utf8_lossy(a).into_owned())
        .collect()
}

fn name_from_arguments(args: &[String]) -> Option<String> {
    let at = args.iter().position(|a| a == "-name" || a == "--name")?;
    let value = args.get(at + 1)?;
    let name = value
        .split(',')
        .find_map(|part| part.strip_prefix("guest="))
        .or_else(|| value.split(',').next())?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The weight of the VM's cgroup; 100 where there is none.
pub(crate) fn weight_of(root: &Root, pid: u32) -> u32 {
    let Some(path) = unified_cgroup(root, &format!("proc/{pid}")) else {
        return DEFAULT_WEIGHT;
    };
    root.line(&cgroup_file(vm_cgroup(&path), "cpu.weight"))
        .and_then(|w| w.parse().ok())
        .unwrap_or(DEFAULT_WEIGHT)
}

/// How many CPUs the threads `tids` may run on, all told; those that are gone count for
/// nothing.
pub(crate) fn cpus_of(root: &Root, tids: impl IntoIterator<Item = u32>) -> u32 {
    let tids = tids.into_iter();
    let all: BTreeSet<u32> = tids
        .filter_map(|tid| allowed_cpus(root, &format!("proc/{tid}")))
        .flatten()
        .collect();
    u32::try_from(all.len()).unwrap_or(u32::MAX)
}

/// CPUs that the process or thread whose folder in /proc is `of` may run on.
pub(crate) fn allowed_cpus(root: &Root, of: &str) -> Option<BTreeSet<u32>> {
    let status = root.text(&format!("{of}/status")).ok()?;
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    cpus_in_list(list.trim())
}

/// A file of the cgroup `group`, which begins with a slash.
pub(crate) fn cgroup_file(group: &str, file: &str) -> String {
    format!("sys/fs/cgroup/{}/{file}", group.trim_matches('/'))
}

/// The cgroup (version 2) of the process or thread whose folder in /proc is `of`.
pub(crate) fn unified_cgroup(root: &Root, of: &str) -> Option<String> {
    root.text(&format!("{of}/cgroup"))
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("0::").map(str::to_owned))
}

/// The cgroup that stands for the whole VM: libvirt puts the threads of one VM
/// into children (`libvirt/emulator`, `libvirt/vcpu0`) whose weights only divide
/// what the VM has.
pub(crate) fn vm_cgroup(path: &str) -> &str {
    let mut group = path;
    loop {
        let (parent, last) = match group.rsplit_once('/') {
            Some((parent, last)) if !parent.is_empty() => (parent, last),
            _ => return group,
        };
        let is_vcpu = last
            .strip_prefix("vcpu")
            .is_some_and(|n| n.parse::<u32>().is_ok());
        if !(is_vcpu || last == "emulator" || last == "libvirt" || last.starts_with("iothread")) {
            return group;
        }
        group = parent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_names_in_both_forms() {
        let name = |line: &str| {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            name_from_arguments(&args)
        };
        assert_eq!(
            name("qemu -name guest=web-1,debug-threads=on -m 192").as_deref(),
            Some("web-1")
        );
        assert_eq!(name("qemu -name db").as_deref(), Some("db"));
        assert_eq!(name("qemu -m 192"), None);
        assert_eq!(name("qemu -name"), None);
    }

    #[test]
    fn libvirts_inner_groups_are_not_the_vm() {
        let scope = "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope";
        assert_eq!(vm_cgroup(&format!("{scope}/libvirt/emulator")), scope);
        assert_eq!(vm_cgroup(&format!("{scope}/libvirt/vcpu12")), scope);
        assert_eq!(vm_cgroup("/corun-lab/a"), "/corun-lab/a");
        assert_eq!(vm_cgroup("/"), "/");
    }

    #[test]
    fn where_threads_may_run_is_counted_all_told() {
        let dir = tempfile::tempdir().expect("a folder");
        let threads = [(7, "0"), (8, "0-2,5"), (9, "5-6"), (10, "nonsense")];
        for (tid, list) in threads {
            let of = dir.path().join(format!("proc/{tid}"));
            std::fs::create_dir_all(&of).expect("a folder");
            let status = format!("Name:\tCPU\nCpus_allowed_list:\t{list}\nSeccomp:\t0\n");
            std::fs::write(of.join("status"), status).expect("a file");
        }
        let root = Root::below(dir.path());
        assert_eq!(cpus_of(&root, [7]), 1);
        assert_eq!(cpus_of(&root, [7, 8, 9]), 5);
        assert_eq!(cpus_of(&root, [10, 11]), 0);
        assert_eq!(cpus_of(&root, []), 0);
    }

    #[test]
    fn a_process_without_a_name_is_told_by_pid() {
        let root = Root::default();
        assert_eq!(name_of(&root, u32::MAX), format!("pid-{}", u32::MAX));
        assert_eq!(weight_of(&root, u32::MAX), 100);
    }
}
