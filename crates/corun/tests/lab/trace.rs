// SPDX-License-Identifier: GPL-2.0-only
//! `corun trace` on real guests: the lab is booted. Run with `make smoke`.
//! Judged by counts and structure, never by time.

use super::{in_lab, text};
use serde_json::Value;

/// Two busy guests on two pCPUs under the kernel's own scheduler: recorded,
/// shown, analysed; then with a small buffer that nobody empties for a while.
const SCRIPT: &str = r#"
[ $(ps | grep -c '[q]emu-system') -ge 3 ] || { echo "guests did not come up"; exit 1; }
cd /tmp
corun trace record -q -s 5 -o a.trace; echo "RECORD $?"
echo "LEFT $(ls | grep -c 'a.trace.')"
echo "JSON $(corun trace analyze a.trace --json)"
corun trace export a.trace --format perfetto -o a.pf; echo "EXPORT $? $(wc -c < a.pf)"
corun trace export a.trace --format json > a.json
for kind in switch_in exit enter ipi_send ipi_take halt yield_ask host_in; do
    echo "KIND $kind $(grep -c "\"kind\":\"$kind\"" a.json)"
done
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

/// What follows `word` on its line.
fn after<'a>(said: &'a str, word: &str) -> &'a str {
    let line = said.lines().find_map(|l| l.trim().strip_prefix(word));
    line.unwrap_or_else(|| panic!("no {word:?} in:\n{said}"))
        .trim()
}

fn check_report(report: &Value) {
    assert_eq!(report["dropped"], 0, "the default buffer is large enough");
    assert_eq!(report["missing"].as_array().map(Vec::len), Some(0));
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
    let said = text(&in_lab(SCRIPT, &["--load", "--case", "smoke"]));
    assert_eq!(after(&said, "RECORD"), "0", "{said}");
    assert_eq!(after(&said, "LEFT"), "0", "{said}");
    check_report(&serde_json::from_str(after(&said, "JSON")).expect("a report"));
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
