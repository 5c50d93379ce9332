// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel says of sched_ext.

use std::fs;
use std::path::Path;

/// Where it says so.
const SYSFS: &str = "/sys/kernel/sched_ext";

/// One reading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SchedExt {
    /// "enabled", "disabled", or on the way; empty on a kernel without it.
    pub(super) state: String,
    /// What the loaded scheduler calls itself; empty without one.
    pub(super) ops: String,
    /// Schedulers that were ever loaded: a scheduler that was ejected and loaded
    /// itself again shows here, and nowhere else.
    pub(super) loads: u64,
}

impl SchedExt {
    /// The reading now.
    pub(super) fn now() -> Self {
        Self::read(Path::new(SYSFS))
    }

    fn read(folder: &Path) -> Self {
        let word = |name: &str| {
            let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
            text.trim().to_owned()
        };
        Self {
            state: word("state"),
            ops: word("root/ops"),
            loads: word("enable_seq").parse().unwrap_or(0),
        }
    }

    /// Whether a scheduler is in force.
    pub(super) fn is_on(&self) -> bool {
        self.state == "enabled"
    }

    /// Whether none is, not even one on its way in or out.
    pub(super) fn is_off(&self) -> bool {
        self.state.is_empty() || self.state == "disabled"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there() {
        let dir = tempfile::tempdir().expect("tempdir");
        assert!(SchedExt::read(dir.path()).is_off());
        let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("writes");
        fs::create_dir(dir.path().join("root")).expect("mkdir");
        put("state", "enabled\n");
        put("root/ops", "lavd_1.1.4_x\n");
        put("enable_seq", "7\n");
        let found = SchedExt::read(dir.path());
        assert!(found.is_on() && !found.is_off());
        assert_eq!((found.ops.as_str(), found.loads), ("lavd_1.1.4_x", 7));
        put("state", "disabling\n");
        let leaving = SchedExt::read(dir.path());
        assert!(!leaving.is_on() && !leaving.is_off());
    }
}
