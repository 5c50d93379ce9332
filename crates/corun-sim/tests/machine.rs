// SPDX-License-Identifier: GPL-2.0-only
//! The whole machine: what must hold whatever the parameters.

mod common;

use common::random::{FLUSHES, KINDS, LOCKS};
use common::{Build, model, model_of};
use corun_case::SchedulerKind;
use corun_case::sim::{HaltPoll, SpinlockKind};
use corun_sim::run;
use corun_sim::workload::Model;
use std::sync::Arc;

#[test]
fn two_burning_guests_get_half_each() {
    for kind in KINDS {
        let scenario = Build::new(4, kind)
            .vm("a", 4, "cpu")
            .vm("b", 4, "cpu")
            .seconds(2.0)
            .scenario();
        let outcome = run(&scenario).expect("runs");
        let cpu = |name| {
            let vm = outcome.vm(name).expect("guest");
            vm.figure("cpu_s", outcome.measured_ns).expect("cpu_s")
        };
        let (a, b) = (cpu("a"), cpu("b"));
        assert!((a - b).abs() < 0.15, "{kind:?}: {a} and {b} pCPUs");
        assert!(a + b > 3.9, "{kind:?}: {a} and {b} pCPUs");
    }
}

#[test]
fn every_model_runs_under_every_scheduler() {
    for name in common::model_names() {
        for kind in KINDS {
            let scenario = Build::new(4, kind)
                .vm("a", 4, &name)
                .vm("b", 4, "cpu")
                .seconds(1.5)
                .scenario();
            let outcome = run(&scenario).unwrap_or_else(|e| panic!("{name} {kind:?}: {e}"));
            let units = outcome.vm("a").expect("guest").units[0];
            assert!(units > 0, "{name} under {kind:?} did nothing");
        }
    }
}

#[test]
fn every_lock_and_flush_finishes_its_work() {
    for lock in LOCKS {
        for tlb in FLUSHES {
            let mut scenario = Build::new(4, SchedulerKind::Cfs)
                .vm("a", 4, "ebizzy")
                .vm("b", 4, "cpu")
                .seconds(0.3)
                .scenario();
            scenario.vms[0].kernel.spinlock = lock;
            scenario.vms[0].kernel.tlb = tlb;
            let outcome = run(&scenario).unwrap_or_else(|e| panic!("{lock:?} {tlb:?}: {e}"));
            let units = outcome.vm("a").expect("guest").units[0];
            assert!(units > 20, "{lock:?} {tlb:?}: {units} units");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let hash = |seed| {
        let mut s = Build::new(4, SchedulerKind::Corun)
            .vm("a", 4, "dedup")
            .vm("b", 4, "hackbench-groups")
            .seconds(0.2)
            .scenario();
        s.seed = seed;
        run(&s).expect("runs").trace_hash
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

#[test]
fn halt_polling_shortens_a_round_trip_and_costs_cpu() {
    let with = |poll| {
        let mut s = Build::new(2, SchedulerKind::Eevdf)
            .vm("a", 2, "tcp-rr")
            .seconds(0.3)
            .scenario();
        s.kvm.halt_poll = poll;
        let outcome = run(&s).expect("runs");
        let vm = outcome.vm("a").expect("guest");
        let rtt = vm.figure("unit.mean_us", outcome.measured_ns).expect("rtt");
        (rtt, vm.accounts[6])
    };
    let (never, _) = with(HaltPoll::Never);
    let (polling, polled_ns) = with(HaltPoll::Fixed(200_000));
    assert!(
        polling < never,
        "{polling} us with polling, {never} without"
    );
    assert!(polled_ns > 0);
}

#[test]
fn who_is_woken_on_its_way_into_the_idle_loop_halts_and_does_not_poll() {
    let halts_and_polls = |enter_ns| {
        let mut s = Build::new(2, SchedulerKind::Eevdf)
            .vm("a", 2, "lab-icount-pingpong-futex")
            .seconds(0.2)
            .scenario();
        s.kvm.halt_poll = HaltPoll::Fixed(200_000);
        s.costs.guest_idle_enter_ns = enter_ns;
        let outcome = run(&s).expect("runs");
        let counters = &outcome.vm("a").expect("guest").counters;
        (counters["halts"], counters["poll.hits"])
    };
    let (halts, polls) = halts_and_polls(0);
    assert!(
        halts > 1_000 && polls * 10 > halts * 9,
        "{polls} of {halts}"
    );
    let (halts, polls) = halts_and_polls(30_000);
    assert!(halts > 1_000 && polls * 4 < halts, "{polls} of {halts}");
}

#[test]
fn a_wait_queues_lock_is_held_over_the_ipi_and_spun_for_when_its_holder_is_preempted() {
    // On one pCPU, who is woken preempts who wakes, in the exit for the IPI.
    let spun_share = |wait_lock| {
        let mut s = Build::new(1, SchedulerKind::Eevdf)
            .vm("a", 2, "lab-icount-pingpong-pipe")
            .seconds(2.0)
            .scenario();
        s.kvm.ple = None;
        let work = &mut s.vms[0].work[0];
        for queue in &mut Arc::make_mut(&mut work.model).queues {
            assert!(queue.wait_lock, "a pipe has one");
            queue.wait_lock = wait_lock;
        }
        let outcome = run(&s).expect("runs");
        let vm = outcome.vm("a").expect("guest");
        assert!(vm.units[0] > 10, "{} round trips", vm.units[0]);
        vm.figure("share.k:lock", outcome.measured_ns)
            .expect("share")
    };
    assert!(spun_share(true) > 0.1, "{}", spun_share(true));
    assert!(spun_share(false) == 0.0, "{}", spun_share(false));
}

#[test]
fn steered_polling_ends_beside_others_only_where_it_is_in_vain() {
    let polled_ns = |poll, model: &Model, burners| {
        let mut build = Build::new(4, SchedulerKind::Eevdf).vm_of("a", 2, model.clone());
        if burners > 0 {
            build = build.vm("b", burners, "cpu");
        }
        let mut s = build.seconds(1.0).scenario();
        s.kvm.halt_poll = poll;
        let outcome = run(&s).expect("runs");
        outcome.vm("a").expect("guest").accounts[6]
    };
    // Messages are answered while their sender polls.
    let messages = model("tcp-rr");
    for burners in [0, 6] {
        let steered_ns = polled_ns(HaltPoll::Steered, &messages, burners);
        assert!(steered_ns > 0);
        assert_eq!(
            steered_ns,
            polled_ns(HaltPoll::Adaptive, &messages, burners)
        );
    }
    // Most polls of pipes with slow writers are too short.
    let pipes = model_of(
        "pipes",
        r#"
        [[role]]
        name = "worker"
        threads = { per_vcpu_pm = 1000 }
        op = [
            { do = "user", time = "exp 100us" },
            { do = "sleep", time = "exp 150us" },
        ]
        "#,
    );
    let steered_ns = polled_ns(HaltPoll::Steered, &pipes, 6);
    let adaptive_ns = polled_ns(HaltPoll::Adaptive, &pipes, 6);
    assert!(
        steered_ns < adaptive_ns,
        "polled {steered_ns} ns, {adaptive_ns} without steering"
    );
}

#[test]
fn a_halting_waiter_for_a_pv_ticket_gives_its_time_to_a_kicked_sibling() {
    let honoured = |lock| {
        let mut s = Build::new(4, SchedulerKind::Cfs)
            .vm("a", 16, "hackbench-groups")
            .vm("b", 16, "hackbench-groups")
            .seconds(1.0)
            .scenario();
        s.kvm.ple = None;
        for vm in &mut s.vms {
            vm.kernel.spinlock = lock;
        }
        let outcome = run(&s).expect("runs");
        let vm = outcome.vm("a").expect("guest");
        let count = |name| vm.figure(name, outcome.measured_ns).expect("counted");
        assert!(count("count.halts") > 0.0, "{lock:?}: nobody halts");
        count("count.yield.honoured")
    };
    assert!(honoured(SpinlockKind::PvTicket) > 0.0);
    // Nothing else asks for directed yields here.
    assert!(honoured(SpinlockKind::PvQueued) < 1.0);
}

#[test]
fn models_are_documented() {
    for name in common::model_names() {
        let m = model(&name);
        assert!(
            m.derivation.len() > 20,
            "{name}: where do its parameters come from?"
        );
        assert!(!m.unit.is_empty() && !m.title.is_empty(), "{name}");
    }
}
