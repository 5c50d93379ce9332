// SPDX-License-Identifier: GPL-2.0-only
//! `[sim]` and the schedulers' `sim = { ... }`.

use super::{Problem, Step, check_workload};
use crate::sim::{GuestKernel, SpinlockKind, TlbKind, is_default};
use crate::{Case, Guest, Scheduler, SchedulerKind, Target, suggest};

/// Nobody means a tick or a slice shorter than this. Nanoseconds.
const SHORTEST_NS: u64 = 100_000;
/// Longest tick, slice or cost. Nanoseconds.
const LONGEST_NS: u64 = 10_000_000_000;

pub(super) fn check(case: &Case, target: Target<'_>) -> Result<(), Problem> {
    check_topology(case)?;
    check_costs(case)?;
    check_kvm(case)?;
    for (i, s) in case.schedulers.iter().enumerate() {
        ensure!(
            s.kind.comparator().is_none(),
            ["scheduler", i, "kind"],
            "the simulator has no model of it; use `corun lab run`"
        );
        ensure!(
            s.beside.is_none(),
            ["scheduler", i, "beside"],
            "the simulator runs no programs; use `corun lab run`"
        );
        check_foreign_settings(i, s)?;
        check_settings(i, s, case.host.pcpus)?;
    }
    for (i, g) in case.guests.iter().enumerate() {
        ensure!(
            g.module.is_none(),
            ["guest", i, "module"],
            "the simulator loads no modules: expected tlb = \"shoot4u\" in [sim.guest.{}]",
            g.name
        );
    }
    for (name, kernel) in &case.sim.guest {
        let names = || case.guests.iter().map(|g| g.name.as_str());
        let Some(guest) = case.guest(name) else {
            ensure!(
                false,
                ["sim", "guest", name.as_str()],
                "unknown guest `{name}`: expected one of {}{}",
                names().collect::<Vec<_>>().join(", "),
                suggest::hint(name, names())
            );
            continue;
        };
        check_guest(guest, kernel, target)?;
    }
    Ok(())
}

fn check_topology(case: &Case) -> Result<(), Problem> {
    let (sim, pcpus) = (&case.sim, case.host.pcpus);
    ensure!(
        matches!(sim.threads_per_core, 1 | 2),
        ["sim", "threads_per_core"],
        "{}: expected 1 or 2",
        sim.threads_per_core
    );
    ensure!(
        pcpus.is_multiple_of(sim.threads_per_core),
        ["sim", "threads_per_core"],
        "{pcpus} pCPUs are no whole number of cores of {} threads",
        sim.threads_per_core
    );
    ensure!(
        sim.pcpus_per_llc <= pcpus && sim.pcpus_per_llc.is_multiple_of(sim.threads_per_core),
        ["sim", "pcpus_per_llc"],
        "{}: expected whole cores, at most the host's {pcpus} pCPUs, or 0 for all",
        sim.pcpus_per_llc
    );
    Ok(())
}

fn check_costs(case: &Case) -> Result<(), Problem> {
    let c = &case.sim.costs;
    let named = [
        ("cpu_mhz", c.cpu_mhz, 100, 10_000),
        ("smt_speed_pm", c.smt_speed_pm, 1, 1000),
        ("spin_round_cycles", c.spin_round_cycles, 1, 1_000_000),
        ("idle_timer_writes", c.idle_timer_writes, 0, 16),
    ];
    for (key, value, min, max) in named {
        ensure!(
            (min..=max).contains(&value),
            ["sim", "costs", key],
            "{value}: expected {min} to {max}"
        );
    }
    ensure!(
        c.noise_ns < c.noise_every_ns || c.noise_ns == 0,
        ["sim", "costs", "noise_ns"],
        "contradictory: bursts of {} ns every {} ns leave nothing for guests",
        c.noise_ns,
        c.noise_every_ns
    );
    // By way of their names, so that no cost is forgotten here: times have an
    // upper bound, and what is no time is a factor or a count.
    let Ok(toml::Value::Table(all)) = toml::Value::try_from(c) else {
        return Ok(());
    };
    for (key, value) in &all {
        let value = value.as_integer().unwrap_or(i64::MAX);
        let long = value > LONGEST_NS.cast_signed();
        ensure!(
            key.ends_with("_ns") || key == "idle_timer_writes" || value > 0,
            ["sim", "costs", key.as_str()],
            "0: expected at least 1"
        );
        ensure!(
            !key.ends_with("_ns") || !long,
            ["sim", "costs", key.as_str()],
            "{value} ns: expected at most 10 s"
        );
    }
    Ok(())
}

fn check_kvm(case: &Case) -> Result<(), Problem> {
    use crate::sim::{HaltPoll, Hypervisor};
    let kvm = &case.sim.kvm;
    if let Some(ple) = kvm.ple {
        ensure!(
            ple.window_cycles > 0,
            ["sim", "kvm", "ple", "window_cycles"],
            "0 cycles: expected at least 1; for a CPU without pause-loop exiting, ple = false"
        );
        ensure!(
            ple.window_cycles <= ple.max_cycles,
            ["sim", "kvm", "ple", "max_cycles"],
            "contradictory: a window of {} cycles that grows to at most {}",
            ple.window_cycles,
            ple.max_cycles
        );
    }
    ensure!(
        kvm.ple.is_some() || !kvm.debooster,
        ["sim", "kvm", "debooster"],
        "contradictory: without pause-loop exiting no spinner asks for a yield, and debooster has no effect"
    );
    ensure!(
        kvm.hypervisor == Hypervisor::Kvm || !kvm.debooster,
        ["sim", "kvm", "debooster"],
        "contradictory: Xen yields without a target, which debooster would boost"
    );
    ensure!(
        kvm.halt_poll != HaltPoll::Fixed(0),
        ["sim", "kvm", "halt_poll"],
        "polling for 0 ns: expected \"never\", or at least 1"
    );
    Ok(())
}

/// Settings of a scheduler that this one is not.
fn check_foreign_settings(i: usize, s: &Scheduler) -> Result<(), Problem> {
    let own = match s.kind {
        SchedulerKind::Kernel | SchedulerKind::Eevdf => "eevdf",
        SchedulerKind::Cfs => "cfs",
        SchedulerKind::Credit => "credit",
        SchedulerKind::Cosched => "cosched",
        SchedulerKind::Corun | SchedulerKind::ScxBpfland | SchedulerKind::ScxLavd => "",
    };
    let given = [
        ("cfs", !is_default(&s.sim.cfs)),
        ("eevdf", !is_default(&s.sim.eevdf)),
        ("credit", !is_default(&s.sim.credit)),
        ("cosched", !is_default(&s.sim.cosched)),
    ];
    for (key, given) in given {
        ensure!(
            !given || key == own,
            ["scheduler", i, "sim", key],
            "contradictory: settings of another kind of scheduler; {}",
            if own.is_empty() {
                "corun's are its `options`".to_owned()
            } else {
                format!("this kind has `sim.{own}`")
            }
        );
    }
    Ok(())
}

fn check_settings(i: usize, s: &Scheduler, pcpus: u32) -> Result<(), Problem> {
    let sim = &s.sim;
    let times = [
        ("cfs", "latency_ns", sim.cfs.latency_ns),
        ("cfs", "min_granularity_ns", sim.cfs.min_granularity_ns),
        ("cfs", "tick_ns", sim.cfs.tick_ns),
        ("eevdf", "base_slice_ns", sim.eevdf.base_slice_ns),
        ("credit", "slice_ns", sim.credit.slice_ns),
        ("cosched", "slice_ns", sim.cosched.slice_ns),
        ("cosched", "max_skew_ns", sim.cosched.max_skew_ns),
    ];
    for (kind, key, ns) in times {
        check_time(
            &[
                "scheduler".into(),
                i.into(),
                "sim".into(),
                kind.into(),
                key.into(),
            ],
            ns,
        )?;
    }
    if sim.eevdf.tick_ns != 0 {
        let at = [
            "scheduler".into(),
            i.into(),
            "sim".into(),
            "eevdf".into(),
            "tick_ns".into(),
        ];
        check_time(&at, sim.eevdf.tick_ns)?;
    }
    ensure!(
        sim.cfs.min_granularity_ns <= sim.cfs.latency_ns,
        ["scheduler", i, "sim", "cfs", "min_granularity_ns"],
        "contradictory: {} ns is longer than latency_ns, {} ns",
        sim.cfs.min_granularity_ns,
        sim.cfs.latency_ns
    );
    ensure!(
        sim.credit.ratelimit_ns <= sim.credit.slice_ns,
        ["scheduler", i, "sim", "credit", "ratelimit_ns"],
        "contradictory: {} ns is longer than slice_ns, {} ns",
        sim.credit.ratelimit_ns,
        sim.credit.slice_ns
    );
    ensure!(
        (10_000..=LONGEST_NS).contains(&sim.credit.micro_slice_ns),
        ["scheduler", i, "sim", "credit", "micro_slice_ns"],
        "{} ns: expected 10 us to 10 s",
        sim.credit.micro_slice_ns
    );
    ensure!(
        sim.credit.micro_pcpus < pcpus,
        ["scheduler", i, "sim", "credit", "micro_pcpus"],
        "contradictory: {} of {pcpus} pCPUs set aside leave none for the others",
        sim.credit.micro_pcpus
    );
    Ok(())
}

fn check_time(path: &[Step], ns: u64) -> Result<(), Problem> {
    if (SHORTEST_NS..=LONGEST_NS).contains(&ns) {
        return Ok(());
    }
    Err(Problem {
        path: path.to_vec(),
        message: format!("{ns} ns: expected 100000 ns to 10 s"),
    })
}

fn check_guest(guest: &Guest, kernel: &GuestKernel, target: Target<'_>) -> Result<(), Problem> {
    let name = guest.name.as_str();
    check_time(
        &["sim".into(), "guest".into(), name.into(), "tick_ns".into()],
        kernel.tick_ns,
    )?;
    let pv_lock = |s| {
        use SpinlockKind::{PvQueued, PvQueuedFifo, PvTicket};
        matches!(s, PvQueued | PvQueuedFifo | PvTicket)
    };
    ensure!(
        !guest.pv.unhalt || kernel.spinlock.is_none_or(pv_lock),
        ["sim", "guest", name, "spinlock"],
        "contradictory: offered pv.unhalt, a guest uses \"pv_queued\", \"pv_queued_fifo\" or \"pv_ticket\""
    );
    ensure!(
        !guest.pv.tlb_flush || kernel.tlb.is_none_or(|t| t == TlbKind::Kvmtlb),
        ["sim", "guest", name, "tlb"],
        "contradictory: offered pv.tlb_flush, a guest uses \"kvmtlb\""
    );
    if let Some(work) = &kernel.beside {
        let at = ["sim".into(), "guest".into(), name.into(), "beside".into()];
        check_workload(&at, work, target)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
