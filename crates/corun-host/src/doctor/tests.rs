// SPDX-License-Identifier: GPL-2.0-only
//! Whole reports of made-up hosts, as text and JSON, against files in `golden/`.
//! `UPDATE_GOLDEN=1 cargo test` writes them anew: look at the difference.

use super::tree::Tree;
use super::*;
use corun_events::account::{Account, Counts, Ready, Snapshot, Times, Vcpu, Vm};
use std::cell::Cell;
use std::path::Path;

fn no_bpf() -> Result<Snapshot, String> {
    Err("BPF needs root".to_owned())
}

const WATCH: Duration = Duration::from_secs(3);

fn sources(accounts: sample::Accounts<'_>) -> Sources<'_> {
    Sources {
        cookie: None,
        left_map: false,
        unpin: || (),
        accounts,
    }
}

fn options(watch: Option<Duration>) -> Options {
    Options {
        repair: false,
        watch,
    }
}

/// Compares with `golden/NAME`; the version is not part of it.
fn golden(name: &str, text: &str) {
    let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/doctor/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let expected = std::fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 makes it");
    assert_eq!(text, expected, "{name}");
}

/// Accounts of VM 100, `web`, after 0 and 3 seconds.
fn accounts(after: bool) -> Snapshot {
    let seconds = u64::from(after) * 3;
    let ns = |tenths: u64| seconds * tenths * 100_000_000;
    let account = Account {
        wall_ns: ns(10),
        times: Times {
            run_ns: ns(4),
            ready: Ready {
                other_vm_ns: ns(4),
                host_task_ns: ns(1),
                ..Ready::default()
            },
            halted_ns: ns(1),
            ..Times::default()
        },
        counts: Counts {
            spins: seconds * 500,
            preempted_kernel: seconds * 40,
            preempted_user: seconds * 60,
            ..Counts::default()
        },
        exits: [("hlt".to_owned(), seconds * 100)].into(),
        ..Account::default()
    };
    let vcpus = (0..4).map(|vcpu| Vcpu {
        vcpu,
        account: account.clone(),
        ..Vcpu::default()
    });
    Snapshot {
        at_ns: 1_000_000_000 * (5 + seconds),
        vms: vec![Vm {
            name: "web".to_owned(),
            pid: 100,
            vcpus: vcpus.collect(),
            ..Vm::default()
        }],
        ..Snapshot::default()
    }
}

#[test]
fn a_healthy_host_without_vms() {
    let tree = Tree::kvm_host();
    let report = report_of(
        &tree.root,
        &options(Some(WATCH)),
        sources(&mut no_bpf),
        |_| panic!("there is nothing to watch"),
    );
    assert_eq!(report.verdict, Verdict::Healthy);
    golden("healthy.txt", &text(&report));
}

#[test]
fn two_overcommitted_vms_by_bpf() {
    let tree = Tree::kvm_host();
    tree.vm(100, "web", 4, "0-1", "host,-kvm-pv-tlb-flush");
    tree.vm(200, "db", 2, "0-1", "qemu64");
    let after = Cell::new(false);
    let mut read = || Ok(accounts(after.get()));
    let report = report_of(
        &tree.root,
        &options(Some(WATCH)),
        sources(&mut read),
        |length| {
            assert_eq!(length, WATCH);
            after.set(true);
        },
    );
    assert_eq!(report.verdict, Verdict::Findings);
    let worst = &report.findings[0];
    assert_eq!(
        (worst.id, worst.severity),
        ("lock-holder-preemption", Severity::Critical)
    );
    golden("overcommitted.txt", &text(&report));
    let json = serde_json::to_string_pretty(&report).expect("JSON");
    golden("overcommitted.json", &(json + "\n"));
}

#[test]
fn without_rights_the_verdict_is_not_healthy() {
    let tree = Tree::kvm_host();
    tree.vm(100, "web", 1, "0-1", "host");
    let closed = tree.root.path("proc/100/fd");
    std::fs::remove_dir_all(&closed).expect("removed");
    // Not a folder: reading it fails, as without rights.
    std::fs::write(&closed, "").expect("written");
    let report = report_of(
        &tree.root,
        &options(Some(WATCH)),
        sources(&mut no_bpf),
        |_| tree.ran(100, 101, 1, 1),
    );
    assert_eq!(report.vms.len(), 1, "known by its threads' names");
    assert_eq!(report.verdict, Verdict::CouldNotLook);
    assert!(report.unseen.iter().any(|u| u.why.contains("as root")));
}

#[test]
fn not_watched_by_choice_is_not_blind() {
    let tree = Tree::kvm_host();
    tree.vm(100, "web", 1, "0-1", "host");
    let report = report_of(&tree.root, &options(None), sources(&mut no_bpf), |_| {
        panic!("not asked for")
    });
    assert_eq!((report.verdict, report.sampled), (Verdict::Healthy, None));
}

#[test]
fn every_finding_has_its_place_in_the_book() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/findings.md");
    let book = std::fs::read_to_string(book).expect("the book's page");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/doctor");
    for file in ["host", "judge", "left", "setup", "targets"] {
        let source = std::fs::read_to_string(folder.join(file).with_extension("rs"));
        for id in ids_in(&source.expect("source")) {
            assert!(book.contains(&format!("\n## {id}\n")), "no section {id}");
        }
    }
}

/// Words in quotes and kebab case: a finding's id is one.
fn ids_in(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or("");
    let new = code.split("Finding::new(").skip(1);
    let given = new.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    let chosen = code.split("=> (\"").skip(1);
    let chosen = chosen.filter_map(|rest| rest.split('"').next());
    let ids: Vec<String> = given.chain(chosen).map(str::to_owned).collect();
    assert!(!ids.is_empty(), "no finding in the source");
    ids
}
