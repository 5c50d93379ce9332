// SPDX-License-Identifier: GPL-2.0-only
//! Why a VM has no symbols.

use crate::evidence::Misfit;

/// Why no image is known to be the kernel of a VM. The text is for the user and
/// names the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum NoMatch {
    /// The user gave none for this VM.
    #[error("VM {vm}: no symbols given; add --symbols {vm}=FILE or --symbols DIR")]
    NotGiven { vm: String },
    /// LSTAR is 0.
    #[error(
        "VM {vm}: its kernel has not set LSTAR: it is still booting, is not a 64-bit kernel, uses FRED, or hides its registers (SEV-ES, TDX)"
    )]
    NoEntry { vm: String },
    /// The map that the user named for it is of another kernel.
    #[error(
        "VM {vm}: {image} is not the map of the kernel that it runs: {why}; take the System.map of the version that `uname -r` prints in the guest"
    )]
    Wrong {
        vm: String,
        image: String,
        why: Misfit,
    },
    /// No map of the directories fits.
    #[error(
        "VM {vm}: none of the {count} maps fits its registers (LSTAR {lstar:#x}); add the System.map of the kernel that it runs"
    )]
    NoneFits {
        vm: String,
        count: usize,
        lstar: u64,
    },
    /// Several maps fit and nothing tells them apart.
    #[error("VM {vm}: {} maps fit: {}; say which: --symbols {vm}=FILE", images.len(), images.join(", "))]
    Several { vm: String, images: Vec<String> },
    /// There are more maps than the programs in the kernel have room for.
    #[error("VM {vm}: {image} is one map too many: there is room for {max}; give fewer")]
    NoRoom {
        vm: String,
        image: String,
        max: usize,
    },
    /// One fits, but only by an address that most kernels share.
    #[error(
        "VM {vm}: {image} may fit; taken for its kernel when a vCPU of it was seen to halt in the idle loop, or at once with --symbols {vm}=FILE"
    )]
    Unconfirmed { vm: String, image: String },
}
