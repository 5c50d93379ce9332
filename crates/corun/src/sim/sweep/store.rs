// SPDX-License-Identifier: GPL-2.0-only
//! A sweep's folder: what it is a sweep of, and the points that are done.
//!
//! `sweep.json` says which case, changes, keys, models and build of corun the
//! points are of; `points.jsonl` gets a line when a point is done. A line that
//! a crash tore is dropped, and its point is done again.

use crate::sim::result::Run;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What all points of a folder have in common. Grids may grow: values are no
/// part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Form of the folder's files.
    pub(crate) schema_version: u32,
    /// The case file's text.
    pub(crate) case_text: String,
    /// Changes from the command line, in their order.
    pub(crate) set: Vec<String>,
    /// Keys of the grid, in their order.
    pub(crate) keys: Vec<String>,
    /// SHA-256 of each model.
    pub(crate) models: BTreeMap<String, String>,
    /// corun's version, and a hash of its program.
    pub(crate) version: String,
}

impl Identity {
    /// What differs, for people; `None`: nothing.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        let differs = [
            (self.schema_version != other.schema_version, "file format"),
            (self.case_text != other.case_text, "case"),
            (self.set != other.set, "set of changes (--set, --seed, ...)"),
            (self.keys != other.keys, "set of grid keys"),
            (self.models != other.models, "set of models"),
            (self.version != other.version, "build of corun"),
        ];
        differs.into_iter().find(|(d, _)| *d).map(|(_, what)| what)
    }
}

/// One finished point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Hash of all that decides its runs.
    pub(crate) fingerprint: String,
    /// Values of the grid's keys.
    pub(crate) values: BTreeMap<String, String>,
    /// Its runs.
    pub(crate) runs: Vec<Run>,
}

/// An open folder; no other process writes into it.
pub(crate) struct Store {
    folder: PathBuf,
    points: File,
    done: BTreeMap<String, Point>,
}

impl Store {
    /// Opens or makes `folder` for the sweep `identity`.
    pub(crate) fn open(folder: &Path, identity: &Identity) -> Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("creating {}", folder.display()))?;
        let known = read_identity(folder)?;
        if let Some(what) = known.as_ref().and_then(|k| k.difference(identity)) {
            bail!(
                "{} holds points of another sweep: another {what}; choose another --out, or remove it",
                folder.display()
            );
        }
        let points = open_points(folder, known.is_some())?;
        if known.is_none() {
            let text = serde_json::to_string_pretty(identity)?;
            write_whole(&folder.join("sweep.json"), text.as_bytes())?;
        }
        let mut store = Self {
            folder: folder.to_owned(),
            points,
            done: BTreeMap::new(),
        };
        store.recover()?;
        Ok(store)
    }

    /// Reads what is done, and cuts a torn last line off.
    fn recover(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        self.points.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        for (number, line) in bytes[..whole].split(|b| *b == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let point: Point = serde_json::from_slice(line).with_context(|| {
                let file = self.folder.join("points.jsonl");
                format!("{}:{}: no point of a sweep", file.display(), number + 1)
            })?;
            self.done.insert(point.fingerprint.clone(), point);
        }
        self.points.set_len(whole as u64)?;
        self.points.seek(SeekFrom::End(0))?;
        Ok(())
    }

    /// The finished point of that fingerprint.
    pub(crate) fn get(&self, fingerprint: &str) -> Option<&Point> {
        self.done.get(fingerprint)
    }

    /// Adds a finished point.
    pub(crate) fn add(&mut self, point: Point) -> Result<()> {
        let mut line = serde_json::to_vec(&point)?;
        line.push(b'\n');
        // One write: whatever ends the process, at most the last line is torn.
        self.points
            .write_all(&line)
            .with_context(|| format!("writing {}", self.file("points.jsonl").display()))?;
        self.done.insert(point.fingerprint.clone(), point);
        Ok(())
    }

    /// Path of a file of the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn read_identity(folder: &Path) -> Result<Option<Identity>> {
    let file = folder.join("sweep.json");
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e).with_context(|| format!("reading {}", file.display())),
    };
    let identity = serde_json::from_str(&text)
        .with_context(|| format!("{}: no sweep's description", file.display()))?;
    Ok(Some(identity))
}

/// The list of points, for this process alone.
fn open_points(folder: &Path, known: bool) -> Result<File> {
    let path = folder.join("points.jsonl");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options
        .open(&path)
        .with_context(|| format!("opening {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            bail!("another corun is writing into {}", folder.display())
        }
        Err(TryLockError::Error(e)) => {
            return Err(e).with_context(|| format!("locking {}", path.display()));
        }
    }
    ensure!(
        known || file.metadata()?.len() == 0,
        "{} has no sweep.json beside it: choose another --out",
        path.display()
    );
    Ok(file)
}

/// Writes `bytes` so that there is either the old file or the whole new one.
pub(crate) fn write_whole(file: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    std::fs::write(&part, bytes).with_context(|| format!("writing {}", part.display()))?;
    std::fs::rename(&part, file).with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests;
