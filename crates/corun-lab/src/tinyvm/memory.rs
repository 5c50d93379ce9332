// SPDX-License-Identifier: GPL-2.0-only
//! A tiny VM's memory, and memory shared with the kernel.

use super::error::{Doing, TinyVmError};
use super::program::{self, IPI_VECTOR};
use nix::errno::Errno;
use nix::libc;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Size of a VM's memory, from guest-physical address 0. Bytes.
pub(super) const SIZE: usize = 0x10000;
/// Guest-physical addresses of what is in it.
pub(super) const CODE: u64 = 0x1000;
pub(super) const GDT: u64 = 0x2000;
pub(super) const IDT: u64 = 0x3000;
pub(super) const SHARED: u64 = 0x8000;
const OWN: u64 = 0x8100;
const OWN_SIZE: u64 = 64;
const STACKS_END: u64 = 0x6000;
const STACK_SIZE: u64 = 0x100;
/// The status word before the first hypercall.
const NO_STATUS: u32 = u32::MAX;

/// Selectors in the GDT.
pub(super) const CODE_SELECTOR: u16 = 0x08;
pub(super) const DATA_SELECTOR: u16 = 0x10;
/// Bytes of GDT and IDT, less one.
pub(super) const GDT_LIMIT: u16 = 23;
#[allow(clippy::cast_possible_truncation, reason = "the vector is one byte")]
pub(super) const IDT_LIMIT: u16 = (IPI_VECTOR as u16 + 1) * 8 - 1;

/// vCPUs that there is room for.
pub(super) const VCPUS_MAX: u32 = 16;

/// The own words of vCPU `id`, guest-physical.
pub(super) fn own(id: u32) -> u64 {
    OWN + u64::from(id) * OWN_SIZE
}

/// The end of the stack of vCPU `id`, guest-physical.
pub(super) fn stack(id: u32) -> u64 {
    STACKS_END - u64::from(id) * STACK_SIZE
}

/// Memory shared with the kernel; unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    at: NonNull<u8>,
    size: usize,
}

// SAFETY: the memory belongs to nobody but this mapping, and is only touched
// through atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `size` zero bytes.
    pub(super) fn anonymous(size: usize) -> nix::Result<Self> {
        Self::map(size, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// `size` bytes of what `fd` stands for.
    pub(super) fn of(fd: RawFd, size: usize) -> nix::Result<Self> {
        Self::map(size, libc::MAP_SHARED, fd)
    }

    fn map(size: usize, flags: i32, fd: RawFd) -> nix::Result<Self> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), size, rights, flags, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        NonNull::new(at.cast())
            .map(|at| Self { at, size })
            .ok_or(Errno::EFAULT)
    }

    /// Address for the kernel.
    pub(super) fn address(&self) -> u64 {
        self.at.as_ptr().addr() as u64
    }

    /// The word at `offset`.
    pub(super) fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(
            offset.is_multiple_of(4) && offset + 4 <= self.size,
            "word at {offset}"
        );
        // SAFETY: inside the mapping and aligned, as was just checked; guest and
        // kernel change it at any time, so only as an atomic.
        unsafe { self.at.add(offset).cast().as_ref() }
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        assert!(offset + bytes.len() <= self.size, "{} bytes", bytes.len());
        for (i, byte) in bytes.iter().enumerate() {
            // SAFETY: inside the mapping, as was just checked.
            let to: &AtomicU8 = unsafe { self.at.add(offset + i).cast().as_ref() };
            to.store(*byte, Ordering::Relaxed);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping's own range, which nobody can refer to any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.size) };
    }
}

/// A VM's memory with programs and tables in place.
#[derive(Debug)]
pub(super) struct Memory(Mapping);

impl Memory {
    pub(super) fn new() -> Result<Self, TinyVmError> {
        let memory = Mapping::anonymous(SIZE).doing("mapping a VM's memory")?;
        memory.write(CODE, program::code());
        // Flat code and data segments of 4 GiB at privilege level 0.
        let descriptors = [0, 0x00cf_9b00_0000_ffff, 0x00cf_9300_0000_ffff_u64];
        memory.write(GDT, &descriptors.map(u64::to_le_bytes).concat());
        memory.write(IDT + u64::from(IPI_VECTOR) * 8, &ipi_gate().to_le_bytes());
        for id in 0..VCPUS_MAX {
            memory.write(own(id) + 4, &NO_STATUS.to_le_bytes());
        }
        Ok(Self(memory))
    }

    /// Address for the kernel.
    pub(super) fn address(&self) -> u64 {
        self.0.address()
    }

    /// How often vCPU `id` went through its program's loop; wraps.
    pub(super) fn progress(&self, id: u32) -> u32 {
        self.own_word(id, 0)
    }

    /// What the last hypercall of vCPU `id` returned (0: success); `None` before.
    pub(super) fn status(&self, id: u32) -> Option<u32> {
        let status = self.own_word(id, 4);
        (status != NO_STATUS).then_some(status)
    }

    fn own_word(&self, id: u32, offset: u64) -> u32 {
        let at = usize::try_from(own(id) + offset).unwrap_or(usize::MAX);
        self.0.word(at).load(Ordering::Relaxed)
    }
}

/// An interrupt gate (32 bits, present, privilege level 0) to the IPI's handler.
fn ipi_gate() -> u64 {
    let handler = CODE + program::on_ipi();
    (handler & 0xffff) | u64::from(CODE_SELECTOR) << 16 | 0x8e00 << 32 | (handler >> 16) << 48
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        assert!(CODE + program::code().len() as u64 <= GDT);
        assert!(IDT + u64::from(IDT_LIMIT) < stack(VCPUS_MAX));
        assert!(own(VCPUS_MAX) <= SIZE as u64);
        let memory = Memory::new().expect("mapped");
        assert_eq!((memory.progress(0), memory.status(15)), (0, None));
    }

    #[test]
    fn the_gate_leads_to_the_handler() {
        let gate = ipi_gate();
        let address = (gate & 0xffff) | (gate >> 48 << 16);
        assert_eq!(address, CODE + program::on_ipi());
        assert_eq!(gate >> 40 & 0xff, 0x8e);
    }
}
