// SPDX-License-Identifier: GPL-2.0-only
//! Reads a result of `corun sim run`.

use crate::config;
use crate::lab::{labels, title};
use crate::model::Fact;
use crate::outcome::{Counters, Figures, Latency, Measured, Outcome, Shares};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use corun_lab::results::Spread;
use hdrhistogram::serialization::Deserializer;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct SimResult {
    #[serde(default)]
    case_text: String,
    runs: Vec<Run>,
    summary: Vec<GuestSummary>,
}

#[derive(Deserialize)]
struct Run {
    phase: String,
    scheduler: String,
    solo: Option<String>,
    measured_ns: u64,
    guests: Vec<GuestRun>,
}

#[derive(Deserialize)]
struct GuestRun {
    counters: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct GuestSummary {
    phase: String,
    guest: String,
    workload: String,
    solo: Option<SimFigures>,
    ideal_slowdown: Option<f64>,
    ideal_cpu_share: Option<f64>,
    schedulers: Vec<SchedulerFigures>,
}

#[derive(Deserialize)]
struct SchedulerFigures {
    scheduler: String,
    slowdown: Option<Spread>,
    cpu_share: Option<Spread>,
    #[serde(flatten)]
    figures: SimFigures,
}

#[derive(Deserialize)]
struct SimFigures {
    rate: Option<Spread>,
    #[serde(default)]
    profile: BTreeMap<String, Spread>,
    /// Absent in results of corun before it had reports.
    #[serde(default)]
    histograms: BTreeMap<String, String>,
}

/// Reads `value`, which has been recognised.
pub(crate) fn read(value: &Value) -> Result<Outcome, String> {
    let result = SimResult::deserialize(value).map_err(|e| e.to_string())?;
    let schedulers = labels(value);
    let rows: Result<Vec<Measured>, String> = result.summary.iter().map(row).collect();
    Ok(Outcome {
        title: title(value),
        facts: facts(value),
        losses: vec![format!(
            "nothing: {} simulated runs, all in the figures",
            result.runs.len()
        )],
        programs: programs(value),
        models: models(value),
        rows: rows?,
        shares: shares(&result.summary, &schedulers),
        counters: counters(&result.runs),
        case_text: result.case_text,
        schedulers,
        ..Outcome::default()
    })
}

fn facts(value: &Value) -> Vec<Fact> {
    let mut facts = config::facts(
        value,
        &[
            ("made by", "/version"),
            ("machine", "/machine"),
            ("changes", "/set"),
            ("host pCPUs", "/case/host/pcpus"),
            ("repeats (seeds)", "/case/case/repeats"),
            ("first seed", "/case/sim/seed"),
            ("window (s)", "/case/case/measure_s"),
            ("warm-up (s)", "/case/case/warmup_s"),
            ("time scale", "/case/case/time_scale"),
        ],
    );
    for fact in facts.iter_mut().filter(|f| f.name == "made by") {
        fact.value = format!("corun sim {}", fact.value);
    }
    if let Some(case) = value.get("case") {
        facts.extend(config::guests(case));
    }
    facts.extend(config::facts(
        value,
        &[("case file's SHA-256", "/case_sha256")],
    ));
    facts
}

fn models(value: &Value) -> Vec<Fact> {
    let models = value.get("models").and_then(Value::as_object);
    let model = |(name, hash): (&String, &Value)| Some(Fact::new(name, hash.as_str()?));
    models.into_iter().flatten().filter_map(model).collect()
}

fn programs(value: &Value) -> Vec<Fact> {
    let schedulers = value.pointer("/case/scheduler").and_then(Value::as_array);
    let program = |s: &Value| {
        let kind = config::text(s.get("kind")?)?;
        let options = s.get("options").and_then(config::text).unwrap_or_default();
        let text = format!("model of {kind} {options}");
        Some(Fact::new(s.get("label")?.as_str()?, text.trim_end()))
    };
    schedulers
        .into_iter()
        .flatten()
        .filter_map(program)
        .collect()
}

fn row(summary: &GuestSummary) -> Result<Measured, String> {
    let mut under = Vec::new();
    for of in &summary.schedulers {
        under.push((of.scheduler.clone(), figures(&of.figures, of.slowdown)?));
    }
    let alone = summary
        .solo
        .as_ref()
        .map(|s| figures(s, None))
        .transpose()?;
    Ok(Measured {
        phase: summary.phase.clone(),
        guest: summary.guest.clone(),
        workload: summary.workload.clone(),
        unit: "units".to_owned(),
        ideal: summary.ideal_slowdown,
        alone,
        under,
    })
}

fn figures(of: &SimFigures, slowdown: Option<Spread>) -> Result<Figures, String> {
    let latency: Result<Vec<Latency>, String> = of.histograms.iter().map(latency).collect();
    let profile = of.profile.iter().map(|(n, s)| (n.clone(), s.median));
    Ok(Figures {
        rate: of.rate,
        slowdown,
        profile: profile.collect(),
        latency: latency?,
    })
}

fn latency((what, text): (&String, &String)) -> Result<Latency, String> {
    let wrong = |e: &dyn std::fmt::Display| format!("histogram {what:?}: {e}");
    let bytes = STANDARD.decode(text).map_err(|e| wrong(&e))?;
    let histogram = Deserializer::new().deserialize(&mut bytes.as_slice());
    Ok(Latency {
        what: what.clone(),
        histogram: histogram.map_err(|e| wrong(&format!("{e:?}")))?,
    })
}

fn shares(summary: &[GuestSummary], schedulers: &[String]) -> Vec<Shares> {
    let mut phases: Vec<&str> = Vec::new();
    for guest in summary {
        if !phases.contains(&guest.phase.as_str()) {
            phases.push(&guest.phase);
        }
    }
    let vm = |guest: &GuestSummary, scheduler: &str| {
        let of = guest.schedulers.iter().find(|s| s.scheduler == scheduler)?;
        Some((guest.guest.clone(), of.cpu_share?, guest.ideal_cpu_share))
    };
    let mut all = Vec::new();
    for phase in phases {
        for scheduler in schedulers {
            let guests = summary.iter().filter(|g| g.phase == phase);
            all.push(Shares {
                phase: phase.to_owned(),
                scheduler: scheduler.clone(),
                vms: guests.filter_map(|g| vm(g, scheduler)).collect(),
            });
        }
    }
    all
}

/// All guests' counters together, a second of the simulated host.
fn counters(runs: &[Run]) -> Vec<Counters> {
    let mut all: Vec<(Counters, f64)> = Vec::new();
    for run in runs.iter().filter(|r| r.solo.is_none()) {
        let known = |c: &Counters| c.phase == run.phase && c.scheduler == run.scheduler;
        let at = all.iter().position(|(c, _)| known(c)).unwrap_or_else(|| {
            let new = Counters {
                phase: run.phase.clone(),
                scheduler: run.scheduler.clone(),
                per_s: BTreeMap::new(),
            };
            all.push((new, 0.0));
            all.len() - 1
        });
        let (counters, seconds) = &mut all[at];
        *seconds += run.measured_ns as f64 / 1e9;
        for (name, count) in run.guests.iter().flat_map(|g| &g.counters) {
            *counters.per_s.entry(name.clone()).or_default() += *count as f64;
        }
    }
    for (counters, seconds) in &mut all {
        for value in counters.per_s.values_mut() {
            *value /= seconds.max(f64::MIN_POSITIVE);
        }
    }
    all.into_iter().map(|(counters, _)| counters).collect()
}
