// SPDX-License-Identifier: GPL-2.0-only
//! From a request to an unpacked tree: idempotent, resumable, one at a time.

use super::apt::Apt;
use super::manifest::{Manifest, Package};
use super::request::{self, Request};
use super::unpack::unpack;
use super::{PackageError, Stop};
use crate::paths::LabDirs;
use crate::progress::{Progress, Unit};
use indicatif::HumanBytes;
use std::cell::Cell;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// An unpacked set of packages.
#[derive(Debug, Clone)]
pub struct Tree {
    /// Where it is.
    pub root: PathBuf,
    /// What it holds.
    pub manifest: Manifest,
}

/// Fetches and unpacks packages. Holds the cache's lock as long as it lives.
#[derive(Debug)]
pub struct Fetcher<'a> {
    dirs: &'a LabDirs,
    progress: Progress,
    stop: Stop<'a>,
    refresh: bool,
    updated: Cell<bool>,
    downloaded: Cell<u64>,
    _lock: File,
}

impl<'a> Fetcher<'a> {
    /// Waits for the cache's lock. With `refresh`, requests that are answered
    /// by the cache are resolved again.
    pub fn new(
        dirs: &'a LabDirs,
        progress: Progress,
        stop: Stop<'a>,
        refresh: bool,
    ) -> Result<Self, PackageError> {
        Ok(Self {
            dirs,
            progress,
            stop,
            refresh,
            updated: Cell::new(false),
            downloaded: Cell::new(0),
            _lock: lock(&dirs.cache().join("lock"), progress, stop)?,
        })
    }

    /// Bytes downloaded as packages so far.
    pub fn downloaded(&self) -> u64 {
        self.downloaded.get()
    }

    /// The tree for `request`. No network is used when the cache has it.
    pub fn fetch(&self, request: &Request) -> Result<Tree, PackageError> {
        let manifests = self.dirs.manifests();
        fs::create_dir_all(&manifests).map_err(PackageError::io("making", &manifests))?;
        let path = manifests.join(format!("{}.json", request.key()));
        let known = Manifest::load(&path).filter(|m| !self.refresh && self.is_at_hand(m, request));
        if let Some(manifest) = known {
            return self.tree(manifest);
        }
        let tree = match self.resolve(request).and_then(|m| self.tree(m)) {
            // The archive moved on since the lists were fetched.
            Err(PackageError::MirrorLacks { .. } | PackageError::Tool { .. })
                if !self.updated.get() =>
            {
                self.update(&Apt::open(&self.dirs.apt(), self.stop)?)?;
                self.resolve(request).and_then(|m| self.tree(m))?
            }
            other => other?,
        };
        tree.manifest.save(&path)?;
        Ok(tree)
    }

    /// Whether `manifest` answers `request` without any download.
    fn is_at_hand(&self, manifest: &Manifest, request: &Request) -> bool {
        let debs = self.dirs.debs();
        manifest.request == *request
            && (self.dirs.cache().join(manifest.tree_name()).exists()
                || manifest.packages.iter().all(|p| p.is_in(&debs)))
    }

    fn tree(&self, manifest: Manifest) -> Result<Tree, PackageError> {
        let root = self.dirs.cache().join(manifest.tree_name());
        if !root.exists() {
            self.download(&manifest)?;
            unpack(
                &manifest,
                &self.dirs.debs(),
                &root,
                self.progress,
                self.stop,
            )?;
        }
        Ok(Tree { root, manifest })
    }

    fn resolve(&self, request: &Request) -> Result<Manifest, PackageError> {
        let apt = self.apt()?;
        let mut exact = request.alone.clone();
        let mut kernel_release = None;
        if !request.with_dependencies.is_empty() {
            exact.extend(apt.closure(&request.with_dependencies)?);
        }
        if let Some(wanted) = &request.kernel {
            let release = newest(&apt, wanted)?;
            let parts = ["base", "binary", "modules"];
            exact.extend(parts.map(|part| format!("linux-{part}-{release}")));
            kernel_release = Some(release);
        }
        Ok(Manifest {
            request: request.clone(),
            kernel_release,
            packages: apt.describe(&exact)?,
        })
    }

    /// The private apt root, its lists fetched at most once per run.
    fn apt(&self) -> Result<Apt<'a>, PackageError> {
        let apt = Apt::open(&self.dirs.apt(), self.stop)?;
        if !self.updated.get() && (self.refresh || !apt.has_lists()) {
            self.update(&apt)?;
        }
        Ok(apt)
    }

    fn update(&self, apt: &Apt<'_>) -> Result<(), PackageError> {
        self.progress.note("Fetching package lists ...");
        apt.update()?;
        self.updated.set(true);
        Ok(())
    }

    fn download(&self, manifest: &Manifest) -> Result<(), PackageError> {
        let debs = self.dirs.debs();
        fs::create_dir_all(&debs).map_err(PackageError::io("making", &debs))?;
        let missing: Vec<&Package> = manifest
            .packages
            .iter()
            .filter(|p| !p.is_in(&debs))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let total: u64 = missing.iter().map(|p| p.size).sum();
        let what = format!(
            "Downloading {}: {} packages",
            manifest.request.name,
            missing.len()
        );
        let task = self.progress.task(&what, total, Unit::Bytes);
        self.apt()?
            .download(&missing, &debs, || task.set(size_in(&missing, &debs)))?;
        for package in &missing {
            if !package.is_in(&debs) {
                let path = debs.join(&package.file);
                fs::remove_file(&path).map_err(PackageError::io("removing damaged", &path))?;
                let file = package.file.clone();
                return Err(PackageError::Damaged { file });
            }
        }
        task.finish();
        self.downloaded.set(self.downloaded.get() + total);
        Ok(())
    }
}

fn newest(apt: &Apt<'_>, wanted: &str) -> Result<String, PackageError> {
    let names = apt.names("linux-binary-")?;
    request::newest_kernel(&names, wanted).ok_or_else(|| PackageError::NoKernel {
        wanted: wanted.to_owned(),
        known: request::known_kernels(&names),
    })
}

/// Bytes of these packages that are in `dir`, half-downloads included.
fn size_in(packages: &[&Package], dir: &Path) -> u64 {
    packages
        .iter()
        .filter_map(|p| fs::metadata(dir.join(&p.file)).ok())
        .map(|m| m.len())
        .sum()
}

fn lock(path: &Path, progress: Progress, stop: Stop<'_>) -> Result<File, PackageError> {
    let file = File::create(path).map_err(PackageError::io("opening", path))?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(e)) => return Err(PackageError::io("locking", path)(e)),
            Err(TryLockError::WouldBlock) if stop.load(Ordering::Relaxed) => {
                return Err(PackageError::Interrupted);
            }
            Err(TryLockError::WouldBlock) => {
                if !told {
                    progress.note("Waiting for another build in the same cache ...");
                    told = true;
                }
                thread::sleep(Duration::from_millis(200));
            }
        }
    }
}

/// For the closing line of a build.
pub(crate) fn human(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}
