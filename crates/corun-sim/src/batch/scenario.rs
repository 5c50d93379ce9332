// SPDX-License-Identifier: GPL-2.0-only
//! From a case to one run of it.

use super::options::{CorunOptions, scale};
use super::{Job, Models};
use crate::{Scenario, SchedulerSpec, SimError, VmSpec, WorkSpec};
use corun_case::sim::SchedTunables;
use corun_case::{Case, Guest, Phase, Scheduler, SchedulerKind, TimeScale, Workload};
use corun_policy::Tunables;

/// The run that `job` asks for.
///
/// Guests that run nothing in the phase are there and idle, but in a solo run
/// there is none but its guest.
pub fn scenario(job: &Job, models: &Models) -> Result<Scenario, SimError> {
    let case = job.case.as_ref();
    let missing = |what: &str, name: &str| {
        SimError::Scenario(format!("case {}: no {what} {name:?}", case.case.name))
    };
    let phase = case
        .phase(&job.phase)
        .ok_or_else(|| missing("phase", &job.phase))?;
    let scheduler = case.schedulers.iter().find(|s| s.label == job.scheduler);
    let scheduler = scheduler.ok_or_else(|| missing("scheduler", &job.scheduler))?;
    let guests: Vec<&Guest> = match &job.solo {
        Some(name) => vec![case.guest(name).ok_or_else(|| missing("guest", name))?],
        None => case.guests.iter().collect(),
    };
    let vms = guests.into_iter().map(|g| vm(case, phase, g, models));
    Ok(Scenario {
        seed: case.sim.seed.wrapping_add(u64::from(job.repeat)),
        warmup_ns: nanos(case.warmup_s(phase)),
        measure_ns: nanos(case.measure_s(phase)),
        pcpus: case.host.pcpus,
        threads_per_core: case.sim.threads_per_core,
        pcpus_per_llc: case.sim.pcpus_per_llc,
        costs: case.sim.costs.clone(),
        kvm: case.sim.kvm.clone(),
        scheduler: scheduler_spec(case, scheduler)?,
        vms: vms.collect::<Result<_, _>>()?,
        check: case.sim.check,
    })
}

fn vm(case: &Case, phase: &Phase, guest: &Guest, models: &Models) -> Result<VmSpec, SimError> {
    let section = case.sim.guest.get(&guest.name).cloned().unwrap_or_default();
    let kernel = section.resolve(guest.pv);
    let work = match phase.run.get(&guest.name) {
        Some(main) => [Some(main), kernel.beside.as_ref()]
            .into_iter()
            .flatten()
            .map(|w| work(w, models))
            .collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    Ok(VmSpec {
        name: guest.name.clone(),
        vcpus: guest.vcpus,
        weight: guest.weight,
        kernel,
        pv: guest.pv,
        work,
    })
}

fn work(work: &Workload, models: &Models) -> Result<WorkSpec, SimError> {
    let model = models
        .resolve(work)
        .map_err(|problem| SimError::Scenario(problem.message))?;
    Ok(WorkSpec {
        model,
        threads: work.threads,
    })
}

fn scheduler_spec(case: &Case, scheduler: &Scheduler) -> Result<SchedulerSpec, SimError> {
    // A switch costs here what it costs on hardware: nothing to make up for.
    let factor = match case.case.time_scale {
        TimeScale::Auto => 1.0,
        TimeScale::Factor(factor) => factor,
    };
    let options = CorunOptions::parse(&scheduler.options)
        .map_err(|e| SimError::Scenario(format!("scheduler {}: {e}", scheduler.label)))?;
    Ok(SchedulerSpec {
        kind: match scheduler.kind {
            SchedulerKind::Kernel => SchedulerKind::Eevdf,
            kind => kind,
        },
        settings: scaled(&scheduler.sim, factor),
        tunables: Tunables {
            gang_blind: u64::from(case.sim.kvm.ple.is_none()),
            ..options.tunables(factor)
        },
        mechanisms: options.mechanisms,
    })
}

/// Every time constant times `factor`, but not the tick, which in the lab, too,
/// is the kernel's own.
fn scaled(settings: &SchedTunables, factor: f64) -> SchedTunables {
    let mut s = settings.clone();
    for ns in [
        &mut s.cfs.latency_ns,
        &mut s.cfs.min_granularity_ns,
        &mut s.cfs.wakeup_granularity_ns,
        &mut s.eevdf.base_slice_ns,
        &mut s.credit.slice_ns,
        &mut s.credit.ratelimit_ns,
        &mut s.credit.micro_slice_ns,
        &mut s.cosched.slice_ns,
        &mut s.cosched.max_skew_ns,
    ] {
        *ns = scale(*ns, factor);
    }
    s
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cases bound it: 0 to 600 s"
)]
fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
