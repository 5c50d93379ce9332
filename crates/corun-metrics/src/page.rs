// SPDX-License-Identifier: GPL-2.0-only
//! The page that Prometheus scrapes.

use crate::families::{FAMILIES, Family, Kind, Samples, Value};
use crate::view::View;
use corun_events::account::{Histogram, Snapshot};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt::Error;
use std::sync::Arc;

/// Type of [`page`]'s text for HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper ends of histograms' buckets. Nanoseconds. The kernel's buckets are finer; each
/// is counted with the first of these that holds all of it, so that a bucket may lack
/// times of up to 12 % below its end.
const BOUNDS_NS: [u64; 15] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    1_000_000_000,
];

/// `snapshot` in the `OpenMetrics` text format. At most `max_vcpus` vCPUs have series of
/// their own.
pub fn page(snapshot: Arc<Snapshot>, max_vcpus: usize) -> Result<String, Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page {
        snapshot,
        max_vcpus,
    }));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Page {
    snapshot: Arc<Snapshot>,
    max_vcpus: usize,
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let view = View::new(&self.snapshot, self.max_vcpus);
        FAMILIES
            .iter()
            .try_for_each(|family| encode(family, &view, &mut encoder))
    }
}

fn encode(
    family: &Family,
    view: &View<'_>,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let unit = family.in_seconds.then_some(Unit::Seconds);
    let kind = match family.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    };
    let help = format!("{}.", family.help);
    let mut metric = encoder.encode_descriptor(family.base, &help, unit.as_ref(), kind)?;
    let mut result = Ok(());
    let mut add = |values: &[&str], value: Value| {
        if result.is_ok() {
            result = sample(family, &mut metric, values, &value);
        }
    };
    (family.samples)(view, &mut Samples { add: &mut add });
    result
}

/// One series, or those of one histogram.
fn sample(
    family: &Family,
    metric: &mut MetricEncoder<'_>,
    values: &[&str],
    value: &Value,
) -> Result<(), Error> {
    let labels: Vec<(&str, &str)> = family
        .labels
        .iter()
        .copied()
        .zip(values.iter().copied())
        .collect();
    if labels.is_empty() {
        return plain(family, metric, value);
    }
    plain(family, &mut metric.encode_family(&labels)?, value)
}

fn plain(family: &Family, metric: &mut MetricEncoder<'_>, value: &Value) -> Result<(), Error> {
    match (value, family.kind) {
        (Value::Times(times), _) => histogram(metric, times),
        (Value::Number(n), Kind::Gauge) => metric.encode_gauge(&(*n as f64)),
        (Value::Number(ns), _) if family.in_seconds => {
            metric.encode_counter::<NoLabelSet, _, u64>(&seconds(*ns), None)
        }
        (Value::Number(n), _) => metric.encode_counter::<NoLabelSet, _, u64>(n, None),
    }
}

fn histogram(metric: &mut MetricEncoder<'_>, times: &Histogram) -> Result<(), Error> {
    let mut counts = [0; BOUNDS_NS.len() + 1];
    for (last_ns, n) in times.buckets() {
        counts[BOUNDS_NS.partition_point(|bound| *bound < last_ns)] += n;
    }
    let ends = BOUNDS_NS
        .iter()
        .map(|ns| seconds(*ns))
        .chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = ends.zip(counts).collect();
    // The page must be consistent also when the kernel was counting meanwhile.
    let count = counts.iter().sum();
    metric.encode_histogram::<NoLabelSet>(seconds(times.sum_ns), count, &buckets, None)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
