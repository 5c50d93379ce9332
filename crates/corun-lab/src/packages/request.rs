// SPDX-License-Identifier: GPL-2.0-only
//! What the lab asks the Debian archive for.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Suites to take packages from; the last one wins. Newer than the machine's
/// own: QEMU before 11.1 crashes an emulated KVM host, and Debian's kernels
/// have `sched_ext` from 7.2 on.
pub(super) const SUITES: [&str; 2] = ["trixie", "trixie-backports"];

/// Suite that kernels are taken from, too, and nothing else: its 7.2 can run
/// `sched_ext` schedulers, which the one of the backports cannot (their BTF lacks
/// what the kernel needs to call some of `sched_ext`'s functions).
pub(super) const KERNEL_SUITE: &str = "sid";

/// Dependencies that no program of the lab uses: graphics drivers and what
/// their installation scripts need. They would double the download.
pub(super) const NEVER_USED: [&str; 14] = [
    "adduser",
    "debconf",
    "dpkg",
    "libllvm",
    "libx11",
    "libxcb",
    "libz3-",
    "login.defs",
    "mesa-libgallium",
    "openssl-provider",
    "passwd",
    "python3",
    "tar",
    "tzdata",
];

/// A set of packages that is unpacked into one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Short name for people: "programs", "kernel 7.3".
    pub name: String,
    /// Packages to take with their dependencies.
    pub with_dependencies: Vec<String>,
    /// Packages to take alone.
    pub alone: Vec<String>,
    /// Newest stock cloud kernel whose version begins so (`7.3`).
    pub kernel: Option<String>,
}

impl Request {
    /// QEMU, busybox, the workloads, and the libraries that corun needs.
    pub fn programs() -> Self {
        let list = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
        Self {
            name: "programs".to_owned(),
            with_dependencies: list(&[
                "busybox-static",
                "libc6",
                "libelf1t64",
                "libgcc-s1",
                "libzstd1",
                "qemu-system-x86",
                "stress-ng",
                "sysbench",
                "zlib1g",
            ]),
            // hackbench; its dependencies are Python scripts' needs.
            alone: list(&["rt-tests"]),
            kernel: None,
        }
    }

    /// The newest stock cloud kernel whose version begins with `version`.
    pub fn kernel(version: &str) -> Self {
        Self {
            name: format!("kernel {version}"),
            with_dependencies: Vec::new(),
            alone: Vec::new(),
            kernel: Some(version.to_owned()),
        }
    }

    /// What modules for the kernel `release` (`uname -r`) are built against.
    pub fn kernel_headers(release: &str) -> Self {
        // One package of sources serves all flavours of a kernel.
        let common = release.strip_suffix("-cloud-amd64").unwrap_or(release);
        Self {
            name: format!("headers {release}"),
            with_dependencies: Vec::new(),
            alone: vec![
                format!("linux-headers-{release}"),
                format!("linux-headers-{common}-common"),
                format!("linux-kbuild-{common}"),
            ],
            kernel: None,
        }
    }

    /// Names this request's manifest file; changes with its content.
    pub(super) fn key(&self) -> String {
        // Serializing plain strings cannot fail.
        let kernels = self.kernel.is_some().then_some(KERNEL_SUITE);
        let text = serde_json::to_string(&(self, SUITES, kernels, NEVER_USED)).unwrap_or_default();
        short_hash(text.as_bytes())
    }
}

/// The first 64 bits of SHA-256, in hex: enough to name a cache entry.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..8])
}

/// Lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut s, b| {
        // Writing to a String cannot fail.
        let _ = write!(s, "{b:02x}");
        s
    })
}

/// Newest of the kernel releases in `packages` (names like
/// `linux-binary-7.3.4+deb13-cloud-amd64`) that begins with `wanted`.
pub(super) fn newest_kernel(packages: &str, wanted: &str) -> Option<String> {
    releases(packages)
        .filter(|r| {
            let rest = r.strip_prefix(wanted);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        })
        .max_by_key(|r| version_key(r))
        .map(str::to_owned)
}

/// All kernel releases in `packages`, for an error message.
pub(super) fn known_kernels(packages: &str) -> String {
    let mut known: Vec<_> = releases(packages).collect();
    known.sort_by_key(|r| version_key(r));
    known.join(", ")
}

fn releases(packages: &str) -> impl Iterator<Item = &str> {
    packages
        .lines()
        .filter_map(|p| p.trim().strip_prefix("linux-binary-"))
        .filter(|r| r.ends_with("-cloud-amd64") && r.starts_with(|c: char| c.is_ascii_digit()))
}

fn version_key(release: &str) -> Vec<u32> {
    let number = release.split(['+', '-']).next().unwrap_or_default();
    number.split('.').map(|n| n.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGES: &str = "linux-binary-7.2.9+deb13-cloud-amd64\n\
        linux-binary-unsigned-7.2.13+deb13-cloud-amd64\n\
        linux-binary-7.2.12+deb13-cloud-amd64\n\
        linux-binary-7.20.1+deb13-cloud-amd64\n\
        linux-binary-7.3.4+deb13-amd64\n";

    #[test]
    fn the_newest_matching_kernel_is_taken() {
        let newest = newest_kernel(PACKAGES, "7.2");
        assert_eq!(newest.as_deref(), Some("7.2.12+deb13-cloud-amd64"));
        let exact = newest_kernel(PACKAGES, "7.2.9");
        assert_eq!(exact.as_deref(), Some("7.2.9+deb13-cloud-amd64"));
        assert_eq!(newest_kernel(PACKAGES, "7.3"), None);
    }

    #[test]
    fn headers_are_those_of_the_exact_release() {
        let request = Request::kernel_headers("7.3.4+deb13-cloud-amd64");
        assert_eq!(
            request.alone,
            [
                "linux-headers-7.3.4+deb13-cloud-amd64",
                "linux-headers-7.3.4+deb13-common",
                "linux-kbuild-7.3.4+deb13"
            ]
        );
    }

    #[test]
    fn a_different_request_has_a_different_key() {
        assert_eq!(Request::kernel("7.3").key(), Request::kernel("7.3").key());
        assert_ne!(Request::kernel("7.3").key(), Request::kernel("7.2").key());
    }
}
