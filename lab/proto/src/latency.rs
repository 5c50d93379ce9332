// SPDX-License-Identifier: GPL-2.0-only
//! A latency distribution on the wire: its quantiles for people, and the whole
//! histogram so that results can be merged over repeats.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// A histogram that cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
#[error("latency histogram: {0}")]
pub struct HistogramError(pub String);

/// Distribution of one kind of latency in one window. All times in nanoseconds
/// of the guest's monotonic clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// What one sample measures, for example "one madvise call".
    pub what: String,
    /// Number of samples.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Largest sample.
    pub max_ns: u64,
    /// The histogram in `HdrHistogram` V2 format, base64.
    pub histogram: String,
}

impl LatencySummary {
    /// Summarizes `histogram`, whose samples are nanoseconds.
    pub fn from_histogram(what: &str, histogram: &Histogram<u64>) -> Result<Self, HistogramError> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(histogram, &mut bytes)
            .map_err(|e| HistogramError(format!("{e:?}")))?;
        Ok(Self {
            what: what.to_owned(),
            count: histogram.len(),
            mean_ns: histogram.mean(),
            p50_ns: histogram.value_at_quantile(0.50),
            p90_ns: histogram.value_at_quantile(0.90),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
            histogram: STANDARD.encode(bytes),
        })
    }

    /// The full histogram, for merging.
    pub fn to_histogram(&self) -> Result<Histogram<u64>, HistogramError> {
        let bytes = STANDARD
            .decode(&self.histogram)
            .map_err(|e| HistogramError(e.to_string()))?;
        Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| HistogramError(format!("{e:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_survives_the_wire() {
        let mut h = Histogram::<u64>::new(3).expect("3 digits are valid");
        for v in [1_000, 2_000, 2_000, 900_000] {
            h.record(v).expect("auto-resize is on");
        }
        let s = LatencySummary::from_histogram("x", &h).expect("encodes");
        assert_eq!(s.count, 4);
        assert_eq!(s.to_histogram().expect("decodes"), h);
    }

    #[test]
    fn broken_base64_is_an_error() {
        let h = Histogram::<u64>::new(3).expect("3 digits are valid");
        let mut s = LatencySummary::from_histogram("x", &h).expect("encodes");
        s.histogram.push('!');
        assert!(s.to_histogram().is_err());
    }
}
