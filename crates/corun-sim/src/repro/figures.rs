// SPDX-License-Identifier: GPL-2.0-only
//! Names of figures, checked before anything runs.
//!
//! A counter that does not exist would read as zero, and a zero can be a good
//! result. So names are checked twice: their form when a table is loaded, and
//! the counter's or histogram's existence when its run is done.

use crate::VmOutcome;
use crate::outcome::{ACCOUNT_NAMES, Account};

/// Histograms that are not one of many.
const HISTOGRAMS: [&str; 6] = ["tlb", "unit", "wake", "ipi", "ready", "ple_run"];
/// Histograms of which there is one for each lock, semaphore or flow.
const FAMILIES: [&str; 3] = ["lock.", "sem.", "jitter."];

/// Whether `name` has the form of a figure.
pub(super) fn check(name: &str) -> Result<(), String> {
    let number = |text: &str| {
        text.parse::<f64>()
            .is_ok_and(|n| (0.0..=100.0).contains(&n))
    };
    let known = match name.split_once('.') {
        None => ["rate", "cpu_s"].contains(&name),
        Some(("rate", n)) => n.parse::<usize>().is_ok(),
        Some(("share", account)) => {
            ACCOUNT_NAMES[..=Account::KernelOther as usize].contains(&account)
        }
        Some(("count" | "per_unit", counter)) => !counter.is_empty(),
        Some(_) => name.rsplit_once('.').is_some_and(|(histogram, what)| {
            let family = |f: &&str| histogram.len() > f.len() && histogram.starts_with(*f);
            let percentile = what.strip_prefix('p').and_then(|w| w.strip_suffix("_us"));
            (HISTOGRAMS.contains(&histogram) || FAMILIES.iter().any(family))
                && (["count", "mean_us", "min_us", "max_us"].contains(&what)
                    || percentile.is_some_and(number))
        }),
    };
    if known {
        return Ok(());
    }
    Err(format!(
        "no figure `{name}`: expected rate, rate.N, cpu_s, share.ACCOUNT, count.COUNTER, \
         per_unit.COUNTER, or HISTOGRAM.count, .mean_us, .min_us, .max_us or .pNN_us"
    ))
}

/// A figure's value in a run, or why there is none.
pub(super) fn read(vm: &VmOutcome, name: &str, measured_ns: u64) -> Result<f64, String> {
    if let Some(("count" | "per_unit", counter)) = name.split_once('.')
        && !vm.counters.contains_key(counter)
    {
        return Err(format!("no counter `{counter}` in {}", vm.name));
    }
    vm.figure(name, measured_ns)
        .ok_or_else(|| format!("nothing was counted for {}.{name}", vm.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_figures() {
        for name in [
            "rate",
            "rate.1",
            "cpu_s",
            "share.k:tlb",
            "count.exit.icr",
            "per_unit.exit.timer_msr",
            "tlb.mean_us",
            "lock.dentry.mean_us",
            "jitter.udp.p99_us",
            "ipi.p50_us",
        ] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn refuses_what_is_none() {
        for name in [
            "rat",
            "rate.x",
            "share.idle",
            "count.",
            "tlb",
            "tlb.mean",
            "tlb.p101_us",
            "lock.mean_us",
            "tbl.mean_us",
        ] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
