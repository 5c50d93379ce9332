// SPDX-License-Identifier: GPL-2.0-only
//! The few requests of KVM's interface (linux/kvm.h) that a tiny VM needs.

use nix::errno::Errno;
use nix::libc;
use std::os::fd::RawFd;

const KVMIO: u64 = 0xAE;
const WRITE: u64 = 1 << 30;
const READ: u64 = 2 << 30;

/// The number of a request with an argument of type `T` (asm-generic/ioctl.h).
const fn request<T>(direction: u64, nr: u64) -> u64 {
    direction | ((size_of::<T>() as u64) << 16) | (KVMIO << 8) | nr
}

/// A request without an argument structure.
const fn plain(nr: u64) -> u64 {
    (KVMIO << 8) | nr
}

pub(super) const CREATE_VM: u64 = plain(0x01);
pub(super) const GET_VCPU_MMAP_SIZE: u64 = plain(0x04);
pub(super) const CREATE_VCPU: u64 = plain(0x41);
pub(super) const CREATE_IRQCHIP: u64 = plain(0x60);
pub(super) const RUN: u64 = plain(0x80);
/// Its argument is a header of 8 bytes before an array.
pub(super) const GET_SUPPORTED_CPUID: u64 = request::<[u32; 2]>(READ | WRITE, 0x05);
pub(super) const SET_CPUID2: u64 = request::<[u32; 2]>(WRITE, 0x90);
pub(super) const SET_USER_MEMORY_REGION: u64 = request::<MemoryRegion>(WRITE, 0x46);
pub(super) const SET_REGS: u64 = request::<Regs>(WRITE, 0x82);
pub(super) const GET_SREGS: u64 = request::<Sregs>(READ, 0x83);
pub(super) const SET_SREGS: u64 = request::<Sregs>(WRITE, 0x84);
pub(super) const SET_MP_STATE: u64 = request::<u32>(WRITE, 0x99);

/// `KVM_MP_STATE_RUNNABLE`: runs at once, without the start-up IPI.
pub(super) const MP_STATE_RUNNABLE: u32 = 0;
/// `KVM_EXIT_IO`
pub(super) const EXIT_IO: u32 = 2;

/// `struct kvm_userspace_memory_region`
#[repr(C)]
pub(super) struct MemoryRegion {
    pub(super) slot: u32,
    pub(super) flags: u32,
    pub(super) guest_phys_addr: u64,
    pub(super) memory_size: u64,
    pub(super) userspace_addr: u64,
}

/// `struct kvm_regs`
#[repr(C)]
#[derive(Default)]
pub(super) struct Regs {
    pub(super) rax: u64,
    pub(super) rbx: u64,
    pub(super) rcx: u64,
    pub(super) rdx: u64,
    pub(super) rsi: u64,
    pub(super) rdi: u64,
    pub(super) rsp: u64,
    pub(super) rbp: u64,
    pub(super) r8_to_r15: [u64; 8],
    pub(super) rip: u64,
    pub(super) rflags: u64,
}

/// `struct kvm_segment`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Segment {
    pub(super) base: u64,
    pub(super) limit: u32,
    pub(super) selector: u16,
    pub(super) kind: u8,
    pub(super) present: u8,
    pub(super) dpl: u8,
    pub(super) db: u8,
    pub(super) s: u8,
    pub(super) l: u8,
    pub(super) g: u8,
    pub(super) avl: u8,
    pub(super) unusable: u8,
    pub(super) padding: u8,
}

/// `struct kvm_dtable`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Dtable {
    pub(super) base: u64,
    pub(super) limit: u16,
    pub(super) padding: [u16; 3],
}

/// `struct kvm_sregs`
#[repr(C)]
#[derive(Default)]
pub(super) struct Sregs {
    pub(super) cs: Segment,
    /// ds, es, fs, gs, ss
    pub(super) data: [Segment; 5],
    pub(super) tr: Segment,
    pub(super) ldt: Segment,
    pub(super) gdt: Dtable,
    pub(super) idt: Dtable,
    pub(super) cr0: u64,
    pub(super) cr2_to_cr8: [u64; 4],
    pub(super) efer: u64,
    pub(super) apic_base: u64,
    pub(super) interrupt_bitmap: [u64; 4],
}

/// `struct kvm_cpuid_entry2`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct CpuidEntry {
    pub(super) function: u32,
    pub(super) index: u32,
    pub(super) flags: u32,
    pub(super) eax: u32,
    pub(super) ebx: u32,
    pub(super) ecx: u32,
    pub(super) edx: u32,
    pub(super) padding: [u32; 3],
}

/// Entries that KVM may return; it has some 50.
pub(super) const CPUID_MAX: usize = 256;

/// `struct kvm_cpuid2` with room for [`CPUID_MAX`] entries.
#[repr(C)]
#[derive(Clone)]
pub(super) struct Cpuid {
    pub(super) nent: u32,
    pub(super) padding: u32,
    pub(super) entries: [CpuidEntry; CPUID_MAX],
}

/// A request whose argument is a number. Returns the kernel's result, a new
/// descriptor for some requests.
pub(super) fn with_value(fd: RawFd, request: u64, value: u64) -> nix::Result<i32> {
    // SAFETY: the requests of this module that come here take no pointer, so the
    // kernel touches none of our memory.
    Errno::result(unsafe { libc::ioctl(fd, request, value) })
}

/// A request whose argument is read or written by the kernel.
pub(super) fn with<T>(fd: RawFd, request: u64, argument: &mut T) -> nix::Result<i32> {
    // SAFETY: `T` is the request's own structure, whose size is part of the
    // request's number, or a `Cpuid`, whose `nent` bounds what is touched.
    Errno::result(unsafe { libc::ioctl(fd, request, std::ptr::from_mut(argument)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_numbers_of_the_kernels_interface() {
        assert_eq!(CREATE_VM, 0xAE01);
        assert_eq!(GET_SUPPORTED_CPUID, 0xC008_AE05);
        assert_eq!(SET_USER_MEMORY_REGION, 0x4020_AE46);
        assert_eq!(SET_REGS, 0x4090_AE82);
        assert_eq!(GET_SREGS, 0x8138_AE83);
        assert_eq!(SET_SREGS, 0x4138_AE84);
        assert_eq!(SET_CPUID2, 0x4008_AE90);
        assert_eq!(SET_MP_STATE, 0x4004_AE99);
    }
}
