// SPDX-License-Identifier: GPL-2.0-only
//! What corun is worth, on the real kernel: where time is the number of executed
//! instructions, nothing that this machine does moves the figures, so bounds may be
//! asserted. Seen under corun: cpu 2.00 to 2.04, tlb 1.35, pingpong 1.78 to 2.84 times
//! slower; under EEVDF tlb 2.73 to 2.90, pingpong 34 with 0.05 of the host.

use super::{corun, text};
use serde_json::Value;
use std::process::Stdio;

const CASE: &str = r#"
[case]
name = "counted"
title = "corun's figures by executed instructions"
repeats = 1
warmup_s = 0.2
measure_s = 1.0

[[scheduler]]
label = "corun"
kind = "corun"

[[guest]]
name = "a"
vcpus = 2
pv = { steal_time = true, sched_yield = true }

[[guest]]
name = "b"
vcpus = 2
pv = { steal_time = true, sched_yield = true }

[[phase]]
name = "cpu"
measure = ["a"]
solo = true
run = { a = { workload = "cpu" }, b = { workload = "cpu" } }

[[phase]]
name = "tlb"
measure = ["a"]
solo = true
run = { a = { workload = "tlb" }, b = { workload = "cpu" } }

[[phase]]
name = "pingpong"
measure = ["a"]
solo = true
run = { a = { workload = "pingpong" }, b = { workload = "cpu" } }

[gate]
enabled = false
"#;

/// Most that a guest's part of the host may be off by: turns are 1.2 % of a window.
const SHARE_OFF: f64 = 0.015;

/// What a phase of the result may be at worst: its name, and the guest's slowdown.
const WORST: [(&str, f64); 3] = [("cpu", 2.1), ("tlb", 2.2), ("pingpong", 3.5)];

fn check(result: &Value, phase: &str, worst: f64) {
    let guests = result["summary"]["guests"].as_array().expect("guests");
    let guest = guests.iter().find(|g| g["phase"] == phase).expect("a");
    let slowdown = guest["schedulers"][0]["slowdown"]["median"].as_f64();
    let samples = result["samples"].as_array().expect("samples");
    let co_run = |s: &&Value| s["phase"] == phase && s["solo"] == false;
    let sample = samples.iter().find(co_run).expect("a window");
    let used = |guest: &str| sample["vm_cpu_ns"][guest].as_f64().expect("CPU time");
    let share = used("a") / (used("a") + used("b"));
    eprintln!("{phase}: {slowdown:?} times slower with {share:.3} of the host");
    assert!(slowdown.is_some_and(|s| s < worst), "{phase}: {slowdown:?}");
    assert!((share - 0.5).abs() < SHARE_OFF, "{phase}: {share}");
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn half_of_a_host_is_about_half_of_the_speed() {
    let folder = tempfile::tempdir().expect("a folder");
    let case = folder.path().join("counted.toml");
    std::fs::write(&case, CASE).expect("the case is written");
    let output = corun(&["lab", "run", "--accel", "icount", "--json"])
        .arg(&case)
        .arg("--out")
        .arg(folder.path().join("counted.json"))
        .stderr(Stdio::inherit())
        .output()
        .expect("corun starts");
    assert!(output.status.success(), "{}", text(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("the result is JSON");
    assert_eq!(result["accel"], "icount");
    assert_eq!(result["calibration"]["factor"], 4.0);
    for (phase, worst) in WORST {
        check(&result, phase, worst);
    }
}
