// SPDX-License-Identifier: GPL-2.0-only
//! One cgroup per VM: its `cpu.weight` is how every scheduler learns the weight.

use super::error::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Parent of the guests' cgroups, below the root of the hierarchy.
const PARENT: &str = "corun-lab";

/// Makes the cgroup of `guest` below `root` with `weight` and returns its path.
pub(super) fn make(root: &Path, guest: &str, weight: u32) -> Result<PathBuf> {
    let parent = root.join(PARENT);
    let group = parent.join(guest);
    fs::create_dir_all(&group).doing(|| format!("make the cgroup {}", group.display()))?;
    for above in [root, &parent] {
        write(&above.join("cgroup.subtree_control"), "+cpu")?;
    }
    write(&group.join("cpu.weight"), &weight.to_string())?;
    Ok(group)
}

/// Moves process `pid` with all its threads to `group`.
pub(super) fn enter(group: &Path, pid: u32) -> Result<()> {
    write(&group.join("cgroup.procs"), &pid.to_string())
}

/// Stops all threads of `guest`'s VMM, or lets them go on. Takes effect within
/// the kernel's next return of each thread to user mode; nobody has to wait.
pub(super) fn freeze(root: &Path, guest: &str, frozen: bool) -> Result<()> {
    let file = root.join(PARENT).join(guest).join("cgroup.freeze");
    write(&file, if frozen { "1" } else { "0" })
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).doing(|| format!("write {text} to {}", file.display()))
}
