// SPDX-License-Identifier: GPL-2.0-only
//! What makes each scheduler itself: directed yields, boosts, gangs.

use super::MS;
use super::kinds::{kind, kinds};
use super::world::{Life, World, burners, task};
use crate::host::sched::build::CorunOptions;
use crate::host::sched::{HostTask, TaskId, TaskState};

/// Two vCPUs that burn and one of another VM that sleeps, on one pCPU.
fn two_and_a_sleeper(name: &str) -> World {
    let mut tasks = burners(&[2]);
    tasks.push(task(1, Life::Sleeps));
    let mut world = World::new(&kind(name), 1, tasks);
    // New tasks have no credit, so it ran before.
    world.wake(2);
    while world.current(0) != Some(2) {
        world.run(world.now_ns + MS / 10);
    }
    world.block(0);
    world
}

/// The sibling of what runs on pCPU 0, of tasks 0 and 1.
fn sibling(world: &World) -> TaskId {
    let current = world.current(0).expect("a burner runs");
    assert!(current < 2);
    1 - current
}

#[test]
fn a_yield_within_the_granularity_is_granted() {
    for name in ["cfs", "eevdf", "corun", "strict", "relaxed", "balance"] {
        let mut world = World::new(&kind(name), 1, burners(&[2]));
        world.run(1_000 * MS);
        // Until the running one is past its sibling.
        let before = world.current(0);
        while world.current(0) == before {
            world.run(world.now_ns + MS / 10);
        }
        world.run(world.now_ns + 2 * MS);
        let to = sibling(&world);
        assert!(world.yield_to(0, to, false), "{name}");
        assert_eq!(world.current(0), Some(to), "{name}");
    }
}

#[test]
fn nobody_yields_to_who_does_not_wait() {
    for kind in kinds() {
        let mut tasks = burners(&[2]);
        tasks.push(task(0, Life::Sleeps));
        let mut world = World::new(&kind, 2, tasks);
        world.run(100 * MS);
        let running = world.current(1).or(world.current(0)).expect("one runs");
        for to in [running, 2] {
            assert!(!world.yield_to(0, to, false), "{}", kind.name);
            assert!(!world.yield_to(0, to, true), "{}", kind.name);
        }
    }
}

/// The scheduler mismatch of Debooster: KVM thinks that it was heard.
#[test]
fn cfs_forgets_a_yield_when_another_is_far_behind() {
    for (force, granted) in [(false, false), (true, true)] {
        let mut world = two_and_a_sleeper("cfs");
        world.run(1_000 * MS);
        let to = sibling(&world);
        world.wake(2);
        assert!(world.yield_to(0, to, force));
        assert_eq!(world.current(0) == Some(to), granted, "force: {force}");
    }
}

#[test]
fn eevdf_forgets_a_yield_to_who_is_not_eligible() {
    for (force, granted) in [(false, false), (true, true)] {
        let mut world = World::new(&kind("eevdf"), 1, burners(&[3]));
        world.run(100 * MS);
        let to = world.current(0).expect("busy");
        while world.current(0) == Some(to) {
            world.run(world.now_ns + MS / 10);
        }
        assert!(world.yield_to(0, to, force));
        assert_eq!(world.current(0) == Some(to), granted, "force: {force}");
    }
}

/// On another pCPU's queue the boosted one runs there, as in the kernel.
#[test]
fn a_yield_to_another_queue_preempts_there() {
    for name in ["cfs", "eevdf"] {
        let mut tasks = burners(&[2, 1]);
        tasks[0].0.pinned = Some(0);
        tasks[1].0.pinned = Some(1);
        tasks[2].0.pinned = Some(1);
        let mut world = World::new(&kind(name), 2, tasks);
        world.run(500 * MS);
        while world.current(1) != Some(2) {
            world.run(world.now_ns + MS / 10);
        }
        assert!(world.yield_to(0, 1, true), "{name}");
        world.run(world.now_ns + MS / 10);
        assert_eq!(world.current(1), Some(1), "{name}");
        assert_eq!(world.current(0), Some(0), "{name}");
    }
}

#[test]
fn corun_pulls_the_hinted_vcpu_to_the_spinners_pcpu() {
    let mut world = World::new(&kind("corun"), 2, burners(&[4, 4]));
    world.run(200 * MS);
    let from = world.current(0).expect("busy");
    let vm = world.tasks[from as usize].vm;
    let waits = |t: &HostTask| t.vm == vm && t.state == TaskState::Queued;
    // The last in the queue: nothing but the hint makes it next.
    let to = (0..8).rev().find(|&t| waits(&world.tasks[t as usize]));
    let to = to.expect("a sibling waits");
    assert!(world.yield_to(0, to, false));
    assert_eq!(world.current(0), Some(to));
}

#[test]
fn corun_refuses_what_it_cannot_do_or_was_told_not_to() {
    let off = CorunOptions {
        mechanisms: corun_policy::Mechanisms::NONE,
        ..CorunOptions::default()
    };
    let corun = kind("corun");
    let mut world = World::with_options(&corun, 1, burners(&[2]), off);
    world.run(20 * MS);
    let to = sibling(&world);
    assert!(!world.yield_to(0, to, false));

    let mut tasks = burners(&[1, 1]);
    tasks.push(task(0, Life::Burn));
    tasks[1].0.pinned = Some(1);
    tasks[2].0.pinned = Some(1);
    tasks[0].0.pinned = Some(0);
    let mut world = World::new(&corun, 2, tasks);
    world.run(20 * MS);
    let waits = (1..3).find(|&t| world.tasks[t as usize].state == TaskState::Queued);
    assert!(!world.yield_to(0, waits.expect("two share pCPU 1"), true));
}

/// How long the sleeper waits for the pCPU after its second wake-up.
fn wait_after_wake_ns(boost: bool) -> u64 {
    let mut credit = kind("credit");
    credit.settings.credit.boost = boost;
    let mut tasks = burners(&[1]);
    let nap = Life::Naps {
        run_ns: MS / 10,
        sleep_ns: 41 * MS,
    };
    tasks.push(task(1, nap));
    let mut world = World::new(&credit, 1, tasks);
    world.run(200 * MS);
    while world.tasks[1].state != TaskState::Blocked {
        world.run(world.now_ns + MS / 20);
    }
    while world.tasks[1].state == TaskState::Blocked {
        world.run(world.now_ns + MS / 20);
    }
    let woken_ns = world.now_ns;
    while world.tasks[1].state == TaskState::Queued {
        world.run(world.now_ns + MS / 20);
    }
    world.now_ns - woken_ns
}

#[test]
fn credit_boosts_who_wakes_with_credit_left() {
    assert!(wait_after_wake_ns(true) <= MS);
    assert!(wait_after_wake_ns(false) > 2 * MS);
}

#[test]
fn credit_yields_behind_its_equals_and_never_directed() {
    let mut world = World::new(&kind("credit"), 1, burners(&[2]));
    world.run(7 * MS);
    let to = sibling(&world);
    assert!(!world.yield_to(0, to, true));
    assert_eq!(sibling(&world), to);
    world.yield_any(0);
    assert_eq!(world.current(0), Some(to));
}

#[test]
fn an_interrupt_sends_a_preempted_vcpu_to_the_micro_pool() {
    let mut world = World::new(&kind("micro"), 2, burners(&[1, 1]));
    world.run(5 * MS);
    assert_eq!(world.current(1), None, "the pool is for the urgent");
    let to = sibling(&world);
    world.ipi(1 - to, to);
    world.run(world.now_ns + MS / 20);
    assert_eq!(world.current(1), Some(to));
    world.run(world.now_ns + MS / 5);
    assert_eq!(world.current(1), None, "one micro slice");
    assert_eq!(world.tasks[to as usize].state, TaskState::Queued);
}

/// VMs that run now.
fn running_vms(world: &World) -> Vec<u32> {
    let running = world.cpus.iter().filter_map(|c| c.current);
    let mut vms: Vec<_> = running.map(|t| world.tasks[t as usize].vm).collect();
    vms.sort_unstable();
    vms
}

#[test]
fn strict_gangs_run_together_and_alone() {
    let mut world = World::new(&kind("strict"), 4, burners(&[2, 4, 3]));
    world.run_checked(400 * MS, |world| {
        let vms = running_vms(world);
        let sizes = [2, 4, 3];
        let Some(&vm) = vms.first() else {
            return;
        };
        assert_eq!(vms, vec![vm; sizes[vm as usize]], "at {} ns", world.now_ns);
    });
    // Fragmentation: 2 and 1 pCPUs idle in two of three turns.
    assert!(world.idle_ns > 350 * MS && world.idle_ns < 450 * MS);
}

#[test]
fn relaxed_co_scheduling_bounds_the_skew() {
    let skew = |name: &str| {
        // vCPU 0 has a heavy competitor, vCPU 1 an equal one.
        let mut tasks = burners(&[2, 1, 1]);
        for ((task, _), cpu) in tasks.iter_mut().zip([0, 1, 0, 1]) {
            task.pinned = Some(cpu);
        }
        tasks[2].0.vm_weight = 400;
        let mut world = World::new(&kind(name), 2, tasks);
        world.run(2_000 * MS);
        world.used_ns[1].saturating_sub(world.used_ns[0])
    };
    assert!(skew("cfs") > 100 * MS);
    assert!(skew("relaxed") < 20 * MS);
}

#[test]
fn balance_scheduling_keeps_siblings_apart() {
    let nap = Life::Naps {
        run_ns: 3 * MS,
        sleep_ns: MS,
    };
    let mut tasks = burners(&[3]);
    tasks.extend((1..3).flat_map(|vm| (0..3).map(move |_| task(vm, nap))));
    let mut world = World::new(&kind("balance"), 3, tasks);
    world.run_checked(500 * MS, |world| {
        let burning = &world.tasks[..3];
        let mut homes: Vec<_> = burning.iter().map(|t| t.cpu).collect();
        homes.sort_unstable();
        homes.dedup();
        assert!(world.now_ns < 100 * MS || homes.len() == 3, "{homes:?}");
    });
}
