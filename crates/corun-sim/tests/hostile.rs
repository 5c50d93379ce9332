// SPDX-License-Identifier: GPL-2.0-only
//! Guests that use boosts to get more than their share: whatever is switched on,
//! the other guest loses nothing that counts.

mod common;

use common::{Build, model_of, random};
use corun_case::SchedulerKind;
use corun_case::sim::SpinlockKind;
use corun_policy::Mechanisms;
use corun_sim::workload::Model;
use corun_sim::{Outcome, Scenario, run};
use proptest::prelude::*;
use proptest::sample::select;

/// What a guest does to be boosted, all the time: a model's locks, queues and
/// roles.
const ATTACKS: [(&str, &str); 5] = [
    // IPIs to all siblings, without end.
    (
        "ipi-storm",
        r#"[[role]]
        name = "flusher"
        threads = { per_vcpu_pm = 2000 }
        op = [{ do = "user", time = "2us" }, { do = "shootdown" }]"#,
    ),
    // All but one spin, and that one never lets go.
    (
        "fake-spin",
        r#"[[lock]]
        name = "never"
        symbol = "get_page_from_freelist"
        [[role]]
        name = "spinner"
        threads = { per_vcpu_pm = 1000 }
        op = [{ do = "lock", lock = "never", hold = "1000s" }]"#,
    ),
    // Wherever it is stopped, it seems to hold a lock.
    (
        "forged-critical",
        r#"[[role]]
        name = "liar"
        threads = { per_vcpu_pm = 1000 }
        op = [{ do = "kernel", time = "1s", symbol = "get_page_from_freelist" }]"#,
    ),
    // Both: spins for those who seem to hold locks, and sends them IPIs.
    (
        "mixed",
        r#"[[lock]]
        name = "hot"
        symbol = "get_page_from_freelist"
        [[role]]
        name = "worker"
        threads = { per_vcpu_pm = 2000 }
        op = [{ do = "lock", lock = "hot", hold = "20us" }, { do = "shootdown" }]"#,
    ),
    // vCPUs that halt and wake each other, beside ones that compute.
    (
        "wake-storm",
        r#"[[queue]]
        name = "there"
        capacity = 1
        count = 8
        [[queue]]
        name = "back"
        capacity = 1
        count = 8
        [[role]]
        name = "caller"
        threads = { fixed = 4 }
        op = [{ do = "push", queue = "there" }, { do = "pop", queue = "back" }]
        [[role]]
        name = "called"
        threads = { fixed = 4 }
        op = [{ do = "pop", queue = "there" }, { do = "push", queue = "back" }]
        [[role]]
        name = "burner"
        threads = { per_vcpu_pm = 1000 }
        op = [{ do = "user", time = "100us" }]"#,
    ),
];

fn attack(name: &str) -> Model {
    let (_, body) = ATTACKS.iter().find(|(n, _)| *n == name).expect("an attack");
    model_of(name, body)
}

/// The guest "hostile" beside the guest "victim", which computes on all vCPUs;
/// both have the same weight.
fn scenario(
    name: &str,
    vcpus: u32,
    mechanisms: Mechanisms,
    seed: u64,
    spinlock: SpinlockKind,
) -> Scenario {
    let mut scenario = Build::new(4, SchedulerKind::Corun)
        .fixed_vm("victim", 4, &["burn"])
        .vm_of("hostile", vcpus, attack(name))
        .seconds(2.0)
        .scenario();
    let hostile = &mut scenario.vms[1];
    hostile.kernel.spinlock = spinlock;
    hostile.pv.sched_yield = true;
    scenario.scheduler.mechanisms = mechanisms;
    scenario.seed = seed;
    scenario.check = false;
    scenario
}

/// CPU time of the guest called `name`, in parts of a million of the host's.
fn share_ppm(outcome: &Outcome, name: &str) -> u64 {
    let used_ns: u64 = outcome.vm(name).expect(name).accounts.iter().sum();
    let all_ns: u64 = outcome.pcpus.iter().sum();
    used_ns * 1_000_000 / all_ns
}

/// The hostile guest pays for the switches of its boosts beyond the time that it
/// runs, so it may well have less than its share; the victim must not.
fn check(name: &str, mechanisms: Mechanisms, seed: u64, spinlock: SpinlockKind) {
    // As many vCPUs as pCPUs, and twice as many: then a sibling always waits.
    for vcpus in [4, 8] {
        let scenario = scenario(name, vcpus, mechanisms, seed, spinlock);
        let outcome = run(&scenario).expect("runs");
        let victim_ppm = share_ppm(&outcome, "victim");
        let hostile_ppm = share_ppm(&outcome, "hostile");
        assert!(
            victim_ppm >= 495_000 && hostile_ppm <= 505_000,
            "{name} of {vcpus} vCPUs with {mechanisms}, {spinlock:?}, seed {seed}: \
             victim {victim_ppm} ppm, hostile {hostile_ppm} ppm"
        );
    }
}

#[test]
fn each_attack_ends_at_its_fair_share() {
    for (name, _) in ATTACKS {
        check(name, Mechanisms::NONE, 1, SpinlockKind::Ticket);
        check(name, Mechanisms::ALL, 1, SpinlockKind::Ticket);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_mechanism_gives_more_than_the_fair_share(
        name in select(ATTACKS.map(|(name, _)| name).to_vec()),
        mechanisms in random::mechanisms(),
        spinlock in select(vec![SpinlockKind::Ticket, SpinlockKind::TestAndSet, SpinlockKind::Queued]),
        seed in any::<u64>(),
    ) {
        check(name, mechanisms, seed, spinlock);
    }
}
