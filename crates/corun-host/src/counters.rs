// SPDX-License-Identifier: GPL-2.0-only
//! The counters of a running corun scheduler.

use std::collections::BTreeMap;

/// Counters of the scheduler that runs now, cumulative since it was loaded,
/// by name (`yields_honoured`, ...); `None` when corun is not loaded.
pub fn of_running_scheduler() -> anyhow::Result<Option<BTreeMap<String, u64>>> {
    Ok(None)
}
