// SPDX-License-Identifier: GPL-2.0-only
//! What a user sees of mistakes: the error, and what to do.

use std::path::Path;
use std::process::{Command, Output};

fn corun(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corun"))
        .args(args)
        .output()
        .expect("corun starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_wrong_case_file_is_told_by_file_line_key_and_expectation() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.toml");
    let text = "[case]\nname = \"wrong\"\n\n[[scheduler]]\nlabel = \"k\"\nkind = \"kernel\"\n\n\
                [[guest]]\nname = \"a\"\nvcpus = 0\n\n\
                [[phase]]\nname = \"p\"\nmeasure = [\"a\"]\nrun = { a = { workload = \"cpu\" } }\n";
    std::fs::write(&file, text).expect("written");
    let output = corun(&["lab", "run", &file.display().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(
        error.contains("wrong.toml:10:"),
        "no file and line: {error}"
    );
    assert!(
        error.contains("vcpus") && error.contains("expected 1 to 64"),
        "{error}"
    );
}

#[test]
fn an_unknown_case_lists_the_known_ones() {
    let output = corun(&["lab", "run", "nonesuch"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("demo"), "{}", stderr(&output));
}

#[test]
fn options_out_of_range_say_the_range() {
    let output = corun(&["run", "--slice-us", "1"]);
    assert!(
        stderr(&output).contains("between 100 and 1000000"),
        "{}",
        stderr(&output)
    );
    let output = corun(&["lab", "run", "smoke", "--max-steal", "101"]);
    assert!(
        stderr(&output).contains("from 0 to 100"),
        "{}",
        stderr(&output)
    );
    let output = corun(&["run", "--ignore-hazard", "nonesuch"]);
    assert!(
        stderr(&output).contains("core-sched"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_kernel_without_sched_ext_is_told_what_is_missing_and_nothing_is_loaded() {
    if Path::new("/sys/kernel/sched_ext").exists() {
        println!("SKIP: this kernel has sched_ext");
        return;
    }
    let output = corun(&["run"]);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(
        error.contains("CONFIG_SCHED_CLASS_EXT") && error.contains("nothing was changed"),
        "{error}"
    );
}

#[test]
fn doctor_looks_at_any_host_and_its_exit_code_is_its_verdict() {
    let output = corun(&["doctor", "--no-sample", "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["corun_doctor"], 1);
    let code = match found["verdict"].as_str() {
        Some("healthy") => 0,
        Some("findings") => 1,
        _ => 2,
    };
    assert_eq!(output.status.code(), Some(code), "{found}");
    let features = found["features"].as_array().expect("features");
    assert!(features.iter().any(|f| f["name"] == "sched_ext"), "{found}");
    for finding in found["findings"].as_array().expect("findings") {
        let next = finding["next_step"].as_str().unwrap_or_default();
        assert!(!next.is_empty(), "{finding}");
    }
}

#[test]
fn doctor_refuses_windows_that_say_nothing() {
    let output = corun(&["doctor", "--seconds", "0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("0.1 to 3600"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn help_teaches() {
    for (args, words) in [
        (vec!["--help"], "Schedule this host"),
        (vec!["run", "--help"], "cpu.weight"),
        (vec!["run", "--help"], "--mechanisms <LIST>"),
        (vec!["doctor", "--help"], "halt polling"),
        (vec!["lab", "run", "--help"], "slice over switch cost"),
        (vec!["lab", "shell", "--help"], "uname -r"),
    ] {
        let help = String::from_utf8_lossy(&corun(&args).stdout).into_owned();
        let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{args:?}: {help}");
    }
}

#[test]
fn guest_options_are_exactly_these() {
    for (vmm, golden) in [
        ("qemu", include_str!("guest_options.txt")),
        ("libvirt", include_str!("guest_options.xml")),
    ] {
        let output = corun(&["guest", "options", "--vmm", vmm]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), golden);
        let output = corun(&["guest", "options", "--vmm", vmm, "--json"]);
        let object: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert_eq!(object["vmm"], vmm);
        let options = object["options"].as_str().expect("a text");
        assert!(golden.ends_with(&format!("{options}\n")), "{options}");
    }
}
