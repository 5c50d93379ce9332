// SPDX-License-Identifier: GPL-2.0-only
//! The dashboard and the alerts in `packaging/` name only metrics and labels that the
//! exporter has, and runbooks that exist.

use corun_metrics::{FAMILIES, Family, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const DASHBOARD: &str = "packaging/grafana/corun.json";
const RULES: &str = "packaging/prometheus/corun.rules.yml";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(repository().join(file)).expect(file)
}

/// Names under which the exporter's series are queried.
fn series() -> BTreeMap<String, &'static Family> {
    let mut names = BTreeMap::new();
    for family in &FAMILIES {
        let suffixes: &[&str] = match family.kind {
            Kind::Histogram => &["_bucket", "_sum", "_count"],
            Kind::Counter | Kind::Gauge => &[""],
        };
        for suffix in suffixes {
            names.insert(family.name() + suffix, family);
        }
    }
    names
}

/// Words of a query that are metrics of corun's, each with its labels in braces.
fn metrics(text: &str) -> Vec<(String, String)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in text.match_indices("corun_") {
        if text[..at].ends_with(is_name) {
            continue;
        }
        let rest = &text[at..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let braces = rest[end..].strip_prefix('{');
        let labels = braces.and_then(|b| b.split('}').next()).unwrap_or("");
        found.push((rest[..end].to_owned(), labels.to_owned()));
    }
    found
}

/// Metrics in `text` that the exporter lacks, or labels that its metrics lack.
fn unknown(text: &str) -> Vec<String> {
    let series = series();
    let mut unknown = Vec::new();
    for (name, selector) in metrics(text) {
        let Some(family) = series.get(&name) else {
            unknown.push(name);
            continue;
        };
        for matcher in selector.split(',').filter(|m| !m.is_empty()) {
            let label = matcher.split(['=', '!']).next().unwrap_or("").trim();
            // Prometheus itself adds `instance` and `job`.
            if !matches!(label, "instance" | "job" | "le") && !family.labels.contains(&label) {
                unknown.push(format!("{name}{{{label}}}"));
            }
        }
    }
    unknown
}

/// All strings in a JSON value under one of these keys.
fn strings<'a>(value: &'a serde_json::Value, keys: &[&str], out: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                match value.as_str() {
                    Some(text) if keys.contains(&key.as_str()) => out.push(text),
                    _ => strings(value, keys, out),
                }
            }
        }
        serde_json::Value::Array(all) => all.iter().for_each(|v| strings(v, keys, out)),
        _ => {}
    }
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let dashboard: serde_json::Value = serde_json::from_str(&read(DASHBOARD)).expect("JSON");
    let mut queries = Vec::new();
    strings(&dashboard, &["expr", "query"], &mut queries);
    assert!(queries.len() > 30, "{}", queries.len());
    for query in queries {
        assert_eq!(unknown(query), Vec::<String>::new(), "{query}");
    }
}

#[test]
fn the_dashboard_shows_every_metric_of_vcpus_and_vms() {
    let shown: BTreeSet<String> = metrics(&read(DASHBOARD).replace("\\\"", "\""))
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let internal = [
        "corun_accounts_age_seconds_total",
        "corun_scheduler_time_seconds_total",
    ];
    for family in &FAMILIES {
        let name = family.name();
        let bucket = format!("{name}_bucket");
        assert!(
            shown.contains(&name) || shown.contains(&bucket) || internal.contains(&name.as_str()),
            "{name} is on no panel"
        );
    }
}

#[test]
fn panels_have_their_own_places() {
    let dashboard: serde_json::Value = serde_json::from_str(&read(DASHBOARD)).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut cells = BTreeSet::new();
    for panel in panels {
        let at = |key: &str| panel["gridPos"][key].as_u64().expect("a number");
        assert!(at("x") + at("w") <= 24, "{}", panel["title"]);
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(cells.insert((x, y)), "{} overlaps", panel["title"]);
            }
        }
    }
}

#[test]
fn the_alerts_ask_for_what_there_is_and_have_runbooks() {
    let rules = read(RULES);
    assert_eq!(unknown(&rules), Vec::<String>::new());
    let alerts = rules.matches("- alert: ").count();
    let runbooks: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("runbook: "))
        .collect();
    assert!(alerts > 5 && runbooks.len() == alerts, "{alerts} alerts");
    for runbook in runbooks {
        assert!(read("docs/src/SUMMARY.md").contains(runbook), "{runbook}");
        let text = read(&format!("docs/src/{runbook}"));
        assert!(text.contains("**Do."), "{runbook}");
    }
    for name in rules
        .lines()
        .filter_map(|l| l.trim().strip_prefix("- alert: "))
    {
        let told = std::fs::read_dir(repository().join("docs/src/runbooks")).expect("runbooks");
        let mut told = told.flatten().map(|f| std::fs::read_to_string(f.path()));
        assert!(
            told.any(|text| text.is_ok_and(|t| t.contains(&format!("`{name}`")))),
            "no runbook names {name}"
        );
    }
}

#[test]
fn what_is_unknown_is_noticed() {
    assert_eq!(
        unknown("rate(corun_nonesuch_total[5m])"),
        ["corun_nonesuch_total"]
    );
    assert_eq!(
        unknown(r#"corun_vm_vcpus{cause="x",vm="a"}"#),
        ["corun_vm_vcpus{cause}"]
    );
    assert!(unknown(r#"sum(corun_vm_ipi_seconds_bucket{target="running"})"#).is_empty());
}
