// SPDX-License-Identifier: GPL-2.0-only
//! `corun sim check` as a user meets it.

use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

const CASE: &str = r#"[case]
name = "two"
repeats = 1
warmup_s = 0.1
measure_s = 1.0
time_scale = "auto"

[[scheduler]]
label = "eevdf"
kind = "kernel"

[[guest]]
name = "a"

[[guest]]
name = "b"

[[phase]]
name = "cpu"
measure = ["a"]
solo = true
run = { a = { workload = "cpu" }, b = { workload = "cpu" } }
"#;

/// A lab's result with what the comparison reads.
fn result() -> Value {
    let spread = |x: f64| json!({ "median": x, "min": x, "max": x, "count": 1 });
    let guest = |name: &str| json!({ "name": name });
    json!({
        "schema_version": 1,
        "accel": "tcg",
        "case": {
            "case": { "name": "two", "warmup_s": 0.1, "measure_s": 1.0 },
            "scheduler": [{ "label": "eevdf", "kind": "kernel" }],
            "guest": [guest("a"), guest("b")],
            "phase": [],
        },
        "case_text": CASE,
        "calibration": { "exit_ns": 40_000.0, "switch_ns": 200_000.0, "factor": 50.0 },
        "summary": {
            "guests": [{
                "phase": "cpu",
                "guest": "a",
                "solo": spread(48_000.0),
                "schedulers": [{ "scheduler": "eevdf", "slowdown": spread(2.0) }],
            }],
            "counters": [{
                "phase": "cpu",
                "scheduler": "eevdf",
                "cpu_share": { "a": spread(0.5), "b": spread(0.5) },
            }],
        },
    })
}

fn check(file: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corun"))
        .args(["sim", "check", "--repeats", "2"])
        .arg(file)
        .args(more)
        .output()
        .expect("corun starts")
}

fn write(name: &str, text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("tempdir");
    let file = dir.path().join(name);
    std::fs::write(&file, text).expect("writes");
    (dir, file)
}

#[test]
fn lab_and_simulator_are_shown_side_by_side() {
    let (_dir, file) = write("two.json", &result().to_string());
    let output = check(&file, &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = &report["results"][0]["rows"][0];
    let slowdown = row["sim_slowdown"]["median"].as_f64().expect("a slowdown");
    assert!((1.8..2.2).contains(&slowdown), "{row}");
    assert_eq!(row["sim_slowdown"]["count"], 2);
    assert_eq!(report["results"][0]["factor"], 50.0);
    assert_eq!(report["totals"]["within_25_percent"], 1);

    let table = String::from_utf8(check(&file, &[]).stdout).expect("text");
    assert!(
        table.contains("two.json: case two, time scale 50.0"),
        "{table}"
    );
    assert!(table.contains("slowdowns: 1"), "{table}");
}

#[test]
fn what_is_no_result_is_refused_with_the_reason() {
    let mut other = result();
    other["schema_version"] = json!(9);
    let mut uncalibrated = result();
    uncalibrated["calibration"] = Value::Null;
    let mut unknown = result();
    unknown["case_text"] = json!(CASE.replace("\"cpu\" }, b", "\"cup\" }, b"));
    for (text, reason) in [
        ("{}".to_owned(), "it has no schema_version"),
        ("speed = 1".to_owned(), "no result of `corun lab run`"),
        (other.to_string(), "version 9 of results: expected 1"),
        (uncalibrated.to_string(), "was not calibrated"),
        (unknown.to_string(), "unknown workload `cup`"),
    ] {
        let (_dir, file) = write("bad.json", &text);
        let output = check(&file, &[]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{reason}");
        assert!(
            error.contains("bad.json") && error.contains(reason),
            "{error}"
        );
    }
    let output = check(Path::new("none.json"), &[]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("none.json: cannot read"), "{error}");
    let (_dir, file) = write("two.json", &result().to_string());
    let error = check(&file, &["--machine", "lap"]).stderr;
    let error = String::from_utf8_lossy(&error);
    assert!(error.contains("no machine \"lap\""), "{error}");
}
