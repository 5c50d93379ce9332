// SPDX-License-Identifier: GPL-2.0-only
//! What can go wrong on the host's side.

use crate::kernel_exit::KernelExit;
use crate::options::OptionError;
use crate::preflight::Refusal;

/// Why the scheduler or an observer does not do its work.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// An option is out of its range.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The scheduler should not be loaded here.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A map of guest symbols.
    #[error(transparent)]
    Symbols(#[from] corun_symbols::LibraryError),
    /// The kvm module is absent.
    #[error(
        "the kvm module is not loaded, or has no type information \
         (/sys/kernel/btf/kvm): load kvm-amd or kvm-intel first"
    )]
    NoKvm,
    /// The kernel lacks an event that a recording cannot do without.
    #[error(
        "this kernel has no {0}: vCPUs cannot be told from other threads. \
         Needs kvm as a module, or built in, on x86"
    )]
    NoSource(&'static str),
    /// No VM is called so.
    #[error("no running VM is called `{name}`; running: {}", if known.is_empty() { "none" } else { known })]
    NoSuchVm {
        /// What was asked for.
        name: String,
        /// VMs that there are.
        known: String,
    },
    /// The kernel did not take a BPF object, or a map cannot be read.
    #[error("{step}")]
    Bpf {
        /// What was being done.
        step: &'static str,
        /// libbpf's error; its own words went to standard error.
        source: libbpf_rs::Error,
    },
    /// A file of the kernel or of ours.
    #[error("{step}")]
    Io {
        /// What was being done.
        step: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The kernel ended the scheduler.
    #[error("the kernel ended the scheduler: {0}")]
    KernelEnded(KernelExit),
    /// The builds of the policy disagree, or a vector is malformed.
    #[error("policy vectors: {0}")]
    Vectors(String),
    /// The BPF object lacks a section that it was built with: a build fault.
    #[error("corun's BPF object has no {0}: build it again")]
    Section(&'static str),
}

/// This crate's results.
pub type Result<T> = std::result::Result<T, HostError>;

/// Says what was being done when something failed.
pub(crate) trait During<T> {
    fn during(self, step: &'static str) -> Result<T>;
}

impl<T> During<T> for libbpf_rs::Result<T> {
    fn during(self, step: &'static str) -> Result<T> {
        self.map_err(|source| HostError::Bpf { step, source })
    }
}

impl<T> During<T> for std::io::Result<T> {
    fn during(self, step: &'static str) -> Result<T> {
        self.map_err(|source| HostError::Io { step, source })
    }
}
