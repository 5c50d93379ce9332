// SPDX-License-Identifier: GPL-2.0-only
//! The accounts of vCPUs against what the guests and the kernel say of the same
//! windows, in the lab. Run with `make smoke`.

use super::{CaseFile, TWO_GUESTS, corun, in_lab, text};
use serde_json::Value;

/// Long windows: a guest tells steal in ticks of 10 ms.
const CASE: &str = r#"
[case]
name = "accounts"
title = "two overcommitted guests, their accounts"
repeats = 1
warmup_s = 0.5
measure_s = 6.0
time_scale = 1
latency = true

[[phase]]
name = "cpu"
measure = ["a", "b"]
run = { a = { workload = "cpu" }, b = { workload = "cpu" } }

[[phase]]
name = "tlb"
measure = ["a", "b"]
run = { a = { workload = "tlb" }, b = { workload = "tlb" } }
"#;

fn ns(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// What must agree with `other`, and by how much it does not, as a share of `whole`.
fn error(ours: f64, other: f64, whole: f64) -> f64 {
    (ours - other).abs() / whole
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn ready_time_is_the_guests_steal_and_times_add_up() {
    let case = CaseFile::new(CASE, TWO_GUESTS);
    let relaxed = ["--json", "--max-foreign", "100", "--max-steal", "100"];
    let output = corun(&[&["lab", "run", case.path()], &relaxed[..]].concat())
        .output()
        .expect("corun starts");
    assert!(output.status.success(), "{}", text(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let samples = result["samples"].as_array().expect("samples");
    assert_eq!(samples.len(), 2);
    for sample in samples {
        for guest in ["a", "b"] {
            check_guest(sample, guest);
        }
    }
}

/// The accounts of `guest` in `sample` against its own words, and the kernel's.
fn check_guest(sample: &Value, guest: &str) {
    let sums = &sample["vcpu_latency"][guest]["sums_ns"];
    let part = |name: &str| ns(&sums[name]);
    let ready: f64 = [
        "other_vm",
        "sibling",
        "host_task",
        "woken",
        "limited",
        "other",
    ]
    .iter()
    .map(|cause| part(&format!("ready_{cause}")))
    .sum();
    let wall = part("wall");
    let all = part("run") + part("poll") + ready + part("halted") + part("blocked");
    let cpu = ns(&sample["vm_cpu_ns"][guest]);
    let elapsed = ns(&sample["elapsed_ns"]);
    let run = &sample["guests"][guest];
    // The guest's window and ours differ in length by a little.
    let steal = ns(&run["steal_ns"]) * elapsed / ns(&run["elapsed_ns"]);
    let phase = &sample["phase"];
    println!(
        "{phase} {guest}: parts {:.3} % off wall, ready {:.1} % against steal {:.1} %, \
         run {:.1} % against the kernel's {:.1} %",
        100.0 * error(all, wall, wall),
        100.0 * ready / wall,
        100.0 * steal / wall,
        100.0 * (part("run") + part("poll")) / wall,
        100.0 * cpu / wall
    );
    assert!(error(all, wall, wall) < 0.01, "{all} of {wall}: {sums}");
    // Two vCPUs for as long as the window.
    assert!(error(wall, 2.0 * elapsed, 2.0 * elapsed) < 0.02, "{wall}");
    assert!(ready / wall > 0.2, "not overcommitted: {sums}");
    assert!(error(ready, steal, wall) < 0.05, "{ready} and {steal}");
    // The VMM's other threads are in the kernel's figure only.
    assert!(
        error(part("run") + part("poll"), cpu, wall) < 0.05,
        "{cpu}: {sums}"
    );
}

const TOP: &str = r#"
cp /proc/kallsyms /tmp/System.map
symbols="--symbols a=/tmp/System.map --symbols b=/tmp/System.map"
corun top --json -n 1 -i 5 --hook-costs $symbols > /tmp/json || exit 1
corun top --batch -n 1 -i 3 --vcpus > /tmp/table || exit 1
echo "JSON $(head -1 /tmp/json)"
echo "COSTS $(tail -1 /tmp/json)"
cat /tmp/table
dmesg | grep -E 'BUG|Oops|stall' && echo "kernel complains"
true
"#;

#[test]
#[ignore = "boots the lab: make smoke"]
fn top_shows_who_waits_for_whom() {
    let case = CaseFile::new(CASE, TWO_GUESTS);
    let output = in_lab(TOP, &["--load", "--case", case.path()]);
    let said = text(&output);
    println!("{said}");
    assert!(output.status.success() && !said.contains("kernel complains"));
    let line = said.lines().find_map(|l| l.strip_prefix("JSON "));
    let interval: corun_events::account::Snapshot =
        serde_json::from_str(line.expect("a line of JSON")).expect("accounts");
    assert!(interval.missing.is_empty(), "{:?}", interval.missing);
    let names: Vec<&str> = interval.vms.iter().map(|vm| vm.name.as_str()).collect();
    assert!(names.contains(&"a") && names.contains(&"b"), "{names:?}");
    let worst = corun_events::account::imbalance(&interval).expect("vCPUs");
    assert!(worst.error < 0.01, "{worst:?}");
    let mut all_critical = 0;
    for vm in interval.vms.iter().filter(|vm| vm.name.len() == 1) {
        assert_eq!(vm.vcpus.len(), 2);
        let total = vm.total();
        let ready = &total.times.ready;
        assert!(total.share(ready.total_ns()) > 0.2, "{ready:?}");
        println!("{}: {ready:?}", vm.name);
        // The kernel of both is the host's.
        let counts = &total.counts;
        let critical = counts.preempted_critical.expect("symbols were given");
        assert!(critical <= counts.preempted_kernel, "{counts:?}");
        all_critical += critical;
        println!(
            "{}: {critical} of {} preemptions",
            vm.name,
            counts.preempted()
        );
        // Little runs there but guests; tasks of the host's do so briefly, if often first.
        let preempted_ns = ready.total_ns() - ready.woken_ns;
        assert!((ready.other_vm_ns + ready.sibling_ns) * 10 > preempted_ns * 7);
        assert!(total.all_exits() > 0, "no exit was counted");
    }
    // Some thousand preemptions, many of them by the tick, in its handler.
    assert!(all_critical > 0, "none in a critical section");
    for word in ["RDY%", "BEHIND", "vCPU 1", "scheduler: kernel"] {
        assert!(said.contains(word), "no {word:?}");
    }
    assert!(said.contains(r#"COSTS {"hook_costs":[{"#), "{said}");
}
