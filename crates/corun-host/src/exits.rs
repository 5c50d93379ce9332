// SPDX-License-Identifier: GPL-2.0-only
//! Names of VM exits, for accounts and recordings alike: as the simulator calls
//! them where it has them ([`corun_events::EXITS`]), the same for both vendors
//! where they mean the same, else the kernel's in lower case without the vendor's
//! prefix. Numbers are those of `asm/vmx.h` and `asm/svm.h` (uapi).

/// Whose numbers they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    /// Intel's.
    Vmx,
    /// AMD's.
    Svm,
}

/// Vendors as KVM's tracepoint tells them (`KVM_ISA_VMX`, `KVM_ISA_SVM`).
const ISA_VMX: u64 = 1;
const ISA_SVM: u64 = 2;

const SVM: &[(u32, &str)] = &[
    (0x60, "external"),
    (0x61, "nmi"),
    (0x62, "smi"),
    (0x63, "init"),
    (0x64, "interrupt_window"),
    (0x65, "cr_access"),
    (0x66, "read_idtr"),
    (0x67, "read_gdtr"),
    (0x68, "read_ldtr"),
    (0x69, "read_tr"),
    (0x6a, "write_idtr"),
    (0x6b, "write_gdtr"),
    (0x6c, "write_ldtr"),
    (0x6d, "write_tr"),
    (0x6e, "rdtsc"),
    (0x6f, "rdpmc"),
    (0x70, "pushf"),
    (0x71, "popf"),
    (0x72, "cpuid"),
    (0x73, "rsm"),
    (0x74, "iret"),
    (0x75, "swint"),
    (0x76, "invd"),
    (0x77, "pause"),
    (0x78, "hlt"),
    (0x79, "invlpg"),
    (0x7a, "invlpga"),
    (0x7b, "io"),
    (0x7c, "msr"),
    (0x7d, "task_switch"),
    (0x7e, "ferr_freeze"),
    (0x7f, "triple_fault"),
    (0x80, "vmrun"),
    (0x81, "hypercall"),
    (0x82, "vmload"),
    (0x83, "vmsave"),
    (0x84, "stgi"),
    (0x85, "clgi"),
    (0x86, "skinit"),
    (0x87, "rdtscp"),
    (0x88, "icebp"),
    (0x89, "wbinvd"),
    (0x8a, "monitor"),
    (0x8b, "mwait"),
    (0x8c, "mwait_cond"),
    (0x8d, "xsetbv"),
    (0x8e, "rdpru"),
    (0x8f, "efer_write"),
    (0x90, "cr0_write_trap"),
    (0x94, "cr4_write_trap"),
    (0x98, "cr8_write_trap"),
    (0xa0, "invlpgb"),
    (0xa1, "illegal_invlpgb"),
    (0xa2, "invpcid"),
    (0xa3, "mcommit"),
    (0xa4, "tlbsync"),
    (0xa5, "bus_lock"),
    (0xa6, "idle_hlt"),
    (0x400, "page_fault"),
    (0x401, "avic_incomplete_ipi"),
    (0x402, "avic_unaccelerated_access"),
    (0x403, "vmgexit"),
];

const VMX: &[(u32, &str)] = &[
    (0, "exception_nmi"),
    (1, "external"),
    (2, "triple_fault"),
    (3, "init"),
    (4, "sipi"),
    (7, "interrupt_window"),
    (8, "nmi_window"),
    (9, "task_switch"),
    (10, "cpuid"),
    (12, "hlt"),
    (13, "invd"),
    (14, "invlpg"),
    (15, "rdpmc"),
    (16, "rdtsc"),
    (18, "hypercall"),
    (19, "vmclear"),
    (20, "vmlaunch"),
    (21, "vmptrld"),
    (22, "vmptrst"),
    (23, "vmread"),
    (24, "vmresume"),
    (25, "vmwrite"),
    (26, "vmoff"),
    (27, "vmon"),
    (28, "cr_access"),
    (29, "dr_access"),
    (30, "io"),
    (31, "msr_read"),
    (32, "msr_write"),
    (33, "invalid_state"),
    (34, "msr_load_fail"),
    (36, "mwait"),
    (37, "monitor_trap"),
    (39, "monitor"),
    (40, "pause"),
    (41, "mce_during_entry"),
    (43, "tpr_threshold"),
    (44, "apic_access"),
    (45, "eoi_induced"),
    (46, "gdtr_idtr"),
    (47, "ldtr_tr"),
    (48, "page_fault"),
    (49, "mmio"),
    (50, "invept"),
    (51, "rdtscp"),
    (52, "preemption_timer"),
    (53, "invvpid"),
    (54, "wbinvd"),
    (55, "xsetbv"),
    (56, "apic_write"),
    (57, "rdrand"),
    (58, "invpcid"),
    (59, "vmfunc"),
    (60, "encls"),
    (61, "rdseed"),
    (62, "pml_full"),
    (63, "xsaves"),
    (64, "xrstors"),
    (67, "umwait"),
    (68, "tpause"),
    (74, "bus_lock"),
    (75, "notify"),
];

/// The name of exit `reason`.
pub(crate) fn name(isa: Isa, reason: u32) -> String {
    let table = match isa {
        Isa::Vmx => VMX,
        Isa::Svm => SVM,
    };
    if let Ok(at) = table.binary_search_by_key(&reason, |(number, _)| *number) {
        return table[at].1.to_owned();
    }
    match (isa, reason) {
        (Isa::Svm, 0..=0x1f) => "cr_access".to_owned(),
        (Isa::Svm, 0x20..=0x3f) => "dr_access".to_owned(),
        (Isa::Svm, 0x40..=0x5f) => format!("exception_{}", reason - 0x40),
        _ => unknown(reason),
    }
}

/// The name of the exit that the tracepoint calls `isa << 32 | reason`.
pub(crate) fn name_of_code(code: u64) -> String {
    let reason = u32::try_from(code & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    match code >> 32 {
        // The upper half marks failed entries and others.
        ISA_VMX => name(Isa::Vmx, reason & 0xffff),
        ISA_SVM => name(Isa::Svm, reason),
        _ => unknown(reason),
    }
}

fn unknown(reason: u32) -> String {
    format!("reason_{reason:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use corun_events::{EXITS, exit};

    #[test]
    fn vendors_numbers_have_the_same_names() {
        for (intel, amd, same) in [
            (40, 0x77, "pause"),
            (12, 0x78, "hlt"),
            (18, 0x81, "hypercall"),
            (1, 0x60, "external"),
            (48, 0x400, "page_fault"),
            (28, 0x10, "cr_access"),
        ] {
            assert_eq!(name(Isa::Vmx, intel), same);
            assert_eq!(name(Isa::Svm, amd), same);
        }
        assert_eq!(name(Isa::Svm, 0x4e), "exception_14");
        assert_eq!(name(Isa::Svm, 0x999), "reason_0x999");
        assert_eq!(name(Isa::Vmx, 5), "reason_0x5");
    }

    #[test]
    fn the_simulators_names_are_hardwares_too() {
        // It tells the two writes to the APIC apart, which are one reason.
        let apic = [EXITS[exit::ICR], EXITS[exit::TIMER_MSR]];
        for simulated in EXITS.iter().filter(|name| !apic.contains(name)) {
            for table in [SVM, VMX] {
                assert!(
                    table.iter().any(|(_, name)| name == simulated),
                    "{simulated}"
                );
            }
        }
    }

    #[test]
    fn codes_are_taken_apart() {
        assert_eq!(name_of_code(ISA_VMX << 32 | 0x8000_0002), "triple_fault");
        assert_eq!(name_of_code(ISA_SVM << 32 | 0x78), "hlt");
        assert_eq!(name_of_code(5), "reason_0x5");
    }

    #[test]
    fn tables_are_in_order_and_no_number_has_two_names() {
        for table in [SVM, VMX] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
    }
}
