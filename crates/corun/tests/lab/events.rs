// SPDX-License-Identifier: GPL-2.0-only
//! What corun's scheduler sees of KVM's events, and what it does and says where it cannot.

use super::{AWAIT, in_lab, text};
use crate::robust::{STATS, number, objects, of_run};

/// A guest whose vCPU 0 sends IPIs to two that sleep in between, beside one that computes:
/// seen at their delivery, before it, and not at all.
const SEEN: &str = r#"
corun lab-vms hold --program ipi --vcpus 3 --seconds 600 --name a > /tmp/a & A=$!
corun lab-vms hold --program spin --vcpus 2 --seconds 600 --name b > /tmp/b & B=$!
look() {
    corun run --json --mechanisms ipi --stats 1 $2 > /tmp/log.$1 & P=$!
    await /tmp/log.$1 '"change":"found"'
    stats /tmp/log.$1; stats /tmp/log.$1 > /dev/null
    stats /tmp/log.$1 | sed "s/^{/{\"with\":\"$1\",/"
    grep '"event":"missing"' /tmp/log.$1 | sed "s/^{/{\"without\":\"$1\",/"
    kill -INT $P; wait $P
}
early="--without-event __apic_accept_irq"
look delivered
look early "$early"
look unseen "$early --without-event kvm_apic_accept_irq"
kill -9 $A $B
true
"#;

#[test]
#[ignore = "boots the lab: make smoke"]
fn interrupts_are_seen_where_the_kernel_lets_them_be() {
    let said = text(&in_lab(&format!("{AWAIT}{STATS}{SEEN}"), &[]));
    println!("{said}");
    let stats = objects(&said, "with");
    let counter =
        |with: &str, name: &str| number(of_run(&stats, with), &format!("/counters/{name}"));
    let ipis = |with: &str| {
        ["running", "waiting", "asleep"].map(|to| counter(with, &format!("ipis_to_{to}")))
    };
    // Whom an interrupt wakes was asleep when it was sent, though it waits when it is seen.
    for with in ["delivered", "early"] {
        let [running, waiting, asleep] = ipis(with);
        let woken = counter(with, "wakeups_by_siblings");
        assert!(running > 0 && waiting > 0, "{with}");
        assert!(
            asleep.abs_diff(woken) < woken / 2,
            "{with}: {asleep} asleep, {woken} woken"
        );
    }
    assert_eq!(ipis("unseen"), [0, 0, 0]);
    let missing = objects(&said, "without");
    let told = |with: &str, event: &str| {
        let of = missing.iter().filter(|m| m["without"] == with);
        let what = of.filter_map(|m| m["what"].as_str());
        what.filter(|what| what.starts_with(event)).count()
    };
    assert_eq!(missing.len(), 3, "{missing:?}");
    assert_eq!(told("early", "__apic_accept_irq: "), 1);
    assert_eq!(told("unseen", "__apic_accept_irq: "), 1);
    assert_eq!(told("unseen", "kvm_apic_accept_irq: "), 1);
}

/// VMs of which nobody tells that they end.
const ENDED_VMS: u64 = 20;

#[test]
#[ignore = "boots the lab: make smoke"]
fn vms_whose_end_was_missed_give_their_places_back() {
    let script = format!(
        "{AWAIT}{STATS}
corun run --json --stats 1 --without-event kvm_arch_destroy_vm > /tmp/log & P=$!
await /tmp/log '\"event\":\"stats\"'
corun lab-vms churn --vms {ENDED_VMS} --json
stats /tmp/log
kill -INT $P; wait $P
true
"
    );
    let said = text(&in_lab(&script, &[]));
    println!("{said}");
    let stats = &objects(&said, "in_use")[0];
    let found = number(stats, "/counters/vms_found");
    // One of the ten endings comes before any vCPU ran: nobody sees such a VM. All
    // others are told apart, although many get the memory of one that ended.
    assert_eq!(found, ENDED_VMS / 10 * 9);
    assert_eq!(number(stats, "/counters/vms_gone"), found);
    assert_eq!(number(stats, "/counters/vms_gone_unseen"), found);
    assert_eq!(number(stats, "/in_use/vms"), 0);
    assert_eq!(number(stats, "/in_use/vcpus"), 0);
}
