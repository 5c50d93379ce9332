// SPDX-License-Identifier: GPL-2.0-only
//! What was resolved for a request: kept, so that the same request needs no
//! network again and a result can name the exact versions it was made with.

use super::PackageError;
use super::request::{Request, short_hash};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, BufReader};
use std::path::Path;

/// One package file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Name of the package.
    pub name: String,
    /// Debian version.
    pub version: String,
    /// Name of the downloaded file.
    pub file: String,
    /// Size of the file. Bytes.
    pub size: u64,
    /// SHA-256 of the file, from the archive's signed lists.
    pub sha256: String,
}

/// The resolved form of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// What was asked for.
    pub request: Request,
    /// `uname -r` of the kernel, when the request was for one.
    pub kernel_release: Option<String>,
    /// The packages, sorted by name.
    pub packages: Vec<Package>,
}

impl Manifest {
    /// Names the unpacked tree: a hash of the request and of the exact packages.
    pub fn tree_name(&self) -> String {
        // Serializing plain strings cannot fail.
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("tree-{}", short_hash(text.as_bytes()))
    }

    /// Size of all package files. Bytes.
    pub fn download_size(&self) -> u64 {
        self.packages.iter().map(|p| p.size).sum()
    }

    /// Version of the package `name`.
    pub fn version_of(&self, name: &str) -> Option<&str> {
        let found = self.packages.iter().find(|p| p.name == name)?;
        Some(&found.version)
    }

    /// Reads the manifest at `path`; `None` when there is none, or one that
    /// does not read (it is then resolved anew).
    pub(super) fn load(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Writes the manifest, whole or not at all.
    pub(super) fn save(&self, path: &Path) -> Result<(), PackageError> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|e| PackageError::Io(format!("writing {}", path.display()), e.into()))?;
        let part = path.with_extension("part");
        fs::write(&part, text)
            .and_then(|()| fs::rename(&part, path))
            .map_err(PackageError::io("writing", path))
    }
}

impl Package {
    /// Whether `dir` holds this package's file, complete and undamaged.
    pub(super) fn is_in(&self, dir: &Path) -> bool {
        let path = dir.join(&self.file);
        fs::metadata(&path).is_ok_and(|m| m.len() == self.size)
            && sha256_of(&path).is_ok_and(|sum| sum == self.sha256)
    }
}

/// SHA-256 of a file, in hex.
pub(crate) fn sha256_of(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut BufReader::new(fs::File::open(path)?), &mut hasher)?;
    Ok(super::request::hex(&hasher.finalize()))
}
