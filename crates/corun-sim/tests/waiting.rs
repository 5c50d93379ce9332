// SPDX-License-Identifier: GPL-2.0-only
//! Who waits for whom, and for how long: sleeping locks, queues of spinlocks, turns.

mod common;

use common::{Build, figure, fixed_window, model_of};
use corun_case::SchedulerKind;
use corun_case::sim::{Hypervisor, SpinlockKind, TlbKind};
use corun_sim::{Scenario, run};

/// One thread holds a sleeping lock most of the time, another wants it, too.
fn holder_and(wants: &str) -> Scenario {
    let body = format!(
        r#"
        sem = [{{ name = "rwsem", spin = true }}]

        [[role]]
        name = "writer"
        threads = {{ fixed = 1 }}
        op = [
            {{ do = "down", sem = "rwsem" }},
            {{ do = "kernel", time = "200us" }},
            {{ do = "up", sem = "rwsem" }},
            {{ do = "user", time = "10us" }},
        ]

        [[role]]
        name = "other"
        threads = {{ fixed = 1 }}
        op = [
            {{ do = "down", sem = "rwsem"{wants} }},
            {{ do = "kernel", time = "1us" }},
            {{ do = "up", sem = "rwsem" }},
            {{ do = "user", time = "10us" }},
            {{ do = "unit" }},
        ]
        "#
    );
    Build::new(2, SchedulerKind::Eevdf)
        .vm_of("a", 2, model_of("rwsem", &body))
        .seconds(0.3)
        .scenario()
}

#[test]
fn writers_spin_for_a_writer_that_runs_and_readers_sleep() {
    let spun = |wants| figure(&run(&holder_and(wants)).expect("runs"), "share.k:lock");
    let (writer, reader) = (spun(""), spun(", shared = true"));
    assert!(writer > 0.3, "a writer spins for {writer} of the time");
    assert!(reader < 0.01, "a reader spins for {reader} of the time");
}

/// gmake with locks of kind `lock` beside a burner, under Xen; `micro` pCPUs are set aside.
fn gmake_under_xen(lock: SpinlockKind, micro: u32) -> Scenario {
    let mut s = Build::new(12, SchedulerKind::Credit)
        .vm("a", 12, "gmake")
        .vm("b", 12, "cpu")
        .seconds(2.0)
        .scenario();
    s.kvm.hypervisor = Hypervisor::Xen;
    s.kvm.ple = Some(fixed_window());
    s.scheduler.settings.credit.micro_pcpus = micro;
    s.vms[0].kernel.spinlock = lock;
    s
}

#[test]
fn nobody_passes_the_queue_of_a_fifo_lock_whose_head_sleeps() {
    let rate_and_kicks = |lock| {
        let outcome = run(&gmake_under_xen(lock, 0)).expect("runs");
        (figure(&outcome, "rate"), figure(&outcome, "count.kicks"))
    };
    let (fifo, kicks) = rate_and_kicks(SpinlockKind::PvQueuedFifo);
    let (passing, _) = rate_and_kicks(SpinlockKind::PvQueued);
    assert!(kicks > 1_000.0, "{kicks} waiters a second were kicked");
    assert!(
        fifo * 1.3 < passing,
        "{fifo} in turn, {passing} where one that runs may pass"
    );
}

#[test]
fn a_debugging_kernels_spinners_neither_queue_nor_yield() {
    let outcome = run(&gmake_under_xen(SpinlockKind::Debug, 0)).expect("runs");
    let (rate, yields) = (
        figure(&outcome, "rate"),
        figure(&outcome, "count.exit.pause"),
    );
    let queued = run(&gmake_under_xen(SpinlockKind::PvQueuedFifo, 0)).expect("runs");
    assert!(yields == 0.0, "{yields} pause-loop exits a second");
    assert!(
        rate > 2.0 * figure(&queued, "rate"),
        "{rate}: a preempted waiter holds nobody up"
    );
}

#[test]
fn a_lockref_takes_its_lock_where_somebody_holds_it_or_a_debugging_kernel_runs() {
    let waits = |lock, holders| {
        let body = format!(
            r#"
            lock = [{{ name = "dentry" }}]

            [[role]]
            name = "walker"
            threads = {{ fixed = 3 }}
            op = [
                {{ do = "user", time = "exp 1us" }},
                {{ do = "lock", lock = "dentry", hold = "1us", lockref = true }},
            ]

            [[role]]
            name = "holder"
            threads = {{ fixed = {holders} }}
            op = [
                {{ do = "user", time = "1us" }},
                {{ do = "lock", lock = "dentry", hold = "1us" }},
            ]
            "#
        );
        let mut s = Build::new(4, SchedulerKind::Cfs)
            .vm_of("a", 4, model_of("walks", &body))
            .seconds(0.1)
            .scenario();
        s.vms[0].kernel.spinlock = lock;
        let outcome = run(&s).expect("runs");
        figure(&outcome, "share.k:lock")
    };
    let alone = waits(SpinlockKind::Queued, 0);
    let beside = waits(SpinlockKind::Queued, 1);
    let debugging = waits(SpinlockKind::Debug, 0);
    assert!(alone == 0.0, "{alone} of the time spent waiting");
    assert!(beside > 0.1, "{beside} of the time spent waiting");
    assert!(debugging > 0.1, "{debugging} of the time spent waiting");
}

#[test]
fn a_kicked_waiter_for_a_lock_goes_to_the_micro_pool() {
    let rate = |micro| {
        let s = gmake_under_xen(SpinlockKind::PvQueuedFifo, micro);
        figure(&run(&s).expect("runs"), "rate")
    };
    let (without, with) = (rate(0), rate(1));
    assert!(
        with > 1.3 * without,
        "{without} without a micro pool, {with} with one pCPU of eleven less"
    );
}

/// `workload` on one pCPU beside a burner, under CFS with these granularities.
fn beside_a_burner(workload: &str, granularities_ms: (u64, u64)) -> Scenario {
    let mut s = Build::new(1, SchedulerKind::Cfs)
        .vm("a", 1, workload)
        .vm("b", 1, "cpu")
        .seconds(4.0)
        .scenario();
    let cfs = &mut s.scheduler.settings.cfs;
    cfs.min_granularity_ns = granularities_ms.0 * 1_000_000;
    cfs.wakeup_granularity_ns = granularities_ms.1 * 1_000_000;
    s
}

#[test]
fn nobody_preempts_where_a_sleepers_credit_is_below_the_granularity() {
    let ready_us = |granularities_ms| {
        let s = beside_a_burner("sysbench-oltp", granularities_ms);
        figure(&run(&s).expect("runs"), "ready.mean_us")
    };
    let (kernels, tuned) = (ready_us((3, 4)), ready_us((10, 15)));
    assert!(
        tuned > 3.0 * kernels,
        "{tuned} us until a sleeper runs by tuned's settings, {kernels} by the kernel's"
    );
}

#[test]
fn the_turn_of_a_light_vm_is_shorter_than_the_granularity() {
    let mut s = beside_a_burner("cpu", (10, 15));
    s.vms[1].weight = 5;
    let ready_us = figure(&run(&s).expect("runs"), "ready.mean_us");
    // A 21st of the period, up to the next tick.
    assert!(ready_us < 3_000.0, "{ready_us} us");
}

/// Where woken vCPUs wait for a turn, a mutex's next owner is one of them, and nobody is
/// woken beside it: dedup's stages wait for its arena even when nothing spins.
#[test]
fn who_is_woken_for_a_mutex_is_the_only_one_until_it_runs() {
    let rate = |beside: bool| {
        let mut build = Build::new(12, SchedulerKind::Cfs).vm("a", 12, "dedup");
        if beside {
            build = build.vm("b", 12, "cpu");
        }
        let mut s = build.seconds(1.0).scenario();
        s.kvm.ple = None;
        s.scheduler.settings.cfs.min_granularity_ns = 10_000_000;
        s.scheduler.settings.cfs.wakeup_granularity_ns = 15_000_000;
        for vm in &mut s.vms {
            vm.kernel.pinned = true;
            vm.kernel.spinlock = SpinlockKind::Pmt;
            vm.kernel.tlb = TlbKind::Shoot4u;
        }
        figure(&run(&s).expect("runs"), "rate")
    };
    let slower = rate(false) / rate(true);
    assert!(slower > 3.2, "{slower} times slower");
}

#[test]
fn a_spinners_patience_lasts_longer_beside_a_busy_hardware_thread() {
    let body = r#"
        lock = [{ name = "long" }]

        [[role]]
        name = "holder"
        threads = { fixed = 1 }
        pinned = true
        op = [{ do = "lock", lock = "long", hold = "5ms" }, { do = "user", time = "20us" }]

        [[role]]
        name = "waiter"
        threads = { fixed = 1 }
        pinned = true
        first_vcpu = 1
        op = [
            { do = "user", time = "100us" },
            { do = "lock", lock = "long", hold = "1us" },
            { do = "unit" },
        ]
    "#;
    let yields = |smt_speed_pm| {
        let mut s = Build::new(2, SchedulerKind::Cfs)
            .vm_of("a", 2, model_of("patience", body))
            .seconds(1.0)
            .scenario();
        s.threads_per_core = 2;
        s.costs.smt_speed_pm = smt_speed_pm;
        s.costs.noise_every_ns = 0;
        s.kvm.ple = Some(fixed_window());
        s.vms[0].kernel.spinlock = SpinlockKind::PvQueued;
        s.vms[0].kernel.pinned = true;
        figure(&run(&s).expect("runs"), "per_unit.exit.pause")
    };
    let (full, half) = (yields(1_000), yields(500));
    assert!(full > 50.0, "{full} pause exits a wait");
    assert!(
        (half / full - 2.0).abs() < 0.2,
        "{full} pause exits a wait at full speed, {half} at half"
    );
}

#[test]
fn who_waits_for_a_condition_variable_is_woken_by_the_one_before() {
    let rounds = |wakes_one| {
        let body = format!(
            r#"
            [[barrier]]
            name = "meet"
            wakes_one = {wakes_one}

            [[role]]
            name = "worker"
            threads = {{ per_vcpu_pm = 1000 }}
            pinned = true
            op = [
                {{ do = "user", time = "20us" }},
                {{ do = "barrier", barrier = "meet" }},
                {{ do = "unit" }},
            ]
            "#
        );
        let s = Build::new(8, SchedulerKind::Cfs)
            .vm_of("a", 8, model_of("meetings", &body))
            .seconds(0.2)
            .scenario();
        figure(&run(&s).expect("runs"), "rate")
    };
    let (one_by_one, at_once) = (rounds(true), rounds(false));
    assert!(
        2.0 * one_by_one < at_once,
        "{one_by_one} rounds a second one by one, {at_once} at once"
    );
}

#[test]
fn a_barriers_spinners_execute_no_pause() {
    let body = r#"
        [[barrier]]
        name = "meet"
        spin_ns = 1_000_000

        [[role]]
        name = "worker"
        threads = { per_vcpu_pm = 1000 }
        op = [
            { do = "user", time = "exp 100us" },
            { do = "barrier", barrier = "meet" },
        ]
    "#;
    let mut s = Build::new(4, SchedulerKind::Cfs)
        .vm_of("a", 4, model_of("meetings", body))
        .seconds(0.1)
        .scenario();
    s.kvm.ple = Some(fixed_window());
    let outcome = run(&s).expect("runs");
    assert!(figure(&outcome, "share.user") > 0.9, "they spin");
    assert!(figure(&outcome, "count.exit.pause") == 0.0, "no PLE");
}
