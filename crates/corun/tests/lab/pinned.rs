// SPDX-License-Identifier: GPL-2.0-only
//! VMs whose vCPUs are bound to some of the pCPUs, as most fleets have them.

use super::{AWAIT, in_lab, text};
use crate::robust::{STATS, number, objects};
use serde_json::Value;

/// The two statistics that `script` prints.
fn two_stats(script: &str) -> [Value; 2] {
    let said = text(&in_lab(&format!("{AWAIT}{STATS}{script}"), &[]));
    println!("{said}");
    let stats = objects(&said, "in_use");
    stats.try_into().unwrap_or_else(|_| panic!("{said}"))
}

/// How much a counter grew from one to the other.
fn grown([before, after]: &[Value; 2], name: &str) -> u64 {
    let counter = format!("/counters/{name}");
    number(after, &counter) - number(before, &counter)
}

/// One VM has pCPU 0 for itself, two share pCPU 1: the virtual time of the first passes
/// twice as fast as theirs, so they have the better claim for ever, on pCPU 1.
const APART: &str = r#"
hold() {
    taskset $3 corun lab-vms hold --program $2 --vcpus 2 --seconds 600 --name $1 > /tmp/$1 &
}
hold spins fake 1; S=$!
hold first spin 2; F=$!
hold second spin 2; T=$!
corun run --json --stats 1 > /tmp/log & P=$!
for vm in spins first second; do await /tmp/log "\"change\":\"found\".*\"$vm\""; done
stats /tmp/log
sleep 4
stats /tmp/log
kill -INT $P; wait $P
kill -9 $S $F $T
true
"#;

#[test]
#[ignore = "boots the lab: make smoke"]
fn who_has_pcpus_of_its_own_is_measured_against_nobody_elsewhere() {
    let stats = two_stats(APART);
    for vm in stats[1]["vms"].as_array().expect("VMs") {
        assert_eq!(vm["pcpus"], 1, "{vm}");
    }
    let followed = grown(&stats, "yields_dispatched");
    let refused = grown(&stats, "yields_overdrawn");
    println!("{followed} yields followed, {refused} were beyond the VM's share");
    assert!(followed > 100, "{followed}");
    assert!(
        refused < followed / 10,
        "{followed} followed, {refused} refused"
    );
}

/// One vCPU sends another IPIs, on one pCPU.
const TOGETHER: &str = r#"
taskset 1 corun lab-vms hold --program ipi --vcpus 2 --seconds 600 --name both > /tmp/both & B=$!
corun run --json --stats 1 > /tmp/log & P=$!
await /tmp/log "\"change\":\"found\".*\"both\""
stats /tmp/log
sleep 4
stats /tmp/log
kill -INT $P; wait $P
kill -9 $B
true
"#;

#[test]
#[ignore = "boots the lab: make smoke"]
fn a_vcpu_that_wakes_its_sibling_is_not_preempted_for_it() {
    let stats = two_stats(TOGETHER);
    let spared = grown(&stats, "wakeups_by_siblings");
    let preempted = grown(&stats, "wakeup_preemptions");
    println!("{spared} woken by a sibling, {preempted} preemptions for one that woke");
    assert!(spared > 100, "{spared}");
    assert!(preempted < spared / 2, "{preempted} of {spared}");
}
