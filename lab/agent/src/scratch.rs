// SPDX-License-Identifier: GPL-2.0-only
//! Folders for a workload's files, gone when the workload is.

use crate::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own, on tmpfs where there is one: the kernel's locks are
/// wanted, not a disk's speed.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder.
    pub(crate) fn new() -> Result<Self, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "corun-agent.{}.{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() {
            shm.to_owned()
        } else {
            std::env::temp_dir()
        };
        let path = parent.join(name);
        fs::create_dir(&path)
            .map_err(|e| Error::os(format!("cannot make {}", path.display()), e))?;
        Ok(Self(path))
    }

    /// Path of `name` in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
