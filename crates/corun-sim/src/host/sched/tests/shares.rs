// SPDX-License-Identifier: GPL-2.0-only
//! What every scheduler must do: lose nothing, waste nothing, share by weight.

use super::MS;
use super::kinds::{Kind, kind, kinds};
use super::world::{Life, World, burners, task};

/// Allowed difference of a share. Percent of the host.
const TOLERANCE: u64 = 3;

fn assert_share(kind: &Kind, world: &World, vm: u32, percent: u64) {
    let got = world.percent(vm);
    assert!(
        got.abs_diff(percent) <= TOLERANCE,
        "{}: VM {vm} got {got} %, not {percent} %",
        kind.name
    );
}

#[test]
fn nothing_is_lost_and_no_pcpu_idles_for_nothing() {
    for kind in kinds() {
        let mut tasks = burners(&[3, 4]);
        for (run_ns, sleep_ns) in [(50_000, 90_000), (MS, 3 * MS), (7 * MS, MS), (300, 17_000)] {
            tasks.push(task(2, Life::Naps { run_ns, sleep_ns }));
            tasks.push(task(
                3,
                Life::Naps {
                    run_ns: run_ns * 3,
                    sleep_ns,
                },
            ));
        }
        tasks[0].0.pinned = Some(1);
        tasks[8].0.pinned = Some(3);
        let mut world = World::new(&kind, 6, tasks);
        world.run(500 * MS);
        let used: u64 = world.used_ns.iter().sum();
        assert_eq!(used + world.idle_ns, 6 * 500 * MS, "{}", kind.name);
        let starved = world.used_ns.iter().position(|&ns| ns == 0);
        assert_eq!(starved, None, "{}", kind.name);
    }
}

#[test]
fn equal_vms_share_equally_whatever_their_number_of_vcpus() {
    for kind in kinds().into_iter().filter(|k| k.fair_by_vm) {
        let mut world = World::new(&kind, 2, burners(&[2, 6]));
        world.run(4_000 * MS);
        assert_share(&kind, &world, 0, 50);
    }
}

/// Xen's weights count for each vCPU.
#[test]
fn credit_shares_by_weight_and_vcpus() {
    let credit = kind("credit");
    let mut world = World::new(&credit, 2, burners(&[2, 6]));
    world.run(6_000 * MS);
    assert_share(&credit, &world, 0, 25);
}

#[test]
fn shares_follow_weights() {
    for kind in kinds().into_iter().filter(|k| k.name != "micro") {
        let mut tasks = burners(&[2, 2]);
        tasks[2].0.vm_weight = 300;
        tasks[3].0.vm_weight = 300;
        let mut world = World::new(&kind, 2, tasks);
        world.run(6_000 * MS);
        assert_share(&kind, &world, 1, 75);
    }
}

#[test]
fn pinned_equal_vms_halve_each_pcpu() {
    for kind in kinds().into_iter().filter(|k| k.name != "micro") {
        let mut tasks = burners(&[2, 2]);
        for (i, (task, _)) in (0..).zip(&mut tasks) {
            task.pinned = Some(i % 2);
        }
        let mut world = World::new(&kind, 2, tasks);
        world.run(3_000 * MS);
        for used_ns in &world.used_ns {
            let off = used_ns.abs_diff(1_500 * MS);
            assert!(off <= 60 * MS, "{}: {:?}", kind.name, world.used_ns);
        }
    }
}

#[test]
fn a_task_alone_runs_all_the_time() {
    for kind in kinds() {
        let mut world = World::new(&kind, 2, burners(&[1]));
        world.run(300 * MS);
        assert!(world.used_ns[0] > 299 * MS, "{}", kind.name);
        assert!(!world.has_waiting(0), "{}", kind.name);
    }
}

#[test]
fn the_same_run_twice_is_the_same() {
    for kind in kinds() {
        let run = || {
            let nap = Life::Naps {
                run_ns: 70_000,
                sleep_ns: 110_000,
            };
            let mut tasks = burners(&[3, 2]);
            tasks.extend((0..4).map(|i| task(i % 2, nap)));
            let mut world = World::new(&kind, 3, tasks);
            world.run(200 * MS);
            world.used_ns
        };
        assert_eq!(run(), run(), "{}", kind.name);
    }
}
