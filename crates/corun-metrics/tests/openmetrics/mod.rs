// SPDX-License-Identifier: GPL-2.0-only
//! A strict reader of the `OpenMetrics` text format, as far as corun writes it: what it
//! does not know is an error.

use std::collections::{BTreeMap, BTreeSet};

/// Labels and their values.
pub(crate) type Labels = BTreeMap<String, String>;

/// One metric with its series.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) unit: Option<String>,
    pub(crate) help: Option<String>,
    /// Name with suffix, labels, value.
    pub(crate) samples: Vec<(String, Labels, f64)>,
}

impl Family {
    /// The value of the series that has these labels, of all labels or some.
    pub(crate) fn value(&self, labels: &[(&str, &str)]) -> Option<f64> {
        let matches = |of: &Labels| {
            labels
                .iter()
                .all(|(k, v)| of.get(*k).is_some_and(|x| x == v))
        };
        let mut found = self.samples.iter().filter(|(_, of, _)| matches(of));
        let value = found.next().map(|(_, _, value)| *value);
        assert!(found.next().is_none(), "{labels:?} fits several series");
        value
    }
}

/// Reads a page; panics with the line that breaks a rule.
pub(crate) fn parse(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut series = BTreeSet::new();
    let mut current = String::new();
    let body = page.strip_suffix("# EOF\n").expect("ends with # EOF");
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            describe(rest, line, &mut families, &mut current);
        } else {
            let (name, labels, value) = sample(line);
            let family = families.get_mut(&current).expect("described first");
            let suffix = name
                .strip_prefix(&current)
                .unwrap_or_else(|| panic!("not of {current}: {line}"));
            let allowed: &[&str] = match family.kind.as_str() {
                "counter" => &["_total"],
                "gauge" => &[""],
                "histogram" => &["_bucket", "_sum", "_count"],
                kind => panic!("type {kind}"),
            };
            assert!(allowed.contains(&suffix), "suffix: {line}");
            assert!(family.kind == "gauge" || value >= 0.0, "negative: {line}");
            assert!(
                series.insert((name.clone(), labels.clone())),
                "twice: {line}"
            );
            family.samples.push((name, labels, value));
        }
    }
    for (name, family) in &families {
        assert!(
            !family.kind.is_empty() && family.help.is_some(),
            "{name} is not described"
        );
        if family.kind == "histogram" {
            histograms(name, family);
        }
    }
    families
}

fn describe(rest: &str, line: &str, families: &mut BTreeMap<String, Family>, current: &mut String) {
    let mut words = rest.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_else(|| panic!("short: {line}"));
    let (what, name, text) = (word(), word(), word().to_owned());
    if name != *current {
        assert!(!families.contains_key(name), "interleaved: {line}");
        name.clone_into(current);
    }
    let family = families.entry(name.to_owned()).or_default();
    assert!(family.samples.is_empty(), "after its samples: {line}");
    match what {
        "HELP" => assert!(family.help.replace(text).is_none(), "twice: {line}"),
        "TYPE" => {
            assert!(family.kind.is_empty(), "twice: {line}");
            family.kind = text;
        }
        "UNIT" => {
            assert!(name.ends_with(&format!("_{text}")), "unit: {line}");
            family.unit = Some(text);
        }
        _ => panic!("unknown: {line}"),
    }
}

fn sample(line: &str) -> (String, Labels, f64) {
    let end = line
        .find(['{', ' '])
        .unwrap_or_else(|| panic!("no value: {line}"));
    let (name, rest) = line.split_at(end);
    assert!(
        name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
        "name: {line}"
    );
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest, line),
        None => (Labels::new(), rest),
    };
    let value = value
        .strip_prefix(' ')
        .unwrap_or_else(|| panic!("space: {line}"));
    let value = value.parse().unwrap_or_else(|_| panic!("value: {line}"));
    (name.to_owned(), labels, value)
}

/// `name="value",...}` and what follows.
fn labels<'a>(mut rest: &'a str, line: &str) -> (Labels, &'a str) {
    let mut labels = Labels::new();
    loop {
        let (name, after) = rest
            .split_once("=\"")
            .unwrap_or_else(|| panic!("label: {line}"));
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().unwrap_or_else(|| panic!("open quote: {line}")) {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next() {
                    Some((_, '\\')) => '\\',
                    Some((_, '"')) => '"',
                    Some((_, 'n')) => '\n',
                    other => panic!("escape {other:?}: {line}"),
                }),
                (_, c) => value.push(c),
            }
        };
        assert!(
            labels.insert(name.to_owned(), value).is_none(),
            "label twice: {line}"
        );
        let after = &after[end + 1..];
        match after.split_at(1) {
            (",", more) => rest = more,
            ("}", more) => return (labels, more),
            _ => panic!("after a label: {line}"),
        }
    }
}

/// Buckets rise to `+Inf`, which is the count; each set of labels has all three parts.
fn histograms(name: &str, family: &Family) {
    let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    let (mut counts, mut sums) = (BTreeMap::new(), BTreeSet::new());
    for (sample, labels, value) in &family.samples {
        let mut labels = labels.clone();
        if sample.ends_with("_bucket") {
            let le = labels.remove("le").expect("le");
            let end: f64 = if le == "+Inf" {
                f64::INFINITY
            } else {
                le.parse().expect("le")
            };
            buckets.entry(labels).or_default().push((end, *value));
        } else if sample.ends_with("_count") {
            counts.insert(labels, *value);
        } else {
            sums.insert(labels);
        }
    }
    assert_eq!(buckets.len(), counts.len(), "{name}");
    assert_eq!(sums.len(), counts.len(), "{name}");
    for (labels, buckets) in buckets {
        assert!(
            buckets
                .windows(2)
                .all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1),
            "{name} {labels:?}: {buckets:?}"
        );
        let last = buckets.last().expect("a bucket");
        assert!(last.0.is_infinite(), "{name}: no +Inf");
        assert_eq!(Some(&last.1), counts.get(&labels), "{name}");
    }
}
