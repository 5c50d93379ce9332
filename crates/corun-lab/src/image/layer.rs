// SPDX-License-Identifier: GPL-2.0-only
//! A layer in the cache, and the one that each boot adds.

use super::ImageError;
use super::cpio::Archive;
use crate::packages::short_hash;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Changes when the code that lays out layers changes what it makes.
const LAYOUT: u32 = 3;
/// Prefix of files under way; found under the cache's lock, they are left-overs.
const PARTIAL: &str = ".part-";
/// Layers that were built this recently are kept.
const IN_USE: Duration = Duration::from_hours(1);

/// Returns the file `name-<hash of inputs>.<suffix>` of `dir`, made by `make`
/// when it is missing. It appears whole or not at all; older ones of the same
/// name are removed.
pub(super) fn cached(
    dir: &Path,
    name: &str,
    suffix: &str,
    inputs: &[&str],
    make: impl FnOnce(&mut dyn Write) -> Result<(), ImageError>,
) -> Result<PathBuf, ImageError> {
    let key = short_hash(format!("{LAYOUT}\n{}", inputs.join("\n")).as_bytes());
    let path = dir.join(format!("{name}-{key}.{suffix}"));
    if path.exists() {
        return Ok(path);
    }
    fs::create_dir_all(dir).map_err(ImageError::io("making", dir))?;
    remove_older(dir, name, suffix);
    let part = tempfile::Builder::new()
        .prefix(PARTIAL)
        .tempfile_in(dir)
        .map_err(ImageError::io("making a file in", dir))?;
    let mut out = BufWriter::with_capacity(1 << 20, part);
    make(&mut out)?;
    let part = out
        .into_inner()
        .map_err(|e| ImageError::io("writing", &path)(e.into_error()))?;
    part.persist(&path)
        .map_err(|e| ImageError::io("finishing", &path)(e.error))?;
    Ok(path)
}

/// Only a cache's size is at stake, so failures are of no interest.
fn remove_older(dir: &Path, name: &str, suffix: &str) {
    let is_older = |file: &str| {
        let key = file
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|rest| rest.strip_suffix(suffix))
            .and_then(|rest| rest.strip_suffix('.'));
        let hash = |k: &str| k.len() == 16 && k.bytes().all(|b| b.is_ascii_hexdigit());
        key.is_some_and(hash)
    };
    // A run beside this one may be about to read a layer that it just built.
    let is_unused = |entry: &fs::DirEntry| {
        let modified = entry.metadata().and_then(|m| m.modified()).ok();
        let age = modified.and_then(|m| m.elapsed().ok());
        age.is_some_and(|age| age > IN_USE)
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        if file.starts_with(PARTIAL) || (is_older(&file) && is_unused(&entry)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The files that differ from boot to boot. `/corun/entry` is the shell script
/// that L1's init runs.
#[derive(Debug, Clone, Default)]
pub struct RunLayer {
    archive: Archive,
}

impl RunLayer {
    /// A layer whose entry is `script` (shell).
    pub fn new(script: &str) -> Self {
        let mut archive = Archive::new();
        archive.file("corun/entry", 0o755, script.as_bytes().to_vec());
        Self { archive }
    }

    /// Adds a file below `/corun`.
    #[must_use]
    pub fn with(mut self, name: &str, data: impl Into<Vec<u8>>) -> Self {
        self.archive
            .file(&format!("corun/{name}"), 0o644, data.into());
        self
    }

    pub(super) fn write(&self, out: &mut impl Write) -> Result<(), ImageError> {
        self.archive.write(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(text: &'static str) -> impl FnOnce(&mut dyn Write) -> Result<(), ImageError> {
        move |out| {
            out.write_all(text.as_bytes())
                .map_err(|e| ImageError::Io("writing".into(), e))
        }
    }

    #[test]
    fn a_layer_is_made_once_per_content() {
        let tmp = tempfile::tempdir().expect("temp dir");
        let make = |inputs: &[&str], text| cached(tmp.path(), "x", "cpio", inputs, put(text));
        let first = make(&["1"], "one").expect("made");
        let again = make(&["1"], "never called").expect("found");
        assert_eq!(first, again);
        assert_eq!(fs::read_to_string(&again).expect("readable"), "one");
        let other = make(&["2"], "two").expect("made");
        assert!(
            other.exists() && first.exists(),
            "a fresh one may be in use"
        );
        let hours_ago = std::time::SystemTime::now() - 2 * IN_USE;
        let file = fs::File::options().write(true).open(&first).expect("opens");
        file.set_modified(hours_ago).expect("sets");
        make(&["3"], "three").expect("made");
        assert!(other.exists() && !first.exists());
        assert_ne!(first, other);
    }

    #[test]
    fn a_failed_layer_leaves_nothing() {
        let tmp = tempfile::tempdir().expect("temp dir");
        let failed = cached(tmp.path(), "x", "cpio", &[], |out| {
            let _ = out.write_all(b"half");
            Err(ImageError::DiskFull)
        });
        assert!(matches!(failed, Err(ImageError::DiskFull)));
        assert_eq!(fs::read_dir(tmp.path()).expect("dir").count(), 0);
        cached(tmp.path(), "x", "cpio", &[], put("whole")).expect("not poisoned");
    }

    #[test]
    fn a_layer_of_a_longer_name_is_not_removed() {
        let tmp = tempfile::tempdir().expect("temp dir");
        let long = cached(tmp.path(), "x-y", "cpio", &[], put("1")).expect("made");
        let hours_ago = std::time::SystemTime::now() - 2 * IN_USE;
        let file = fs::File::options().write(true).open(&long).expect("opens");
        file.set_modified(hours_ago).expect("sets");
        cached(tmp.path(), "x", "cpio", &["1"], put("2")).expect("made");
        assert!(long.exists());
    }
}
