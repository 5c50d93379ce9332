// SPDX-License-Identifier: GPL-2.0-only
//! Figures as people read them.

use corun_events::account::{Account, Histogram, ReadyCause};

/// What is said where there is nothing to say.
const NONE: &str = "-";

/// A VM's or a vCPU's account of an interval, with what is worked out from it.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    pub(super) account: Account,
    /// The interval's length.
    pub(super) seconds: f64,
    /// All IPIs to it.
    pub(super) ipi: Histogram,
}

impl Figures {
    pub(super) fn new(account: Account, seconds: f64) -> Self {
        let ipi = account.latencies.ipi();
        Self {
            account,
            seconds,
            ipi,
        }
    }

    /// `n` a second.
    pub(super) fn rate(&self, n: u64) -> f64 {
        if self.seconds > 0.0 {
            n as f64 / self.seconds
        } else {
            0.0
        }
    }

    /// Share of its time, on average over its vCPUs. Per cent.
    pub(super) fn percent(&self, ns: u64) -> f64 {
        self.account.share(ns) * 100.0
    }
}

/// `12`, `99.5`: per cent in four characters.
pub(super) fn percent(value: f64) -> String {
    if value >= 99.95 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// A rate in at most five characters: `0.2`, `950`, `12.3k`.
pub(super) fn rate(value: f64) -> String {
    match value {
        v if v < 0.05 => "0".to_owned(),
        v if v < 9.95 => format!("{v:.1}"),
        v if v < 9_999.5 => format!("{v:.0}"),
        v if v < 99_950.0 => format!("{:.1}k", v / 1e3),
        v if v < 999_500.0 => format!("{:.0}k", v / 1e3),
        v => format!("{:.1}M", v / 1e6),
    }
}

/// A time in at most five characters: `850ns`, `1.2ms`, `43ms`.
pub(super) fn time(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        v if v < 999.5 => return format!("{v:.0}ns"),
        v if v < 999_500.0 => (v / 1e3, "us"),
        v if v < 999_500_000.0 => (v / 1e6, "ms"),
        v => (v / 1e9, "s"),
    };
    if value < 9.95 {
        format!("{value:.1}{unit}")
    } else {
        format!("{value:.0}{unit}")
    }
}

/// A quantile of a distribution; a dash without samples.
pub(super) fn quantile(histogram: &Histogram, quantile: f64) -> String {
    if histogram.count == 0 {
        return NONE.to_owned();
    }
    time(histogram.quantile_ns(quantile))
}

/// Polling's success; a dash without polling.
pub(super) fn poll_success(account: &Account) -> String {
    let success = account.counts.poll_success();
    success.map_or_else(|| NONE.to_owned(), |s| percent(s * 100.0))
}

/// Who is waited for, in at most eight characters; a dash for nobody.
pub(super) fn cause(cause: Option<ReadyCause>) -> &'static str {
    match cause {
        None => NONE,
        Some(ReadyCause::OtherVm) => "other VM",
        Some(ReadyCause::Sibling) => "sibling",
        Some(ReadyCause::HostTask) => "host",
        Some(ReadyCause::Woken) => "wake-up",
        Some(ReadyCause::Limited) => "limit",
        Some(ReadyCause::Other) => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_take_five_characters_at_most() {
        let cases = [
            (0, "0ns"),
            (999, "999ns"),
            (1_234, "1.2us"),
            (9_949, "9.9us"),
            (9_950, "10us"),
            (999_499, "999us"),
            (999_500, "1.0ms"),
            (43_210_000, "43ms"),
            (1_500_000_000, "1.5s"),
            (1_099_511_627_776, "1100s"),
        ];
        for (ns, text) in cases {
            assert_eq!(time(ns), text);
            assert!(text.len() <= 5);
        }
    }

    #[test]
    fn rates_and_percentages_are_short() {
        let cases = [
            (0.0, "0"),
            (0.04, "0"),
            (0.25, "0.2"),
            (9.96, "10"),
            (9_999.0, "9999"),
            (12_345.0, "12.3k"),
            (123_456.0, "123k"),
            (1_234_567.0, "1.2M"),
        ];
        for (value, text) in cases {
            assert_eq!(rate(value), text);
        }
        assert_eq!(percent(0.04), "0.0");
        assert_eq!(percent(99.94), "99.9");
        assert_eq!(percent(99.96), "100");
    }
}
