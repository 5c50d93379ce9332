// SPDX-License-Identifier: GPL-2.0-only
//! `corun sim repro` as a user meets it.

use std::path::Path;
use std::process::{Command, Output};

fn repro(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corun"))
        .args(["sim", "repro"])
        .args(args)
        .output()
        .expect("corun starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An experiment whose only claim holds or does not.
fn experiment(folder: &Path, sign: &str) {
    let seed = folder.join("900-test");
    std::fs::create_dir_all(&seed).expect("a folder");
    let case = r#"
[case]
name = "test"
warmup_s = 0.01
measure_s = 0.1
[host]
pcpus = 2
[[scheduler]]
label = "cfs"
kind = "cfs"
[[guest]]
name = "a"
[[guest]]
name = "b"
[[phase]]
name = "busy"
measure = ["a"]
run = { a = { workload = "cpu" }, b = { workload = "cpu" } }
[gate]
enabled = false
"#;
    let table = format!(
        r#"
title = "two burners"
source = "nowhere"
says = "two burners take twice as long"
fitted = "nothing"
cell = [{{ row = "slowdown", column = "a", published = 2, kind = "predicted", ratio = true, value = "a.rate[busy solo] / a.rate[busy]" }}]
claim = [{{ text = "sharing", holds = "a.rate[busy] {sign} a.rate[busy solo]" }}]
"#
    );
    std::fs::write(seed.join("case.toml"), case).expect("a file");
    std::fs::write(seed.join("table.toml"), table).expect("a file");
}

#[test]
fn lists_what_there_is() {
    let output = repro(&["--list"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let list = text(&output.stdout);
    for name in [
        "000-shoot4u/table-1",
        "003-message-passing-halt-polling/wake-up",
    ] {
        assert!(list.contains(name), "{list}");
    }
    let output = repro(&["nonesuch"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("no experiment \"nonesuch\""));
}

#[test]
fn compares_and_says_so_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    experiment(folder.path(), "<");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (html, json, own) = (path("r.html"), path("r.json"), path(""));
    let args = [
        "--experiments",
        &own,
        "--strict",
        "--html",
        &html,
        "--out",
        &json,
    ];
    let output = repro(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("directions 1/1; ratio cells 1/1"), "{shown}");
    let report = std::fs::read_to_string(json).expect("the JSON report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["tables"][0]["cells"][0]["pass"], true);
    let page = std::fs::read_to_string(html).expect("the page");
    assert!(page.starts_with("<!doctype html>") && page.contains("two burners"));
}

#[test]
fn a_miss_is_an_exit_status_only_when_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    experiment(folder.path(), ">");
    let own = folder.path().display().to_string();
    let args = ["900", "--experiments", &own, "--seeds", "1"];
    let output = repro(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("WRONG: sharing"));
    let output = repro(&[args.as_slice(), &["--strict"]].concat());
    assert_eq!(output.status.code(), Some(2));
}
