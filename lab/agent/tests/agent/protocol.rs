// SPDX-License-Identifier: GPL-2.0-only
//! The agent's side of the protocol.

use crate::common::{Agent, endless, spec};
use corun_lab_proto::PROTOCOL_VERSION;
use corun_lab_proto::agent::{Command, Event, WorkloadSpec};

#[test]
fn ready_comes_first_and_says_what_there_is() {
    let mut agent = Agent::start_unready();
    let Event::Ready {
        protocol,
        kernel,
        vcpus,
        workloads,
        ..
    } = agent.next()
    else {
        panic!("the first event must be Ready");
    };
    assert_eq!(protocol, PROTOCOL_VERSION);
    assert!(!kernel.is_empty() && vcpus > 0);
    for name in ["cpu", "tlb", "lock", "pingpong"] {
        assert!(workloads.iter().any(|w| w == name), "{name}");
    }
}

#[test]
fn an_endless_run_ends_when_stopped() {
    let mut agent = Agent::start();
    agent.send(&endless(7, "cpu"));
    agent.expect_started(7);
    agent.send(&Command::Stop { id: 7 });
    let result = agent.expect_finished(7);
    assert!(result.elapsed_ns > 0);
    // A stop that crosses the result is no mistake, and the next run may begin.
    agent.send(&Command::Stop { id: 7 });
    agent.measure(8, spec("cpu", &[]));
}

#[test]
fn a_stop_during_the_warm_up_gives_both_events() {
    let mut agent = Agent::start();
    let hour = 3_600_000;
    let workload = spec("cpu", &[]);
    agent.send(&Command::Run {
        id: 1,
        workload,
        warmup_ms: hour,
        measure_ms: Some(hour),
    });
    agent.send(&Command::Stop { id: 1 });
    agent.expect_started(1);
    agent.expect_finished(1);
}

#[test]
fn one_run_at_a_time() {
    let mut agent = Agent::start();
    agent.send(&endless(1, "tlb"));
    agent.expect_started(1);
    agent.send(&endless(2, "cpu"));
    assert!(agent.expect_failed(2).contains("run 1"));
    agent.send(&Command::Stop { id: 2 });
    assert!(agent.expect_failed(2).contains("not running"));
    agent.send(&Command::Stop { id: 1 });
    agent.expect_finished(1);
}

#[test]
fn wrong_requests_fail_with_what_there_is() {
    let mut agent = Agent::start();
    let mut refuse = |id, workload: WorkloadSpec, words: &[&str]| {
        agent.send(&Command::Run {
            id,
            workload,
            warmup_ms: 0,
            measure_ms: Some(1),
        });
        let message = agent.expect_failed(id);
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refuse(1, spec("zap", &[]), &["\"zap\"", "cpu", "tlb", "sysbench"]);
    refuse(
        2,
        spec("tlb", &[("zap", "1")]),
        &["\"zap\"", "pages (1 to 256", "madvise|mprotect"],
    );
    refuse(3, spec("tlb", &[("pages", "0")]), &["pages cannot be 0"]);
    refuse(4, spec("lock", &[("op", "zap")]), &["op cannot be \"zap\""]);
    let odd = WorkloadSpec {
        threads: Some(3),
        ..spec("pingpong", &[])
    };
    refuse(5, odd, &["odd"]);
    agent.send_line("no message\n");
    assert!(agent.expect_failed(0).contains("no message"));
}

#[test]
fn exits_are_timed_while_a_run_goes_on() {
    let mut agent = Agent::start();
    agent.send(&endless(1, "cpu"));
    agent.expect_started(1);
    agent.send(&Command::TimeExits { id: 2, count: 100 });
    match agent.next() {
        Event::ExitsTimed {
            id: 2,
            mean_ns,
            min_ns,
        } => assert!(min_ns > 0.0 && mean_ns >= min_ns),
        other => panic!("exits must be timed: {other:?}"),
    }
    agent.send(&Command::Stop { id: 1 });
    agent.expect_finished(1);
}

#[test]
fn power_off_ends_the_run_in_flight() {
    let mut agent = Agent::start();
    agent.send(&endless(1, "lock"));
    agent.expect_started(1);
    agent.send(&Command::PowerOff);
    agent.expect_finished(1);
    agent.expect_end();
}

#[test]
fn the_end_of_input_ends_the_run_in_flight() {
    let mut agent = Agent::start();
    agent.send(&endless(1, "pingpong"));
    agent.expect_started(1);
    agent.close();
    agent.expect_finished(1);
    agent.expect_end();
}
