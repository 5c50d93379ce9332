// SPDX-License-Identifier: GPL-2.0-only
//! The guest module in real guests of the lab: needs `make guest`, run with `make
//! smoke`. Behaviour is judged by counters and messages, never by time.

use serde_json::Value;
use std::process::{Command, Output};

/// How often the module is loaded and unloaded; `CORUN_CYCLES` overrides it.
const CYCLES: u32 = 20;
/// How many of them one window has: the lab takes a guest for lost that is silent
/// for a minute longer than its window, and a cycle takes seconds on a busy machine.
const CYCLES_PER_WINDOW: u32 = 10;

fn run(case: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("case.toml");
    std::fs::write(&file, case).expect("written");
    Command::new(env!("CARGO_BIN_EXE_corun"))
        .args([
            "lab",
            "run",
            "--json",
            "--max-steal=100",
            "--max-foreign=100",
        ])
        .arg(&file)
        .current_dir(folder.path())
        .output()
        .expect("corun starts")
}

fn result(case: &str) -> Value {
    let output = run(case);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).expect("the result is JSON")
}

/// A case of one phase, in which each guest of `guests` - name, TOML lines, and
/// its workload - is measured for `seconds`.
fn case(seconds: f64, guests: &[(&str, &str, &str)]) -> String {
    let head = format!(
        "[case]\nname = \"guest\"\nrepeats = 1\nwarmup_s = 0\nmeasure_s = {seconds:?}\n\
         time_scale = 1\n[gate]\nenabled = false\n\
         [[scheduler]]\nlabel = \"eevdf\"\nkind = \"kernel\"\n"
    );
    let tables = guests
        .iter()
        .map(|(name, lines, _)| format!("[[guest]]\nname = \"{name}\"\n{lines}\n"));
    let text = head + &tables.collect::<String>();
    let names: Vec<_> = guests
        .iter()
        .map(|(name, ..)| format!("{name:?}"))
        .collect();
    let work: Vec<_> = guests
        .iter()
        .map(|(name, _, work)| format!("{name} = {{ {work} }}"))
        .collect();
    text + &format!(
        "[[phase]]\nname = \"p\"\nmeasure = [{}]\nrun = {{ {} }}\n",
        names.join(", "),
        work.join(", ")
    )
}

fn shell(script: &str) -> String {
    let script = script.replace('\'', "\"");
    format!("workload = \"shell\", params = {{ script = '''{script}''' }}")
}

/// Fails unless insmod does, with these words in the kernel's log.
const REFUSED: &str = "refused() { words=$1; shift; dmesg -c > /dev/null; \
    if insmod \"$@\"; then echo \"$* was loaded\"; exit 1; fi; \
    dmesg | grep -q \"$words\" || { dmesg; exit 1; }; }\n";

const SHOOT4U: &str = "vcpus = 3\nhyperv = true\nmodule = \"corun_guest\"";

#[test]
#[ignore = "boots the lab: make smoke"]
fn shootdowns_go_by_hypercall_and_waits_are_told() {
    let telling = format!("{SHOOT4U}\nmodule_params = \"notify_spin=1\"");
    let guests = [
        ("a", SHOOT4U, "workload = \"tlb\""),
        ("b", telling.as_str(), "workload = \"ipi-storm\""),
    ];
    let result = result(&case(2.0, &guests));
    let told = &result["samples"][0]["guests"]["b"]["module_counts"]["notified"];
    assert!(told.as_u64() > Some(0), "{result}");
    let run = &result["samples"][0]["guests"]["a"];
    let count = |name: &str| run["module_counts"][name].as_u64().unwrap_or(0);
    for name in ["requests", "hypercalls", "targets", "list", "full_tables"] {
        assert!(count(name) > 0, "no {name}: {run}");
    }
    assert_eq!(count("fallback_cpu") + count("fallback_status"), 0, "{run}");
    let latency = run["latency"].as_array().expect("latencies");
    let timed = |what: &str| latency.iter().find(|l| l["what"] == what);
    let by_hypercall = timed("shootdown by hypercall").expect("is timed");
    assert!(by_hypercall["count"].as_u64() > Some(0));
    assert!(timed("shootdown by the kernel").is_none(), "{run}");
    assert!(run["module_counts"]["notified"].is_null(), "{run}");
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn unsuitable_guests_are_refused_with_the_next_step() {
    let refuse = |words: &str| {
        shell(&format!(
            "{REFUSED}refused '{words}' /mod/corun/corun_guest.ko\n"
        ))
    };
    let plain = format!(
        "{REFUSED}refused 'Hyper-V interface; start the VM' /mod/corun/corun_guest.ko\n\
         refused 'not a function that is known' /mod/corun/corun_guest_test.ko mode=kernel test_symbol=x\n\
         refused 'no mode' /mod/corun/corun_guest.ko mode=nonesuch\n\
         insmod /mod/corun/corun_guest.ko mode=count || exit 1\n\
         mode=/sys/module/corun_guest/parameters/mode\n\
         if echo shoot4u > $mode; then echo switched; exit 1; fi\n\
         [ $(cat $mode) = count ] && echo kernel > $mode && rmmod corun_guest\n"
    );
    let hyperv = |feature| format!("vcpus = 1\nhyperv = true\npv = {{ {feature} = true }}");
    // Where the kernel does not see KVM it must be told how fast time runs: a microvm has
    // nothing to measure that by.
    let unseen = |flag| {
        format!(
            "vcpus = 1\ncpu_flags = \"{flag}\"\n\
             kernel_args = \"tsc_early_khz=1000000 lpj=4000000\"\n\
             pv = {{ steal_time = false, eoi = false }}"
        )
    };
    let (bare, other) = (unseen("-hypervisor"), unseen("kvm=off"));
    let (unhalt, ipi, sched_yield) = (hyperv("unhalt"), hyperv("ipi"), hyperv("sched_yield"));
    let guests = [
        ("plain", "vcpus = 1", shell(&plain)),
        ("bare", bare.as_str(), refuse("this is no virtual machine")),
        ("other", other.as_str(), refuse("keep the KVM signature on")),
        ("unhalt", unhalt.as_str(), refuse("VM with -kvm-pv-unhalt")),
        ("ipi", ipi.as_str(), refuse("VM with -kvm-pv-ipi")),
        (
            "yield",
            sched_yield.as_str(),
            refuse("VM with -kvm-pv-sched-yield"),
        ),
    ];
    let guests: Vec<_> = guests
        .iter()
        .map(|(n, l, w)| (*n, *l, w.as_str()))
        .collect();
    let result = result(&case(0.1, &guests));
    for (name, ..) in guests {
        let work = result["samples"][0]["guests"][name]["work"].as_f64();
        assert!(work >= Some(1.0), "{name} ran nothing: {work:?}");
    }
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn loading_and_unloading_under_load_leaves_no_trace() {
    let cycles = std::env::var("CORUN_CYCLES").map_or(CYCLES, |n| n.parse().expect("a number"));
    let windows = cycles.div_ceil(CYCLES_PER_WINDOW);
    let script = format!(
        "dmesg -c > /dev/null\n\
         /init --run stale --threads 2 --measure-ms 3600000 > /tmp/load 2>&1 &\n\
         load=$!\n\
         mode=/sys/module/corun_guest/parameters/mode\n\
         for i in $(seq {CYCLES_PER_WINDOW}); do\n\
         insmod /mod/corun/corun_guest.ko || exit 1\n\
         for m in kernel count shoot4u; do echo $m > $mode || exit 1; done\n\
         rmmod corun_guest || exit 1\n\
         done\n\
         insmod /mod/corun/corun_guest.ko mode=count || exit 1\n\
         mount -t debugfs none /sys/kernel/debug\n\
         until grep -q 'requests [1-9]' /sys/kernel/debug/corun_guest/counts; do sleep 1; done\n\
         rmmod corun_guest || exit 1\n\
         kill -0 $load || {{ cat /tmp/load; exit 1; }}\n\
         kill -9 $load\n\
         if dmesg | grep -E 'BUG|WARNING|Oops|stalls'; then exit 1; fi\n"
    );
    let guest = ("a", "vcpus = 3\nhyperv = true", &*shell(&script));
    let case = case(0.1, &[guest]).replace("repeats = 1", &format!("repeats = {windows}"));
    let result = result(&case);
    let runs = result["samples"].as_array().expect("samples").iter();
    let runs: f64 = runs.filter_map(|s| s["guests"]["a"]["work"].as_f64()).sum();
    let done = runs * f64::from(CYCLES_PER_WINDOW);
    assert!(done >= f64::from(cycles), "{done} of {cycles} cycles");
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn no_translation_is_stale() {
    let result = result(&case(8.0, &[("a", SHOOT4U, "workload = \"stale\"")]));
    let run = &result["samples"][0]["guests"]["a"];
    assert!(run["work"].as_f64() > Some(0.0), "{run}");
    assert!(run["module_counts"]["list"].as_u64() > Some(0), "{run}");
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn dropped_flushes_are_noticed() {
    let guest = "vcpus = 3\nhyperv = true\nmodule = \"corun_guest_test\"\n\
                 module_params = \"test_drop=1\"";
    let output = run(&case(8.0, &[("a", guest, "workload = \"stale\"")]));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "nobody noticed");
    assert!(error.contains("stale translation"), "{error}");
}

#[test]
#[ignore = "boots the lab: make smoke"]
fn garbage_requests_hurt_nobody_else() {
    let hostile = "vcpus = 3\nhyperv = true\nmodule = \"corun_guest_test\"\n\
                   module_params = \"test_garbage=3000\"";
    let guests = [
        ("hostile", hostile, "workload = \"tlb\""),
        ("other", SHOOT4U, "workload = \"stale\""),
    ];
    let result = result(&case(2.0, &guests));
    for guest in ["hostile", "other"] {
        let work = result["samples"][0]["guests"][guest]["work"].as_f64();
        assert!(work > Some(0.0), "{guest}: {work:?}");
    }
    // Alarms of the host's kernel become warnings.
    let warnings = result["warnings"].as_array().map_or(0, Vec::len);
    assert_eq!(warnings, 0, "{}", result["warnings"]);
}
