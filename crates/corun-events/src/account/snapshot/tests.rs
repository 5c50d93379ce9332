// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use crate::account::{Histogram, imbalance};

fn vcpu(number: u32, found_ns: u64, run_ns: u64, hlt: u64) -> Vcpu {
    let mut v = Vcpu {
        vcpu: number,
        tid: 100 + number,
        found_ns,
        account: Account::default(),
    };
    v.account.wall_ns = run_ns + 50;
    v.account.times.run_ns = run_ns;
    v.account.times.ready.sibling_ns = 50;
    v.account.exits = [("hlt".to_owned(), hlt), ("msr".to_owned(), 3)].into();
    v.account.latencies.wake_to_run = Histogram::of(&[run_ns, 7]);
    v
}

fn snapshot(at_ns: u64, vms: Vec<(u64, Vec<Vcpu>)>) -> Snapshot {
    let vms = vms.into_iter().map(|(id, vcpus)| Vm {
        id,
        name: format!("vm{id}"),
        pid: 1,
        vcpus,
    });
    Snapshot {
        corun_accounts: SNAPSHOT_VERSION,
        at_ns,
        vms: vms.collect(),
        ..Snapshot::default()
    }
}

#[test]
fn an_interval_is_the_difference_of_the_same_lives() {
    let before = snapshot(
        1_000,
        vec![(1, vec![vcpu(0, 5, 100, 2), vcpu(1, 5, 10, 0)])],
    );
    let now = snapshot(
        3_000,
        vec![
            // vCPU 1 was unplugged and plugged again.
            (1, vec![vcpu(0, 5, 400, 9), vcpu(1, 2_000, 30, 0)]),
            (2, vec![vcpu(0, 2_500, 70, 1)]),
        ],
    );
    let interval = now.since(&before);
    assert_eq!(interval.length_ns, 2_000);
    let of = |vm: usize, v: usize| &interval.vms[vm].vcpus[v].account;
    assert_eq!((of(0, 0).times.run_ns, of(0, 0).wall_ns), (300, 300));
    assert_eq!(of(0, 0).exits, [("hlt".to_owned(), 7)].into());
    assert_eq!(
        of(0, 1).times.run_ns,
        30,
        "a new life counts from its start"
    );
    assert_eq!(of(1, 0).times.run_ns, 70);
    assert_eq!(interval.total().times.run_ns, 400);
    assert_eq!(interval.vcpus(), 3);
}

#[test]
fn an_account_that_went_down_is_0_not_huge() {
    let before = snapshot(1, vec![(1, vec![vcpu(0, 5, 100, 2)])]);
    let now = snapshot(2, vec![(1, vec![vcpu(0, 5, 90, 1)])]);
    let interval = now.since(&before);
    assert_eq!(interval.vms[0].vcpus[0].account.times.run_ns, 0);
    assert!(interval.vms[0].vcpus[0].account.exits.is_empty());
}

#[test]
fn json_keeps_all_of_it() {
    let mut all = snapshot(9, vec![(1, vec![vcpu(0, 5, 100, 2)])]);
    all.host.corun.insert("urgent_slices".to_owned(), 3);
    all.missing.push("kvm_exit".to_owned());
    let json = serde_json::to_string(&all).expect("json");
    let back: Snapshot = serde_json::from_str(&json).expect("reads");
    assert_eq!(back, all);
}

#[test]
fn the_worst_imbalance_is_found() {
    let mut all = snapshot(9, vec![(1, vec![vcpu(0, 5, 100, 2), vcpu(1, 5, 100, 2)])]);
    assert!(imbalance(&all).is_some_and(|i| i.error == 0.0));
    all.vms[0].vcpus[1].account.times.run_ns -= 15;
    let worst = imbalance(&all).expect("has vCPUs");
    assert_eq!((worst.who.as_str(), worst.total_ns), ("vm1/1", 135));
    assert!((worst.error - 0.1).abs() < 1e-12);
    assert_eq!(imbalance(&Snapshot::default()), None);
}
