// SPDX-License-Identifier: GPL-2.0-only
//! The lines above the table, on the screen and in batches; the help.

use crate::top::figures;
use crate::top::view::Choice;
use corun_events::account::{Drops, Snapshot};

/// What is above the table: who is there, what the pCPUs do, what corun does, what is missing.
pub(in crate::top) fn head(interval: &Snapshot) -> Vec<String> {
    let mut lines = vec![who(interval), pcpus(interval), boosts(interval)];
    lines.push(dropped(&interval.drops));
    let missing = interval.missing.iter();
    lines.extend(missing.map(|m| format!("MISSING {m}")));
    lines
}

fn who(interval: &Snapshot) -> String {
    format!(
        "corun top: {} VMs, {} vCPUs on {} pCPUs, scheduler: {}, interval {:.1} s",
        interval.vms.len(),
        interval.vcpus(),
        interval.host.pcpus,
        interval.host.scheduler,
        interval.length_ns as f64 / 1e9
    )
}

fn pcpus(interval: &Snapshot) -> String {
    let host = &interval.host;
    let all = host.guest_ns + host.host_ns + host.idle_ns + host.stolen_ns;
    let share = |ns: u64| {
        let percent = ns as f64 / all.max(1) as f64 * 100.0;
        figures::percent(percent)
    };
    let times = interval.total().times;
    let pcpus = |ns: u64| ns as f64 / interval.length_ns.max(1) as f64;
    format!(
        "pCPUs: guests {}%, host {}%, idle {}%, stolen {}%; vCPUs: {:.1} run, {:.1} wait",
        share(host.guest_ns),
        share(host.host_ns),
        share(host.idle_ns),
        share(host.stolen_ns),
        pcpus(times.run_ns + times.poll_ns),
        pcpus(times.ready.total_ns())
    )
}

/// What corun's scheduler does, where it runs.
fn boosts(interval: &Snapshot) -> String {
    if !interval.host.scheduler.starts_with("corun") {
        return "corun's scheduler is not loaded: no boosts".to_owned();
    }
    let counter = |name: &str| interval.host.corun.get(name).copied().unwrap_or(0);
    let seconds = (interval.length_ns as f64 / 1e9).max(1e-9);
    let rate = |name: &str| figures::rate(counter(name) as f64 / seconds);
    format!(
        "corun/s: {} boosts, {} directed yields, {} deferrals, {} critical preempted",
        rate("urgent_slices"),
        rate("yields_dispatched"),
        rate("deferrals"),
        rate("preempted_critical")
    )
}

fn dropped(drops: &Drops) -> String {
    if drops.vcpus == 0 && drops.torn_reads == 0 && drops.skipped_runs == 0 {
        return format!(
            "dropped: nothing ({} IPIs joined a pending one)",
            drops.ipis_joined
        );
    }
    format!(
        "DROPPED: {} looks at vCPUs without room (--max-vcpus), {} readings, {} events",
        drops.vcpus, drops.torn_reads, drops.skipped_runs
    )
}

/// What is said where no VM is shown.
pub(in crate::top) fn nothing(interval: &Snapshot, choice: &Choice) -> String {
    if interval.vms.is_empty() {
        return "No VM has run since corun top began.".to_owned();
    }
    format!(
        "None of {} VMs has {:?} in its name.",
        interval.vms.len(),
        choice.filter
    )
}

/// The help.
pub(super) const HELP: &str = "\
RUN%   on a pCPU, mean of the vCPUs     RDY%   runnable, no pCPU: steal
BEHIND what most of RDY% is behind      WK50/99 wake-up to running
PRK/s  preempted in guest kernel mode   SPN/s  spins that KVM saw
IPI50/99 IPI sent to injected           HLT/s  halts  POL+ polls that paid
HLT%, BLK%, POL% halted, asleep otherwise, in halt polling
PRE/s  preempted  CRI/s in a critical section (--symbols)
YLD/s  directed yields                  TLB99  shootdown wait (estimate)
EXIT/s VM exits, by reason in the details  DEV/s device interrupts

Up/Down j k PgUp/PgDn Home/End  select   Enter  a VM's vCPUs   e  all
< > s  column to sort by   r  reverse    /  filter by name
p Space  pause                           q Esc Ctrl-C  quit";
