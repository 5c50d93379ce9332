// SPDX-License-Identifier: GPL-2.0-only
//! Names of exit reasons: the kernel's, in lower case, without the vendor's prefix
//! (arch/x86/include/uapi/asm/svm.h and vmx.h).

use std::collections::BTreeMap;

/// Places of reasons below 0xc0: their own numbers.
const DIRECT: usize = 0xc0;
/// AMD's from 0x400 follow, then one place for all others.
const OTHER: usize = DIRECT + 0x0f;

/// AMD's reasons: a number and its name.
const SVM: [(usize, &str); 62] = [
    (0x65, "cr0_sel_write"),
    (0x60, "intr"),
    (0x61, "nmi"),
    (0x62, "smi"),
    (0x63, "init"),
    (0x64, "vintr"),
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
    (0x7f, "shutdown"),
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
    (DIRECT, "npf"),
    (DIRECT + 1, "avic_incomplete_ipi"),
    (DIRECT + 2, "avic_unaccelerated_access"),
    (DIRECT + 3, "vmgexit"),
];

/// Intel's reasons.
const VMX: [(usize, &str); 62] = [
    (0, "exception_nmi"),
    (1, "external_interrupt"),
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
    (43, "tpr_below_threshold"),
    (44, "apic_access"),
    (45, "eoi_induced"),
    (46, "gdtr_idtr"),
    (47, "ldtr_tr"),
    (48, "ept_violation"),
    (49, "ept_misconfig"),
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

/// Exits by name from the kernel's `counts` by place; those of one name are added.
pub(super) fn by_name(counts: &[u64], is_amd: bool) -> BTreeMap<String, u64> {
    let mut named = BTreeMap::new();
    for (place, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
        *named.entry(name(place, is_amd)).or_default() += n;
    }
    named
}

fn name(place: usize, is_amd: bool) -> String {
    let table = if is_amd { &SVM } else { &VMX };
    if let Some((_, name)) = table.iter().find(|(p, _)| *p == place) {
        return (*name).to_owned();
    }
    match place {
        0x00..=0x0f if is_amd => "cr_read".to_owned(),
        0x10..=0x1f if is_amd => "cr_write".to_owned(),
        0x20..=0x3f if is_amd => "dr_access".to_owned(),
        0x40..=0x5f if is_amd => "exception".to_owned(),
        OTHER => "other".to_owned(),
        DIRECT.. => format!("exit_{:#x}", place - DIRECT + 0x400),
        _ => format!("exit_{place:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_their_vendors_names() {
        let mut counts = [0; OTHER + 1];
        counts[0x78] = 5;
        counts[DIRECT] = 3;
        counts[0x41] = 1;
        counts[0x4e] = 1;
        counts[OTHER] = 2;
        let amd = by_name(&counts, true);
        let expected = [("exception", 2), ("hlt", 5), ("npf", 3), ("other", 2)];
        assert_eq!(amd, expected.map(|(n, c)| (n.to_owned(), c)).into());
        let mut counts = [0; OTHER + 1];
        counts[12] = 7;
        counts[5] = 1;
        let intel = by_name(&counts, false);
        assert_eq!((intel["hlt"], intel["exit_0x5"]), (7, 1));
    }

    #[test]
    fn no_place_has_two_names() {
        for table in [SVM, VMX] {
            let places: std::collections::BTreeSet<_> = table.iter().map(|t| t.0).collect();
            assert_eq!(places.len(), table.len());
        }
    }
}
