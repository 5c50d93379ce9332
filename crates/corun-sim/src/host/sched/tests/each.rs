// SPDX-License-Identifier: GPL-2.0-only
//! What makes each scheduler itself: directed yields, boosts, gangs.

use super::MS;
use super::kinds::{kind, kinds};
use super::world::{Life, TICK_NS, World, burners, task};
use crate::host::sched::build::CorunOptions;
use crate::host::sched::{HostTask, TaskId, TaskState};
use corun_policy::Mechanisms;

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

/// The scheduler mismatch of Debooster: KVM thinks that it was heard. Nobody but the
/// spinner can pay for it.
#[test]
fn cfs_forgets_a_yield_when_another_is_far_behind() {
    for force in [false, true] {
        let mut world = two_and_a_sleeper("cfs");
        world.run(1_000 * MS);
        let to = sibling(&world);
        world.wake(2);
        assert!(world.yield_to(0, to, force));
        assert_eq!(world.current(0), Some(2), "force: {force}");
    }
}

#[test]
fn a_debased_spinner_gives_way_to_whom_it_is_far_behind_of() {
    for (force, granted) in [(false, false), (true, true)] {
        let mut tasks = burners(&[1]);
        tasks.push(task(0, Life::Sleeps));
        let mut world = World::new(&kind("cfs"), 1, tasks);
        world.run(100 * MS);
        let to = 0;
        world.wake(1);
        while world.current(0) == Some(to) {
            world.run(world.now_ns + MS / 10);
        }
        world.block(0);
        world.run(world.now_ns + 100 * MS);
        world.wake(1);
        world.run(world.now_ns + MS / 10);
        assert_eq!(world.current(0), Some(1), "who slept is behind");
        assert!(world.yield_to(0, to, force));
        assert_eq!(world.current(0) == Some(to), granted, "force: {force}");
    }
}

/// `PREEMPT_LAZY`: who wakes beside a vCPU in its guest waits for that to leave it.
#[test]
fn lazily_who_wakes_waits_for_the_tick() {
    let nap = Life::Naps {
        run_ns: MS / 10,
        sleep_ns: MS / 10,
    };
    let naps = |lazy| {
        let mut eevdf = kind("eevdf");
        eevdf.settings.eevdf.lazy = lazy;
        let mut tasks = burners(&[1]);
        tasks.push(task(1, nap));
        let mut world = World::new(&eevdf, 1, tasks);
        world.run(2_000 * MS);
        world.used_ns[1] * 10 / MS
    };
    let ticks = 2_000 * MS / TICK_NS;
    let (eager, lazy) = (naps(false), naps(true));
    assert!(eager > 4 * ticks, "{eager} naps, {ticks} ticks");
    assert!(lazy <= ticks + 1, "{lazy} naps, {ticks} ticks");
}

/// As the lab's host, Linux 7.3, shares: a third for a guest of which four vCPUs a second
/// halt, beside one that computes.
#[test]
fn by_concurrency_a_vm_that_naps_weighs_half() {
    let nap = Life::Naps {
        run_ns: 20 * MS,
        sleep_ns: MS / 10,
    };
    for (concur, percent) in [(false, 50), (true, 34)] {
        let mut eevdf = kind("eevdf");
        eevdf.settings.eevdf.concur = concur;
        let mut tasks = burners(&[2]);
        tasks.extend((0..2).map(|_| task(1, nap)));
        for (i, (task, _)) in (0..).zip(&mut tasks) {
            task.pinned = Some(i % 2);
        }
        let mut world = World::new(&eevdf, 2, tasks);
        world.run(4_000 * MS);
        let got = world.percent(1);
        assert!(got.abs_diff(percent) <= 2, "{concur}: {got} %");
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
        // Three on a queue: of two, one is not eligible before its turn under EEVDF.
        let mut tasks = burners(&[2, 1, 1]);
        tasks[0].0.pinned = Some(0);
        for (task, _) in &mut tasks[1..] {
            task.pinned = Some(1);
        }
        let mut world = World::new(&kind(name), 2, tasks);
        world.run(500 * MS);
        while world.current(1) != Some(2) {
            world.run(world.now_ns + MS / 10);
        }
        assert!(world.yield_to(0, 1, false), "{name}");
        world.run(world.now_ns + MS / 10);
        assert_eq!(world.current(1), Some(1), "{name}");
        assert_eq!(world.current(0), Some(0), "{name}");
    }
}

/// corun's scheduler with these mechanisms alone.
fn corun_with(mechanisms: Mechanisms, cpus: u32, tasks: Vec<(HostTask, Life)>) -> World {
    let options = CorunOptions {
        mechanisms,
        ..CorunOptions::default()
    };
    World::with_options(&kind("corun"), cpus, tasks, options)
}

#[test]
fn corun_pulls_the_hinted_vcpu_to_the_spinners_pcpu() {
    let mut world = corun_with(Mechanisms::YIELD, 2, burners(&[4, 4]));
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

/// How long vCPUs that are sent an IPI while they are preempted wait then, on
/// average, once the pool has seen that it is needed.
fn wait_after_ipi_ns(mechanisms: Mechanisms) -> u64 {
    let mut world = corun_with(mechanisms, 2, burners(&[2, 2]));
    let mut waits_ns = Vec::new();
    for _ in 0..400 {
        world.run(world.now_ns + MS);
        // Siblings run together, and nobody gives way to a sibling.
        let to = 1;
        if world.tasks[to as usize].state != TaskState::Queued {
            continue;
        }
        let sent_ns = world.now_ns;
        world.ipi(0, to);
        world.run_until(sent_ns + MS, |w| {
            w.tasks[to as usize].state == TaskState::Running
        });
        waits_ns.push(world.now_ns - sent_ns);
    }
    let served = waits_ns.split_off(waits_ns.len() / 2);
    served.iter().sum::<u64>() / served.len() as u64
}

#[test]
fn corun_runs_who_is_sent_an_ipi_soon() {
    let micro: Mechanisms = "ipi,micro".parse().expect("mechanisms");
    let (off_ns, on_ns) = (
        wait_after_ipi_ns(Mechanisms::NONE),
        wait_after_ipi_ns(micro),
    );
    assert!(off_ns > 2 * on_ns, "{off_ns} ns without, {on_ns} ns with");
}

#[test]
fn corun_chooses_the_sibling_that_owes_the_spinner_an_answer() {
    let strict: Mechanisms = "yield,strict".parse().expect("mechanisms");
    let mut world = corun_with(strict, 1, burners(&[4]));
    world.run(200 * MS);
    let from = world.current(0).expect("busy");
    let to = (0..4).rev().find(|&t| t != from).expect("others wait");
    world.ipi(from, to);
    world.spin(0);
    assert_eq!(world.current(0), Some(to));
    // Without an IPI, who was stopped while it held a lock goes first.
    let holder = (0..4).find(|&t| t != to && t != from).expect("others wait");
    let mut world = corun_with(Mechanisms::ALL, 1, burners(&[4]));
    world.tasks[holder as usize].region = corun_policy::Region::LockHeld;
    world.tasks[holder as usize].in_kernel = true;
    world.run(200 * MS);
    while world.current(0) == Some(holder) {
        world.run(world.now_ns + MS / 10);
    }
    world.spin(0);
    assert_eq!(world.current(0), Some(holder));
}

#[test]
fn corun_puts_off_the_end_of_a_critical_sections_turn_twice() {
    let turn_ns = |region| {
        let mut world = corun_with(Mechanisms::SYMBOLS, 1, burners(&[1, 1]));
        world.tasks[0].region = region;
        world.run(100 * MS);
        while world.current(0) != Some(1) {
            world.run(world.now_ns + MS / 100);
        }
        while world.current(0) != Some(0) {
            world.run(world.now_ns + MS / 1_000);
        }
        let from_ns = world.now_ns;
        while world.current(0) == Some(0) {
            world.run(world.now_ns + MS / 1_000);
        }
        world.now_ns - from_ns
    };
    // Whoever has the better claim keeps the pCPU for another slice.
    let beyond_slices_ns = |region| (turn_ns(region) + MS / 100) % (3 * MS);
    let plain_ns = beyond_slices_ns(corun_policy::Region::User);
    let put_off_ns = beyond_slices_ns(corun_policy::Region::LockHeld) - plain_ns;
    assert!(put_off_ns.abs_diff(100_000) <= 2_000, "{put_off_ns} ns");
}

#[test]
fn corun_refuses_what_it_cannot_do_or_was_told_not_to() {
    let corun = kind("corun");
    let mut world = corun_with(Mechanisms::NONE, 1, burners(&[2]));
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
