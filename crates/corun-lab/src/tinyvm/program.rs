// SPDX-License-Identifier: GPL-2.0-only
//! What a tiny VM's vCPUs run: 32-bit protected mode, flat segments, no paging,
//! privilege level 0.
//!
//! Each vCPU begins with: ESI = its own words (progress, then the status of its
//! last hypercall), EDI = the VM's shared word, EBP = its id, EBX = the number of
//! vCPUs, ESP = its stack.

use std::arch::global_asm;

/// Vector of the IPIs that [`Program::Ipi`] sends.
pub(super) const IPI_VECTOR: u32 = 0x40;

global_asm!(
    ".pushsection .rodata.corun_tinyvm, \"a\", @progbits",
    ".globl corun_tinyvm_begin, corun_tinyvm_on_ipi, corun_tinyvm_spin, corun_tinyvm_halt, corun_tinyvm_ipi",
    ".globl corun_tinyvm_io, corun_tinyvm_turns, corun_tinyvm_fake, corun_tinyvm_end",
    ".code32",
    "corun_tinyvm_begin:",
    // An IPI: acknowledged in the x2APIC (EOI, MSR 0x80b).
    "corun_tinyvm_on_ipi:",
    "    push eax",
    "    push ecx",
    "    push edx",
    "    mov ecx, 0x80b",
    "    xor eax, eax",
    "    xor edx, edx",
    "    wrmsr",
    "    pop edx",
    "    pop ecx",
    "    pop eax",
    "    iretd",
    // Software-enables the APIC (spurious vector register, MSR 0x80f).
    "20: mov ecx, 0x80f",
    "    mov eax, 0x1ff",
    "    xor edx, edx",
    "    wrmsr",
    "    ret",
    // Says that it is a guest of Hyper-V's (guest OS id, MSR 0x40000000): from
    // now on hypercalls are Hyper-V's.
    "21: mov ecx, 0x40000000",
    "    mov eax, 0x1",
    "    mov edx, 0x8100",
    "    wrmsr",
    "    ret",
    // HvCallNotifyLongSpinWait (0x8) as a fast call (bit 16): EDX:EAX is the
    // control word, EBX:ECX the input, the number of spins.
    "22: push ebx",
    "    push edi",
    "    push esi",
    "    xor edx, edx",
    "    mov eax, 0x10008",
    "    xor ebx, ebx",
    "    mov ecx, 100",
    "    xor edi, edi",
    "    vmmcall",
    "    pop esi",
    "    pop edi",
    "    pop ebx",
    "    mov [esi + 4], eax",
    "    ret",
    // Computes without end.
    "corun_tinyvm_spin:",
    "2:  inc dword ptr [esi]",
    "    jmp 2b",
    // Sleeps until an interrupt comes.
    "corun_tinyvm_halt:",
    "23: call 20b",
    "2:  inc dword ptr [esi]",
    "    sti",
    "    hlt",
    "    cli",
    "    jmp 2b",
    // vCPU 0 sends IPIs to its siblings in turn (x2APIC ICR, MSR 0x830); they sleep.
    "corun_tinyvm_ipi:",
    "    test ebp, ebp",
    "    jnz 23b",
    "    call 20b",
    "2:  mov edi, 1",
    "3:  mov edx, edi",
    "    mov eax, {vector}",
    "    mov ecx, 0x830",
    "    wrmsr",
    "    inc dword ptr [esi]",
    "    mov ecx, 5000",
    "4:  dec ecx",
    "    jnz 4b",
    "    inc edi",
    "    cmp edi, ebx",
    "    jb 3b",
    "    jmp 2b",
    // Leaves to the VMM again and again.
    "corun_tinyvm_io:",
    "2:  inc dword ptr [esi]",
    "    out 0x10, al",
    "    jmp 2b",
    // Each works when the shared word is its id, then passes it on; who waits spins
    // a while and notifies.
    "corun_tinyvm_turns:",
    "    call 21b",
    "2:  mov ecx, 200",
    "3:  cmp [edi], ebp",
    "    je 4f",
    "    pause",
    "    dec ecx",
    "    jnz 3b",
    "    call 22b",
    "    jmp 2b",
    "4:  mov ecx, 20000",
    "5:  dec ecx",
    "    jnz 5b",
    "    inc dword ptr [esi]",
    "    mov eax, ebp",
    "    inc eax",
    "    cmp eax, ebx",
    "    jb 6f",
    "    xor eax, eax",
    "6:  mov [edi], eax",
    "    jmp 2b",
    // Notifies without end, and waits for nobody.
    "corun_tinyvm_fake:",
    "    call 21b",
    "2:  inc dword ptr [esi]",
    "    call 22b",
    "    jmp 2b",
    "corun_tinyvm_end:",
    ".code64",
    ".popsection",
    vector = const IPI_VECTOR,
);

unsafe extern "C" {
    static corun_tinyvm_begin: u8;
    static corun_tinyvm_end: u8;
    static corun_tinyvm_on_ipi: u8;
    static corun_tinyvm_spin: u8;
    static corun_tinyvm_halt: u8;
    static corun_tinyvm_ipi: u8;
    static corun_tinyvm_io: u8;
    static corun_tinyvm_turns: u8;
    static corun_tinyvm_fake: u8;
}

/// What the vCPUs of a tiny VM do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Compute without end.
    Spin,
    /// Sleep until an interrupt comes; none does.
    Halt,
    /// vCPU 0 sends IPIs to the others, which sleep in between.
    Ipi,
    /// Port I/O without end: an exit to the VMM each.
    Io,
    /// Work in turns; who waits spins and notifies the host of it by Hyper-V's
    /// long-spin hypercall.
    Turns,
    /// Notify the host of long spins without end, and wait for nobody.
    Fake,
}

impl Program {
    /// Its first instruction, counted from [`code`]'s begin.
    pub(super) fn entry(self) -> u64 {
        let label = match self {
            Self::Spin => &raw const corun_tinyvm_spin,
            Self::Halt => &raw const corun_tinyvm_halt,
            Self::Ipi => &raw const corun_tinyvm_ipi,
            Self::Io => &raw const corun_tinyvm_io,
            Self::Turns => &raw const corun_tinyvm_turns,
            Self::Fake => &raw const corun_tinyvm_fake,
        };
        offset(label)
    }
}

/// The handler of [`IPI_VECTOR`], counted from [`code`]'s begin.
pub(super) fn on_ipi() -> u64 {
    offset(&raw const corun_tinyvm_on_ipi)
}

fn offset(label: *const u8) -> u64 {
    label.addr() as u64 - (&raw const corun_tinyvm_begin).addr() as u64
}

/// All programs, position-independent.
pub(super) fn code() -> &'static [u8] {
    let begin = &raw const corun_tinyvm_begin;
    let len = (&raw const corun_tinyvm_end).addr() - begin.addr();
    // SAFETY: both labels are in one read-only section, in this order, with
    // nothing but the programs between them.
    unsafe { std::slice::from_raw_parts(begin, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_begins_inside_the_code() {
        use Program::{Fake, Halt, Io, Ipi, Spin, Turns};
        let all = [Spin, Halt, Ipi, Io, Turns, Fake];
        let mut entries: Vec<_> = all.map(Program::entry).into();
        entries.push(on_ipi());
        entries.sort_unstable();
        entries.dedup();
        assert_eq!(entries.len(), all.len() + 1);
        assert!(entries.iter().all(|at| *at < code().len() as u64));
        // Port I/O: inc [esi] is FF 06.
        let io = usize::try_from(Io.entry()).expect("small");
        assert_eq!(code()[io..io + 4], [0xFF, 0x06, 0xE6, 0x10]);
    }
}
