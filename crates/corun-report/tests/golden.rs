// SPDX-License-Identifier: GPL-2.0-only
//! Reports as JSON against what they were: `tests/data/*.golden`. After a change
//! that is meant: `CORUN_BLESS=1 cargo test -p corun-report --test golden`, and
//! look at the difference.

use corun_report::{Input, Report, compare, html, report};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn read(file: &str) -> Input {
    Input::read(Path::new(file)).unwrap_or_else(|e| panic!("{e}"))
}

/// A line for each file and block, so that a difference can be read.
fn lines(report: &Report) -> String {
    let mut value = serde_json::to_value(report).expect("is JSON");
    let mut out = String::new();
    let mut put = |value: &Value| {
        out.push_str(&value.to_string());
        out.push('\n');
    };
    let sections = value["sections"].take();
    put(&value);
    for mut section in sections.as_array().expect("a list").iter().cloned() {
        let blocks = section["blocks"].take();
        put(&section);
        blocks.as_array().expect("a list").iter().for_each(&mut put);
    }
    out
}

fn check(name: &str, report: &Report) {
    let file = format!("tests/data/{name}.golden");
    let now = lines(report);
    if std::env::var_os("CORUN_BLESS").is_some() {
        fs::write(&file, &now).expect("written");
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    for (i, (is, was)) in now.lines().zip(golden.lines()).enumerate() {
        assert_eq!(is, was, "{file}:{}", i + 1);
    }
    assert_eq!(now.lines().count(), golden.lines().count(), "{file}");
}

#[test]
fn a_recording() {
    check(
        "recording",
        &report(&read("tests/data/recording.jsonl"), "corun test"),
    );
}

#[test]
fn a_simulated_case() {
    check("sim", &report(&read("tests/data/sim.json"), "corun test"));
}

#[test]
fn two_recordings() {
    let (a, b) = (
        read("tests/data/recording.jsonl"),
        read("tests/data/recording.jsonl"),
    );
    check(
        "recordings",
        &compare(&a, &b, "corun test").expect("has the same VMs"),
    );
}

/// Every figure of the page's charts is in the JSON, and every table's text.
#[test]
fn the_page_has_the_data_of_the_json() {
    let report = report(&read("tests/data/sim.json"), "corun test");
    let page = html::page(&report);
    let value = serde_json::to_value(&report).expect("is JSON");
    let data = page
        .split_once("id=\"data\">")
        .and_then(|(_, d)| d.split_once("</script>"));
    let charts: Value =
        serde_json::from_str(data.map(|(d, _)| d).expect("has data")).expect("JSON");
    let blocks = value["sections"].as_array().expect("a list").iter();
    let blocks: Vec<&Value> = blocks
        .flat_map(|s| s["blocks"].as_array().expect("a list"))
        .collect();
    let of = |kind: &str| {
        blocks
            .iter()
            .filter(|b| b["block"] == kind)
            .copied()
            .collect::<Vec<_>>()
    };
    let drawn = charts.as_array().expect("a list");
    let in_json = of("chart");
    assert_eq!(drawn.len(), in_json.len());
    for (drawn, block) in drawn.iter().zip(in_json) {
        let fields = drawn.as_object().expect("an object");
        assert!(
            fields.iter().all(|(key, value)| block[key] == *value),
            "{}",
            block["id"]
        );
    }
    for table in of("table") {
        for cell in table["rows"]
            .as_array()
            .expect("a list")
            .iter()
            .flat_map(|r| r.as_array().expect("a list"))
        {
            let text = cell["text"].as_str().expect("text");
            assert!(page.contains(&format!("{text}</t")), "{text}");
        }
    }
}
