// SPDX-License-Identifier: GPL-2.0-only
//! What can go wrong while fetching, each with the next step.

use std::io;
use std::path::Path;

/// Packages cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// Neither apt's index targets nor its sources files name the archive.
    #[error(
        "this machine's apt configuration names no Debian archive mirror; add a `deb` line for \
         one to /etc/apt/sources.list.d (or run on a Debian machine) and try again"
    )]
    NoMirror,
    /// The mirror lacks a suite or file.
    #[error(
        "the Debian mirror of this machine's apt configuration does not serve what the lab needs \
         (suites {suites}):\n  {said}\nnext: configure a full mirror for apt, then run again; \
         downloads made so far are kept",
        suites = super::request::SUITES.join(", ")
    )]
    MirrorLacks {
        /// apt's words.
        said: String,
    },
    /// The mirror cannot be reached.
    #[error(
        "the Debian mirror cannot be reached:\n  {said}\nnext: check the network (`apt-get \
         update` must work), then run again; downloads made so far are kept"
    )]
    Network {
        /// apt's words.
        said: String,
    },
    /// The archive's signature cannot be checked.
    #[error(
        "the archive's signature cannot be verified:\n  {said}\nnext: update the package \
         debian-archive-keyring (`apt-get install debian-archive-keyring`), then run again"
    )]
    Signature {
        /// apt's words.
        said: String,
    },
    /// No kernel matches.
    #[error("no stock cloud kernel {wanted} in the suites; there are: {known}")]
    NoKernel {
        /// Prefix asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// The cache's file system is full.
    #[error(
        "no space left in the lab's cache; free about 2 GB there or set CORUN_CACHE to another \
         file system, then run again (nothing half-built was kept)"
    )]
    DiskFull,
    /// A program is missing.
    #[error("the program {name} is missing; run scripts/setup, or install its package")]
    MissingTool {
        /// Its name.
        name: String,
    },
    /// A download is not what apt's signed lists say.
    #[error("{file} is damaged and was removed; run again to download it anew")]
    Damaged {
        /// The file.
        file: String,
    },
    /// A program failed for a reason that we do not know.
    #[error("{tool} failed:\n  {said}")]
    Tool {
        /// Its name.
        tool: String,
        /// Its last words.
        said: String,
    },
    /// The user stopped it.
    #[error("interrupted; downloads made so far are kept")]
    Interrupted,
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
}

impl PackageError {
    /// Wraps an I/O error about `path`, telling a full disk from the rest.
    pub(super) fn io(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let what = format!("{doing} {}", path.display());
        move |e| match e.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            _ => Self::Io(what, e),
        }
    }
}
