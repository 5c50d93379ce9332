// SPDX-License-Identifier: GPL-2.0-only
//! Runs of BPF programs that the kernel skipped. It does so while a pCPU is in the
//! same program, or in another of its kind: kernels that preempt programs skip it for
//! whatever else runs on that pCPU until the preempted one goes on, which may take many
//! milliseconds.

use std::os::fd::{AsRawFd as _, BorrowedFd};

/// How many runs of the program behind `fd` were skipped; 0 where the kernel does
/// not tell.
pub(crate) fn runs(fd: BorrowedFd<'_>) -> u64 {
    let file = format!("/proc/self/fdinfo/{}", fd.as_raw_fd());
    parse(&std::fs::read_to_string(file).unwrap_or_default())
}

/// `count` skipped runs on `event`, for people; nothing when there are none.
pub(crate) fn said(event: &str, count: u64) -> Option<String> {
    (count > 0).then(|| format!("{event}: {count} skipped while another BPF program was under way"))
}

fn parse(fdinfo: &str) -> u64 {
    let count = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("recursion_misses:"));
    count.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        let fdinfo = "pos:\t0\nprog_type:\t26\nrun_cnt:\t9\nrecursion_misses:\t17\n";
        assert_eq!(parse(fdinfo), 17);
        assert_eq!(parse("pos:\t0\n"), 0);
        assert_eq!(said("kvm_inj_virq", 0), None);
        let lost = said("kvm_inj_virq", 17).expect("is said");
        assert!(lost.starts_with("kvm_inj_virq: 17 skipped"), "{lost}");
    }
}
