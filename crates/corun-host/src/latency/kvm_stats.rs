// SPDX-License-Identifier: GPL-2.0-only
//! KVM's own counts of one VM, from debugfs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What is read: exits by what a guest that waits can cause.
const NAMES: [&str; 3] = ["exits", "halt_exits", "hypercalls"];

/// The counts of the VM of process `pid`, from its folder `<pid>-<fd>` in
/// `debugfs`. What a kernel does not have is left out; all of it, where debugfs
/// is not mounted.
pub(super) fn of(debugfs: &Path, pid: u32) -> BTreeMap<String, u64> {
    let prefix = format!("{pid}-");
    let mut sums = BTreeMap::new();
    // A process may have several VMs.
    for folder in fs::read_dir(debugfs).into_iter().flatten().flatten() {
        if !folder.file_name().to_string_lossy().starts_with(&prefix) {
            continue;
        }
        for name in NAMES {
            let text = fs::read_to_string(folder.path().join(name));
            if let Some(value) = text.ok().and_then(|t| t.trim().parse::<u64>().ok()) {
                *sums.entry(name.to_owned()).or_default() += value;
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folders_of_the_process_count() {
        let root = std::env::temp_dir().join(format!("corun-kvm-stats-{}", std::process::id()));
        for (folder, exits) in [("12-7", "5\n"), ("12-9", "2\n"), ("120-7", "100\n")] {
            fs::create_dir_all(root.join(folder)).expect("mkdir");
            fs::write(root.join(folder).join("exits"), exits).expect("write");
        }
        let found = of(&root, 12);
        let none = of(&root, 99);
        fs::remove_dir_all(&root).expect("rmdir");
        assert_eq!(found, [("exits".to_owned(), 7)].into());
        assert!(none.is_empty());
    }
}
