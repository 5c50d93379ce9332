// SPDX-License-Identifier: GPL-2.0-only
//! A copy of the emulator without a fault that kills L1 and its guests.
//!
//! QEMU's VMRUN delivers an interrupt that the hypervisor injects at once, and leaves
//! its vector behind in `exception_index`, as if it were still to be raised
//! (`helper_vmrun()` in `target/i386/tcg/system/svm_helper.c`). Nobody looks at it
//! unless the vCPU's thread is asked to leave its loop before the nested guest's next
//! exit, which on a busy machine it is every few minutes. Then the interrupt is
//! delivered once more, as an exception that no flag can mask: in the guest's interrupt
//! handler before that has changed stacks, or in L1 right behind its VMRUN. Panics
//! there, resets and stalls were what most lost boots had died of.
//!
//! The copy does not store the vector. Only a debug message reads it there.

use object::{Object, ObjectSection, ObjectSymbol};

/// The emulator in the packages' tree.
pub(super) const PROGRAM: &str = "usr/bin/qemu-system-x86_64";
/// What the copy's version has at its end.
pub(super) const SUFFIX: &str = " (interrupts injected once)";
/// The function with the fault, and what delivers the interrupt behind it.
const FUNCTION: &str = "helper_vmrun";
const DELIVERY: &str = "do_interrupt_x86_hardirq";
/// `mov %r32,disp32(%r64)`, six bytes, and as many that do nothing.
const STORE_LEN: usize = 6;
const NOTHING: [u8; STORE_LEN] = [0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00];
/// `call rel32`.
const CALL: u8 = 0xe8;
const CALL_LEN: usize = 5;
/// The delivery is called that soon behind the store. Bytes.
const NEAR: usize = 64;

/// Returns `program`, a QEMU for x86, without the store.
///
/// # Errors
/// Says what is not as expected; then the program is to be used as it is.
pub(super) fn mended(mut program: Vec<u8>) -> Result<Vec<u8>, &'static str> {
    let function = Function::find(&program).ok_or("it exports no helper_vmrun")?;
    let end = function.offset.saturating_add(function.size);
    let code = program
        .get_mut(function.offset..end)
        .ok_or("its helper_vmrun is cut off")?;
    let at = store(code, function.to_delivery)?;
    code[at..at + STORE_LEN].copy_from_slice(&NOTHING);
    Ok(program)
}

/// Where [`FUNCTION`] is in the file, and from its first byte to [`DELIVERY`]. Bytes.
struct Function {
    offset: usize,
    size: usize,
    to_delivery: i64,
}

impl Function {
    fn find(program: &[u8]) -> Option<Self> {
        let file = object::File::parse(program).ok()?;
        let symbol = |name| file.dynamic_symbols().find(|s| s.name() == Ok(name));
        let (own, delivery) = (symbol(FUNCTION)?, symbol(DELIVERY)?);
        let section = file.section_by_index(own.section_index()?).ok()?;
        let (in_file, _) = section.file_range()?;
        let offset = in_file.checked_add(own.address().checked_sub(section.address())?)?;
        Some(Self {
            offset: usize::try_from(offset).ok()?,
            size: usize::try_from(own.size()).ok()?,
            to_delivery: delivery.address().wrapping_sub(own.address()).cast_signed(),
        })
    }
}

/// Where in `code` the vector is stored that the only call of the delivery, which is
/// `to_delivery` bytes from its begin, is about. QEMU raises exceptions in the same way,
/// but leaves by another function.
fn store(code: &[u8], to_delivery: i64) -> Result<usize, &'static str> {
    let calls = |at: &usize| {
        let next = i64::try_from(at + CALL_LEN).ok();
        code[*at] == CALL
            && displacement(code, at + 1).map(i64::from) == next.map(|next| to_delivery - next)
    };
    let mut places = (0..code.len()).filter(calls);
    let (Some(call), None) = (places.next(), places.next()) else {
        return Err("its helper_vmrun does not deliver interrupts as expected");
    };
    (call.saturating_sub(NEAR)..call)
        .rev()
        .find(|at| is_store(&code[*at..]))
        .ok_or("its helper_vmrun does not store the vector as expected")
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
        assert_eq!(store(&AS_BUILT, DELIVERY_AT), Ok(0));
        assert!(store(&AS_BUILT, DELIVERY_AT + 1).is_err(), "another call");
        let mut exception = AS_BUILT;
        exception[27] = 0x90;
        let both = [exception, AS_BUILT].concat();
        assert_eq!(store(&both, DELIVERY_AT + 32), Ok(32));
        let mut far = AS_BUILT[..27].to_vec();
        far.resize(27 + 64, 0x90);
        far.extend(&AS_BUILT[27..]);
        assert!(store(&far, DELIVERY_AT + 64).is_err(), "too far");
        assert!(store(&AS_BUILT[..28], DELIVERY_AT).is_err(), "cut off");
        assert!(store(&[], 0).is_err());
    }

    #[test]
    fn two_calls_leave_it_open_which_is_meant() {
        let mut back = vec![0xe8];
        let rel = i32::try_from(DELIVERY_AT).expect("small") - 5 + 32;
        back.extend(rel.to_le_bytes());
        let mut code = back;
        code.resize(32, 0x90);
        code.extend(AS_BUILT);
        assert!(store(&code, DELIVERY_AT + 32).is_err_and(|why| why.contains("deliver")));
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
            assert!(store(&code, DELIVERY_AT).is_err(), "{why}");
        }
    }

    #[test]
    fn a_program_that_is_no_qemu_is_refused() {
        assert_eq!(mended(vec![1, 2, 3]), Err("it exports no helper_vmrun"));
        let me = std::env::current_exe().expect("has a name");
        let me = std::fs::read(me).expect("readable");
        assert_eq!(mended(me), Err("it exports no helper_vmrun"));
    }
}
