// SPDX-License-Identifier: GPL-2.0-only
//! corun and vCPUs that are bound to pCPUs: claims are compared where they compete.

use super::MS;
use super::kinds::kind;
use super::world::{Life, World, burners, task};
use crate::host::sched::build::CorunOptions;

#[test]
fn a_yield_is_followed_whoever_has_a_better_claim_to_other_pcpus() {
    // VM 0 has pCPU 0 for itself, two VMs share pCPU 1: its vtime goes twice as fast.
    let places = [(0, 0), (0, 0), (0, 0), (1, 1), (2, 1)];
    let tasks = places.map(|(vm, cpu)| {
        let mut task = task(vm, Life::Burn);
        task.0.pinned = Some(cpu);
        task
    });
    // The target is KVM's choice.
    let options = CorunOptions {
        mechanisms: "yield".parse().expect("mechanisms"),
        ..CorunOptions::default()
    };
    let mut world = World::with_options(&kind("corun"), 2, tasks.to_vec(), options);
    world.run(1_000 * MS);
    for round in 0..40 {
        let spinner = world.current(0).expect("three vCPUs compute there");
        let target = (spinner + 1 + round % 2) % 3;
        assert!(world.yield_to(0, target, true), "round {round}");
        world.run(world.now_ns + MS / 20);
        assert_eq!(world.current(0), Some(target), "round {round}");
        world.run(world.now_ns + MS);
    }
}

#[test]
fn shares_of_vcpus_bound_one_to_a_pcpu_follow_weights() {
    for pcpus in [2, 4, 8] {
        let mut tasks = burners(&[pcpus, pcpus]);
        for (i, (task, _)) in tasks.iter_mut().enumerate() {
            task.pinned = u32::try_from(i % pcpus).ok();
            task.vm_weight = if task.vm == 1 { 300 } else { 100 };
        }
        let nr_cpus = u32::try_from(pcpus).expect("few pCPUs");
        let mut world = World::new(&kind("corun"), nr_cpus, tasks);
        world.run(6_000 * MS);
        let percent = world.percent(1);
        assert!((73..=77).contains(&percent), "{percent} % of {pcpus} pCPUs");
    }
}
