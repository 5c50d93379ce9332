// SPDX-License-Identifier: GPL-2.0-only
//! The histogram and the fairness index of the module's benchmark.

unsafe extern "C" {
    fn corun_figures_bucket(value: u64) -> u32;
    fn corun_figures_lower(bucket: u32) -> u64;
    fn corun_figures_quantile(values: *const u64, n: u32, permille: u32) -> u64;
    fn corun_figures_jain(served: *const u64, n: u32) -> u32;
}

/// The bucket of `value`.
pub fn bucket(value: u64) -> u32 {
    // SAFETY: a pure function of its argument.
    unsafe { corun_figures_bucket(value) }
}

/// The least value of `bucket`.
pub fn lower(bucket: u32) -> u64 {
    // SAFETY: a pure function of its argument.
    unsafe { corun_figures_lower(bucket) }
}

/// What `permille` of `values` are not above, to the bucket.
pub fn quantile(values: &[u64], permille: u32) -> u64 {
    // SAFETY: the pointer is valid for the length given.
    unsafe { corun_figures_quantile(values.as_ptr(), length(values), permille) }
}

/// Jain's index of fairness in thousandths.
pub fn jain(served: &[u64]) -> u32 {
    // SAFETY: the pointer is valid for the length given.
    unsafe { corun_figures_jain(served.as_ptr(), length(served)) }
}

fn length(values: &[u64]) -> u32 {
    u32::try_from(values.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_are_narrow() {
        for shift in 0..40 {
            for value in [1 << shift, (1 << shift) + 1, (1 << (shift + 1)) - 1] {
                let (from, to) = (lower(bucket(value)), lower(bucket(value) + 1));
                assert!(from <= value && value < to, "{value} in {from}..{to}");
                assert!(to - from <= (from / 32).max(1), "{from}..{to}");
            }
        }
    }

    #[test]
    fn very_long_waits_share_the_last_bucket() {
        assert_eq!(bucket(u64::MAX), bucket(1 << 40));
        assert_eq!(bucket(1 << 40), bucket((1 << 40) - 1));
    }

    #[test]
    fn quantiles_are_those_of_all_threads() {
        let values: Vec<u64> = (1..=1000).collect();
        for (permille, exact) in [(500, 500), (990, 990), (999, 999)] {
            let found = quantile(&values, permille);
            assert!(found <= exact && exact - found <= exact / 32, "{found}");
        }
        assert_eq!(quantile(&values, 1000), 1000);
        assert_eq!(quantile(&[], 500), 0);
        assert_eq!(quantile(&[7], 1), 7);
    }

    #[test]
    fn fairness_is_between_one_alone_and_all_alike() {
        assert_eq!(jain(&[10, 30]), 800);
        assert_eq!(jain(&[5; 8]), 1000);
        assert_eq!(jain(&[9, 0, 0, 0]), 250);
        assert_eq!(jain(&[0, 0]), 0);
        // Large counts are scaled, not overflowed.
        assert_eq!(jain(&vec![u64::MAX / 2048; 1024]), 1000);
    }
}
