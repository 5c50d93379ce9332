// SPDX-License-Identifier: GPL-2.0-only
//! Any order of calls that the contract allows.

use super::kinds::kinds;
use super::world::{Life, World, task};
use crate::host::sched::build::CorunOptions;
use corun_policy::{Mechanisms, Region};
use proptest::prelude::*;

const CPUS: u32 = 4;
const VMS: u32 = 3;
const TASKS: u32 = 10;

#[derive(Debug, Clone)]
enum Op {
    Wake(u32),
    Block(u32),
    Resched(u32),
    YieldTo(u32, u32, bool),
    YieldAny(u32),
    Ipi(u32, u32),
    Spin(u32),
    GuestYield(u32, u32),
    Device(u32),
    Stopped(u32, u32),
    Run(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..TASKS).prop_map(Op::Wake),
        2 => (0..CPUS).prop_map(Op::Block),
        2 => (0..CPUS).prop_map(Op::Resched),
        2 => (0..CPUS, 0..TASKS, any::<bool>()).prop_map(|(c, t, f)| Op::YieldTo(c, t, f)),
        1 => (0..CPUS).prop_map(Op::YieldAny),
        2 => (0..TASKS, 0..TASKS).prop_map(|(a, b)| Op::Ipi(a, b)),
        1 => (0..CPUS).prop_map(Op::Spin),
        1 => (0..CPUS, 0..TASKS).prop_map(|(c, t)| Op::GuestYield(c, t)),
        1 => (0..TASKS).prop_map(Op::Device),
        1 => (0..TASKS, 0..11_u32).prop_map(|(t, r)| Op::Stopped(t, r)),
        4 => (1_u64..20_000_000).prop_map(Op::Run),
    ]
}

fn apply(world: &mut World, op: &Op) {
    match *op {
        Op::Wake(task) => world.wake(task),
        Op::Block(cpu) => world.block(cpu),
        Op::Resched(cpu) => world.resched(cpu),
        Op::YieldTo(cpu, to, force) => {
            world.yield_to(cpu, to, force);
        }
        Op::YieldAny(cpu) => world.yield_any(cpu),
        Op::Ipi(from, to) => world.ipi(from, to),
        Op::Spin(cpu) => world.spin(cpu),
        Op::GuestYield(cpu, to) => world.guest_yield(cpu, to),
        Op::Device(to) => world.device_interrupt(to),
        Op::Stopped(task, region) => {
            let region = Region::from_number(region).unwrap_or(Region::Unknown);
            world.tasks[task as usize].region = region;
            world.tasks[task as usize].in_kernel = region > Region::User;
        }
        Op::Run(for_ns) => world.run(world.now_ns + for_ns),
    }
}

proptest! {
    #[test]
    fn no_task_is_lost_or_doubled(
        ops in proptest::collection::vec(op(), 1..120),
        weights in proptest::collection::vec(1_u32..=10_000, VMS as usize),
        mechanisms in 0..=Mechanisms::ALL.bits(),
        pins in proptest::collection::vec(proptest::option::weighted(0.2, 0..CPUS), TASKS as usize),
    ) {
        for kind in kinds() {
            let mut tasks: Vec<_> = (0..TASKS).map(|i| task(i % VMS, Life::Sleeps)).collect();
            for (i, (task, _)) in tasks.iter_mut().enumerate() {
                task.vm_weight = weights[i % VMS as usize];
                task.pinned = pins[i];
                task.cpu = pins[i].unwrap_or(0);
            }
            let options = CorunOptions {
                mechanisms: Mechanisms::from_bits_truncate(mechanisms),
                ..CorunOptions::default()
            };
            let mut world = World::with_options(&kind, CPUS, tasks, options);
            for op in &ops {
                apply(&mut world, op);
                world.check_tasks();
            }
        }
    }
}
