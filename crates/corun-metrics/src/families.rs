// SPDX-License-Identifier: GPL-2.0-only
//! All metrics: name, type, labels, meaning, and where their values come from.

use crate::view::{VcpuView, View, VmView};
use corun_events::account::{Account, Counts, Histogram, Latencies, ReadyCause};

/// Type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; nanoseconds become seconds.
    Counter,
    /// A present value.
    Gauge,
    /// A distribution of times.
    Histogram,
}

/// One metric.
pub struct Family {
    /// Name without unit and suffix.
    pub(crate) base: &'static str,
    /// Whether its unit is seconds; else it counts.
    pub(crate) in_seconds: bool,
    /// Type.
    pub kind: Kind,
    /// Labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
    pub(crate) samples: fn(&View<'_>, &mut Samples<'_>),
}

impl std::fmt::Debug for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Family").field(&self.name()).finish()
    }
}

impl Family {
    /// Its name as it is queried; of histograms without `_bucket`, `_sum`, `_count`.
    pub fn name(&self) -> String {
        let unit = if self.in_seconds { "_seconds" } else { "" };
        let suffix = if self.kind == Kind::Counter {
            "_total"
        } else {
            ""
        };
        format!("{}{unit}{suffix}", self.base)
    }
}

/// A value; times are in nanoseconds.
pub(crate) enum Value {
    Number(u64),
    Times(Box<Histogram>),
}

/// Values of one metric with the values of its labels.
pub(crate) struct Samples<'a> {
    pub(crate) add: &'a mut dyn FnMut(&[&str], Value),
}

impl Samples<'_> {
    fn number(&mut self, labels: &[&str], value: u64) {
        (self.add)(labels, Value::Number(value));
    }

    fn of_vcpus(&mut self, view: &View<'_>, value: impl Fn(&Account) -> u64) {
        for VcpuView { vm, vcpu, account } in &view.vcpus {
            self.number(&[vm, vcpu], value(account));
        }
    }

    fn counts(&mut self, view: &View<'_>, value: impl Fn(&Counts) -> u64) {
        self.of_vcpus(view, |account| value(&account.counts));
    }

    /// As [`Self::counts`], with one more label.
    fn split(&mut self, view: &View<'_>, values: &[(&str, Count)]) {
        for VcpuView { vm, vcpu, account } in &view.vcpus {
            for (label, value) in values {
                self.number(&[vm, vcpu, label], value(&account.counts));
            }
        }
    }

    fn times(&mut self, view: &View<'_>, value: impl Fn(&Latencies) -> &Histogram) {
        for VmView { name, total, .. } in &view.vms {
            let times = Box::new(value(&total.latencies).clone());
            (self.add)(&[name], Value::Times(times));
        }
    }
}

/// One of the counts.
type Count = fn(&Counts) -> u64;

const VCPU: &[&str] = &["vm", "vcpu"];
const VM: &[&str] = &["vm"];

const fn counter(
    base: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    samples: fn(&View<'_>, &mut Samples<'_>),
) -> Family {
    Family {
        base,
        in_seconds: false,
        kind: Kind::Counter,
        labels,
        help,
        samples,
    }
}

const fn gauge(
    base: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    samples: fn(&View<'_>, &mut Samples<'_>),
) -> Family {
    Family {
        kind: Kind::Gauge,
        ..counter(base, labels, help, samples)
    }
}

const fn seconds(
    base: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    samples: fn(&View<'_>, &mut Samples<'_>),
) -> Family {
    Family {
        in_seconds: true,
        ..counter(base, labels, help, samples)
    }
}

const fn histogram(
    base: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    samples: fn(&View<'_>, &mut Samples<'_>),
) -> Family {
    Family {
        kind: Kind::Histogram,
        ..seconds(base, labels, help, samples)
    }
}

/// All metrics, in the order of the page.
pub const FAMILIES: [Family; 33] = [
    seconds(
        "corun_vcpu_run",
        VCPU,
        "Time on a pCPU, without halt polling",
        |v, s| s.of_vcpus(v, |a| a.times.run_ns),
    ),
    seconds(
        "corun_vcpu_poll",
        VCPU,
        "Time on a pCPU in KVM's halt polling",
        |v, s| s.of_vcpus(v, |a| a.times.poll_ns),
    ),
    seconds(
        "corun_vcpu_wait",
        &["vm", "vcpu", "cause"],
        "Time runnable without a pCPU, by what kept it from one",
        |v, s| {
            for VcpuView { vm, vcpu, account } in &v.vcpus {
                for cause in ReadyCause::ALL {
                    let labels = [vm.as_str(), vcpu, cause.name()];
                    s.number(&labels, account.times.ready.of(cause));
                }
            }
        },
    ),
    seconds(
        "corun_vcpu_halted",
        VCPU,
        "Time asleep since the guest halted it",
        |v, s| s.of_vcpus(v, |a| a.times.halted_ns),
    ),
    seconds(
        "corun_vcpu_blocked",
        VCPU,
        "Time asleep for other reasons",
        |v, s| s.of_vcpus(v, |a| a.times.blocked_ns),
    ),
    counter("corun_vcpu_halts", VCPU, "Halts", |v, s| {
        s.counts(v, |c| c.halts);
    }),
    counter(
        "corun_vcpu_polls",
        &["vm", "vcpu", "result"],
        "Halts with halt polling, by whether it saw their end",
        |v, s| {
            s.split(
                v,
                &[
                    ("success", |c| c.polls_succeeded),
                    ("failure", |c| c.polls_failed),
                ],
            );
        },
    ),
    counter("corun_vcpu_wakeups", VCPU, "Wake-ups", |v, s| {
        s.counts(v, |c| c.wakeups);
    }),
    counter(
        "corun_vcpu_preemptions",
        &["vm", "vcpu", "guest"],
        "Losses of the pCPU though runnable, by what the guest did",
        |v, s| {
            s.split(
                v,
                &[
                    ("user", |c| c.preempted_user),
                    ("kernel", |c| c.preempted_kernel),
                    ("outside", |c| c.preempted_outside),
                ],
            );
        },
    ),
    counter(
        "corun_vcpu_critical_preemptions",
        VCPU,
        "Those in a critical section of the guest's kernel, where its symbols are known",
        |v, s| {
            // Not known is no zero: such vCPUs have no series.
            for VcpuView { vm, vcpu, account } in &v.vcpus {
                if let Some(n) = account.counts.preempted_critical {
                    s.number(&[vm, vcpu], n);
                }
            }
        },
    ),
    counter(
        "corun_vcpu_spins",
        VCPU,
        "Times that KVM took it for spinning",
        |v, s| s.counts(v, |c| c.spins),
    ),
    counter(
        "corun_vcpu_yields_asked",
        VCPU,
        "Directed yields that KVM asked for",
        |v, s| s.counts(v, |c| c.yields_asked),
    ),
    counter(
        "corun_vcpu_yields_honoured",
        VCPU,
        "Those that the scheduler took",
        |v, s| s.counts(v, |c| c.yields_honoured),
    ),
    counter(
        "corun_vcpu_ipis_sent",
        VCPU,
        "IPIs sent to siblings",
        |v, s| s.counts(v, |c| c.ipis_sent),
    ),
    counter(
        "corun_vcpu_ipis_received",
        VCPU,
        "IPIs of siblings taken",
        |v, s| s.counts(v, |c| c.ipis_received),
    ),
    counter(
        "corun_vcpu_device_interrupts",
        VCPU,
        "Interrupts taken that no vCPU sent",
        |v, s| s.counts(v, |c| c.device_interrupts),
    ),
    counter(
        "corun_vm_exits",
        &["vm", "reason"],
        "VM exits by their reason, named as in recordings",
        |v, s| {
            for VmView { name, total, .. } in &v.vms {
                for (reason, n) in &total.exits {
                    s.number(&[name, reason], *n);
                }
            }
        },
    ),
    gauge("corun_vm_vcpus", VM, "vCPUs that have run", |v, s| {
        for vm in &v.vms {
            s.number(&[&vm.name], vm.vcpus as u64);
        }
    }),
    histogram(
        "corun_vm_wake_to_run",
        VM,
        "From a vCPU's wake-up to its running",
        |v, s| s.times(v, |l| &l.wake_to_run),
    ),
    histogram(
        "corun_vm_preempted",
        VM,
        "How long a vCPU was off its pCPU though runnable",
        |v, s| s.times(v, |l| &l.preempted),
    ),
    histogram(
        "corun_vm_ipi",
        &["vm", "target"],
        "IPIs between siblings from sending to injection, by what the target did",
        |v, s| {
            for VmView { name, total, .. } in &v.vms {
                let l = &total.latencies;
                for (target, times) in [
                    ("running", &l.ipi_to_running),
                    ("preempted", &l.ipi_to_preempted),
                    ("queued", &l.ipi_to_queued),
                    ("asleep", &l.ipi_to_asleep),
                ] {
                    (s.add)(&[name, target], Value::Times(Box::new(times.clone())));
                }
            }
        },
    ),
    histogram(
        "corun_vm_shootdown",
        VM,
        "Waits for TLB shootdowns, an estimate",
        |v, s| s.times(v, |l| &l.shootdown),
    ),
    gauge("corun_host_pcpus", &[], "pCPUs online", |v, s| {
        s.number(&[], v.snapshot.host.pcpus.into());
    }),
    seconds(
        "corun_host_cpu",
        &["mode"],
        "pCPUs' time: in guests, otherwise busy, idle, taken by a hypervisor below",
        |v, s| {
            let host = &v.snapshot.host;
            for (mode, ns) in [
                ("guest", host.guest_ns),
                ("host", host.host_ns),
                ("idle", host.idle_ns),
                ("stolen", host.stolen_ns),
            ] {
                s.number(&[mode], ns);
            }
        },
    ),
    gauge(
        "corun_host_scheduler",
        &["scheduler"],
        "1 for the scheduler that runs: kernel, or a sched_ext scheduler's name",
        |v, s| s.number(&[&v.snapshot.host.scheduler], 1),
    ),
    counter(
        "corun_scheduler_events",
        &["event"],
        "Counters of corun's scheduler while it is loaded, by name",
        |v, s| {
            for (name, n) in v.snapshot.host.corun.iter().filter(|(k, _)| !is_time(k)) {
                s.number(&[name], *n);
            }
        },
    ),
    seconds(
        "corun_scheduler_time",
        &["of"],
        "Times that corun's scheduler sums up, by the counter's name without _ns",
        |v, s| {
            for (name, ns) in v.snapshot.host.corun.iter().filter(|(k, _)| is_time(k)) {
                s.number(&[name.trim_end_matches("_ns")], *ns);
            }
        },
    ),
    seconds(
        "corun_accounts_age",
        &[],
        "How long accounts have been kept",
        |v, s| s.number(&[], v.snapshot.length_ns),
    ),
    counter(
        "corun_accounts_dropped",
        &["what"],
        "What the accounts lack: vCPUs without a place, IPIs that joined a pending one, torn reads, skipped events",
        |v, s| {
            let drops = &v.snapshot.drops;
            for (what, n) in [
                ("vcpus", drops.vcpus),
                ("ipis_joined", drops.ipis_joined),
                ("torn_reads", drops.torn_reads),
                ("skipped_runs", drops.skipped_runs),
            ] {
                s.number(&[what], n);
            }
        },
    ),
    gauge(
        "corun_accounts_missing_events",
        &[],
        "Events of the kernel's that could not be listened to",
        |v, s| s.number(&[], v.snapshot.missing.len() as u64),
    ),
    gauge("corun_vms", &[], "VMs that have run", |v, s| {
        s.number(&[], v.snapshot.vms.len() as u64);
    }),
    gauge(
        "corun_exporter_folded_vcpus",
        &[],
        "vCPUs without series of their own: their VMs are summed as _others",
        |v, s| s.number(&[], v.folded_vcpus as u64),
    ),
    gauge(
        "corun_build_info",
        &["version"],
        "1, with corun's version",
        |_, s| s.number(&[env!("CARGO_PKG_VERSION")], 1),
    ),
];

fn is_time(counter: &str) -> bool {
    counter.ends_with("_ns")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_follow_the_convention_and_are_unique() {
        let mut seen = BTreeSet::new();
        for family in &FAMILIES {
            let name = family.name();
            assert!(name.starts_with("corun_"), "{name}");
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
                "{name}"
            );
            assert!(!family.help.ends_with('.'), "{name}: the page adds it");
            assert!(seen.insert(name.clone()), "{name} twice");
        }
    }

    #[test]
    fn every_metric_is_in_the_book() {
        let book = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/src/reference/metrics.md"
        );
        let book = std::fs::read_to_string(book).expect("the book's page");
        for family in &FAMILIES {
            let labels = family.labels.join(", ");
            let row = format!("| `{}` | {labels} |", family.name());
            assert!(book.contains(&row), "no row: {row} {} |", family.help);
        }
    }
}
