// SPDX-License-Identifier: GPL-2.0-only
//! What CPUID tells about the hypervisor, and what CPUID itself costs.

use crate::affinity;
use crate::error::Error;
use crate::sync::nanos;
use std::arch::x86_64::{__cpuid, CpuidResult};
use std::time::Instant;

/// Exits timed between two readings of the clock.
const BATCH: u64 = 64;

/// Bits of EAX of KVM's feature leaf (base + 1).
const FEATURES: &[(u32, &str)] = &[
    (0, "clocksource"),
    (1, "nop_io_delay"),
    (2, "mmu_op"),
    (3, "clocksource2"),
    (4, "async_pf"),
    (5, "steal_time"),
    (6, "pv_eoi"),
    (7, "pv_unhalt"),
    (9, "pv_tlb_flush"),
    (10, "async_pf_vmexit"),
    (11, "pv_send_ipi"),
    (12, "poll_control"),
    (13, "pv_sched_yield"),
    (14, "async_pf_int"),
    (15, "msi_ext_dest_id"),
    (16, "hc_map_gpa_range"),
    (17, "migration_control"),
    (24, "clocksource_stable"),
];

/// Names of the paravirtual features that KVM offers; empty outside of KVM.
pub(crate) fn pv_features() -> Vec<String> {
    const HYPERVISOR: u32 = 1 << 31;
    if cpuid(1).ecx & HYPERVISOR == 0 {
        return Vec::new();
    }
    // KVM's leaves move up by 0x100 when the Hyper-V ones take their place.
    (0x4000_0000..0x4001_0000)
        .step_by(0x100)
        .find(|&base| is_kvm(&cpuid(base)))
        .map(|base| feature_names(cpuid(base + 1).eax))
        .unwrap_or_default()
}

/// Mean and smallest time of one exit and re-entry in nanoseconds, from at least
/// `count` CPUID instructions on one vCPU.
pub(crate) fn time_exits(count: u64) -> Result<(f64, f64), Error> {
    affinity::pin(affinity::cpus()[0])?;
    let batches = count.div_ceil(BATCH).max(1);
    let (mut total, mut min) = (0, u64::MAX);
    for _ in 0..batches {
        let start = Instant::now();
        for _ in 0..BATCH {
            std::hint::black_box(cpuid(0));
        }
        let took = nanos(start.elapsed());
        total += took;
        min = min.min(took);
    }
    Ok((
        total as f64 / (batches * BATCH) as f64,
        min as f64 / BATCH as f64,
    ))
}

fn cpuid(leaf: u32) -> CpuidResult {
    #[allow(
        unused_unsafe,
        reason = "safe since Rust 1.94, unsafe in the oldest supported one"
    )]
    // SAFETY: every x86-64 processor has CPUID; unknown leaves only give odd values.
    unsafe {
        __cpuid(leaf)
    }
}

fn is_kvm(leaf: &CpuidResult) -> bool {
    let mut name = [0; 12];
    for (part, register) in name.chunks_exact_mut(4).zip([leaf.ebx, leaf.ecx, leaf.edx]) {
        part.copy_from_slice(&register.to_le_bytes());
    }
    &name == b"KVMKVMKVM\0\0\0"
}

fn feature_names(eax: u32) -> Vec<String> {
    FEATURES
        .iter()
        .filter(|(bit, _)| eax & (1 << bit) != 0)
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_recognized() {
        let word = |s: &[u8; 4]| u32::from_le_bytes(*s);
        let mut leaf = CpuidResult {
            eax: 0,
            ebx: word(b"KVMK"),
            ecx: word(b"VMKV"),
            edx: word(b"M\0\0\0"),
        };
        assert!(is_kvm(&leaf));
        leaf.ebx = word(b"Micr");
        assert!(!is_kvm(&leaf));
    }

    #[test]
    fn bits_have_names() {
        assert_eq!(
            feature_names(1 << 5 | 1 << 9),
            ["steal_time", "pv_tlb_flush"]
        );
        assert!(feature_names(1 << 8).is_empty());
    }

    #[test]
    fn exits_take_time() {
        let (mean, min) = std::thread::spawn(|| time_exits(100))
            .join()
            .expect("no panic")
            .expect("pins");
        assert!(min > 0.0 && mean >= min);
    }
}
