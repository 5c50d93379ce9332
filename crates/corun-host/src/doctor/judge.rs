// SPDX-License-Identifier: GPL-2.0-only
//! Findings of what VMs did while they were watched: pure functions of their
//! accounts.
//!
//! Thresholds are shares of the vCPUs' wall time, so that they hold for VMs of any
//! width and windows of any length. 5 % of ready time is where operators of other
//! hypervisors begin to look, at 20 % guests' timeouts suffer.

use super::report::{Finding, Notes, Severity};
use super::sample::{Sample, Throttled};
use super::vm::VmReport;
use corun_events::account::{Account, Host, Ready, ReadyCause};

/// Share of wall time from which lost time is a warning, and from which critical.
const READY_WARNING: f64 = 0.05;
const READY_CRITICAL: f64 = 0.20;
/// Share of wall time, for one kind of wait (shootdowns, IPIs, limits).
const WAIT_WARNING: f64 = 0.01;
/// p99 of wake-to-run. A host that is not overcommitted takes microseconds.
const WAKE_WARNING_NS: u64 = 5_000_000;
/// Fewer samples say nothing of a p99.
const WAKE_SAMPLES: u64 = 20;
/// Share of wall time in halt polling.
const POLL_WARNING: f64 = 0.05;
/// Pause-loop exits and directed yields per second of run time: a vCPU that takes
/// free locks has none, one that waits for a preempted holder thousands.
const SPINS_PER_RUN_S: f64 = 50.0;
/// Share of the host's time that the hypervisor below takes.
const STOLEN_WARNING: f64 = 0.05;

/// Judges a sample.
pub(super) fn check(vms: &[VmReport], sample: &Sample, notes: &mut Notes) {
    let busy_host = waits(sample);
    for vm in vms {
        let Some(account) = &vm.account else {
            continue;
        };
        ready_time(vm, account, sample.causes_known, notes);
        lock_holders(vm, account, notes);
        shootdowns(vm, account, notes);
        late_ipis(vm, account, notes);
        wake_delay(vm, account, notes);
        poll_waste(vm, account, busy_host, notes);
        limited(vm, account, &sample.throttled, notes);
    }
    stolen(&sample.interval.host, notes);
}

/// Does any VM wait for a pCPU to speak of?
fn waits(sample: &Sample) -> bool {
    let total = sample.interval.total();
    total.share(total.times.ready.total_ns()) >= READY_WARNING
}

fn severity_of(share: f64) -> Severity {
    if share >= READY_CRITICAL {
        Severity::Critical
    } else {
        Severity::Warning
    }
}

/// Time without a pCPU that the VM wanted, and who had it.
fn ready_time(vm: &VmReport, account: &Account, causes_known: bool, notes: &mut Notes) {
    let ready = &account.times.ready;
    let share = account.share(ready.total_ns());
    if share < READY_WARNING {
        return;
    }
    let main = ready.main_cause().filter(|_| causes_known);
    let (id, who, next) = cause(main);
    let mut finding = Finding::new(
        id,
        severity_of(share),
        format!(
            "{} waits for a pCPU {} of the time{who}",
            vm.name,
            percent(share)
        ),
        next,
    )
    .seen(format!(
        "ready {}, run {}, of {} of its {} vCPUs' time",
        seconds(ready.total_ns()),
        seconds(account.times.run_ns),
        seconds(account.wall_ns),
        vm.vcpus
    ));
    if causes_known {
        finding = finding.seen(format!("ready time by cause: {}", by_cause(ready)));
    }
    notes.find(finding.of_vm(&vm.name, share));
}

/// Kind of finding, its cause in words, and what to do about it.
fn cause(main: Option<ReadyCause>) -> (&'static str, &'static str, &'static str) {
    const MOVE: &str = "`corun run`, or move a VM to another host, or set weights (cpu.weight)";
    match main {
        Some(ReadyCause::OtherVm) => ("ready-time", ", mostly for vCPUs of other VMs", MOVE),
        Some(ReadyCause::Sibling) => (
            "ready-time-siblings",
            ", mostly for its own vCPUs",
            "give it fewer vCPUs or more pCPUs; `corun run` runs the sibling that others wait for",
        ),
        Some(ReadyCause::HostTask) => (
            "host-tasks",
            ", mostly for tasks of the host that are no vCPUs",
            "find them: `top -H -o %CPU`; give them a lower cpu.weight, or pCPUs of their own",
        ),
        Some(ReadyCause::Limited) => (
            "cpu-limit",
            ", mostly because its CPU limit is used up",
            "raise or remove cpu.max of its cgroup; weights (cpu.weight) share without idling",
        ),
        Some(ReadyCause::Woken) => (
            "ready-time-wakeups",
            ", mostly after wake-ups: its vCPUs halt often, and start late",
            MOVE,
        ),
        Some(ReadyCause::Other) | None => (
            "ready-time",
            "",
            "run `corun doctor` as root: BPF tells who had its pCPUs",
        ),
    }
}

fn by_cause(ready: &Ready) -> String {
    let total = ready.total_ns().max(1) as f64;
    let mut causes: Vec<_> = ReadyCause::ALL
        .into_iter()
        .filter(|c| ready.of(*c) > 0)
        .collect();
    causes.sort_by_key(|c| std::cmp::Reverse(ready.of(*c)));
    let parts: Vec<String> = causes
        .iter()
        .map(|c| format!("{} {}", c.name(), percent(ready.of(*c) as f64 / total)))
        .collect();
    parts.join(", ")
}

/// vCPUs stopped inside the guest's kernel while siblings spin.
fn lock_holders(vm: &VmReport, account: &Account, notes: &mut Notes) {
    let counts = &account.counts;
    let run_s = account.times.run_ns as f64 / 1e9;
    let spins = counts.spins + counts.yields_asked;
    if run_s <= 0.0 || counts.preempted_kernel == 0 || (spins as f64) < run_s * SPINS_PER_RUN_S {
        return;
    }
    let ready = account.share(account.times.ready.total_ns());
    if ready < READY_WARNING {
        return;
    }
    let mut finding = Finding::new(
        "lock-holder-preemption",
        severity_of(ready),
        format!(
            "{}'s vCPUs spin while siblings are preempted in its kernel: lock holders lose their \
             pCPU",
            vm.name
        ),
        "`corun run` (mechanisms yield, strict and symbols); in the guest: kvm-pv-unhalt, so that \
         waiters halt",
    )
    .seen(format!(
        "{spins} spins and directed yields: {:.0} per second of run time",
        spins as f64 / run_s
    ))
    .seen(format!(
        "{} preemptions in kernel mode, {} in user mode",
        counts.preempted_kernel, counts.preempted_user
    ));
    finding = finding.seen(counts.preempted_critical.map_or_else(
        || "how many of them in critical sections is not known: no symbols here".to_owned(),
        |n| format!("{n} of them in a critical section, as symbols tell"),
    ));
    if counts.yields_asked > 0 {
        finding = finding.seen(format!(
            "the scheduler took {} of {} directed yields",
            counts.yields_honoured, counts.yields_asked
        ));
    }
    notes.find(finding.of_vm(&vm.name, ready));
}

fn shootdowns(vm: &VmReport, account: &Account, notes: &mut Notes) {
    let waits = &account.latencies.shootdown;
    let share = account.share(waits.sum_ns);
    if share < WAIT_WARNING {
        return;
    }
    let flush = vm.pv.as_ref().map(|pv| pv.has("kvm-pv-tlb-flush"));
    let next = if flush == Some(false) {
        "at its next start add `kvm-pv-tlb-flush=on` to QEMU's -cpu; now: `corun run`"
    } else {
        "`corun run` (mechanism ipi): it runs the vCPUs that a shootdown waits for"
    };
    notes.find(
        Finding::new(
            "shootdown-waits",
            severity_of(share),
            format!(
                "{} spends {} of the time waiting for siblings to flush their TLBs",
                vm.name,
                percent(share)
            ),
            next,
        )
        .seen(format!(
            "{} shootdowns, mean {}, p99 {}, together {}",
            waits.count,
            mean(waits.mean_ns()),
            time(waits.quantile_ns(0.99)),
            seconds(waits.sum_ns)
        ))
        .of_vm(&vm.name, share),
    );
}

/// IPIs that waited for a target without a pCPU.
fn late_ipis(vm: &VmReport, account: &Account, notes: &mut Notes) {
    let mut late = account.latencies.ipi_to_preempted.clone();
    late.merge(&account.latencies.ipi_to_queued);
    let share = account.share(late.sum_ns);
    if share < WAIT_WARNING {
        return;
    }
    let all = account.latencies.ipi();
    notes.find(
        Finding::new(
            "late-ipis",
            severity_of(share),
            format!(
                "IPIs between {}'s vCPUs wait until their target gets a pCPU",
                vm.name
            ),
            "`corun run` (mechanism ipi): targets of IPIs get a short slice at once",
        )
        .seen(format!(
            "{} of {} IPIs met a target that waited for a pCPU: mean {}, p99 {}",
            late.count,
            all.count,
            mean(late.mean_ns()),
            time(late.quantile_ns(0.99))
        ))
        .seen(format!(
            "to running targets: mean {}",
            mean(account.latencies.ipi_to_running.mean_ns())
        ))
        .of_vm(&vm.name, share),
    );
}

fn wake_delay(vm: &VmReport, account: &Account, notes: &mut Notes) {
    let wakes = &account.latencies.wake_to_run;
    let p99_ns = wakes.quantile_ns(0.99);
    if wakes.count < WAKE_SAMPLES || p99_ns < WAKE_WARNING_NS {
        return;
    }
    notes.find(
        Finding::new(
            "wake-delay",
            Severity::Warning,
            format!(
                "1 in 100 wake-ups of {}'s vCPUs waits {} or longer for a pCPU",
                vm.name,
                time(p99_ns)
            ),
            "`corun run` (mechanism io), or a higher cpu.weight for this VM",
        )
        .seen(format!(
            "{} wake-ups: mean {}, p50 {}, p99 {}",
            wakes.count,
            mean(wakes.mean_ns()),
            time(wakes.quantile_ns(0.5)),
            time(p99_ns)
        ))
        .of_vm(&vm.name, account.share(wakes.sum_ns)),
    );
}

/// Halt polling that burns a pCPU; a problem where somebody waits for one.
fn poll_waste(vm: &VmReport, account: &Account, busy_host: bool, notes: &mut Notes) {
    let share = account.share(account.times.poll_ns);
    let success = account.counts.poll_success().unwrap_or(0.0);
    if share < POLL_WARNING || success >= 0.5 {
        return;
    }
    let (severity, consequence) = if busy_host {
        (Severity::Warning, "while others wait for a pCPU")
    } else {
        (Severity::Note, "though nobody waits for its pCPUs")
    };
    notes.find(
        Finding::new(
            "poll-waste",
            severity,
            format!(
                "{} spends {} of the time in halt polling, mostly in vain, {consequence}",
                vm.name,
                percent(share)
            ),
            "`corun run` (mechanism halt) steers it; by hand: `echo 0 > \
             /sys/module/kvm/parameters/halt_poll_ns`",
        )
        .seen(format!(
            "polling {}, {} of {} polls ended the halt",
            seconds(account.times.poll_ns),
            account.counts.polls_succeeded,
            account.counts.polls_succeeded + account.counts.polls_failed
        ))
        .of_vm(&vm.name, share),
    );
}

/// A limit that was used up, by the cgroup's own count.
fn limited(vm: &VmReport, account: &Account, throttled: &[Throttled], notes: &mut Notes) {
    // Told already, with the same advice, as the main cause of ready time.
    let told = |f: &Finding| f.id == "cpu-limit" && f.vm.as_deref() == Some(vm.name.as_str());
    if notes.findings.iter().any(told) {
        return;
    }
    for limit in &vm.limits {
        let Some(stop) = throttled.iter().find(|t| t.cgroup == limit.cgroup) else {
            continue;
        };
        let share = account.share(stop.length_ns);
        if stop.times == 0 || share < WAIT_WARNING {
            continue;
        }
        notes.find(
            Finding::new(
                "cpu-limit",
                severity_of(share),
                format!(
                    "{} is stopped by a CPU limit of {:.2} pCPUs, whoever holds its locks",
                    vm.name, limit.cpus
                ),
                cause(Some(ReadyCause::Limited)).2,
            )
            .seen(format!(
                "{} was throttled {} times, {} together",
                limit.cgroup,
                stop.times,
                seconds(stop.length_ns)
            ))
            .of_vm(&vm.name, share.min(1.0)),
        );
    }
}

/// This host is a guest, and waits itself.
fn stolen(host: &Host, notes: &mut Notes) {
    let all = host.guest_ns + host.host_ns + host.idle_ns + host.stolen_ns;
    let share = host.stolen_ns as f64 / all.max(1) as f64;
    if share < STOLEN_WARNING {
        return;
    }
    notes.find(
        Finding::new(
            "host-stolen",
            Severity::Warning,
            format!(
                "this host is a VM, and the hypervisor below takes {} of its time",
                percent(share)
            ),
            "look below: VMs here cannot run better than their host",
        )
        .seen(format!("{} stolen", seconds(host.stolen_ns))),
    );
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn seconds(ns: u64) -> String {
    format!("{:.2} s", ns as f64 / 1e9)
}

fn time(ns: u64) -> String {
    mean(ns as f64)
}

fn mean(ns: f64) -> String {
    if ns >= 1e6 {
        format!("{:.1} ms", ns / 1e6)
    } else {
        format!("{:.1} us", ns / 1e3)
    }
}

#[cfg(test)]
mod tests;
