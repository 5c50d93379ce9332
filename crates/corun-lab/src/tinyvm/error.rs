// SPDX-License-Identifier: GPL-2.0-only
//! What can go wrong with a tiny VM.

use nix::errno::Errno;
use std::time::Duration;

/// A tiny VM does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum TinyVmError {
    /// The kernel refused a request.
    #[error("{0}: {1}")]
    Os(&'static str, #[source] Errno),
    /// No /dev/kvm that may be used.
    #[error("opening /dev/kvm (in the lab, or as root on a host with KVM): {0}")]
    NoKvm(#[source] std::io::Error),
    /// A file in /proc or /sys.
    #[error("{0}: {1}")]
    Io(&'static str, #[source] std::io::Error),
    /// `KVM_RUN` returned for a reason that no program here causes.
    #[error("vCPU {vcpu} left its guest with exit reason {reason}")]
    Exit {
        /// Which vCPU.
        vcpu: u32,
        /// `KVM_EXIT_*` of the kernel's interface.
        reason: u32,
    },
    /// Something that should happen did not, within a time that is ample.
    #[error("waited {waited:?} for {what}")]
    Late {
        /// What should have happened.
        what: &'static str,
        /// How long was waited.
        waited: Duration,
    },
    /// A vCPU's thread panicked.
    #[error("a vCPU's thread panicked")]
    Panicked,
    /// VMs ended otherwise than they should; details went to standard error.
    #[error("{failed} of {vms} VMs failed")]
    Failed {
        /// How many.
        failed: u32,
        /// Of how many.
        vms: u32,
    },
}

/// Says what was being done when the kernel refused it.
pub(super) trait Doing<T> {
    fn doing(self, what: &'static str) -> Result<T, TinyVmError>;
}

impl<T> Doing<T> for nix::Result<T> {
    fn doing(self, what: &'static str) -> Result<T, TinyVmError> {
        self.map_err(|e| TinyVmError::Os(what, e))
    }
}

impl<T> Doing<T> for std::io::Result<T> {
    fn doing(self, what: &'static str) -> Result<T, TinyVmError> {
        self.map_err(|e| TinyVmError::Io(what, e))
    }
}
