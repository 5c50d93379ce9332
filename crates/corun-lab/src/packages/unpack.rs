// SPDX-License-Identifier: GPL-2.0-only
//! Unpacks package files into a tree that is either whole or absent.

use super::manifest::Manifest;
use super::{PackageError, Stop, tool};
use crate::progress::{Progress, Unit};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Prefix of trees under way; one that is found under the cache's lock was
/// left by a run that died.
const PARTIAL: &str = ".partial-";

/// Unpacks the manifest's packages from `debs` to `tree`.
pub(super) fn unpack(
    manifest: &Manifest,
    debs: &Path,
    tree: &Path,
    progress: Progress,
    stop: Stop<'_>,
) -> Result<(), PackageError> {
    let cache = tree.parent().unwrap_or(Path::new("."));
    remove_partial(cache)?;
    let part = tempfile::Builder::new()
        .prefix(PARTIAL)
        .tempdir_in(cache)
        .map_err(PackageError::io("making a folder in", cache))?;
    let what = format!("Unpacking {}", manifest.request.name);
    let task = progress.task(&what, manifest.packages.len() as u64, Unit::Items);
    for (done, package) in manifest.packages.iter().enumerate() {
        let mut cmd = Command::new("dpkg-deb");
        cmd.arg("-x").arg(debs.join(&package.file)).arg(part.path());
        tool::output(&mut cmd, stop)?;
        task.set(done as u64 + 1);
    }
    fs::rename(part.path(), tree).map_err(PackageError::io("finishing", tree))?;
    // Renamed away: there is nothing left for the guard to remove.
    let _ = part.keep();
    task.finish();
    Ok(())
}

fn remove_partial(cache: &Path) -> Result<(), PackageError> {
    let io = |e| PackageError::io("cleaning", cache)(e);
    for entry in fs::read_dir(cache).map_err(io)? {
        let entry = entry.map_err(io)?;
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            fs::remove_dir_all(entry.path()).map_err(io)?;
        }
    }
    Ok(())
}
