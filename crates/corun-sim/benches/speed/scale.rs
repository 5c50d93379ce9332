// SPDX-License-Identifier: GPL-2.0-only
//! Hosts of growing size, each in a process of its own, whose peak memory is its.

use crate::machine::{host, timed};
use crate::report::spread;
use corun_case::SchedulerKind;
use serde_json::{Value, json};
use std::process::Command;

const KINDS: [&str; 3] = ["corun", "eevdf", "cfs"];
const PCPUS: [u32; 3] = [8, 64, 512];
const SECONDS: f64 = 0.2;

/// Runs one host and prints its events, seconds and peak memory in KiB.
pub(crate) fn child(kind: &str, pcpus: u32) -> Result<(), String> {
    let kind = match kind {
        "corun" => SchedulerKind::Corun,
        "eevdf" => SchedulerKind::Eevdf,
        "cfs" => SchedulerKind::Cfs,
        _ => return Err(format!("unknown scheduler {kind}")),
    };
    let sample = timed(&host(kind, pcpus, SECONDS))?;
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let peak_kib = peak
        .and_then(|l| l.split_whitespace().next())
        .unwrap_or("0");
    println!("{} {} {peak_kib}", sample.events, sample.seconds);
    Ok(())
}

/// Events, seconds and peak memory in KiB of one child.
fn one(kind: &str, pcpus: u32) -> Result<[f64; 3], String> {
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let out = Command::new(me)
        .args(["--host", kind, &pcpus.to_string()])
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&out.stdout);
    let fields: Vec<f64> = text
        .split_whitespace()
        .filter_map(|f| f.parse().ok())
        .collect();
    fields
        .try_into()
        .map_err(|_| format!("{kind} {pcpus}: {}", String::from_utf8_lossy(&out.stderr)))
}

/// Medians over `rounds` of every scheduler and size.
pub(crate) fn measure(rounds: usize) -> Result<Vec<Value>, String> {
    let grid = PCPUS.iter().flat_map(|p| KINDS.map(|k| (k, *p)));
    let mut runs: Vec<_> = grid.map(|at| (at, Vec::new())).collect();
    for _ in 0..rounds {
        for ((kind, pcpus), samples) in &mut runs {
            samples.push(one(kind, *pcpus)?);
        }
    }
    let hosts = runs.iter().map(|((kind, pcpus), samples)| {
        let of = |i: usize| spread(samples.iter().map(|s| s[i]).collect());
        let ([_, events, _], [least, seconds, most], [_, kib, _]) = (of(0), of(1), of(2));
        json!({
            "scheduler": kind, "pcpus": pcpus, "vcpus": pcpus * 4,
            "simulated_s": SECONDS, "events": events,
            "wall_s": seconds, "wall_s_min": least, "wall_s_max": most,
            "events_per_s": (events / seconds).round(), "peak_rss_kib": kib,
        })
    });
    Ok(hosts.collect())
}

pub(crate) fn print(hosts: &[Value]) {
    println!(
        "\nhosts with 4 vCPUs for each pCPU, {SECONDS} simulated seconds after 0.05 of warm-up"
    );
    println!(
        "{:>6} {:>6} {:>10} {:>9} {:>9} {:>12} {:>10}",
        "pCPUs", "vCPUs", "scheduler", "events", "seconds", "M events/s", "peak MiB"
    );
    for host in hosts {
        let number = |key: &str| host[key].as_f64().unwrap_or(f64::NAN);
        println!(
            "{:>6} {:>6} {:>10} {:>9} {:>9.3} {:>12.3} {:>10.1}",
            number("pcpus"),
            number("vcpus"),
            host["scheduler"].as_str().unwrap_or_default(),
            number("events"),
            number("wall_s"),
            number("events_per_s") / 1e6,
            number("peak_rss_kib") / 1024.0
        );
    }
}
