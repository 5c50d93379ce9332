// SPDX-License-Identifier: GPL-2.0-only
//! Names of exit reasons, alike for both vendors where they mean the same, and
//! as the simulator calls them where it has them. Numbers are those of
//! `asm/vmx.h` and `asm/svm.h` (uapi).

/// Vendors as KVM's tracepoint tells them (`KVM_ISA_VMX`, `KVM_ISA_SVM`).
const ISA_VMX: u32 = 1;
const ISA_SVM: u32 = 2;

const VMX: [(u32, &str); 31] = [
    (0, "exception_nmi"),
    (1, "external"),
    (2, "triple_fault"),
    (7, "interrupt_window"),
    (8, "nmi_window"),
    (9, "task_switch"),
    (10, "cpuid"),
    (12, "hlt"),
    (14, "invlpg"),
    (15, "rdpmc"),
    (16, "rdtsc"),
    (18, "hypercall"),
    (28, "cr_access"),
    (29, "dr_access"),
    (30, "io"),
    (31, "msr_read"),
    (32, "msr_write"),
    (36, "mwait"),
    (39, "monitor"),
    (40, "pause"),
    (43, "tpr_threshold"),
    (44, "apic_access"),
    (45, "eoi_induced"),
    (48, "page_fault"),
    (49, "mmio"),
    (52, "preemption_timer"),
    (54, "wbinvd"),
    (55, "xsetbv"),
    (56, "apic_write"),
    (58, "invpcid"),
    (74, "bus_lock"),
];

const SVM: [(u32, &str); 26] = [
    (0x60, "external"),
    (0x61, "nmi"),
    (0x62, "smi"),
    (0x64, "interrupt_window"),
    (0x6e, "rdtsc"),
    (0x6f, "rdpmc"),
    (0x72, "cpuid"),
    (0x74, "iret"),
    (0x76, "invd"),
    (0x77, "pause"),
    (0x78, "hlt"),
    (0x79, "invlpg"),
    (0x7a, "invlpga"),
    (0x7b, "io"),
    (0x7c, "msr"),
    (0x7d, "task_switch"),
    (0x7f, "triple_fault"),
    (0x81, "hypercall"),
    (0x87, "rdtscp"),
    (0x89, "wbinvd"),
    (0x8a, "monitor"),
    (0x8b, "mwait"),
    (0x8d, "xsetbv"),
    (0x400, "page_fault"),
    (0x401, "avic_incomplete_ipi"),
    (0x402, "avic_unaccelerated_access"),
];

/// The name of the exit that the tracepoint calls `isa << 32 | reason`.
pub(super) fn name_of(code: u64) -> String {
    let (isa, reason) = (high(code), low(code));
    let table: &[(u32, &str)] = match isa {
        ISA_VMX => &VMX,
        ISA_SVM => &SVM,
        _ => &[],
    };
    // VMX marks failed entries and others in the upper half.
    let reason = if isa == ISA_VMX {
        reason & 0xffff
    } else {
        reason
    };
    if let Some((_, name)) = table.iter().find(|(number, _)| *number == reason) {
        return (*name).to_owned();
    }
    match (isa, reason) {
        (ISA_SVM, 0..=0x1f) => "cr_access".to_owned(),
        (ISA_SVM, 0x20..=0x3f) => "dr_access".to_owned(),
        (ISA_SVM, 0x40..=0x5f) => format!("exception_{}", reason - 0x40),
        _ => format!("reason_{reason:#x}"),
    }
}

fn high(code: u64) -> u32 {
    u32::try_from(code >> 32).unwrap_or(0)
}

fn low(code: u64) -> u32 {
    u32::try_from(code & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_numbers_have_the_same_names() {
        let vmx = |reason: u64| name_of(u64::from(ISA_VMX) << 32 | reason);
        let svm = |reason: u64| name_of(u64::from(ISA_SVM) << 32 | reason);
        for (intel, amd, name) in [
            (40, 0x77, "pause"),
            (12, 0x78, "hlt"),
            (18, 0x81, "hypercall"),
            (1, 0x60, "external"),
        ] {
            assert_eq!((vmx(intel).as_str(), svm(amd).as_str()), (name, name));
        }
        assert_eq!(vmx(0x8000_0002), "triple_fault");
        assert_eq!(
            (svm(0x4e), svm(0x10)),
            ("exception_14".to_owned(), "cr_access".to_owned())
        );
        assert_eq!(svm(0x999), "reason_0x999");
        assert_eq!(name_of(5), "reason_0x5");
    }

    #[test]
    fn tables_are_in_order() {
        assert!(VMX.is_sorted() && SVM.is_sorted());
    }
}
