// SPDX-License-Identifier: GPL-2.0-only

use crate::{Abilities, Case, Target, Workload, WorkloadProblem, parse, parse_for};
use std::path::Path;

const GOOD: &str = r#"[case]
name = "big"
measure_s = 0.01

[host]
pcpus = 512
memory_mib = 1

[[scheduler]]
label = "s"
kind = "credit"

[[guest]]
name = "a"
vcpus = 1024
memory_mib = 1
kernel = "2.6-xen"

[[phase]]
name = "p"
measure = ["a"]
run = { a = { workload = "dedup" } }

[sim]
threads_per_core = 2
"#;

struct Dedup;

impl Abilities for Dedup {
    fn workload(&self, work: &Workload) -> Result<(), WorkloadProblem> {
        if work.workload == "dedup" {
            return Ok(());
        }
        Err(WorkloadProblem {
            param: None,
            message: "expected dedup".to_owned(),
        })
    }

    fn options(&self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}

fn sim(text: &str) -> Result<Case, String> {
    parse_for(text, Path::new("x.toml"), Target::Sim(&Dedup), &[]).map_err(|e| e.to_string())
}

#[test]
fn the_simulator_takes_what_the_lab_cannot_have() {
    sim(GOOD).expect("is good");
    let long = GOOD.replace("0.01", "0.1");
    let error = parse(&long, Path::new("x.toml")).expect_err("is too large");
    assert!(error.to_string().contains("expected 1 to 64"), "{error}");
}

#[test]
fn programs_beside_the_guests_are_the_labs() {
    let text = GOOD.replace("\"credit\"", "\"credit\"\nbeside = \"corun top\"");
    let error = sim(&text).expect_err("runs no programs");
    assert!(error.contains("scheduler[0].beside: "), "{error}");
    assert!(error.contains("`corun lab run`"), "{error}");
}

#[test]
fn the_lab_names_the_simulator_for_its_kinds() {
    let text = "[case]\nname = \"n\"\n[[scheduler]]\nlabel = \"s\"\nkind = \"cfs\"\n\
                [[guest]]\nname = \"a\"\n[[phase]]\nname = \"p\"\nmeasure = [\"a\"]\n\
                run = { a = { workload = \"cpu\" } }\n[gate]\nenabled = false\n";
    let error = parse(text, Path::new("x.toml"))
        .expect_err("cfs")
        .to_string();
    assert!(
        error.starts_with("x.toml:5:8: scheduler[0].kind: "),
        "{error}"
    );
    assert!(error.contains("`corun sim run`"), "{error}");
    let kernel = text.replace("\"cfs\"", "\"kernel\"");
    let case = parse(&kernel, Path::new("x.toml")).expect("is good");
    let json = serde_json::to_string(&case).expect("encodes");
    assert!(
        !json.contains("sim"),
        "the lab's results gained keys: {json}"
    );
}

#[test]
fn a_cpu_without_pause_loop_exiting_survives_json() {
    let case = sim(&format!("{GOOD}[sim.kvm]\nple = false\n")).expect("is good");
    assert_eq!(case.sim.kvm.ple, None);
    let json = serde_json::to_string(&case).expect("encodes");
    assert_eq!(serde_json::from_str::<Case>(&json).expect("decodes"), case);
}

/// Text that replaces `threads_per_core = 2`, the key to blame, and what the
/// message must say.
const SLIPS: &[(&str, &str, &str)] = &[
    (
        "threads_per_core = 3",
        "sim.threads_per_core",
        "expected 1 or 2",
    ),
    (
        "pcpus_per_llc = 513",
        "sim.pcpus_per_llc",
        "at most the host's 512",
    ),
    (
        "costs.cpu_mhz = 0",
        "sim.costs.cpu_mhz",
        "expected 100 to 10000",
    ),
    (
        "costs.smt_speed_pm = 0",
        "sim.costs.smt_speed_pm",
        "expected 1 to 1000",
    ),
    (
        "costs.switch_ns = 20_000_000_000",
        "sim.costs.switch_ns",
        "at most 10 s",
    ),
    (
        "costs.noise_ns = 5_000_000",
        "sim.costs.noise_ns",
        "contradictory",
    ),
    ("costs.exit_ns = -1", "sim.costs.exit_ns", "invalid value"),
    (
        "kvm.ple = true",
        "sim.kvm.ple",
        "expected false, or a table",
    ),
    (
        "kvm.ple.window_cycles = 0",
        "sim.kvm.ple.window_cycles",
        "ple = false",
    ),
    (
        "kvm.ple.max_cycles = 5",
        "sim.kvm.ple.max_cycles",
        "contradictory",
    ),
    (
        "kvm = { ple = false, debooster = true }",
        "sim.kvm.debooster",
        "has no effect",
    ),
    (
        "kvm = { hypervisor = \"xen\", debooster = true }",
        "sim.kvm.debooster",
        "Xen",
    ),
    (
        "kvm.halt_poll = { fixed = 0 }",
        "sim.kvm.halt_poll",
        "\"never\"",
    ),
    (
        "kvm.spin_handler = \"2014\"",
        "sim.kvm.spin_handler",
        "unknown value `2014`",
    ),
    ("guest.b.pinned = true", "sim.guest.b", "expected one of a"),
    (
        "guest.a.tick_ns = 0",
        "sim.guest.a.tick_ns",
        "expected 100000 ns",
    ),
    (
        "guest.a.beside.workload = \"x\"",
        "sim.guest.a.beside.workload",
        "expected dedup",
    ),
];

#[test]
fn every_check_fires_at_its_key() {
    for (slip, place, expectation) in SLIPS {
        let text = sim(&GOOD.replace("threads_per_core = 2", slip)).expect_err(slip);
        assert!(text.starts_with("x.toml:2"), "{slip}: {text}");
        assert!(text.contains(&format!(": {place}: ")), "{slip}: {text}");
        assert!(text.contains(expectation), "{slip}: {text}");
    }
}

#[test]
fn schedulers_settings_are_checked() {
    for (slip, place, expectation) in [
        (
            "kind = \"credit\"\nsim.cfs.tick_ns = 5",
            "sim.cfs",
            "another kind",
        ),
        (
            "kind = \"corun\"\nsim.eevdf.tick_ns = 0",
            "sim.eevdf",
            "its `options`",
        ),
        (
            "kind = \"kernel\"\nsim.eevdf.tick_ns = 5",
            "sim.eevdf.tick_ns",
            "100000 ns",
        ),
        (
            "kind = \"cfs\"\nsim.cfs.latency_ns = 1_000_000",
            "sim.cfs.min_granularity_ns",
            "longer",
        ),
        (
            "kind = \"credit\"\nsim.credit.slice_ns = 0",
            "sim.credit.slice_ns",
            "100000 ns",
        ),
        (
            "kind = \"credit\"\nsim.credit.micro_pcpus = 512",
            "sim.credit.micro_pcpus",
            "leave none",
        ),
        (
            "kind = \"cosched\"\nsim.cosched.kind = \"gang\"",
            "sim.cosched.kind",
            "strict",
        ),
    ] {
        let text = sim(&GOOD.replace("kind = \"credit\"", slip)).expect_err(slip);
        assert!(
            text.contains(&format!(": scheduler[0].{place}: ")),
            "{slip}: {text}"
        );
        assert!(text.contains(expectation), "{slip}: {text}");
    }
}

#[test]
fn locks_that_contradict_the_offered_features_are_refused() {
    for (pv, kernel) in [
        ("unhalt = true", "spinlock = \"ticket\""),
        ("tlb_flush = true", "tlb = \"ipi\""),
    ] {
        let text = GOOD
            .replace("vcpus = 1024", &format!("vcpus = 2\npv = {{ {pv} }}"))
            .replace("threads_per_core = 2", &format!("guest.a.{kernel}"));
        let error = sim(&text).expect_err(kernel);
        assert!(error.contains("contradictory: offered pv."), "{error}");
    }
}
