// SPDX-License-Identifier: GPL-2.0-only
//! The page's text keeps the format's rules, and says what the accounts say.

mod openmetrics;

use corun_events::account::{Account, Counts, Histogram, Host, Latencies, Ready, Snapshot, Times};
use corun_events::account::{Vcpu, Vm};
use corun_metrics::{FAMILIES, MAX_VCPUS, page};
use std::sync::Arc;

fn account() -> Account {
    Account {
        wall_ns: 10_000_000_000,
        times: Times {
            run_ns: 2_500_000_000,
            ready: Ready {
                sibling_ns: 1_500_000_000,
                ..Ready::default()
            },
            ..Times::default()
        },
        counts: Counts {
            preempted_kernel: 7,
            polls_failed: 3,
            ..Counts::default()
        },
        exits: [("hlt".to_owned(), 11)].into(),
        latencies: Latencies {
            wake_to_run: Histogram::of(&[5_000, 40_000, 2_000_000_000]),
            ..Latencies::default()
        },
    }
}

fn snapshot(names: &[&str], vcpus: u32) -> Arc<Snapshot> {
    let vcpu = |vcpu| Vcpu {
        vcpu,
        account: account(),
        ..Vcpu::default()
    };
    let vms = (1..).zip(names).map(|(id, name)| Vm {
        id,
        name: (*name).to_owned(),
        pid: 100,
        vcpus: (0..vcpus).map(vcpu).collect(),
    });
    let corun = [("spins", 5), ("waited_ns", 1_500_000_000)];
    Arc::new(Snapshot {
        vms: vms.collect(),
        host: Host {
            pcpus: 2,
            scheduler: "kernel".to_owned(),
            corun: corun.map(|(name, n)| (name.to_owned(), n)).into(),
            ..Host::default()
        },
        ..Snapshot::default()
    })
}

fn value(page: &str, family: &str, labels: &[(&str, &str)]) -> Option<f64> {
    openmetrics::parse(page)[family].value(labels)
}

#[test]
fn values_are_the_accounts() {
    let page = page(snapshot(&["web"], 2), MAX_VCPUS).expect("a page");
    let of = |family, labels: &[(&str, &str)]| value(&page, family, labels);
    assert_eq!(
        of("corun_vcpu_run_seconds", &[("vm", "web"), ("vcpu", "1")]),
        Some(2.5)
    );
    assert_eq!(
        of(
            "corun_vcpu_wait_seconds",
            &[("vcpu", "0"), ("cause", "sibling")]
        ),
        Some(1.5)
    );
    assert_eq!(
        of(
            "corun_vcpu_preemptions",
            &[("vcpu", "0"), ("guest", "kernel")]
        ),
        Some(7.0)
    );
    assert_eq!(
        of("corun_vm_exits", &[("vm", "web"), ("reason", "hlt")]),
        Some(22.0)
    );
    assert_eq!(
        of("corun_scheduler_events", &[("event", "spins")]),
        Some(5.0)
    );
    assert_eq!(
        of("corun_scheduler_time_seconds", &[("of", "waited")]),
        Some(1.5)
    );
    assert_eq!(of("corun_host_pcpus", &[]), Some(2.0));
    assert_eq!(
        of("corun_vm_wake_to_run_seconds", &[("le", "0.00001")]),
        Some(2.0)
    );
    assert_eq!(
        of("corun_vm_wake_to_run_seconds", &[("le", "0.00005")]),
        Some(4.0)
    );
    assert_eq!(
        of("corun_vm_wake_to_run_seconds", &[("le", "1.0")]),
        Some(4.0)
    );
    assert_eq!(
        of("corun_vm_wake_to_run_seconds", &[("le", "+Inf")]),
        Some(6.0)
    );
}

#[test]
fn what_is_not_known_is_not_zero() {
    let mut snapshot = Arc::unwrap_or_clone(snapshot(&["web"], 2));
    snapshot.vms[0].vcpus[1].account.counts.preempted_critical = Some(0);
    let page = page(Arc::new(snapshot), MAX_VCPUS).expect("a page");
    let of = |vcpu| {
        let labels = [("vm", "web"), ("vcpu", vcpu)];
        value(&page, "corun_vcpu_critical_preemptions", &labels)
    };
    assert_eq!((of("0"), of("1")), (None, Some(0.0)));
}

#[test]
fn every_family_is_on_the_page_also_without_vms() {
    for names in [&[][..], &["web"]] {
        let families = openmetrics::parse(&page(snapshot(names, 1), MAX_VCPUS).expect("a page"));
        for family in &FAMILIES {
            let name = family.name();
            let base = name.strip_suffix("_total").unwrap_or(&name);
            let found = families.get(base).unwrap_or_else(|| panic!("no {base}"));
            for (_, labels, _) in &found.samples {
                let mut names: Vec<&str> = labels.keys().map(String::as_str).collect();
                names.retain(|n| *n != "le");
                let mut expected = family.labels.to_vec();
                expected.sort_unstable();
                assert_eq!(names, expected, "{base}");
            }
        }
        assert_eq!(families.len(), FAMILIES.len());
    }
}

#[test]
fn any_name_is_escaped_and_equal_names_are_told_apart() {
    let hostile = "a\"} 1\nfake{x=\"\\";
    let page = page(snapshot(&[hostile, "twin", "twin"], 1), MAX_VCPUS).expect("a page");
    assert_eq!(
        value(&page, "corun_vm_vcpus", &[("vm", hostile)]),
        Some(1.0)
    );
    assert_eq!(
        value(&page, "corun_vm_vcpus", &[("vm", "twin#100#2")]),
        Some(1.0)
    );
}

#[test]
fn series_are_bounded_however_many_vms_there_are() {
    let names: Vec<String> = (0..1000).map(|n| format!("vm-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let page = page(snapshot(&names, 2), 100).expect("a page");
    let families = openmetrics::parse(&page);
    assert_eq!(families["corun_vcpu_run_seconds"].samples.len(), 101);
    assert_eq!(
        families["corun_exporter_folded_vcpus"].value(&[]),
        Some(1900.0)
    );
    let folded = families["corun_vcpu_run_seconds"].value(&[("vm", "_others")]);
    assert_eq!(folded, Some(1900.0 * 2.5), "nothing is lost");
}
