// SPDX-License-Identifier: GPL-2.0-only
//! `corun trace` on real guests: the lab is booted. Run with `make smoke`.
//! Judged by counts and structure, never by time: how long shootdowns last is judged
//! by executed instructions, in `shootdowns.rs`.

use super::{CaseFile, TWO_SHOOTERS, after, in_lab, text};
use serde_json::Value;

const CASE: &str = r#"
[case]
name = "trace"
title = "two guests that shoot down TLBs"
time_scale = 1

[phase.run.a]
workload = "shell"
params = { script = """
echo "SHOOTS END" > /dev/ttyS0
/init --run tlb --param initiators=1 --measure-ms 3600000 > /dev/null
""" }
"#;

/// Two busy guests on two pCPUs under the kernel's own scheduler: recorded,
/// shown, analysed; then with a small buffer that nobody empties for a while.
const SCRIPT: &str = r#"
[ $(ps | grep -c '[q]emu-system') -ge 3 ] || { echo "guests did not come up"; exit 1; }
cd /tmp
for g in a b; do
    i=0
    until grep -qa 'SHOOTS END' /run/guest/$g.log; do
        sleep 0.5; i=$((i+1)); [ $i -gt 120 ] && { echo "$g is silent"; exit 1; }
    done
done
corun trace record -s 8 -o a.trace > a.log 2> a.progress; echo "RECORD $?"
echo "LEFT $(ls | grep -c 'a.trace.')"
echo "JSON $(corun trace analyze a.trace --json)"
corun trace export a.trace --format perfetto -o a.pf; echo "EXPORT $? $(wc -c < a.pf)"
corun trace export a.trace --format json > a.json
sed 's/.*"kind":"\([a-z_]*\)".*/\1/' a.json | sort | uniq -c | while read n kind; do echo "KIND $kind $n"; done
corun trace record --buffer 0.0625 -o b.trace > b.log 2> b.progress & P=$!
until grep -q events b.progress; do kill -0 $P || break; sleep 0.2; done
kill -STOP $P; sleep 4; kill -CONT $P; sleep 1; kill -INT $P; wait $P; echo "TINY $?"; cat b.log
corun trace analyze b.trace | grep 'are missing'
corun trace record -q -s 1 --vm nobody -o c.trace 2>&1; echo "NOBODY $?"
corun trace record -o d.trace 2> d.progress & P=$!
until grep -q events d.progress; do kill -0 $P || break; sleep 0.2; done
kill -INT $P; wait $P; echo "CTRLC $?"
dmesg | grep -E 'BUG|Oops|runtime error|stall' && echo "kernel complains"
true
"#;

fn check_report(report: &Value) {
    assert_eq!(report["dropped"], 0, "the default buffer is large enough");
    let missing = report["missing"].as_array().expect("a list").iter();
    // Which programs are skipped is chance.
    let absent = missing
        .filter_map(Value::as_str)
        .filter(|m| !m.contains("skipped while"));
    assert_eq!(absent.collect::<Vec<_>>(), [""; 0]);
    let duration_ns = report["seconds"].as_f64().expect("seconds") * 1e9;
    let vms = report["vms"].as_array().expect("VMs").iter();
    let vms: Vec<&Value> = vms
        .filter(|vm| vm["name"] == "a" || vm["name"] == "b")
        .collect();
    assert_eq!(vms.len(), 2, "both guests have their names");
    for vm in vms {
        for vcpu in vm["vcpus"].as_array().expect("vCPUs") {
            let fields = vcpu.as_object().expect("an account").iter();
            let times = fields.filter(|(name, _)| name.ends_with("_ns"));
            let sum: f64 = times.filter_map(|(_, ns)| ns.as_f64()).sum();
            assert!((sum / duration_ns - 1.0).abs() < 0.01, "{vcpu}");
            assert!(vcpu["running_ns"].as_f64() > Some(0.0), "{vcpu}");
        }
        assert!(
            vm["exits"]["by_reason"]
                .as_object()
                .is_some_and(|r| r.len() > 2)
        );
        assert!(
            vm["shootdowns"]["calls"]["count"].as_u64() > Some(0),
            "{vm}"
        );
        let classes = vm["places"]["by_class"].as_object().expect("classes");
        assert!(classes.contains_key("user") || classes.contains_key("unknown"));
    }
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn two_busy_guests_are_recorded_and_a_full_buffer_is_said() {
    let case = CaseFile::new(CASE, TWO_SHOOTERS);
    let said = text(&in_lab(SCRIPT, &["--load", "--case", case.path()]));
    assert_eq!(after(&said, "RECORD"), "0", "{said}");
    assert_eq!(after(&said, "LEFT"), "0", "{said}");
    let report = serde_json::from_str(after(&said, "JSON")).expect("a report");
    check_report(&report);
    assert!(after(&said, "EXPORT").starts_with("0 "), "{said}");
    for kind in [
        "switch_in",
        "exit",
        "enter",
        "ipi_send",
        "ipi_take",
        "yield_ask",
        "host_in",
    ] {
        let count: u64 = after(&said, &format!("KIND {kind}"))
            .parse()
            .expect("a count");
        assert!(count > 0, "no {kind} in:\n{said}");
    }
    assert_eq!(after(&said, "TINY"), "0");
    assert!(said.contains("The buffer was full"), "{said}");
    assert!(said.contains("events are missing"), "{said}");
    assert_eq!(after(&said, "NOBODY"), "1");
    assert!(
        said.contains("no running VM is called `nobody`; running:"),
        "{said}"
    );
    assert_eq!(after(&said, "CTRLC"), "0", "{said}");
    assert!(!said.contains("kernel complains"), "{said}");
}
