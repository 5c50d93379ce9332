// SPDX-License-Identifier: GPL-2.0-only
//! Merges the latency distributions of several windows.

use super::summary::LatencyFigures;
use corun_lab_proto::agent::RunResult;
use corun_lab_proto::{HistogramError, LatencySummary};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// One distribution per kind of latency, merged over `runs`.
pub(super) fn merge<'a>(
    runs: impl IntoIterator<Item = &'a RunResult>,
) -> Result<Vec<LatencyFigures>, HistogramError> {
    merge_summaries(runs.into_iter().flat_map(|r| &r.latency))
}

/// The same of any distributions.
pub(super) fn merge_summaries<'a>(
    summaries: impl IntoIterator<Item = &'a LatencySummary>,
) -> Result<Vec<LatencyFigures>, HistogramError> {
    let mut merged: BTreeMap<&str, Histogram<u64>> = BTreeMap::new();
    for summary in summaries {
        add(&mut merged, summary)?;
    }
    Ok(merged
        .into_iter()
        .map(|(what, h)| figures(what, &h))
        .collect())
}

fn add<'a>(
    merged: &mut BTreeMap<&'a str, Histogram<u64>>,
    summary: &'a LatencySummary,
) -> Result<(), HistogramError> {
    let one = summary.to_histogram()?;
    match merged.get_mut(summary.what.as_str()) {
        None => {
            merged.insert(&summary.what, one);
        }
        Some(sum) => {
            // A histogram from the wire has the range that it needed; a later
            // one may need more.
            sum.auto(true);
            sum.add(&one)
                .map_err(|e| HistogramError(format!("{e:?}")))?;
        }
    }
    Ok(())
}

fn figures(what: &str, h: &Histogram<u64>) -> LatencyFigures {
    LatencyFigures {
        what: what.to_owned(),
        count: h.len(),
        mean_ns: h.mean(),
        p50_ns: h.value_at_quantile(0.50),
        p90_ns: h.value_at_quantile(0.90),
        p99_ns: h.value_at_quantile(0.99),
        max_ns: h.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(what: &str, values: &[u64]) -> RunResult {
        let mut h = Histogram::<u64>::new(3).expect("valid");
        for v in values {
            h.record(*v).expect("records");
        }
        RunResult {
            workload: "x".to_owned(),
            threads: 1,
            work: 1.0,
            unit: "u".to_owned(),
            elapsed_ns: 1,
            rate_per_s: 1.0,
            latency: vec![LatencySummary::from_histogram(what, &h).expect("encodes")],
            steal_ns: 0,
            interrupts: BTreeMap::new(),
            module_counts: BTreeMap::new(),
        }
    }

    #[test]
    fn distributions_are_merged_not_averaged() {
        // 99 fast samples in one window and one slow in another, far beyond the
        // first one's range: an average of p99s would say 500,000,050.
        let fast = run("call", &[100; 99]);
        let slow = run("call", &[1_000_000_000]);
        let merged = merge([&fast, &slow]).expect("merges");
        assert_eq!(merged.len(), 1);
        assert_eq!(
            (merged[0].count, merged[0].p50_ns, merged[0].p99_ns),
            (100, 100, 100)
        );
        assert!(merged[0].max_ns >= 999_000_000);
    }

    #[test]
    fn kinds_stay_apart_and_nonsense_is_an_error() {
        let (a, b) = (run("a", &[1]), run("b", &[2]));
        assert_eq!(merge([&a, &b]).expect("merges").len(), 2);
        let mut bad = a;
        bad.latency[0].histogram = "!".to_owned();
        assert!(merge([&bad]).is_err());
    }
}
