// SPDX-License-Identifier: GPL-2.0-only
//! A snapshot with names that are fit to be labels: unique, and bounded in number.

use corun_events::account::{Account, Snapshot};
use std::collections::BTreeMap;

/// vCPUs that get series of their own; a few dozen series each. VMs beyond are summed.
pub const MAX_VCPUS: usize = 2048;

/// Label of what was summed.
const OTHERS: &str = "_others";
/// Longest name of a VM that is kept whole. Characters.
const MAX_NAME: usize = 64;

/// One vCPU, or all of the VMs that were summed.
pub(crate) struct VcpuView<'a> {
    pub(crate) vm: String,
    pub(crate) vcpu: String,
    pub(crate) account: std::borrow::Cow<'a, Account>,
}

/// One VM, or all of those that were summed.
pub(crate) struct VmView {
    pub(crate) name: String,
    pub(crate) vcpus: usize,
    pub(crate) total: Account,
}

/// The snapshot, ready to be labelled.
pub(crate) struct View<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) vcpus: Vec<VcpuView<'a>>,
    pub(crate) vms: Vec<VmView>,
    /// vCPUs that were summed under [`OTHERS`].
    pub(crate) folded_vcpus: usize,
}

impl<'a> View<'a> {
    /// Gives the first VMs their own series, as long as they have at most `max_vcpus`
    /// vCPUs together.
    pub(crate) fn new(snapshot: &'a Snapshot, max_vcpus: usize) -> Self {
        let names = unique_names(snapshot);
        let mut view = Self {
            snapshot,
            vcpus: Vec::new(),
            vms: Vec::new(),
            folded_vcpus: 0,
        };
        let mut others = Account::default();
        for (vm, name) in snapshot.vms.iter().zip(names) {
            let total = vm.total();
            if view.vcpus.len() + vm.vcpus.len() > max_vcpus {
                view.folded_vcpus += vm.vcpus.len();
                others.add(&total);
                continue;
            }
            view.vcpus.extend(vm.vcpus.iter().map(|vcpu| VcpuView {
                vm: name.clone(),
                vcpu: vcpu.vcpu.to_string(),
                account: std::borrow::Cow::Borrowed(&vcpu.account),
            }));
            view.vms.push(VmView {
                name,
                vcpus: vm.vcpus.len(),
                total,
            });
        }
        if view.folded_vcpus > 0 {
            view.vcpus.push(VcpuView {
                vm: OTHERS.to_owned(),
                vcpu: OTHERS.to_owned(),
                account: std::borrow::Cow::Owned(others.clone()),
            });
            view.vms.push(VmView {
                name: OTHERS.to_owned(),
                vcpus: view.folded_vcpus,
                total: others,
            });
        }
        view
    }
}

/// Names of the VMs, in their order. Names are an operator's text: two VMs may have
/// the same, and then both get their process' number; and where that is not enough
/// (one VMM with several VMs), their own.
fn unique_names(snapshot: &Snapshot) -> Vec<String> {
    let short = |name: &str| name.chars().take(MAX_NAME).collect::<String>();
    let by_name: Vec<String> = snapshot.vms.iter().map(|vm| short(&vm.name)).collect();
    let by_pid = told_apart(&by_name, |i| snapshot.vms[i].pid.to_string());
    told_apart(&by_pid, |i| snapshot.vms[i].id.to_string())
}

/// Adds `#suffix` to the names that are not unique, and to the one that is ours.
fn told_apart(names: &[String], suffix: impl Fn(usize) -> String) -> Vec<String> {
    let mut times: BTreeMap<&str, usize> = [(OTHERS, 1)].into();
    for name in names {
        *times.entry(name).or_default() += 1;
    }
    let named = names.iter().enumerate().map(|(i, name)| {
        if times[name.as_str()] > 1 {
            format!("{name}#{}", suffix(i))
        } else {
            name.clone()
        }
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use corun_events::account::{Vcpu, Vm};

    fn vm(id: u64, name: &str, pid: u32, vcpus: u32) -> Vm {
        let account = Account {
            wall_ns: 1,
            ..Account::default()
        };
        let vcpus = (0..vcpus).map(|vcpu| Vcpu {
            vcpu,
            account: account.clone(),
            ..Vcpu::default()
        });
        Vm {
            id,
            name: name.to_owned(),
            pid,
            vcpus: vcpus.collect(),
        }
    }

    fn snapshot(vms: Vec<Vm>) -> Snapshot {
        Snapshot {
            vms,
            ..Snapshot::default()
        }
    }

    #[test]
    fn names_are_told_apart() {
        let snapshot = snapshot(vec![
            vm(1, "web", 10, 1),
            vm(2, "web", 20, 1),
            vm(3, "db", 30, 1),
            vm(4, "twin", 40, 1),
            vm(5, "twin", 40, 1),
            vm(6, "_others", 60, 1),
        ]);
        assert_eq!(
            unique_names(&snapshot),
            [
                "web#10",
                "web#20",
                "db",
                "twin#40#4",
                "twin#40#5",
                "_others#60"
            ]
        );
    }

    #[test]
    fn long_names_are_cut() {
        let long = "ü".repeat(100);
        let names = unique_names(&snapshot(vec![vm(1, &long, 10, 1)]));
        assert_eq!(names, ["ü".repeat(64)]);
    }

    #[test]
    fn what_is_beyond_the_bound_is_summed_and_counted() {
        let snapshot = snapshot(vec![vm(1, "a", 1, 3), vm(2, "b", 2, 4), vm(3, "c", 3, 1)]);
        let view = View::new(&snapshot, 4);
        let names: Vec<&str> = view.vms.iter().map(|vm| vm.name.as_str()).collect();
        assert_eq!(names, ["a", "c", "_others"]);
        assert_eq!((view.vcpus.len(), view.folded_vcpus), (5, 4));
        assert_eq!(view.vms[2].total.wall_ns, 4, "nothing is lost");
        let all = View::new(&snapshot, 8);
        assert_eq!((all.vms.len(), all.folded_vcpus), (3, 0));
    }

    /// Prints what the page takes on this machine, too; no time is asserted.
    #[test]
    fn a_page_has_all_of_1000_vcpus_and_the_sum_of_those_beyond_its_bound() {
        for (vms, beyond) in [(500, 0), (1500, 952_u16)] {
            let vms = (1..=vms).map(|id| vm(id, &format!("web-{id}"), 10, 2));
            let snapshot = std::sync::Arc::new(snapshot(vms.collect()));
            let begin = std::time::Instant::now();
            let page = crate::page(snapshot.clone(), MAX_VCPUS).expect("a page");
            let ms = begin.elapsed().as_secs_f64() * 1e3;
            let of = |name: &str| page.lines().filter(|l| l.starts_with(name)).count();
            let vcpus = of("corun_vcpu_run_seconds_total{");
            println!("{vcpus} vCPUs: {} bytes in {ms:.1} ms", page.len());
            assert_eq!(vcpus, if beyond == 0 { 1000 } else { MAX_VCPUS + 1 });
            let folded = page
                .lines()
                .find_map(|l| l.strip_prefix("corun_exporter_folded_vcpus "));
            assert_eq!(folded.and_then(|n| n.parse().ok()), Some(f64::from(beyond)));
        }
    }
}
