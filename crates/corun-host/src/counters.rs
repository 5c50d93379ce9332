// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's counters, read by the process that loaded it or by another
//! one through the map that it pins.

use crate::error::{During, Result};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Counter values by name, cumulative since the scheduler was loaded.
pub type Counters = BTreeMap<String, u64>;

/// Where a running scheduler pins what other processes may read.
const PIN_DIR: &str = "/sys/fs/bpf/corun";

/// The pinned counters map, and its names in the order of the map's keys.
fn pin_paths() -> (PathBuf, PathBuf) {
    (
        Path::new(PIN_DIR).join("counters"),
        PathBuf::from("/run/corun.counters"),
    )
}

/// Pins `map` for [`of_running_scheduler`]; a leftover of a killed process is replaced.
pub(crate) fn pin(map: &mut libbpf_rs::MapMut<'_>, names: &[String]) -> Result<()> {
    unpin();
    std::fs::create_dir_all(PIN_DIR).during("creating a folder in /sys/fs/bpf")?;
    let (map_path, names_path) = pin_paths();
    map.pin(&map_path)
        .during("pinning the counters in /sys/fs/bpf")?;
    std::fs::write(&names_path, names.join("\n")).during("writing the counters' names to /run")
}

/// True when a pin is there: while a scheduler runs, or after it was killed.
pub(crate) fn is_pinned() -> bool {
    pin_paths().0.exists()
}

/// Removes the pin.
pub(crate) fn unpin() {
    let (map_path, names_path) = pin_paths();
    // Absent is as good as removed.
    let _ = std::fs::remove_file(map_path);
    let _ = std::fs::remove_file(names_path);
    let _ = std::fs::remove_dir(PIN_DIR);
}

/// Reads `map`, summed over CPUs, under `names`.
pub(crate) fn read(map: &impl MapCore, names: &[String]) -> Result<Counters> {
    let mut counters = Counters::new();
    for (index, name) in (0_u32..).zip(names) {
        let values = map
            .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)
            .during("reading the counters map")?
            .unwrap_or_default();
        // The map's values are u64 by its definition.
        let sum = values
            .iter()
            .filter_map(|value| value.as_slice().try_into().ok())
            .map(u64::from_ne_bytes)
            .sum();
        counters.insert(name.clone(), sum);
    }
    Ok(counters)
}

/// Counters of the scheduler that runs now, cumulative since it was loaded,
/// by name (`yields_dispatched`, ...); `None` when corun is not loaded.
pub fn of_running_scheduler() -> Result<Option<Counters>> {
    let (map_path, names_path) = pin_paths();
    if !map_path.exists() || !crate::host_info::corun_is_loaded() {
        return Ok(None);
    }
    let names: Vec<String> = std::fs::read_to_string(&names_path)
        .during("reading the counters' names from /run")?
        .lines()
        .map(str::to_owned)
        .collect();
    let map = MapHandle::from_pinned_path(&map_path).during("opening the pinned counters")?;
    read(&map, &names).map(Some)
}
