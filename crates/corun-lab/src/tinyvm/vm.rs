// SPDX-License-Identifier: GPL-2.0-only
//! A tiny VM: its descriptors, its memory, and the threads that run its vCPUs.

use super::error::{Doing, TinyVmError};
use super::ioctl::{self, Cpuid, CpuidEntry, Dtable, MemoryRegion, Regs, Segment, Sregs};
use super::memory::{self, Mapping, Memory};
use super::program::Program;
use nix::errno::Errno;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

/// Offset of `exit_reason` in `struct kvm_run`.
const EXIT_REASON: usize = 8;
/// Leaves from here on tell of the hypervisor.
const CPUID_HYPERVISOR: std::ops::Range<u32> = 0x4000_0000..0x4000_0100;
/// Hyper-V's leaves: highest leaf and vendor, "Hv#1", privileges (guest OS id and
/// hypercall MSRs), recommendations (how long to spin before notifying).
const CPUID_HYPERV: [[u32; 5]; 4] = [
    [
        0x4000_0000,
        0x4000_0004,
        0x7263_694d,
        0x666f_736f,
        0x7648_2074,
    ],
    [0x4000_0001, 0x3123_7648, 0, 0, 0],
    [0x4000_0003, 1 << 5, 0, 0, 0],
    [0x4000_0004, 0, 100, 0, 0],
];
/// `APIC_BASE`: its address, enabled, in x2APIC mode.
const APIC_BASE_X2: u64 = 0xfee0_0000 | 1 << 11 | 1 << 10;
/// `APIC_BASE`: the boot processor.
const APIC_BASE_BSP: u64 = 1 << 8;
/// `CR0`: protected mode, extension type, numeric errors.
const CR0: u64 = 1 | 1 << 4 | 1 << 5;

/// The host's KVM.
pub(super) struct Kvm {
    file: File,
    run_size: usize,
    cpuid: Box<Cpuid>,
}

impl Kvm {
    pub(super) fn open() -> Result<Self, TinyVmError> {
        let file = File::options()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .map_err(TinyVmError::NoKvm)?;
        let fd = file.as_raw_fd();
        let size = ioctl::with_value(fd, ioctl::GET_VCPU_MMAP_SIZE, 0)
            .doing("asking for the size of kvm_run")?;
        Ok(Self {
            run_size: usize::try_from(size).unwrap_or_default(),
            cpuid: cpuid(fd).doing("asking for KVM's CPUID")?,
            file,
        })
    }
}

/// What KVM supports, as a guest of Hyper-V's sees it.
fn cpuid(kvm: RawFd) -> nix::Result<Box<Cpuid>> {
    let mut all = Box::new(Cpuid {
        nent: u32::try_from(ioctl::CPUID_MAX).unwrap_or_default(),
        padding: 0,
        entries: [CpuidEntry::default(); ioctl::CPUID_MAX],
    });
    ioctl::with(kvm, ioctl::GET_SUPPORTED_CPUID, &mut *all)?;
    let supported = usize::try_from(all.nent).unwrap_or_default();
    let hyperv = CPUID_HYPERV.map(|[function, eax, ebx, ecx, edx]| CpuidEntry {
        function,
        eax,
        ebx,
        ecx,
        edx,
        ..CpuidEntry::default()
    });
    let entries: Vec<_> = all.entries[..supported]
        .iter()
        .filter(|e| !CPUID_HYPERVISOR.contains(&e.function))
        .copied()
        .chain(hyperv)
        .take(ioctl::CPUID_MAX)
        .collect();
    all.entries[..entries.len()].copy_from_slice(&entries);
    all.nent = u32::try_from(entries.len()).unwrap_or_default();
    Ok(all)
}

/// A VM with its vCPUs, none of which has run.
pub(super) struct TinyVm {
    // Dropped in this order.
    pub(super) vcpus: Vec<Vcpu>,
    fd: Mutex<Option<OwnedFd>>,
    pub(super) memory: Memory,
}

impl TinyVm {
    pub(super) fn new(kvm: &Kvm, vcpus: u32, program: Program) -> Result<Self, TinyVmError> {
        let memory = Memory::new()?;
        let vm =
            ioctl::with_value(kvm.file.as_raw_fd(), ioctl::CREATE_VM, 0).doing("creating a VM")?;
        // SAFETY: the descriptor is new, and nobody else has it.
        let vm = unsafe { OwnedFd::from_raw_fd(vm) };
        ioctl::with_value(vm.as_raw_fd(), ioctl::CREATE_IRQCHIP, 0)
            .doing("creating a VM's interrupt controllers")?;
        let mut region = MemoryRegion {
            slot: 0,
            flags: 0,
            guest_phys_addr: 0,
            memory_size: memory::SIZE as u64,
            userspace_addr: memory.address(),
        };
        ioctl::with(vm.as_raw_fd(), ioctl::SET_USER_MEMORY_REGION, &mut region)
            .doing("giving a VM its memory")?;
        let vcpus = (0..vcpus.min(memory::VCPUS_MAX))
            .map(|id| Vcpu::new(kvm, vm.as_raw_fd(), id, vcpus, program))
            .collect::<nix::Result<_>>()
            .doing("creating a vCPU")?;
        Ok(Self {
            vcpus,
            fd: Mutex::new(Some(vm)),
            memory,
        })
    }

    /// Number of its descriptor, by which KVM's debugfs names it.
    pub(super) fn number(&self) -> Option<RawFd> {
        lock(&self.fd).as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Closes all descriptors, whatever the vCPUs do. The VM ends when the last of
    /// them has left its guest.
    pub(super) fn close(&self) {
        for vcpu in &self.vcpus {
            drop(lock(&vcpu.run).take());
            drop(lock(&vcpu.fd).take());
        }
        drop(lock(&self.fd).take());
    }
}

/// One vCPU.
pub(super) struct Vcpu {
    pub(super) id: u32,
    fd: Mutex<Option<OwnedFd>>,
    run: Mutex<Option<Mapping>>,
}

impl Vcpu {
    fn new(kvm: &Kvm, vm: RawFd, id: u32, vcpus: u32, program: Program) -> nix::Result<Self> {
        let fd = ioctl::with_value(vm, ioctl::CREATE_VCPU, u64::from(id))?;
        // SAFETY: the descriptor is new, and nobody else has it.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        // The kernel may write back the number of entries.
        let mut cpuid = kvm.cpuid.clone();
        ioctl::with(fd, ioctl::SET_CPUID2, &mut *cpuid)?;
        let mut sregs = Sregs::default();
        ioctl::with(fd, ioctl::GET_SREGS, &mut sregs)?;
        ioctl::with(fd, ioctl::SET_SREGS, &mut protected_mode(&sregs, id))?;
        ioctl::with(fd, ioctl::SET_REGS, &mut registers(id, vcpus, program))?;
        ioctl::with(fd, ioctl::SET_MP_STATE, &mut { ioctl::MP_STATE_RUNNABLE })?;
        Ok(Self {
            id,
            run: Mutex::new(Some(Mapping::of(fd, kvm.run_size)?)),
            fd: Mutex::new(Some(owned)),
        })
    }

    /// Runs the guest until it exits to us; returns why (`KVM_EXIT_*`). `EINTR`: a
    /// signal came; `EBADF`: it was closed.
    pub(super) fn run(&self) -> nix::Result<u32> {
        // Not held while the guest runs: closing must not wait for that.
        let fd = lock(&self.fd).as_ref().map(AsRawFd::as_raw_fd);
        ioctl::with_value(fd.ok_or(Errno::EBADF)?, ioctl::RUN, 0)?;
        let run = lock(&self.run);
        let run = run.as_ref().ok_or(Errno::EBADF)?;
        Ok(run
            .word(EXIT_REASON)
            .load(std::sync::atomic::Ordering::Relaxed))
    }
}

/// 32-bit protected mode with flat segments, without paging.
fn protected_mode(reset: &Sregs, id: u32) -> Sregs {
    let segment = |selector, kind| Segment {
        limit: u32::MAX,
        selector,
        kind,
        present: 1,
        db: 1,
        s: 1,
        g: 1,
        ..Segment::default()
    };
    let table = |base, limit| Dtable {
        base,
        limit,
        ..Dtable::default()
    };
    Sregs {
        cs: segment(memory::CODE_SELECTOR, 0xb),
        data: [segment(memory::DATA_SELECTOR, 0x3); 5],
        tr: reset.tr,
        ldt: reset.ldt,
        gdt: table(memory::GDT, memory::GDT_LIMIT),
        idt: table(memory::IDT, memory::IDT_LIMIT),
        cr0: CR0,
        apic_base: APIC_BASE_X2 | if id == 0 { APIC_BASE_BSP } else { 0 },
        ..Sregs::default()
    }
}

fn registers(id: u32, vcpus: u32, program: Program) -> Regs {
    Regs {
        rbx: u64::from(vcpus),
        rsi: memory::own(id),
        rdi: memory::SHARED,
        rbp: u64::from(id),
        rsp: memory::stack(id),
        rip: memory::CODE + program.entry(),
        // The bit that is always set; interrupts off.
        rflags: 2,
        ..Regs::default()
    }
}

/// What a thread that panicked left is still what it was.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
