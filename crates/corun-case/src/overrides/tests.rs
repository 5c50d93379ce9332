// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use crate::{Abilities, Target, Workload, WorkloadProblem, parse_for};

const CASE: &str = r#"[case]
name = "demo"

[[scheduler]]
label = "cfs"
kind = "cfs"

[[guest]]
name = "a"

[[phase]]
name = "p"
measure = ["a"]
run = { a = { workload = "cpu" } }
"#;

struct Any;

impl Abilities for Any {
    fn workload(&self, _: &Workload) -> Result<(), WorkloadProblem> {
        Ok(())
    }

    fn options(&self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}

fn with(sets: &[&str]) -> Result<Case, String> {
    let overrides: Vec<Override> = sets.iter().map(|s| s.parse().expect(s)).collect();
    parse_for(CASE, Path::new("x.toml"), Target::Sim(&Any), &overrides).map_err(|e| e.to_string())
}

#[test]
fn keys_are_set_whether_or_not_the_file_has_them() {
    let case = with(&[
        "sim.kvm.ple.window_cycles=8192",
        "scheduler[0].sim.cfs.latency_ns = 6_000_000",
        "phase[0].run.a.workload=tlb",
        "sim.kvm.spin_handler=2011",
        "sim.kvm.halt_poll={ fixed = 5000 }",
        "sim.guest.a.spinlock=\"ticket\"",
    ])
    .expect("all are good");
    assert_eq!(case.sim.kvm.ple.map(|p| p.window_cycles), Some(8192));
    assert_eq!(case.schedulers[0].sim.cfs.latency_ns, 6_000_000);
    assert_eq!(case.phases[0].run["a"].workload, "tlb");
    assert_eq!(case.sim.kvm.spin_handler, crate::sim::SpinHandler::Y2011);
    assert_eq!(case.sim.kvm.halt_poll, crate::sim::HaltPoll::Fixed(5000));
    let case = with(&["sim.kvm.ple=false"]).expect("is good");
    assert_eq!(case.sim.kvm.ple, None);
}

#[test]
fn the_last_of_a_key_counts() {
    let case = with(&["sim.seed=1", "sim.seed=7"]).expect("is good");
    assert_eq!(case.sim.seed, 7);
}

#[test]
fn what_is_wrong_names_the_override() {
    for (set, expected) in [
        ("sim.kvm.plee=1", "did you mean `ple`?"),
        (
            "guest[0].vcpus=0",
            "guest[0].vcpus: 0 vCPUs: expected 1 to 1024",
        ),
        ("guest[0].vcpus=many", "expected u32"),
        ("guest[3].vcpus=2", "guest has 1 entries, counted from 0"),
        ("guest.vcpus=2", "expected guest[0]"),
        ("case[0].name=x", "case is no list"),
        ("case.name.x=1", "case.name is no table"),
        ("sim.kvm.ple=true", "expected false, or a table"),
        ("scheduler[0].sim.credit.micro_pcpus=1", "contradictory"),
    ] {
        let error = with(&[set]).expect_err(set);
        let text = format!("x.toml: --set {set}: ");
        assert!(error.starts_with(&text), "{set}: {error}");
        assert!(error.contains(expected), "{set}: {error}");
    }
}

#[test]
fn texts_that_are_no_overrides_are_refused() {
    for bad in [
        "", "sim.seed", "=1", "a..b=1", "a[x]=1", "a[0=1", "a=", "a=1 2", "a=1\nb=2",
    ] {
        assert!(bad.parse::<Override>().is_err(), "{bad:?}");
    }
    let set: Override = "scheduler[1].sim.cfs.latency_ns = 5"
        .parse()
        .expect("is one");
    assert_eq!(set.to_string(), "scheduler[1].sim.cfs.latency_ns=5");
}
