// SPDX-License-Identifier: GPL-2.0-only
//! Reads a result of `corun lab run`.

use crate::config;
use crate::latency;
use crate::model::Fact;
use crate::outcome::{Counters, Figures, Latency, Measured, Outcome, Shares, Waits, Window};
use corun_lab::results::Spread;
use corun_lab_proto::control::Sample;
use corun_lab_proto::{HistogramError, LatencySummary};
use hdrhistogram::Histogram;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is read of the file beside the configuration.
#[derive(Deserialize)]
struct LabResult {
    #[serde(default)]
    case_text: String,
    #[serde(default)]
    schedulers: Vec<Scheduler>,
    #[serde(default)]
    windows: Vec<MachineWindow>,
    #[serde(default)]
    warnings: Vec<String>,
    samples: Vec<Sample>,
    summary: Summary,
}

#[derive(Deserialize)]
struct Scheduler {
    label: String,
    program: String,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    not_scaled: String,
}

#[derive(Deserialize)]
struct MachineWindow {
    steal: f64,
    foreign: f64,
    accepted: bool,
}

#[derive(Deserialize)]
struct Summary {
    guests: Vec<GuestSummary>,
    counters: Vec<CounterSums>,
}

#[derive(Deserialize)]
struct GuestSummary {
    phase: String,
    guest: String,
    workload: String,
    unit: String,
    solo: Option<Spread>,
    ideal_slowdown: Option<f64>,
    schedulers: Vec<SchedulerFigures>,
}

#[derive(Deserialize)]
struct SchedulerFigures {
    scheduler: String,
    rate: Option<Spread>,
    slowdown: Option<Spread>,
}

#[derive(Deserialize)]
struct CounterSums {
    phase: String,
    scheduler: String,
    seconds: f64,
    counters: BTreeMap<String, u64>,
    cpu_share: BTreeMap<String, Spread>,
    #[serde(default)]
    ideal_cpu_share: BTreeMap<String, f64>,
}

/// Reads `value`, which has been recognised.
pub(crate) fn read(value: &Value) -> Result<Outcome, String> {
    let result = LabResult::deserialize(value).map_err(|e| e.to_string())?;
    let rows = result
        .summary
        .guests
        .iter()
        .map(|g| row(g, &result.samples));
    let rows = rows
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.to_string())?;
    let waits = waits(&result.samples).map_err(|e| e.to_string())?;
    let schedulers = labels(value);
    let programs = result.schedulers.iter().map(program).collect();
    Ok(Outcome {
        title: title(value),
        facts: facts(value),
        losses: losses(value, &result),
        case_text: result.case_text,
        schedulers,
        programs,
        models: Vec::new(),
        rows,
        shares: result.summary.counters.iter().map(shares).collect(),
        counters: result.summary.counters.iter().map(counters).collect(),
        waits,
        windows: result
            .windows
            .iter()
            .map(|w| Window {
                steal: w.steal,
                foreign: w.foreign,
                accepted: w.accepted,
            })
            .collect(),
    })
}

/// "NAME: what it is about" of a result's case.
pub(crate) fn title(value: &Value) -> String {
    let of = |key: &str| {
        let text = value.pointer(&format!("/case/case/{key}"));
        text.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    match (of("name"), of("title")) {
        (name, title) if title.is_empty() => name,
        (name, title) => format!("{name}: {title}"),
    }
}

/// Labels of a result's schedulers, in the case's order.
pub(crate) fn labels(value: &Value) -> Vec<String> {
    let schedulers = value.pointer("/case/scheduler").and_then(Value::as_array);
    let label = |s: &Value| Some(s.get("label")?.as_str()?.to_owned());
    schedulers.into_iter().flatten().filter_map(label).collect()
}

fn facts(value: &Value) -> Vec<Fact> {
    let mut facts = config::facts(
        value,
        &[
            ("made by", "/versions"),
            ("host kernel", "/host/kernel"),
            ("host pCPUs", "/host/pcpus"),
            ("emulator", "/host/qemu"),
            ("instructions run by", "/accel"),
            ("time scale", "/calibration/factor"),
            ("repeats", "/case/case/repeats"),
            ("window (s)", "/case/case/measure_s"),
            ("warm-up (s)", "/case/case/warmup_s"),
        ],
    );
    facts.extend(config::times(
        value,
        &[
            ("slice, scaled", "/calibration/slice_ns"),
            ("a VM exit costs", "/calibration/exit_ns"),
            ("a vCPU switch costs", "/calibration/switch_ns"),
            ("KVM polls a halt up to", "/host/halt_poll_ns"),
        ],
    ));
    if let Some(case) = value.get("case") {
        facts.extend(config::guests(case));
    }
    facts.extend(gate(value));
    facts.extend(config::facts(
        value,
        &[("case file's SHA-256", "/case_sha256")],
    ));
    facts
}

fn gate(value: &Value) -> Option<Fact> {
    let gate = value.get("gate")?;
    let number = |key: &str| gate.get(key).and_then(Value::as_f64);
    let passed = gate.get("passed")?.as_bool()?;
    let verdict = if passed { "passed" } else { "not passed" };
    Some(Fact::new(
        "sanity gate",
        format!(
            "{verdict}: a burner beside an equal one {:.2}x slower, alone on {:.2} pCPUs",
            number("slowdown")?,
            number("solo_pcpus")?
        ),
    ))
}

fn program(scheduler: &Scheduler) -> Fact {
    let mut text = scheduler.program.clone();
    for argument in &scheduler.arguments {
        text.push(' ');
        text.push_str(argument);
    }
    if !scheduler.not_scaled.is_empty() {
        text = format!("{text} (not scaled: {})", scheduler.not_scaled);
    }
    Fact::new(&scheduler.label, text)
}

fn losses(value: &Value, result: &LabResult) -> Vec<String> {
    let refused = result.windows.iter().filter(|w| !w.accepted).count();
    let mut losses = vec![format!(
        "windows measured: {}; of these refused, since too much of the machine was taken away, \
         and measured again: {refused}",
        result.windows.len()
    )];
    let most = |of: fn(&MachineWindow) -> f64| {
        let kept = result.windows.iter().filter(|w| w.accepted);
        kept.map(of).fold(0.0, f64::max) * 100.0
    };
    losses.push(format!(
        "most that the machine's own hypervisor stole from a window: {:.1} %; that its other \
         programs used: {:.1} %",
        most(|w| w.steal),
        most(|w| w.foreign)
    ));
    let disturbed = result.samples.iter().filter(|s| s.disturbed).count();
    if disturbed > 0 {
        losses.push(format!(
            "windows in the figures that are of a disturbed machine, every try being refused: \
             {disturbed}"
        ));
    }
    let count = |pointer: &str| {
        let list = value.pointer(pointer).and_then(Value::as_array);
        list.map_or(0, Vec::len)
    };
    let boots = value.pointer("/boots/started").and_then(Value::as_u64);
    losses.push(format!(
        "boots: {}; of these ended by an emulator fault: {}, refused by the sanity gate: {}",
        boots.unwrap_or(0),
        count("/boots/emulator_faults"),
        count("/boots/gate_rejected")
    ));
    losses.extend(result.warnings.iter().map(|w| format!("warning: {w}")));
    losses
}

/// The distributions in `summaries`, one of each name, in the names' order.
fn merge<'a>(
    summaries: impl IntoIterator<Item = &'a LatencySummary>,
) -> Result<Vec<Latency>, HistogramError> {
    let mut merged: BTreeMap<&str, Histogram<u64>> = BTreeMap::new();
    for summary in summaries {
        let one = summary.to_histogram()?;
        match merged.get_mut(summary.what.as_str()) {
            Some(sum) => latency::add(sum, &one),
            None => drop(merged.insert(&summary.what, one)),
        }
    }
    let latency = |(what, histogram): (&str, Histogram<u64>)| Latency {
        what: what.to_owned(),
        histogram,
    };
    Ok(merged.into_iter().map(latency).collect())
}

fn row(summary: &GuestSummary, samples: &[Sample]) -> Result<Measured, HistogramError> {
    let of_phase = || samples.iter().filter(|s| s.phase == summary.phase);
    let latency = |wanted: &dyn Fn(&Sample) -> bool| {
        let runs = of_phase().filter(|s| wanted(s));
        merge(
            runs.filter_map(|s| s.guests.get(&summary.guest))
                .flat_map(|r| &r.latency),
        )
    };
    let alone = match summary.solo {
        None => None,
        Some(rate) => Some(Figures {
            rate: Some(rate),
            latency: latency(&|s| s.solo)?,
            ..Figures::default()
        }),
    };
    let mut under = Vec::new();
    for of in &summary.schedulers {
        let figures = Figures {
            rate: of.rate,
            slowdown: of.slowdown,
            latency: latency(&|s| !s.solo && s.scheduler == of.scheduler)?,
            ..Figures::default()
        };
        under.push((of.scheduler.clone(), figures));
    }
    Ok(Measured {
        phase: summary.phase.clone(),
        guest: summary.guest.clone(),
        workload: summary.workload.clone(),
        unit: summary.unit.clone(),
        ideal: summary.ideal_slowdown,
        alone,
        under,
    })
}

fn waits(samples: &[Sample]) -> Result<Vec<Waits>, HistogramError> {
    let mut keys: Vec<(&str, &str, &str)> = Vec::new();
    for sample in samples {
        for guest in sample.vcpu_latency.keys() {
            let key = (sample.phase.as_str(), guest.as_str(), under(sample));
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    let waits = |(phase, guest, scheduler): (&str, &str, &str)| {
        let of = samples
            .iter()
            .filter(|s| s.phase == phase && under(s) == scheduler);
        let times = of
            .filter_map(|s| s.vcpu_latency.get(guest))
            .flat_map(|v| &v.times);
        Ok(Waits {
            phase: phase.to_owned(),
            guest: guest.to_owned(),
            scheduler: scheduler.to_owned(),
            latency: merge(times)?,
        })
    };
    keys.into_iter().map(waits).collect()
}

fn under(sample: &Sample) -> &str {
    if sample.solo { "" } else { &sample.scheduler }
}

fn shares(sums: &CounterSums) -> Shares {
    let vms = sums.cpu_share.iter().map(|(vm, share)| {
        let ideal = sums.ideal_cpu_share.get(vm).copied();
        (vm.clone(), *share, ideal)
    });
    Shares {
        phase: sums.phase.clone(),
        scheduler: sums.scheduler.clone(),
        vms: vms.collect(),
    }
}

fn counters(sums: &CounterSums) -> Counters {
    let seconds = if sums.seconds > 0.0 {
        sums.seconds
    } else {
        1.0
    };
    let counters = sums.counters.iter();
    Counters {
        phase: sums.phase.clone(),
        scheduler: sums.scheduler.clone(),
        per_s: counters
            .map(|(n, v)| (n.clone(), *v as f64 / seconds))
            .collect(),
    }
}
