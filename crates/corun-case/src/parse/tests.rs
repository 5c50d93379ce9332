// SPDX-License-Identifier: GPL-2.0-only
//! Error texts are part of the interface: they are compared whole.

use super::*;

const GOOD: &str = r#"[case]
name = "demo"

[[scheduler]]
label = "eevdf"
kind = "kernel"

[[guest]]
name = "a"

[[guest]]
name = "b"
weight = 300

[[phase]]
name = "tlb"
measure = ["a"]
solo = true
run = { a = { workload = "tlb", params = { pages = 4 } }, b = { workload = "cpu" } }
"#;

/// The error that `GOOD` gives when `from` is replaced by `to`.
fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the test changes nothing");
    parse(&GOOD.replacen(from, to, 1), Path::new("x.toml"))
        .expect_err("must be refused")
        .to_string()
}

#[test]
fn a_good_case_gets_its_defaults() {
    let case = parse(GOOD, Path::new("x.toml")).expect("is good");
    assert_eq!((case.host.pcpus, case.case.repeats), (2, 3));
    assert_eq!(case.guest("b").map(|g| (g.vcpus, g.weight)), Some((2, 300)));
    assert!(case.gate.enabled);
}

#[test]
fn a_case_survives_json() {
    let case = parse(GOOD, Path::new("x.toml")).expect("is good");
    let json = serde_json::to_string(&case).expect("encodes");
    assert_eq!(serde_json::from_str::<Case>(&json).expect("decodes"), case);
}

#[test]
fn unknown_key() {
    assert_eq!(
        error("weight = 300", "wieght = 300"),
        "x.toml:13:1: guest[1].wieght: unknown key `wieght`: expected one of \
         name, vcpus, weight, memory_mib, kernel, pv, hyperv, cpu_flags, kernel_args, module, module_params; did you mean `weight`?\n    \
         |\n 13 | wieght = 300\n    | ^^^^^^"
    );
}

#[test]
fn wrong_type() {
    assert_eq!(
        error("weight = 300", "weight = \"300\""),
        "x.toml:13:10: guest[1].weight: invalid type: string \"300\", expected u32\n    \
         |\n 13 | weight = \"300\"\n    |          ^^^^^"
    );
}

#[test]
fn unknown_workload() {
    assert_eq!(
        error("\"cpu\"", "\"cpus\""),
        "x.toml:19:76: phase[0].run.b.workload: unknown workload `cpus`: expected one of cpu, \
         fake-spin, forged-rip, forkexec, hackbench, halt-storm, ipi-storm, klock, lock, pingpong, shell, \
         stale, stress-ng, sysbench, timer, tlb; did you mean `cpu`?\n    \
         |\n 19 | run = { a = { workload = \"tlb\", params = { pages = 4 } }, b = { workload = \"cpus\" } }\n    \
         |                                                                            ^^^^^^"
    );
}

#[test]
fn broken_toml() {
    let text = error("[[phase]]", "[[phase]");
    assert!(text.starts_with("x.toml:15:"), "{text}");
}

#[test]
fn unreadable_file() {
    let text = load(Path::new("/nonexistent/x.toml"))
        .expect_err("is absent")
        .to_string();
    assert!(
        text.starts_with("/nonexistent/x.toml: cannot read the case file: "),
        "{text}"
    );
}

/// Each slip (what is replaced by what), and what its message must name: place
/// and key, expectation.
const SLIPS: &[(&str, &str, &str, &str)] = &[
    (
        "name = \"demo\"",
        "name = \"../x\"",
        "2:8: case.name",
        "letters, digits",
    ),
    (
        "name = \"demo\"",
        "name = \"d\"\nrepeats = 0",
        "3:11: case.repeats",
        "1 to 1000",
    ),
    (
        "name = \"demo\"",
        "name = \"d\"\nmeasure_s = 0.0",
        "case.measure_s",
        "0.1 to 600",
    ),
    (
        "name = \"demo\"",
        "name = \"d\"\nwarmup_s = -1.0",
        "case.warmup_s",
        "0 to 600",
    ),
    (
        "name = \"demo\"",
        "name = \"d\"\ntime_scale = \"fast\"",
        "case.time_scale",
        "\"auto\" or a number",
    ),
    (
        "name = \"demo\"",
        "name = \"d\"\ntime_scale = 0",
        "case.time_scale",
        "\"auto\" or a number",
    ),
    (
        "name = \"demo\"",
        "name = \"d\"\n[host]\npcpus = 0",
        "host.pcpus",
        "1 to 64",
    ),
    (
        "name = \"demo\"",
        "name = \"d\"\n[host]\nmemory_mib = 600",
        "host.memory_mib",
        "384 MiB",
    ),
    (
        "name = \"demo\"",
        "name = \"d\"\n[host]\nkernel = \"new\"",
        "host.kernel",
        "\"7.3\"",
    ),
    (
        "kind = \"kernel\"",
        "kind = \"kernle\"",
        "scheduler[0].kind",
        "did you mean `kernel`?",
    ),
    (
        "kind = \"kernel\"",
        "kind = \"kernel\"\noptions = [\"-x\"]",
        "scheduler[0].options",
        "takes none",
    ),
    (
        "kind = \"kernel\"",
        "kind = \"corun\"\noptions = [\"--time-scale=3\"]",
        "scheduler[0].options",
        "case.time_scale",
    ),
    (
        "kind = \"kernel\"",
        "kind = \"scx_bpfland\"\noptions = [\"--slice-us\", \"5000\"]",
        "scheduler[0].options",
        "--slice-us is set by the lab",
    ),
    (
        "name = \"b\"",
        "name = \"a\"",
        "12:8: guest[1].name",
        "used twice",
    ),
    (
        "name = \"b\"",
        "name = \"b\"\nvcpus = 0",
        "guest[1].vcpus",
        "1 to 64",
    ),
    (
        "weight = 300",
        "weight = 0",
        "guest[1].weight",
        "1 to 10000",
    ),
    (
        "weight = 300",
        "weight = 10001",
        "guest[1].weight",
        "1 to 10000",
    ),
    (
        "weight = 300",
        "memory_mib = 1",
        "guest[1].memory_mib",
        "at least 96",
    ),
    (
        "weight = 300",
        "pv = { tlb = true }",
        "guest[1].pv.tlb",
        "tlb_flush",
    ),
    (
        "weight = 300",
        "pv = { sched_yield = true, steal_time = false }",
        "guest[1].pv",
        "steal_time",
    ),
    (
        "measure = [\"a\"]",
        "measure = []",
        "phase[0].measure",
        "at least one",
    ),
    (
        "measure = [\"a\"]",
        "measure = [\"a\", \"a\"]",
        "phase[0].measure[1]",
        "twice",
    ),
    (
        "measure = [\"a\"]",
        "measure = [\"c\"]",
        "phase[0].measure[0]",
        "runs nothing",
    ),
    (
        "run = { a",
        "run = { aa = { workload = \"cpu\" }, a",
        "phase[0].run.aa",
        "did you mean `a`?",
    ),
    (
        "\"tlb\", p",
        "\"tlb\", threads = 0, p",
        "phase[0].run.a.threads",
        "at least 1",
    ),
    (
        "pages = 4",
        "pages = true",
        "phase[0].run.a.params",
        "whole number or text",
    ),
    (
        "weight = 300",
        "vcpus = 1",
        "gate.enabled",
        "at least 2 vCPUs",
    ),
    (
        "weight = 300",
        "weight = 300\n[gate]\ntolerance = 0",
        "gate.tolerance",
        "0.05 is 5 %",
    ),
];

#[test]
fn every_check_fires_at_its_key() {
    for (from, to, place, expectation) in SLIPS {
        let text = error(from, to);
        assert!(text.starts_with("x.toml:"), "{to}: {text}");
        assert!(text.contains(place), "{to}: expected {place} in: {text}");
        assert!(
            text.contains(expectation),
            "{to}: expected {expectation} in: {text}"
        );
    }
}

#[test]
fn missing_parts_are_named() {
    for (from, missing) in [("name = \"a\"\n", "name"), ("label = \"eevdf\"\n", "label")] {
        let text = error(from, "");
        assert!(text.contains(&format!("missing key `{missing}`")), "{text}");
    }
    let no_phase = &GOOD[..GOOD.find("[[phase]]").expect("is there")];
    let text = parse(no_phase, Path::new("x.toml"))
        .expect_err("no phase")
        .to_string();
    assert!(text.contains("missing key `phase`"), "{text}");
    let empty = format!("phase = []\n{no_phase}");
    let text = parse(&empty, Path::new("x.toml"))
        .expect_err("no phase")
        .to_string();
    assert!(text.contains("at least one [[phase]]"), "{text}");
}
