// SPDX-License-Identifier: GPL-2.0-only
//! corun's turns: what interrupts them does not end them, and siblings' end together.

use super::MS;
use super::kinds::kind;
use super::world::{Life, World, burners, task};
use crate::host::sched::TaskState;
use crate::host::sched::build::CorunOptions;
use corun_policy::Tunables;
use std::collections::BTreeSet;

#[test]
fn who_gives_way_to_an_urgent_vcpu_goes_on_with_its_turn() {
    let options = CorunOptions {
        mechanisms: "ipi,micro".parse().expect("mechanisms"),
        ..CorunOptions::default()
    };
    let mut world = World::with_options(&kind("corun"), 2, burners(&[2, 2, 2]), options);
    let (mut served, mut resumed) = (0, 0);
    for _ in 0..400 {
        world.run(world.now_ns + MS);
        let before = [world.current(0), world.current(1)];
        world.ipi(0, 1);
        world.run_until(world.now_ns + MS / 20, |w| {
            w.tasks[1].state == TaskState::Running
        });
        let (now_on, cpu) = (world.tasks[1].state, world.tasks[1].cpu);
        if now_on != TaskState::Running || before.contains(&Some(1)) {
            continue;
        }
        served += 1;
        world.run_until(world.now_ns + MS, |w| w.current(cpu) != Some(1));
        resumed += u32::from(world.current(cpu) == before[cpu as usize]);
    }
    // Not the turns that would have ended by then.
    assert!(
        served > 50 && resumed * 10 > served * 8,
        "{resumed} of {served}"
    );
}

/// Wakes `task` by a timer, and waits until it runs; how long that took, ns.
fn wake_to_run(world: &mut World, task: u32) -> u64 {
    wake_to_run_for(world, task, false)
}

/// The same for a sibling's interrupt, if it is one.
fn wake_to_run_for(world: &mut World, task: u32, by_sibling: bool) -> u64 {
    let woken_ns = world.now_ns;
    world.wake_for(task, by_sibling);
    world.run_until(woken_ns + 100 * MS, |w| {
        w.tasks[task as usize].state == TaskState::Running
    });
    world.now_ns - woken_ns
}

#[test]
fn who_slept_while_one_computed_undisturbed_has_no_more_than_a_sleepers_credit() {
    let tasks = [(0, Life::Burn), (1, Life::Sleeps)].map(|(vm, life)| task(vm, life));
    let mut world = World::new(&kind("corun"), 1, tasks.to_vec());
    world.run(1_000 * MS);
    assert!(wake_to_run(&mut world, 1) < MS / 10);
    world.run(world.now_ns + 100 * MS);
    let percent = world.used_ns[1] / MS;
    assert!((50..=56).contains(&percent), "{percent} %");
}

#[test]
fn a_light_vm_alone_on_its_pcpu_does_not_outdate_who_sleeps_elsewhere() {
    let lives = [(0, 0, Life::Burn), (1, 1, Life::Burn), (2, 1, Life::Sleeps)];
    let mut tasks = lives.map(|(vm, cpu, life)| {
        let mut task = task(vm, life);
        task.0.pinned = Some(cpu);
        task
    });
    // Its vtime goes a hundred times as fast.
    tasks[0].0.vm_weight = 1;
    let mut world = World::new(&kind("corun"), 2, tasks.to_vec());
    world.run(100 * MS);
    for _ in 0..100 {
        wake_to_run(&mut world, 2);
        world.run(world.now_ns + MS * 12 / 10);
        if world.current(1) == Some(2) {
            world.block(1);
        }
        world.run(world.now_ns + MS / 2);
    }
    let burned_ns = world.used_ns[1] - 100 * MS;
    let percent = world.used_ns[2] * 100 / (burned_ns + world.used_ns[2]);
    assert!((44..=56).contains(&percent), "{percent} %");
}

#[test]
fn who_wakes_a_moment_too_early_to_preempt_does_not_wait_for_the_end_of_a_slice() {
    let tasks = [(0, Life::Burn), (1, Life::Sleeps)].map(|(vm, life)| task(vm, life));
    let mut world = World::new(&kind("corun"), 1, tasks.to_vec());
    world.run(100 * MS);
    let mut waits = Vec::new();
    for _ in 0..200 {
        waits.push(wake_to_run(&mut world, 1));
        // Wants 57 %, so that its credit is soon used up.
        world.run(world.now_ns + MS * 12 / 10);
        world.block(0);
        world.run(world.now_ns + MS * 9 / 10);
    }
    let burned_ns = world.used_ns[0] - 100 * MS;
    let percent = world.used_ns[1] * 100 / (burned_ns + world.used_ns[1]);
    assert!((48..=54).contains(&percent), "{percent} %");
    // The burner's slices end 2.1 ms after it wakes.
    waits.sort_unstable();
    assert!(waits[150] > MS / 4, "it never had to wait: {waits:?}");
    assert!(waits[199] < MS, "{waits:?}");
}

#[test]
fn a_sibling_goes_on_when_it_wakes_a_vcpu_and_gives_way_to_one_that_a_timer_wakes() {
    for (by_sibling, waits_ns) in [(false, 0..MS / 10), (true, MS..3 * MS)] {
        let tasks = [(0, Life::Burn), (0, Life::Sleeps)].map(|(vm, life)| task(vm, life));
        let mut world = World::new(&kind("corun"), 1, tasks.to_vec());
        world.run(100 * MS);
        for _ in 0..20 {
            // Slices of 3 ms begin here, at the latest.
            world.run_until(world.now_ns + MS * 4, |w| w.current(0) == Some(0));
            world.run(world.now_ns + MS / 2);
            let waited_ns = wake_to_run_for(&mut world, 1, by_sibling);
            assert!(waits_ns.contains(&waited_ns), "{by_sibling}: {waited_ns}");
            world.run(world.now_ns + MS / 2);
            world.block(0);
        }
    }
}

/// How often in 100 the vCPU of a VM of so many goes on, on one of two pCPUs, after a short
/// interruption in the middle of its turn.
fn goes_on_of(vcpus: usize) -> u32 {
    let mut tasks = burners(&[vcpus]);
    tasks.push(task(1, Life::Sleeps));
    let waker = u32::try_from(vcpus).expect("few");
    let mut world = World::new(&kind("corun"), 2, tasks);
    world.run(100 * MS);
    let mut went_on = 0;
    for _ in 0..100 {
        world.run(world.now_ns + MS * 7 / 10);
        let before = [world.current(0), world.current(1)];
        wake_to_run(&mut world, waker);
        let cpu = world.tasks[waker as usize].cpu;
        world.run(world.now_ns + MS / 10);
        world.block(cpu);
        went_on += u32::from(world.current(cpu) == before[cpu as usize]);
    }
    went_on
}

#[test]
fn turns_of_a_vm_with_more_vcpus_than_pcpus_are_not_kept_up() {
    let (fits, does_not) = (goes_on_of(2), goes_on_of(5));
    assert!(fits > 90 && does_not < 60, "{fits}, {does_not}");
}

/// How long, at most, a vCPU of a VM of eight on two pCPUs waits for its turn, ns.
fn longest_wait_of_eight(gang_blind: u64) -> u64 {
    let options = CorunOptions {
        tunables: Tunables {
            gang_blind,
            ..Tunables::default()
        },
        ..CorunOptions::default()
    };
    let mut world = World::with_options(&kind("corun"), 2, burners(&[8]), options);
    world.run(100 * MS);
    let (mut ran_ns, mut longest_ns) = ([world.now_ns; 8], 0);
    while world.now_ns < 300 * MS {
        world.run(world.now_ns + MS / 20);
        for (task, ran_ns) in ran_ns.iter_mut().enumerate() {
            longest_ns = longest_ns.max(world.now_ns - *ran_ns);
            if world.tasks[task].state == TaskState::Running {
                *ran_ns = world.now_ns;
            }
        }
    }
    longest_ns
}

#[test]
fn vcpus_of_a_crowd_all_run_within_a_slice_when_nobody_tells_who_spins() {
    let (told, blind) = (longest_wait_of_eight(0), longest_wait_of_eight(1));
    assert!(told > 8 * MS && blind < 4 * MS, "{told}, {blind}");
}

/// Two VMs of two have both pCPUs and woke in no order. How many moments of a slice
/// (3 ms) there are at which turns end, and for how much of the time one VM has both
/// pCPUs, per cent.
fn ends_and_together(gang_blind: u64) -> (usize, u64) {
    let options = CorunOptions {
        tunables: Tunables {
            gang_blind,
            ..Tunables::default()
        },
        ..CorunOptions::default()
    };
    let tasks = [0, 0, 1, 1].map(|vm| task(vm, Life::Sleeps)).to_vec();
    let mut world = World::with_options(&kind("corun"), 2, tasks, options);
    for (task, after_ns) in [(0, 0), (2, 0), (3, MS * 11 / 10), (1, MS * 7 / 10)] {
        world.run(world.now_ns + after_ns);
        world.wake(task);
    }
    world.run(100 * MS);
    let (mut ends, mut together) = (BTreeSet::new(), 0);
    let running = |world: &World| [world.current(0), world.current(1)];
    for sample in 0..1_000 {
        let before = running(&world);
        world.run(world.now_ns + MS / 10);
        if running(&world) != before {
            ends.insert(sample % 30);
        }
        let vms = running(&world).map(|t| t.map(|t| world.tasks[t as usize].vm));
        together += u64::from(vms[0] == vms[1]);
    }
    assert!(
        (49..=51).contains(&world.percent(0)),
        "{} %",
        world.percent(0)
    );
    (ends.len(), together / 10)
}

#[test]
fn siblings_turns_come_to_begin_and_end_together_when_nobody_tells_who_spins() {
    let (ends, together) = ends_and_together(0);
    assert!(ends == 2 && together < 75, "{ends} ends, {together} %");
    let (ends, together) = ends_and_together(1);
    assert!(ends == 1 && together > 98, "{ends} ends, {together} %");
}
