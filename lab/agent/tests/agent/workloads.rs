// SPDX-License-Identifier: GPL-2.0-only
//! Every workload really runs and really counts. Nothing here depends on time.

use crate::common::{Agent, endless, spec};
use corun_lab_proto::agent::{Command, RunResult, WorkloadSpec};
use std::path::Path;

fn check(result: &RunResult, name: &str) {
    assert_eq!(result.workload, name);
    assert!(result.threads > 0 && result.elapsed_ns > 0, "{result:?}");
    assert!(result.work > 0.0 && result.rate_per_s > 0.0, "{result:?}");
    let [latency] = result.latency.as_slice() else {
        panic!("one latency figure: {result:?}")
    };
    assert!(latency.count > 0, "{latency:?}");
    assert_eq!(
        latency.to_histogram().expect("decodes").len(),
        latency.count
    );
}

/// A machine may be too busy for any work in a short window: until there is some.
fn check_run(agent: &mut Agent, workload: &WorkloadSpec) {
    for id in 1.. {
        let result = agent.measure(id, workload.clone());
        if result.work > 0.0 || id == 20 {
            return check(&result, &workload.name);
        }
    }
}

fn check_all(name: &str, param: &str, values: &[&str]) {
    let mut agent = Agent::start();
    for value in values {
        check_run(&mut agent, &spec(name, &[(param, value)]));
    }
}

fn installed(program: &str) -> bool {
    let found = ["/usr/bin", "/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists());
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

#[test]
fn cpu() {
    check_all("cpu", "iterations", &["1000"]);
}

#[test]
fn tlb() {
    check_all("tlb", "op", &["madvise", "mprotect", "munmap", "mix"]);
    check_all("tlb", "initiators", &["1"]);
}

#[test]
fn lock() {
    check_all("lock", "op", &["dentry", "pipe", "futex"]);
}

#[test]
fn pingpong() {
    check_all("pingpong", "via", &["tcp", "unix", "pipe", "futex"]);
}

#[test]
fn timer() {
    check_all("timer", "period_us", &["200", "5000"]);
}

#[test]
fn hostile_guests() {
    check_all("ipi-storm", "op", &["membarrier", "mprotect"]);
    check_all("halt-storm", "timer_us", &["0", "50"]);
    check_all("fake-spin", "callers", &["1", "2"]);
    check_all("forged-rip", "op", &["random", "zero"]);
}

/// Without timers the pairs alone work, so their round trips are what counts.
#[test]
fn a_halt_storm_needs_pairs() {
    let mut agent = Agent::start();
    let mut workload = spec("halt-storm", &[("timer_us", "0")]);
    workload.threads = Some(4);
    check_run(&mut agent, &workload);
}

#[test]
fn threads_as_asked_for() {
    let mut agent = Agent::start();
    let workload = WorkloadSpec {
        threads: Some(4),
        ..spec("pingpong", &[])
    };
    assert_eq!(agent.measure(1, workload).threads, 4);
}

#[test]
fn forkexec() {
    if installed("busybox") {
        check_all("forkexec", "command", &["true", "sha", "pipe", "mix"]);
    }
}

#[test]
fn hackbench() {
    if installed("hackbench") {
        check_all("hackbench", "tasks", &["process", "thread"]);
    }
}

#[test]
fn sysbench() {
    if installed("sysbench") {
        check_all("sysbench", "test", &["threads", "mutex", "cpu"]);
    }
}

#[test]
fn stress_ng() {
    if !installed("stress-ng") {
        return;
    }
    let mut agent = Agent::start();
    check_run(&mut agent, &spec("stress-ng", &[("slice_s", "1")]));
    let workload = spec("stress-ng", &[("stressor", "no-such-one")]);
    agent.send(&Command::Run {
        id: 99,
        workload,
        warmup_ms: 0,
        measure_ms: Some(1),
    });
    agent.expect_started(99);
    let message = agent.expect_failed(99);
    assert!(message.contains("exited with status"), "{message}");
}

#[test]
fn stopping_a_program_kills_it() {
    if !installed("stress-ng") {
        return;
    }
    let mut agent = Agent::start();
    agent.send(&endless(1, "stress-ng"));
    agent.expect_started(1);
    agent.send(&Command::Stop { id: 1 });
    agent.expect_finished(1);
    agent.send(&Command::PowerOff);
    agent.expect_end();
}
