// SPDX-License-Identifier: GPL-2.0-only
//! What can go wrong while building an image, each with the next step.

use crate::packages::PackageError;
use crate::paths::PathError;
use std::io;
use std::path::{Path, PathBuf};

/// An image cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Packages cannot be had.
    #[error(transparent)]
    Packages(#[from] PackageError),
    /// A folder cannot be used.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// One of our own programs has not been built.
    #[error("{path} is missing; next: `cargo build --release` (or name the file in {variable})")]
    NotBuilt {
        /// Where it was looked for.
        path: PathBuf,
        /// Variable that overrides the place.
        variable: &'static str,
    },
    /// A guest is to load a kernel module of ours that has not been built.
    #[error(
        "the module {module} is not built for the guest kernel {release}; next: `make guest` (or \
         name the folder of its results in CORUN_GUEST)"
    )]
    NoModule {
        /// The module.
        module: String,
        /// `uname -r` of the guest.
        release: String,
    },
    /// The tree lacks a file that we count on.
    #[error(
        "the packages hold no {what}; the archive may have changed: `corun lab build --refresh`, \
         and report it when that does not help"
    )]
    Lacking {
        /// The file.
        what: String,
    },
    /// A program of the tree cannot be resolved to its libraries.
    #[error("{program} lacks libraries in the package tree: {said}")]
    Libraries {
        /// The program.
        program: PathBuf,
        /// The loader's words.
        said: String,
    },
    /// A file is not a kernel that we can take apart.
    #[error("{path} is no kernel that the lab can boot: {why}")]
    Kernel {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The kernel was built without a feature that the lab needs.
    #[error(
        "kernel {release} was built without {option}; take another one (Debian's have \
         sched_ext from 7.2 on)"
    )]
    Feature {
        /// `uname -r`.
        release: String,
        /// The option as in the kernel's config.
        option: &'static str,
    },
    /// A file does not fit the archive format.
    #[error("{path} does not fit a cpio archive: {why}")]
    Cpio {
        /// Path in the archive.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
    /// No folder for programs that are built once can be named.
    #[error("no folder for tools: set CORUN_TOOLS to a folder with 2 GB of free space")]
    NoToolsFolder,
    /// A scheduler to compare with cannot be built.
    #[error(
        "building {program} {version} from the Rust registry: {said}\nnext: run scripts/setup, which installs \
         what it needs, or leave this scheduler out of the case"
    )]
    Comparator {
        /// The crate.
        program: &'static str,
        /// Its version.
        version: &'static str,
        /// What cargo said.
        said: PackageError,
    },
    /// The cache's file system is full.
    #[error(
        "no space left in the lab's cache; free about 1 GB there or set CORUN_CACHE to another \
         file system, then run again (nothing half-built was kept)"
    )]
    DiskFull,
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
}

impl ImageError {
    /// Wraps an I/O error about `path`, telling a full disk from the rest.
    pub(crate) fn io(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let what = format!("{doing} {}", path.display());
        move |e| match e.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            _ => Self::Io(what, e),
        }
    }
}
