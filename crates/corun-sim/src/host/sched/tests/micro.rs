// SPDX-License-Identifier: GPL-2.0-only
//! Who enters the micro-sliced pool: two pCPUs, of which the second is the pool.

use super::MS;
use super::kinds::kind;
use super::world::{World, burners};
use crate::host::sched::{TaskId, TaskState};
use corun_policy::Region;

/// Long enough for a kick, and shorter than a micro slice. Nanoseconds.
const SOON_NS: u64 = 20_000;

/// One VM of four vCPUs and one of one; all of them compute.
fn world() -> World {
    let mut world = World::new(&kind("micro"), 2, burners(&[4, 1]));
    world.run(7 * MS);
    until_vm0_runs(&mut world);
    assert_eq!(world.current(1), None, "the pool is for the urgent");
    world
}

fn until_vm0_runs(world: &mut World) {
    while world.tasks[spinner(world) as usize].vm != 0 {
        world.run(world.now_ns + MS);
    }
}

fn spinner(world: &World) -> TaskId {
    world.current(0).expect("all compute")
}

/// The siblings of who runs, in order.
fn siblings(world: &World) -> Vec<TaskId> {
    (0..4).filter(|t| *t != spinner(world)).collect()
}

/// Who runs yields in `region`; then a kick passes.
fn yields_in(world: &mut World, region: Region) {
    let spinner = spinner(world);
    world.tasks[spinner as usize].region = region;
    world.yield_any(0);
    world.run(world.now_ns + SOON_NS);
}

#[test]
fn an_interrupt_sends_a_preempted_vcpu_there_for_one_slice() {
    let mut world = world();
    let to = siblings(&world)[1];
    world.ipi(spinner(&world), to);
    world.run(world.now_ns + SOON_NS);
    assert_eq!(world.current(1), Some(to));
    world.run(world.now_ns + MS / 5);
    assert_eq!(world.current(1), None, "one micro slice");
    assert_eq!(world.tasks[to as usize].state, TaskState::Queued);
}

#[test]
fn a_lock_spinner_sends_the_first_critical_sibling_and_goes_on() {
    let mut world = world();
    let (who, others) = (spinner(&world), siblings(&world));
    for to in &others[1..] {
        world.tasks[*to as usize].critical = true;
    }
    yields_in(&mut world, Region::LockWait);
    assert_eq!(world.current(1), Some(others[1]));
    assert_eq!(world.current(0), Some(who));
    yields_in(&mut world, Region::LockWait);
    assert_eq!(world.current(0), Some(who), "one is on its way");
    assert!(!world.has_waiting(1), "one is enough");
}

#[test]
fn a_lock_spinner_without_a_critical_sibling_yields() {
    let mut world = world();
    let who = spinner(&world);
    yields_in(&mut world, Region::LockWait);
    assert_eq!(world.current(1), None);
    assert_ne!(world.current(0), Some(who));
    // Who gave way is waited for by nobody, wherever it was.
    world.tasks[who as usize].critical = true;
    until_vm0_runs(&mut world);
    assert_ne!(spinner(&world), who);
    yields_in(&mut world, Region::LockWait);
    assert_eq!(world.current(1), None);
}

#[test]
fn who_waits_for_answers_sends_siblings_that_wait_while_there_is_room() {
    let mut world = world();
    let (who, others) = (spinner(&world), siblings(&world));
    yields_in(&mut world, Region::AckWait);
    assert_eq!(world.current(1), Some(others[0]));
    assert_eq!(world.current(0), Some(who));
    yields_in(&mut world, Region::AckWait);
    assert!(world.has_waiting(1), "behind the first");
    let waits = |t: &&TaskId| world.tasks[**t as usize].state == TaskState::Queued;
    assert_eq!(others.iter().filter(waits).count(), 2);
}

#[test]
fn others_in_the_kernel_go_on_and_user_code_yields() {
    let mut world = world();
    let who = spinner(&world);
    yields_in(&mut world, Region::Kernel);
    assert_eq!((world.current(0), world.current(1)), (Some(who), None));
    yields_in(&mut world, Region::User);
    assert_ne!(world.current(0), Some(who));
    assert_eq!(world.current(1), None);
}
