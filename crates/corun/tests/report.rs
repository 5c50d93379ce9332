// SPDX-License-Identifier: GPL-2.0-only
//! `corun report` from the command line.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/demo.json");

fn corun(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corun"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("corun starts")
}

#[test]
fn a_page_is_written_and_json_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = corun(folder.path(), &["report", DEMO]);
    assert!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(folder.path().join("demo.html")).expect("a page");
    assert!(page.starts_with("<!doctype html>") && page.contains("Slowdown beside neighbours"));
    let output = corun(folder.path(), &["report", DEMO, DEMO, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["sources"][1]["label"], "B");
    assert!(json["sections"].as_array().is_some_and(|s| s.len() > 3));
    let files = fs::read_dir(folder.path()).expect("is there").count();
    assert_eq!(files, 1, "--json writes no page");
}

/// A simulated case has distributions, and a recording of it can be shown.
#[test]
fn what_the_simulator_writes_is_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    let short = [
        "--set",
        "case.measure_s=0.05",
        "--set",
        "case.warmup_s=0.01",
    ];
    let run = ["sim", "run", "demo", "--repeats", "1", "--json"];
    let output = corun(folder.path(), &[&run[..], &short].concat());
    fs::write(folder.path().join("sim.json"), &output.stdout).expect("written");
    let trace = [
        "sim",
        "trace",
        "demo",
        "--phase",
        "tlb",
        "--out",
        "tlb.jsonl",
    ];
    assert!(
        corun(folder.path(), &[&trace[..], &short].concat())
            .status
            .success()
    );
    for (file, section) in [
        ("sim.json", "Latency of operations"),
        ("tlb.jsonl", "The longest wait"),
    ] {
        let output = corun(folder.path(), &["report", file, "--json"]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(section), "{file}: {output:?}");
    }
}

#[test]
fn the_input_is_never_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.html");
    fs::copy(DEMO, &file).expect("copied");
    let output = corun(folder.path(), &["report", "a.html"]);
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("--out"), "{error}");
    assert_eq!(
        fs::read(&file).expect("is there"),
        fs::read(DEMO).expect("is there")
    );
}
