// SPDX-License-Identifier: GPL-2.0-only
//! The doctor and the exporter on a host with two overcommitted guests, under the
//! kernel's scheduler and under corun's, in the lab. Run with `make smoke`.

use super::{CaseFile, TWO_GUESTS, in_lab, text};
use serde_json::Value;

/// All four vCPUs are busy.
const CASE: &str = r#"
[case]
name = "doctor"
title = "two overcommitted guests"
repeats = 1
time_scale = 1

[[phase]]
name = "busy"
measure = ["a", "b"]
run = { a = { workload = "cpu" }, b = { workload = "tlb" } }
"#;

/// Waits for a page at the exporter's address, and keeps it in the file `$1`.
const SCRIPT: &str = r#"
page() { i=0; until wget -q -O "$1" http://127.0.0.1:9727/metrics; do
    sleep 0.2; i=$((i+1)); [ $i -gt 600 ] && { echo "NO PAGE"; break; }; done; }
wait_for() { i=0; until "$@"; do sleep 0.2; i=$((i+1)); [ $i -gt 600 ] && return 1; done; true; }
corun doctor --seconds 4 > /tmp/text; echo "EXIT $?"
cat /tmp/text
echo "JSON $(corun doctor --seconds 4 --json)"
corun exporter 2> /tmp/log & P=$!
page /tmp/first; sleep 2; page /tmp/second
echo "SERIES $(grep -c ^corun_ /tmp/second)"
grep -E '^corun_(vcpu_wait_seconds_total|vcpu_run|vm_vcpus|host_scheduler|accounts)' /tmp/second
kill -INT $P; wait $P; echo "EXPORTER $?"
corun run --metrics 127.0.0.1:9727 > /tmp/log 2>&1 & P=$!
wait_for grep -q "corun: scheduling" /tmp/log
wait_for [ -S /var/run/scx/root/stats ] && echo "SOCKET"
page /tmp/third
grep -E '^corun_(host_scheduler|scheduler_events_total.event="vms_found")' /tmp/third
kill -INT $P; wait $P; echo "RUN $?"
[ -e /var/run/scx/root/stats ] || echo "SOCKET GONE"
dmesg | grep -E 'BUG|Oops|stall' && echo "kernel complains"
true
"#;

#[test]
#[ignore = "boots the lab: make smoke"]
fn the_doctor_names_the_problem_and_the_exporter_shows_it() {
    let case = CaseFile::new(CASE, TWO_GUESTS);
    let said = text(&in_lab(SCRIPT, &["--load", "--case", case.path()]));
    println!("{said}");
    assert!(!said.contains("kernel complains"));
    for line in ["EXIT 1", "EXPORTER 0", "SOCKET", "RUN 0", "SOCKET GONE"] {
        assert!(said.lines().any(|l| l.trim() == line), "no {line:?}");
    }
    let json = said.lines().find_map(|l| l.strip_prefix("JSON "));
    let report: Value = serde_json::from_str(json.expect("a report")).expect("JSON");
    the_problem_is_named(&report);
    for series in [
        r#"corun_host_scheduler{scheduler="kernel"} 1"#,
        r#"corun_vm_vcpus{vm="a"} 2"#,
        r#"corun_scheduler_events_total{event="vms_found"} "#,
    ] {
        assert!(said.contains(series), "no {series}");
    }
    let waited = said
        .lines()
        .filter_map(|l| l.strip_prefix(r#"corun_vcpu_wait_seconds_total{vm="a""#))
        .filter_map(|l| l.rsplit(' ').next()?.trim().parse::<f64>().ok());
    assert!(waited.sum::<f64>() > 0.1, "a waited");
}

fn the_problem_is_named(report: &Value) {
    assert_eq!(report["verdict"], "findings");
    for name in ["a", "b"] {
        let vms = report["vms"].as_array().expect("VMs");
        let vm = vms.iter().find(|vm| vm["name"] == name).expect(name);
        assert_eq!(vm["vcpus"], 2);
    }
    let findings = report["findings"].as_array().expect("findings");
    assert_eq!(findings[0]["severity"], "critical", "{findings:?}");
    let ids = |vm: Option<&str>| -> Vec<&str> {
        let of_vm = findings.iter().filter(|f| f["vm"].as_str() == vm);
        of_vm.filter_map(|f| f["id"].as_str()).collect()
    };
    for id in ["overcommit", "concurrent-weights", "lazy-preemption"] {
        assert!(ids(None).contains(&id), "no {id}: {:?}", ids(None));
    }
    for vm in ["a", "b"] {
        let waits = |id: &&str| id.starts_with("ready-time");
        assert!(ids(Some(vm)).iter().any(waits), "{vm}: {:?}", ids(Some(vm)));
    }
    let evidence = findings[0]["evidence"].to_string();
    assert!(
        evidence.contains('%') || evidence.contains(" s"),
        "{evidence}"
    );
}
