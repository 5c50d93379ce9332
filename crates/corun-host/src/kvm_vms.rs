// SPDX-License-Identifier: GPL-2.0-only
//! Processes that have a KVM VM, found by their open files.

use crate::error::{HostError, Result};
use crate::root::Root;
use crate::vms::name_of;
use std::path::Path;

/// What the file of a VM is called in /proc/PID/fd.
const VM_FILE: &str = "anon_inode:kvm-vm";

/// The processes of the VMs called `names`; none when no name is given. A name
/// that no VM has is an error that says which there are.
pub(crate) fn processes_of(names: &[String]) -> Result<Vec<u32>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let root = Root::default();
    let named = running().map(|pid| (pid, name_of(&root, pid)));
    let all: Vec<(u32, String)> = named.collect();
    let mut chosen = Vec::new();
    for wanted in names {
        let before = chosen.len();
        chosen.extend(
            all.iter()
                .filter(|(_, name)| name == wanted)
                .map(|(pid, _)| *pid),
        );
        if chosen.len() == before {
            let known: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
            return Err(HostError::NoSuchVm {
                name: wanted.clone(),
                known: known.join(", "),
            });
        }
    }
    Ok(chosen)
}

fn running() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| has_vm(&Path::new("/proc").join(pid.to_string()).join("fd")))
}

fn has_vm(files: &Path) -> bool {
    let entries = std::fs::read_dir(files).into_iter().flatten().flatten();
    let mut targets = entries.filter_map(|e| std::fs::read_link(e.path()).ok());
    targets.any(|target| target == Path::new(VM_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_is_known_by_its_file() {
        let directory = tempfile::tempdir().expect("directory");
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, directory.path().join(name)).expect("a link");
        };
        link("/dev/kvm", "3");
        assert!(!has_vm(directory.path()));
        link(VM_FILE, "4");
        assert!(has_vm(directory.path()));
        assert!(!has_vm(Path::new("/nonexistent")));
    }

    #[test]
    fn a_name_that_no_vm_has_is_an_error() {
        let names = ["no-such-vm".to_owned()];
        let error = processes_of(&names).expect_err("no such VM").to_string();
        assert!(error.contains("no-such-vm"), "{error}");
        assert!(processes_of(&[]).expect("nothing asked for").is_empty());
    }
}
