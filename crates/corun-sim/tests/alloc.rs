// SPDX-License-Identifier: GPL-2.0-only
//! A run allocates while it is built and warms up, then no more: a run that
//! measures four times as long allocates as often.

mod common;

use common::Build;
use corun_case::SchedulerKind;
use corun_case::sim::SpinlockKind;
use corun_sim::{Scenario, run};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations of this thread; tests run on threads of their own.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts.
struct Counting;

fn count() {
    // A thread that ends may allocate after its counter is gone.
    let _ = COUNT.try_with(|c| c.set(c.get() + 1));
}

// SAFETY: all calls go to the system's allocator unchanged; the counter is a
// plain cell that neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: `ptr` came from `System` by `alloc` or `realloc` above.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: `ptr` came from `System` by `alloc` or `realloc` above.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and events of a run that measures `times` as long.
fn cost(scenario: &Scenario, times: u64) -> (u64, u64) {
    let mut scenario = scenario.clone();
    scenario.measure_ns *= times;
    let before = COUNT.get();
    let outcome = run(&scenario).expect("runs");
    (COUNT.get() - before, outcome.events)
}

#[test]
fn a_longer_run_allocates_no_more() {
    // The process's first look-up makes the index of kernel functions.
    corun_symbols::functions::region_of("schedule");
    for kind in [
        SchedulerKind::Corun,
        SchedulerKind::Eevdf,
        SchedulerKind::Cfs,
        SchedulerKind::Credit,
        SchedulerKind::Cosched,
    ] {
        let mut scenario = Build::new(8, kind)
            .fixed_vm("storm", 8, &["storm"])
            .fixed_vm("pipe", 4, &["pipe", "burn"])
            .fixed_vm("wire", 2, &["wire", "gang"])
            .seconds(0.3)
            .scenario();
        scenario.warmup_ns = 300_000_000;
        for lock in [SpinlockKind::Ticket, SpinlockKind::PvQueued] {
            for check in [false, true] {
                scenario.vms[0].kernel.spinlock = lock;
                scenario.check = check;
                let (once, few) = cost(&scenario, 1);
                let (longer, many) = cost(&scenario, 4);
                assert!(many > 2 * few, "{kind:?}: {few} and {many} events");
                assert_eq!(
                    once, longer,
                    "{kind:?} {lock:?}: allocations in {few} and {many} events"
                );
            }
        }
    }
}
