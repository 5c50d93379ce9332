// SPDX-License-Identifier: GPL-2.0-only
//! A copy of the emulator without two faults that kill L1 and its guests, and two that
//! distort what is measured where pCPUs take turns.
//!
//! **Flags of another CPU.** Whoever loads an x87 state, and so every context switch on
//! any pCPU, calls `cpu_clear_ignne()` (`target/i386/tcg/system/fpu_helper.c`), which
//! clears a bit in `hflags2` of the *first* CPU, without a lock. That word also says
//! whether that CPU takes interrupts at all (GIF), whether its guest has nested paging,
//! and more; when it is in the middle of a VMRUN or a VMEXIT, it gets what it just
//! changed back. L1 then takes an interrupt right behind its VMRUN, with the guest's GS;
//! or looks its interrupt descriptors up in the guest's nested page tables and resets;
//! or runs a guest that no interrupt can end. In the copy the function does nothing: the
//! bit is only ever set by writes to port 0xf0, which Linux does not use.
//!
//! **Interrupts injected twice.** QEMU's VMRUN delivers an interrupt that the hypervisor
//! injects at once, and leaves its vector behind in `exception_index`, as if it were
//! still to be raised (`helper_vmrun()` in `target/i386/tcg/system/svm_helper.c`). Nobody
//! looks at it unless the vCPU's thread is asked to leave its loop before the nested
//! guest's next exit. Then the interrupt is delivered once more, as an exception that no
//! flag can mask: seen in a guest's interrupt handler before that had changed stacks.
//! The copy does not store the vector. Only a debug message reads it there.
//!
//! **A turn given away by PAUSE.** Where pCPUs take turns (`-icount`), one that spins ends
//! its turn with each PAUSE (`helper_pause()` in `target/i386/tcg/system/misc_helper.c`),
//! and the others run the faster for it, as no CPU does: waiting would cost hardly
//! anything. In the copy it leaves the block of code with "nothing to raise" in place of
//! "interrupted", and so goes on with its turn.

use object::{Object, ObjectSection, ObjectSymbol};

/// The emulator in the packages' tree.
pub(super) const PROGRAM: &str = "usr/bin/qemu-system-x86_64";
/// What the copy's version has at its end when it has none of these faults.
pub(super) const SUFFIX: &str = " (mended)";

const CLEAR_IGNNE: &str = "cpu_clear_ignne";
/// What a function that is called by address begins with.
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const RET: u8 = 0xc3;

const VMRUN: &str = "helper_vmrun";
/// What delivers the interrupt behind the store.
const DELIVERY: &str = "do_interrupt_x86_hardirq";
/// `mov %r32,disp32(%r64)`, six bytes, and as many that do nothing.
const STORE_LEN: usize = 6;
const NOTHING: [u8; STORE_LEN] = [0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00];
/// `call rel32`.
const CALL: u8 = 0xe8;
const CALL_LEN: usize = 5;
/// The delivery is called that soon behind the store. Bytes.
const NEAR: usize = 64;

/// How long all pCPUs together execute, a turn each, before the first goes on: short
/// against an exit, and long against what a turn costs QEMU. Nanoseconds.
const ROUND_NS: u32 = 5_000;
const BUDGET: &str = "icount_percpu_budget";
/// `mov $INT32_MAX,%eax`: the opcode, and the value behind it.
const MOV_EAX: u8 = 0xb8;
const LONGEST: [u8; 4] = i32::MAX.to_le_bytes();

const PAUSE: &str = "helper_pause";
/// `movl $EXCP_INTERRUPT,disp32(%r64)`: the opcode, the bits of its second byte that do
/// not name the register, and the value, behind the displacement.
const MOV_IMM: u8 = 0xc7;
const DISP32: u8 = 0b1000_0000;
const EXCP_INTERRUPT: [u8; 4] = 0x1_0000_u32.to_le_bytes();
const NO_EXCEPTION: [u8; 4] = (-1_i32).to_le_bytes();
const VALUE_AT: usize = 6;

/// Mends `program`, a QEMU for x86, as far as its faults are found; returns what is
/// left of them.
pub(super) fn mend(program: &mut [u8]) -> Vec<&'static str> {
    let mends = [
        (
            lets_flags_alone as fn(&mut [u8]) -> _,
            "it may change the first CPU's flags",
        ),
        (injects_once, "it may inject an interrupt twice"),
        (
            pause_keeps_the_turn,
            "a pCPU that spins runs the others faster, with --accel icount",
        ),
        (
            takes_short_turns,
            "pCPUs wait milliseconds for each other, with --accel icount",
        ),
    ];
    let left = mends
        .into_iter()
        .filter(|(mend, _)| mend(program).is_none());
    left.map(|(_, what)| what).collect()
}

/// [`CLEAR_IGNNE`] returns at once. None: it is not as expected.
fn lets_flags_alone(program: &mut [u8]) -> Option<()> {
    let function = Function::find(program, CLEAR_IGNNE)?;
    let code = function.code(program)?;
    let at = if code.starts_with(&ENDBR64) {
        ENDBR64.len()
    } else {
        0
    };
    *code.get_mut(at)? = RET;
    Some(())
}

/// [`VMRUN`] does not store the vector. None: it is not as expected.
fn injects_once(program: &mut [u8]) -> Option<()> {
    let function = Function::find(program, VMRUN)?;
    let delivery = Function::find(program, DELIVERY)?;
    let to_delivery = delivery
        .address
        .wrapping_sub(function.address)
        .cast_signed();
    let code = function.code(program)?;
    let at = store(code, to_delivery)?;
    code[at..at + STORE_LEN].copy_from_slice(&NOTHING);
    Some(())
}

/// [`PAUSE`] interrupts nobody's turn. None: it is not as expected.
fn pause_keeps_the_turn(program: &mut [u8]) -> Option<()> {
    let function = Function::find(program, PAUSE)?;
    let code = function.code(program)?;
    let value = interrupt(code)?;
    code[value..value + NO_EXCEPTION.len()].copy_from_slice(&NO_EXCEPTION);
    Some(())
}

/// [`BUDGET`] is at most a pCPU's part of [`ROUND_NS`]. None: it is not as expected.
fn takes_short_turns(program: &mut [u8]) -> Option<()> {
    let function = Function::find(program, BUDGET)?;
    let code = function.code(program)?;
    let value = longest(code)?;
    code[value..value + LONGEST.len()].copy_from_slice(&ROUND_NS.to_le_bytes());
    Some(())
}

/// Where in `code` is the value of the only instruction that loads [`LONGEST`].
fn longest(code: &[u8]) -> Option<usize> {
    let loads = |at: &usize| {
        code[*at] == MOV_EAX && code.get(at + 1..at + 1 + LONGEST.len()) == Some(&LONGEST)
    };
    let mut places = (0..code.len()).filter(loads);
    let (Some(load), None) = (places.next(), places.next()) else {
        return None;
    };
    Some(load + 1)
}

/// Where in `code` is the value of the only instruction that stores
/// [`EXCP_INTERRUPT`].
fn interrupt(code: &[u8]) -> Option<usize> {
    let stores = |at: &usize| {
        let code = &code[*at..];
        let by_register = |to: &u8| to & 0b1111_1000 == DISP32 && to & 0b111 != 4;
        code[0] == MOV_IMM
            && code.get(1).is_some_and(by_register)
            && code.get(VALUE_AT..VALUE_AT + 4) == Some(&EXCP_INTERRUPT)
    };
    let mut places = (0..code.len()).filter(stores);
    let (Some(store), None) = (places.next(), places.next()) else {
        return None;
    };
    Some(store + VALUE_AT)
}

/// A function that the program exports.
struct Function {
    address: u64,
    /// Where it is in the file, and how long. Bytes.
    offset: usize,
    size: usize,
}

impl Function {
    fn find(program: &[u8], name: &str) -> Option<Self> {
        let file = object::File::parse(program).ok()?;
        let symbol = file.dynamic_symbols().find(|s| s.name() == Ok(name))?;
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let (in_file, _) = section.file_range()?;
        let offset = in_file.checked_add(symbol.address().checked_sub(section.address())?)?;
        Some(Self {
            address: symbol.address(),
            offset: usize::try_from(offset).ok()?,
            size: usize::try_from(symbol.size()).ok()?,
        })
    }

    fn code<'a>(&self, program: &'a mut [u8]) -> Option<&'a mut [u8]> {
        program.get_mut(self.offset..self.offset.checked_add(self.size)?)
    }
}

/// Where in `code` the vector is stored that the only call of the delivery, which is
/// `to_delivery` bytes from its begin, is about. QEMU raises exceptions in the same way,
/// but leaves by another function.
fn store(code: &[u8], to_delivery: i64) -> Option<usize> {
    let calls = |at: &usize| {
        let next = i64::try_from(at + CALL_LEN).ok();
        code[*at] == CALL
            && displacement(code, at + 1).map(i64::from) == next.map(|next| to_delivery - next)
    };
    let mut places = (0..code.len()).filter(calls);
    let (Some(call), None) = (places.next(), places.next()) else {
        return None;
    };
    (call.saturating_sub(NEAR)..call)
        .rev()
        .find(|at| is_store(&code[*at..]))
}

/// Does `code` begin with the store: before `exception_is_int = 0` and
/// `exception_next_eip = -1`, which are neighbours in `CPUX86State`, by way of the same
/// register, and below it, where `CPUState` is?
fn is_store(code: &[u8]) -> bool {
    let (Some([0x89, to]), Some(index)) = (code.get(..2), displacement(code, 2)) else {
        return false;
    };
    // A register with a displacement of 32 bits; 4 would be followed by another byte.
    let base = to & 0b1100_0111;
    let plain = base >> 6 == 0b10 && base & 0b111 != 4;
    let is_int = displacement(code, STORE_LEN + 2);
    let next_eip = displacement(code, STORE_LEN + 13);
    plain
        && index < 0
        && code.get(6..8) == Some(&[0xc7, base])
        && code.get(12..16) == Some(&[0; 4])
        && code.get(16..19) == Some(&[0x48, 0xc7, base])
        && code.get(23..27) == Some(&[0xff; 4])
        && is_int.map(|at| at + 4) == next_eip
}

fn displacement(code: &[u8], at: usize) -> Option<i32> {
    let bytes = code.get(at..at + 4)?;
    Some(i32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As gcc 14 has it: `mov %esi,-0x3db0(%rbx); movl $0,0x3484(%rbx);
    /// movq $-1,0x3488(%rbx); call`.
    const AS_BUILT: [u8; 32] = [
        0x89, 0xb3, 0x50, 0xc2, 0xff, 0xff, // the store
        0xc7, 0x83, 0x84, 0x34, 0, 0, 0, 0, 0, 0, //
        0x48, 0xc7, 0x83, 0x88, 0x34, 0, 0, 0xff, 0xff, 0xff, 0xff, //
        0xe8, 0x00, 0x01, 0, 0,
    ];
    /// Where the call leads.
    const DELIVERY_AT: i64 = 32 + 0x100;

    #[test]
    fn the_store_is_found_by_the_call_behind_it() {
        assert_eq!(store(&AS_BUILT, DELIVERY_AT), Some(0));
        assert!(store(&AS_BUILT, DELIVERY_AT + 1).is_none(), "another call");
        let mut exception = AS_BUILT;
        exception[27] = 0x90;
        let both = [exception, AS_BUILT].concat();
        assert_eq!(store(&both, DELIVERY_AT + 32), Some(32));
        let mut far = AS_BUILT[..27].to_vec();
        far.resize(27 + 64, 0x90);
        far.extend(&AS_BUILT[27..]);
        assert!(store(&far, DELIVERY_AT + 64).is_none(), "too far");
        assert!(store(&AS_BUILT[..28], DELIVERY_AT).is_none(), "cut off");
        assert!(store(&[], 0).is_none());
    }

    #[test]
    fn two_calls_leave_it_open_which_is_meant() {
        let mut back = vec![0xe8];
        let rel = i32::try_from(DELIVERY_AT).expect("small") - 5 + 32;
        back.extend(rel.to_le_bytes());
        let mut code = back;
        code.resize(32, 0x90);
        code.extend(AS_BUILT);
        assert!(store(&code, DELIVERY_AT + 32).is_none());
    }

    #[test]
    fn what_only_looks_like_it_is_left_alone() {
        for (at, byte, why) in [
            (1, 0xb4, "another form of address"),
            (5, 0x00, "not in CPUState"),
            (7, 0x82, "another register"),
            (13, 0x01, "another value"),
            (19, 0x90, "not neighbours"),
        ] {
            let mut code = AS_BUILT;
            code[at] = byte;
            assert!(store(&code, DELIVERY_AT).is_none(), "{why}");
        }
    }

    /// `lea -0x4070(%rbx),%rdi; movl $0x10000,-0x3db0(%rbx); call`.
    const PAUSE_AS_BUILT: [u8; 22] = [
        0x48, 0x8d, 0xbb, 0x90, 0xbf, 0xff, 0xff, //
        0xc7, 0x83, 0x50, 0xc2, 0xff, 0xff, 0x00, 0x00, 0x01, 0x00, //
        0xe8, 0x5b, 0xa7, 0xc2, 0xff,
    ];

    #[test]
    fn what_pause_raises_is_found() {
        assert_eq!(interrupt(&PAUSE_AS_BUILT), Some(13));
        let twice = [PAUSE_AS_BUILT, PAUSE_AS_BUILT].concat();
        assert!(interrupt(&twice).is_none(), "which?");
        assert!(interrupt(&PAUSE_AS_BUILT[..16]).is_none(), "cut off");
        for (at, byte, why) in [
            (7, 0xc6, "a byte"),
            (8, 0x43, "a short displacement"),
            (8, 0x84, "an index"),
            (15, 0x02, "another exception"),
        ] {
            let mut code = PAUSE_AS_BUILT;
            code[at] = byte;
            assert!(interrupt(&code).is_none(), "{why}");
        }
    }

    #[test]
    fn the_longest_budget_is_found() {
        // `cmovbe %rax,%rdi; mov $0x7fffffff,%eax; cmp %rax,%rdi`.
        let code = [
            0x48, 0x0f, 0x46, 0xf8, //
            0xb8, 0xff, 0xff, 0xff, 0x7f, //
            0x48, 0x39, 0xc7,
        ];
        assert_eq!(longest(&code), Some(5));
        assert!(longest(&[code, code].concat()).is_none(), "which?");
        assert!(longest(&code[..8]).is_none(), "cut off");
        for (at, byte, why) in [(4, 0xb9, "another register"), (8, 0xff, "another value")] {
            let mut code = code;
            code[at] = byte;
            assert!(longest(&code).is_none(), "{why}");
        }
    }

    #[test]
    fn a_program_that_is_no_qemu_stays_as_it_is() {
        let me = std::env::current_exe().expect("has a name");
        for program in [vec![1, 2, 3], std::fs::read(me).expect("readable")] {
            let mut mended = program.clone();
            assert_eq!(mend(&mut mended).len(), 4, "all faults are left");
            assert!(mended == program);
        }
    }
}
