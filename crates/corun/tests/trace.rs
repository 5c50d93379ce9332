// SPDX-License-Identifier: GPL-2.0-only
//! `corun trace` on a simulated recording, from the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn corun(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corun"))
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("corun starts")
}

fn good(args: &[&str]) -> Vec<u8> {
    let output = corun(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    output.stdout
}

/// Records a moment of the demo's shootdowns.
fn recording(folder: &Path) -> String {
    let file = folder.join("tlb.trace.zst").display().to_string();
    good(&[
        "sim",
        "trace",
        "demo",
        "--phase",
        "tlb",
        "--scheduler",
        "eevdf",
        "--set",
        "case.measure_s=0.05",
        "--set",
        "case.warmup_s=0.1",
        "--out",
        &file,
    ]);
    file
}

#[test]
fn all_formats_come_from_one_recording() {
    let folder = tempfile::tempdir().expect("folder");
    let file = recording(folder.path());
    let json = good(&["trace", "export", &file, "--format", "json"]);
    let text = good(&["trace", "export", &file, "--format", "text"]);
    let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().count();
    assert!(lines(&json) > 1000);
    // A header line here, two there.
    assert_eq!(lines(&json) + 1, lines(&text));
    assert!(String::from_utf8_lossy(&text).contains("in smp_call_function_many"));
    let out = folder.path().join("out").display().to_string();
    good(&["trace", "export", &file, "--format", "perfetto", "-o", &out]);
    assert!(std::fs::metadata(&out).expect("written").len() > 10_000);
    assert!(!PathBuf::from(format!("{out}.part")).exists());
}

#[test]
fn the_analysis_adds_up_and_names_functions() {
    let folder = tempfile::tempdir().expect("folder");
    let file = recording(folder.path());
    let json = good(&["trace", "analyze", &file, "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let vm = &report["vms"][0];
    assert_eq!(report["dropped"], 0);
    let fields = [
        "running",
        "polling",
        "preempted",
        "yielded",
        "woken",
        "halted",
        "unseen",
    ];
    let of = |name: &str| vm["vcpus"][0][format!("{name}_ns")].as_u64();
    let sum: u64 = fields.iter().filter_map(|name| of(name)).sum();
    assert_eq!(sum, 150_000_000);
    assert_eq!(
        vm["bursts"]["places"][0]["symbol"],
        "smp_call_function_many"
    );
    assert_eq!(vm["bursts"]["places"][0]["class"], "ack-wait");
    assert!(
        vm["shootdowns"]["told"]["cdf"]
            .as_array()
            .is_some_and(|c| c.len() > 5)
    );
    let per = |args: &[&str]| {
        let text = good(&[&["trace", "analyze", file.as_str(), "--json"], args].concat());
        let report: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        report["vms"][0]["exits"]["transactions"].as_u64()
    };
    assert_eq!(per(&["--transactions", "a=7"]), Some(7));
}

#[test]
fn wrong_input_says_what_is_wrong() {
    let folder = tempfile::tempdir().expect("folder");
    let file = recording(folder.path());
    let fails = |args: &[&str], words: &str| {
        let output = corun(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(words), "{said}");
    };
    fails(&["trace", "analyze", "/nonexistent"], "/nonexistent");
    fails(
        &["trace", "analyze", &file, "--transactions", "z=1"],
        "it has a, b",
    );
    fails(
        &["trace", "analyze", &file, "--transactions", "a=0"],
        "above 0",
    );
    let torn = folder.path().join("torn");
    let bytes = std::fs::read(&file).expect("recording");
    std::fs::write(&torn, &bytes[..bytes.len() / 2]).expect("written");
    let torn = torn.display().to_string();
    let out = folder.path().join("out");
    let out_name = out.display().to_string();
    fails(
        &[
            "trace", "export", &torn, "--format", "text", "-o", &out_name,
        ],
        "reading",
    );
    assert!(!out.exists(), "half a file was left");
}
