// SPDX-License-Identifier: GPL-2.0-only
//! What a perfectly fair, free host would give: the yardstick of the tables.

use crate::{Case, Guest, Phase};
use std::collections::BTreeMap;

/// Splits `pcpus` between demands `(weight, most it can use)` in proportion to
/// the weights; what one cannot use goes to the others (water filling).
pub fn fair_cpus(pcpus: f64, demands: &[(f64, f64)]) -> Vec<f64> {
    let mut given = vec![0.0; demands.len()];
    let mut open: Vec<usize> = (0..demands.len()).collect();
    let mut left = pcpus;
    while !open.is_empty() {
        let weights: f64 = open.iter().map(|&i| demands[i].0).sum();
        let per_weight = left / weights;
        let (full, rest): (Vec<usize>, Vec<usize>) = open
            .iter()
            .partition(|&&i| demands[i].1 <= per_weight * demands[i].0);
        if full.is_empty() {
            for i in rest {
                given[i] = per_weight * demands[i].0;
            }
            break;
        }
        for i in full {
            given[i] = demands[i].1;
            left -= demands[i].1;
        }
        open = rest;
    }
    given
}

/// The most pCPUs that `guest` can use in `phase`.
pub fn cpu_demand(case: &Case, phase: &Phase, guest: &Guest) -> f64 {
    let threads = phase
        .run
        .get(&guest.name)
        .map_or(0, |w| w.threads.unwrap_or(guest.vcpus));
    f64::from(threads.min(guest.vcpus).min(case.host.pcpus))
}

/// pCPUs of each guest of `phase` on a perfectly fair host, by name.
pub fn ideal_cpus(case: &Case, phase: &Phase) -> BTreeMap<String, f64> {
    let guests: Vec<&Guest> = phase.run.keys().filter_map(|n| case.guest(n)).collect();
    let demands: Vec<(f64, f64)> = guests
        .iter()
        .map(|g| (f64::from(g.weight), cpu_demand(case, phase, g)))
        .collect();
    let given = fair_cpus(f64::from(case.host.pcpus), &demands);
    guests.iter().map(|g| g.name.clone()).zip(given).collect()
}

/// Slowdown of a CPU-bound `guest` in `phase` on a perfectly fair host, against
/// running alone. A workload that waits can do better.
pub fn ideal_slowdown(case: &Case, phase: &Phase, guest: &str) -> Option<f64> {
    let demand = cpu_demand(case, phase, case.guest(guest)?);
    let given = *ideal_cpus(case, phase).get(guest)?;
    (given > 0.0).then(|| demand / given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        for (x, y) in a.iter().zip(b) {
            assert!((x - y).abs() < 1e-9, "{a:?} is not {b:?}");
        }
    }

    #[test]
    fn splits_by_weight() {
        close(&fair_cpus(2.0, &[(100.0, 2.0), (100.0, 2.0)]), &[1.0, 1.0]);
        close(&fair_cpus(2.0, &[(100.0, 2.0), (300.0, 2.0)]), &[0.5, 1.5]);
    }

    #[test]
    fn gives_the_rest_to_those_who_can_use_it() {
        close(&fair_cpus(2.0, &[(100.0, 2.0), (900.0, 1.0)]), &[1.0, 1.0]);
        close(&fair_cpus(4.0, &[(100.0, 1.0), (100.0, 1.0)]), &[1.0, 1.0]);
        close(
            &fair_cpus(3.0, &[(1.0, 0.5), (1.0, 3.0), (1.0, 3.0)]),
            &[0.5, 1.25, 1.25],
        );
    }
}
