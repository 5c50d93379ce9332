// SPDX-License-Identifier: GPL-2.0-only
//! Where the lab keeps what it downloads, builds and writes.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// No folder for the cache can be named or made.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// Neither of the variables that name a cache folder is set.
    #[error("no cache folder: set CORUN_CACHE to a folder with 2 GB of free space")]
    NoCache,
    /// The folder cannot be made or used.
    #[error("cannot use {path}: {source}; set CORUN_CACHE to a folder that you can write")]
    Io {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// The lab's folders. The cache may be deleted at any time: everything in it
/// is downloaded or built again.
#[derive(Debug, Clone)]
pub struct LabDirs {
    cache: PathBuf,
    out: PathBuf,
}

impl LabDirs {
    /// Folders as the environment names them: the cache is `$CORUN_CACHE`, else
    /// `$XDG_CACHE_HOME/corun`, else `~/.cache/corun`; results go to `./out`.
    pub fn from_env() -> Result<Self, PathError> {
        let cache = cache_from(|name| env::var_os(name).filter(|v| !v.is_empty()).map(Into::into))
            .ok_or(PathError::NoCache)?;
        Self::new(&cache, Path::new("out"))
    }

    /// Folders at given places; the cache is made when it is missing.
    pub fn new(cache: &Path, out: &Path) -> Result<Self, PathError> {
        let made = fs::create_dir_all(cache).and_then(|()| cache.canonicalize());
        Ok(Self {
            cache: made.map_err(|source| PathError::Io {
                path: cache.to_owned(),
                source,
            })?,
            out: out.to_owned(),
        })
    }

    /// The cache folder.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// The private apt root: package lists and state.
    pub fn apt(&self) -> PathBuf {
        self.cache.join("apt")
    }

    /// Downloaded packages.
    pub fn debs(&self) -> PathBuf {
        self.cache.join("debs")
    }

    /// What was resolved for each request.
    pub fn manifests(&self) -> PathBuf {
        self.cache.join("manifests")
    }

    /// Built image layers and extracted kernels.
    pub fn layers(&self) -> PathBuf {
        self.cache.join("layers")
    }

    /// Results, and the logs of boots that failed.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// Logs of boots that failed.
    pub fn logs(&self) -> PathBuf {
        self.out.join("logs")
    }

    /// A fresh folder for one boot, removed with the value. Folders left by
    /// runs that were killed are removed on the way.
    pub fn new_run(&self) -> Result<RunDir, PathError> {
        let runs = self.cache.join("runs");
        RunDir::new(&runs).map_err(|source| PathError::Io { path: runs, source })
    }
}

/// Folder of one boot. Holds a lock as long as it lives, by which later runs
/// tell it from one whose owner was killed.
#[derive(Debug)]
pub struct RunDir {
    dir: TempDir,
    _lock: File,
}

impl RunDir {
    fn new(runs: &Path) -> io::Result<Self> {
        fs::create_dir_all(runs)?;
        remove_orphans(runs)?;
        let dir = tempfile::Builder::new().prefix("run-").tempdir_in(runs)?;
        let lock = File::create(dir.path().join("lock"))?;
        lock.lock()?;
        Ok(Self { dir, _lock: lock })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

fn remove_orphans(runs: &Path) -> io::Result<()> {
    for entry in fs::read_dir(runs)? {
        let path = entry?.path();
        // A folder without a lock file is being made right now, or was left
        // within the first microseconds of a run: an empty folder costs nothing.
        let Ok(lock) = File::open(path.join("lock")) else {
            continue;
        };
        match lock.try_lock() {
            Ok(()) => {
                // Two starting runs may both see the orphan: one removes it.
                let _ = fs::remove_dir_all(&path);
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
    Ok(())
}

fn cache_from(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    var("CORUN_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|d| d.join("corun")))
        .or_else(|| var("HOME").map(|d| d.join(".cache/corun")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_variable_wins() {
        let all = |name: &str| Some(PathBuf::from(format!("/{name}")));
        assert_eq!(cache_from(all), Some("/CORUN_CACHE".into()));
        let no_own = |name: &str| (name != "CORUN_CACHE").then(|| PathBuf::from("/x"));
        assert_eq!(cache_from(no_own), Some("/x/corun".into()));
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/h"));
        assert_eq!(cache_from(home), Some("/h/.cache/corun".into()));
        assert_eq!(cache_from(|_| None), None);
    }

    #[test]
    fn a_killed_run_is_cleaned_up_and_a_live_one_is_not() {
        let tmp = tempfile::tempdir().expect("temp dir");
        let dirs = LabDirs::new(tmp.path(), Path::new("out")).expect("dirs");
        let live = dirs.new_run().expect("run");
        let orphan = tmp.path().join("runs/run-orphan");
        fs::create_dir(&orphan).expect("mkdir");
        fs::write(orphan.join("lock"), "").expect("lock");
        let next = dirs.new_run().expect("run");
        assert!(live.path().exists() && next.path().exists() && !orphan.exists());
        let path = live.path().to_owned();
        drop(live);
        assert!(!path.exists());
    }
}
