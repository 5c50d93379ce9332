// SPDX-License-Identifier: GPL-2.0-only
//! A folder that stands for a host.

use crate::root::Root;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

pub(crate) struct Tree {
    folder: TempDir,
    pub(crate) root: Root,
}

impl Tree {
    /// An empty host.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::below(folder.path());
        Self { folder, root }
    }

    /// An AMD host of two pCPUs with everything that corun can use, and no VM.
    pub(crate) fn kvm_host() -> Self {
        let tree = Self::new();
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "7.3.4-test"),
            (
                "proc/cpuinfo",
                "vendor_id\t: AuthenticAMD\nmodel name\t: Test CPU\n\
                 flags\t\t: fpu svm pausefilter pfthreshold\n",
            ),
            ("proc/schedstat", "version 17\n"),
            ("sys/devices/system/cpu/online", "0-1"),
            ("sys/devices/system/cpu/smt/active", "0"),
            (
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "tsc",
            ),
            ("sys/kernel/btf/vmlinux", ""),
            ("sys/kernel/btf/kvm", ""),
            ("sys/kernel/btf/kvm_amd", ""),
            ("sys/kernel/sched_ext/state", "disabled"),
            ("sys/kernel/debug/kvm/exits", "0"),
            ("sys/module/kvm/initstate", "live"),
            ("sys/module/kvm/parameters/halt_poll_ns", "200000"),
            ("sys/module/kvm/parameters/halt_poll_ns_grow", "2"),
            ("sys/module/kvm_amd/parameters/avic", "N"),
            ("sys/module/kvm_amd/parameters/pause_filter_count", "3000"),
            ("sys/module/kvm_amd/parameters/pause_filter_thresh", "128"),
            ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory"),
        ] {
            tree.put(path, text);
        }
        tree.put("proc/kallsyms", &crate::events::kallsyms_without(&[]));
        tree
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("has a folder")).expect("mkdir");
        fs::write(path, text).expect("written");
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.folder.path().join(path);
        if path.is_dir() {
            fs::remove_dir_all(path).expect("removed");
        } else {
            fs::remove_file(path).expect("removed");
        }
    }

    /// A process with what it has open.
    pub(crate) fn process(&self, pid: i32, comm: &str, open: &[&str]) {
        self.put(&format!("proc/{pid}/comm"), comm);
        let folder = self.folder.path().join(format!("proc/{pid}/fd"));
        fs::create_dir_all(&folder).expect("mkdir");
        for (number, target) in open.iter().enumerate() {
            symlink(target, folder.join(number.to_string())).expect("linked");
        }
    }

    /// A QEMU of `vcpus` vCPUs that may use the pCPUs of the list `cpus`, in the
    /// cgroup `/machine/NAME`.
    pub(crate) fn vm(&self, pid: i32, name: &str, vcpus: i32, cpus: &str, cpu_option: &str) {
        // QEMU also keeps descriptors of statistics open.
        let numbered: Vec<String> = ["kvm-vcpu", "kvm-vcpu-stats"]
            .iter()
            .flat_map(|kind| (0..vcpus).map(move |n| format!("anon_inode:{kind}:{n}")))
            .collect();
        let mut open = vec!["anon_inode:kvm-vm", "/dev/kvm"];
        open.extend(numbered.iter().map(String::as_str));
        self.process(pid, "qemu-system-x86", &open);
        self.put(
            &format!("proc/{pid}/cmdline"),
            &format!("qemu\0-name\0guest={name},debug-threads=on\0-cpu\0{cpu_option}\0"),
        );
        let group = format!("/machine/{name}");
        self.put(&format!("proc/{pid}/cgroup"), &format!("0::{group}\n"));
        self.put(&format!("sys/fs/cgroup{group}/cpu.weight"), "100");
        for n in 0..vcpus {
            self.thread(pid, pid + 1 + n, &format!("CPU {n}/KVM"), cpus);
            let tid = pid + 1 + n;
            self.put(
                &format!("proc/{pid}/task/{tid}/cgroup"),
                &format!("0::{group}\n"),
            );
        }
    }

    fn thread(&self, pid: i32, tid: i32, comm: &str, cpus: &str) {
        let folder = format!("proc/{pid}/task/{tid}");
        self.put(&format!("{folder}/comm"), comm);
        self.put(
            &format!("{folder}/status"),
            &format!("Name:\t{comm}\nCpus_allowed_list:\t{cpus}\n"),
        );
        self.ran(pid, tid, 0, 0);
    }

    /// Sets how long a thread ran and waited. Nanoseconds.
    pub(crate) fn ran(&self, pid: i32, tid: i32, run_ns: u64, wait_ns: u64) {
        let path = format!("proc/{pid}/task/{tid}/schedstat");
        self.put(&path, &format!("{run_ns} {wait_ns} 7\n"));
    }
}
