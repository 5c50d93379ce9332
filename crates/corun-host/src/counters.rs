// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's counters, read by the process that loaded it or by another
//! one through the map that it pins.

use anyhow::{Context, Result, bail};
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
    std::fs::create_dir_all(PIN_DIR).with_context(|| format!("creating {PIN_DIR}"))?;
    let (map_path, names_path) = pin_paths();
    map.pin(&map_path)
        .with_context(|| format!("pinning {}", map_path.display()))?;
    std::fs::write(&names_path, names.join("\n"))
        .with_context(|| format!("writing {}", names_path.display()))
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
            .context("reading the counters map")?
            .unwrap_or_default();
        let mut sum = 0_u64;
        for value in values {
            let Ok(bytes) = <[u8; 8]>::try_from(value.as_slice()) else {
                bail!("counter {name} has {} bytes instead of 8", value.len());
            };
            sum += u64::from_ne_bytes(bytes);
        }
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
        .with_context(|| format!("reading {}", names_path.display()))?
        .lines()
        .map(str::to_owned)
        .collect();
    let map = MapHandle::from_pinned_path(&map_path)
        .with_context(|| format!("opening {}", map_path.display()))?;
    read(&map, &names).map(Some)
}
