// SPDX-License-Identifier: GPL-2.0-only
//! What a guest's registers say about the kernel that it runs.

use crate::image::Image;
use corun_policy::Region;

/// Registers of one VM, read without its help. They are the guest's to choose: a
/// guest that lies is taken for another kernel, or for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evidence {
    /// The LSTAR MSR: where SYSCALL enters a 64-bit kernel, `entry_SYSCALL_64`
    /// in Linux. 0 before the kernel has set it.
    pub lstar: u64,
    /// The CSTAR MSR: the same for 32-bit programs. 0 when not known; Linux on
    /// Intel's processors does not set it.
    pub cstar: u64,
    /// The instruction pointer that a vCPU had when it last halted; 0 when none
    /// has halted yet.
    ///
    /// It is what tells kernels from each other: the linker puts
    /// `entry_SYSCALL_64` at the same place in most of them.
    pub halt_rip: u64,
}

/// Which register shows that a guest runs another kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// LSTAR.
    #[error(
        "LSTAR {0:#x} is not its entry_SYSCALL_64 moved as KASLR does, in steps of 2 MiB within 1 GiB"
    )]
    Lstar(u64),
    /// CSTAR.
    #[error("CSTAR {0:#x} is none of its entries for 32-bit programs")]
    Cstar(u64),
    /// A halted vCPU's instruction pointer.
    #[error("a vCPU halted at {0:#x}, where its idle loop is not")]
    Halt(u64),
}

impl Evidence {
    /// Where the text of `image` begins in the guest if it runs that kernel, or
    /// what shows that it does not.
    pub fn base_of(&self, image: &Image) -> Result<u64, Misfit> {
        let base = image
            .text_base(self.lstar)
            .ok_or(Misfit::Lstar(self.lstar))?;
        if self.cstar != 0 && !image.is_compat_entry(self.cstar.wrapping_sub(base)) {
            return Err(Misfit::Cstar(self.cstar));
        }
        if self.halt_rip != 0 && !halts(image.region_at(base, self.halt_rip)) {
            return Err(Misfit::Halt(self.halt_rip));
        }
        Ok(base)
    }

    /// Has more spoken for an image than where SYSCALL enters?
    pub(crate) fn is_confirmed(&self) -> bool {
        self.halt_rip != 0
    }
}

/// The idle loop halts, and so does a vCPU that waits for a paravirtual lock.
fn halts(region: Region) -> bool {
    matches!(region, Region::Idle | Region::LockWait)
}
