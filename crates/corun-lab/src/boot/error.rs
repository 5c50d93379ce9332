// SPDX-License-Identifier: GPL-2.0-only
//! Why a boot cannot be started or talked to.

use crate::image::ImageError;
use crate::paths::PathError;
use std::io;
use std::path::Path;

/// A boot cannot be started or talked to.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The image cannot be built or written.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A folder cannot be used.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// KVM was asked for and is not to be had.
    #[error("--accel kvm: {why}; next: {next} (or use the default, --accel tcg)")]
    NoKvm {
        /// What is missing.
        why: String,
        /// What to do about it.
        next: &'static str,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// A line on the control channel is no message of ours.
    #[error("the driver in L1 sent what is no message: {0}")]
    Protocol(#[from] corun_lab_proto::LineError),
    /// A file, process or socket fails.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
}

impl BootError {
    pub(super) fn io(doing: &str) -> impl FnOnce(io::Error) -> Self + use<> {
        let doing = doing.to_owned();
        move |e| match e.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Image(ImageError::DiskFull)
            }
            _ => Self::Io(doing, e),
        }
    }

    pub(super) fn io_at(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(&format!("{doing} {}", path.display()))
    }
}
