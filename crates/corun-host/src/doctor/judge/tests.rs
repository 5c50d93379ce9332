// SPDX-License-Identifier: GPL-2.0-only
//! Each finding from made-up accounts, and its absence next to the threshold.

use super::*;
use corun_events::account::{Counts, Histogram, Latencies, Snapshot, Times, Vcpu, Vm};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// A VM that ran for 3 of 10 s of vCPU time, and slept otherwise.
fn calm() -> Account {
    Account {
        wall_ns: 10 * SECOND,
        times: Times {
            run_ns: 3 * SECOND,
            halted_ns: 7 * SECOND,
            ..Times::default()
        },
        ..Account::default()
    }
}

fn ready(ready: Ready) -> Account {
    let mut account = calm();
    account.times.halted_ns -= ready.total_ns();
    account.times.ready = ready;
    account
}

fn times_of(ns: u64, count: u64) -> Histogram {
    let mut all = Histogram::default();
    for _ in 0..count {
        all.record(ns);
    }
    all
}

fn vm(account: &Account) -> VmReport {
    VmReport {
        name: "web".to_owned(),
        pid: 100,
        vcpus: 4,
        cpus: None,
        weight: 100,
        limits: Vec::new(),
        pv: None,
        account: Some(account.clone()),
        threads: [].into(),
    }
}

fn sample(account: &Account) -> Sample {
    let vcpu = Vcpu {
        account: account.clone(),
        ..Vcpu::default()
    };
    let vm = Vm {
        pid: 100,
        vcpus: vec![vcpu],
        ..Vm::default()
    };
    Sample {
        interval: Snapshot {
            vms: vec![vm],
            ..Snapshot::default()
        },
        causes_known: true,
        throttled: Vec::new(),
    }
}

fn judge(account: &Account) -> Vec<Finding> {
    let mut notes = Notes::default();
    check(&[vm(account)], &sample(account), &mut notes);
    notes.findings
}

fn ids(account: &Account) -> Vec<&'static str> {
    judge(account).iter().map(|f| f.id).collect()
}

#[test]
fn a_calm_vm_has_no_findings() {
    assert!(ids(&calm()).is_empty());
    assert!(ids(&Account::default()).is_empty());
}

#[test]
fn ready_time_is_named_by_its_main_cause() {
    type Field = fn(&mut Ready) -> &mut u64;
    let times: [(Field, &str); 6] = [
        (|r| &mut r.other_vm_ns, "ready-time"),
        (|r| &mut r.sibling_ns, "ready-time-siblings"),
        (|r| &mut r.host_task_ns, "host-tasks"),
        (|r| &mut r.woken_ns, "ready-time-wakeups"),
        (|r| &mut r.limited_ns, "cpu-limit"),
        (|r| &mut r.other_ns, "ready-time"),
    ];
    for (field, id) in times {
        let mut of_cause = Ready::default();
        *field(&mut of_cause) = 600 * MS;
        assert_eq!(ids(&ready(of_cause)), [id]);
        *field(&mut of_cause) = 490 * MS;
        assert!(ids(&ready(of_cause)).is_empty(), "{id} below 5 %");
    }
}

#[test]
fn a_fifth_of_the_time_is_critical() {
    let of = |ns| {
        judge(&ready(Ready {
            other_vm_ns: ns,
            ..Ready::default()
        }))[0]
            .clone()
    };
    assert_eq!(of(1_900 * MS).severity, Severity::Warning);
    let critical = of(4 * SECOND);
    assert_eq!(critical.severity, Severity::Critical);
    assert!((critical.weight - 0.4).abs() < 1e-9);
    assert!(critical.what.contains("40 %"), "{}", critical.what);
    assert!(critical.evidence[1].contains("other_vm 100 %"));
}

#[test]
fn without_causes_none_is_claimed() {
    let account = ready(Ready {
        other_ns: SECOND,
        ..Ready::default()
    });
    let mut notes = Notes::default();
    let blind = Sample {
        causes_known: false,
        ..sample(&account)
    };
    check(&[vm(&account)], &blind, &mut notes);
    assert_eq!(notes.findings[0].id, "ready-time");
    assert_eq!(notes.findings[0].evidence.len(), 1);
    assert!(notes.findings[0].next_step.contains("as root"));
}

#[test]
fn spinning_while_siblings_are_preempted_is_lock_holder_preemption() {
    let mut account = ready(Ready {
        other_vm_ns: SECOND,
        ..Ready::default()
    });
    account.counts = Counts {
        spins: 3_000,
        preempted_kernel: 200,
        ..Counts::default()
    };
    assert_eq!(ids(&account), ["ready-time", "lock-holder-preemption"]);
    let mut few = account.clone();
    few.counts.spins = 100;
    assert_eq!(ids(&few), ["ready-time"]);
    let mut in_user_mode = account.clone();
    in_user_mode.counts.preempted_kernel = 0;
    assert_eq!(ids(&in_user_mode), ["ready-time"]);
    let mut alone = account;
    alone.times.ready = Ready::default();
    assert!(ids(&alone).is_empty(), "spinning costs nobody a pCPU");
}

#[test]
fn shootdowns_cost_by_their_sum_and_the_cure_fits_the_vm() {
    let mut account = calm();
    account.latencies = Latencies {
        shootdown: times_of(20 * MS, 10),
        ..Latencies::default()
    };
    let found = judge(&account);
    assert_eq!(found[0].id, "shootdown-waits");
    assert!(found[0].next_step.contains("mechanism ipi"));
    let mut without = vm(&account);
    let args = ["qemu", "-cpu", "qemu64"].map(str::to_owned);
    without.pv = super::super::pv::of_command_line(&args);
    let mut notes = Notes::default();
    check(&[without], &sample(&account), &mut notes);
    assert!(notes.findings[0].next_step.contains("kvm-pv-tlb-flush=on"));
    account.latencies.shootdown = times_of(20 * MS, 4);
    assert!(ids(&account).is_empty(), "0.8 % of the time");
}

#[test]
fn ipis_are_late_when_their_targets_wait() {
    let mut account = calm();
    account.latencies.ipi_to_preempted = times_of(5 * MS, 20);
    account.latencies.ipi_to_queued = times_of(5 * MS, 20);
    assert_eq!(ids(&account), ["late-ipis"]);
    let mut prompt = calm();
    prompt.latencies.ipi_to_running = times_of(5 * MS, 40);
    assert!(ids(&prompt).is_empty(), "the target ran");
}

#[test]
fn one_late_wake_up_in_a_hundred_is_enough_if_there_are_some() {
    let mut account = calm();
    account.latencies.wake_to_run = times_of(6 * MS, 20);
    assert_eq!(ids(&account), ["wake-delay"]);
    account.latencies.wake_to_run = times_of(6 * MS, 19);
    assert!(ids(&account).is_empty(), "too few to tell");
    account.latencies.wake_to_run = times_of(4 * MS, 2000);
    assert!(ids(&account).is_empty());
}

#[test]
fn polling_in_vain_is_a_problem_where_somebody_waits() {
    let mut account = calm();
    account.times.poll_ns = SECOND;
    account.counts.polls_failed = 90;
    account.counts.polls_succeeded = 10;
    let alone = judge(&account);
    assert_eq!(
        (alone[0].id, alone[0].severity),
        ("poll-waste", Severity::Note)
    );
    account.times.ready.other_vm_ns = SECOND;
    let found = judge(&account);
    let poll = found.iter().find(|f| f.id == "poll-waste").expect("found");
    assert_eq!(poll.severity, Severity::Warning);
    account.counts.polls_succeeded = 900;
    assert_eq!(
        ids(&account),
        ["ready-time"],
        "polls that succeed save time"
    );
}

#[test]
fn limits_are_known_by_the_cgroups_own_count() {
    let account = calm();
    let mut limited_vm = vm(&account);
    limited_vm.limits = vec![crate::doctor::CpuLimit {
        cgroup: "/machine/web".to_owned(),
        cpus: 1.5,
    }];
    let with = |times, length_ns| {
        let throttled = Throttled {
            cgroup: "/machine/web".to_owned(),
            times,
            length_ns,
        };
        let sample = Sample {
            throttled: vec![throttled],
            ..sample(&account)
        };
        let mut notes = Notes::default();
        check(std::slice::from_ref(&limited_vm), &sample, &mut notes);
        notes.findings
    };
    assert!(with(0, 0).is_empty());
    let found = with(30, SECOND);
    assert_eq!(found[0].id, "cpu-limit");
    assert!(found[0].evidence[0].contains("30 times"), "{found:?}");
}

#[test]
fn a_host_that_is_stolen_from_says_so() {
    let mut sample = sample(&calm());
    sample.interval.host = Host {
        guest_ns: 9 * SECOND,
        stolen_ns: SECOND,
        ..Host::default()
    };
    let mut notes = Notes::default();
    check(&[], &sample, &mut notes);
    assert_eq!(notes.findings[0].id, "host-stolen");
    sample.interval.host.stolen_ns = SECOND / 10;
    let mut notes = Notes::default();
    check(&[], &sample, &mut notes);
    assert!(notes.findings.is_empty());
}
