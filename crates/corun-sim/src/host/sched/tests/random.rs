// SPDX-License-Identifier: GPL-2.0-only
//! Any order of calls that the contract allows.

use super::kinds::kinds;
use super::world::{Life, World, task};
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
    Run(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..TASKS).prop_map(Op::Wake),
        2 => (0..CPUS).prop_map(Op::Block),
        2 => (0..CPUS).prop_map(Op::Resched),
        2 => (0..CPUS, 0..TASKS, any::<bool>()).prop_map(|(c, t, f)| Op::YieldTo(c, t, f)),
        1 => (0..CPUS).prop_map(Op::YieldAny),
        1 => (0..TASKS, 0..TASKS).prop_map(|(a, b)| Op::Ipi(a, b)),
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
        Op::Run(for_ns) => world.run(world.now_ns + for_ns),
    }
}

proptest! {
    #[test]
    fn no_task_is_lost_or_doubled(
        ops in proptest::collection::vec(op(), 1..120),
        weights in proptest::collection::vec(1_u32..=10_000, VMS as usize),
        pins in proptest::collection::vec(proptest::option::weighted(0.2, 0..CPUS), TASKS as usize),
    ) {
        for mut kind in kinds() {
            // Known gap of the BPF program, too: an idle pCPU that was kicked for
            // one task may take another, which is pinned to it. The first then
            // waits until some pCPU's slice ends, although others are idle.
            if kind.name == "corun" && pins.iter().any(Option::is_some) {
                kind.waste_ns = None;
            }
            let mut tasks: Vec<_> = (0..TASKS).map(|i| task(i % VMS, Life::Sleeps)).collect();
            for (i, (task, _)) in tasks.iter_mut().enumerate() {
                task.vm_weight = weights[i % VMS as usize];
                task.pinned = pins[i];
                task.cpu = pins[i].unwrap_or(0);
            }
            let mut world = World::new(&kind, CPUS, tasks);
            for op in &ops {
                apply(&mut world, op);
                world.check_tasks();
            }
        }
    }
}
