// SPDX-License-Identifier: GPL-2.0-only
//! One small result, summarized and printed: figures computed by hand.

use super::super::{
    BootCounts, CaseResult, Disturbance, GateOutcome, MachineWindow, SCHEMA_VERSION, SchedulerInfo,
    Summary,
};
use super::render;
use crate::case::Case;
use corun_lab_proto::LatencySummary;
use corun_lab_proto::agent::RunResult;
use corun_lab_proto::control::{Calibration, Sample, VcpuLatency};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::path::Path;

fn case() -> Case {
    let text = "[case]\nname='x'\ntitle='two guests'\nrepeats=3\n\
        [[scheduler]]\nlabel='eevdf'\nkind='kernel'\n\
        [[scheduler]]\nlabel='corun'\nkind='corun'\n\
        [[guest]]\nname='a'\n[[guest]]\nname='b'\nweight=300\n\
        [[phase]]\nname='tlb'\nmeasure=['a']\nsolo=true\n\
        run={a={workload='tlb'}, b={workload='cpu'}}\n";
    crate::case::parse(text, Path::new("x")).expect("is good")
}

fn run(rate: f64, latency_ns: u64) -> RunResult {
    let mut h = Histogram::<u64>::new(3).expect("valid");
    h.record(latency_ns).expect("records");
    RunResult {
        workload: "tlb".to_owned(),
        threads: 2,
        work: rate,
        unit: "calls".to_owned(),
        elapsed_ns: 1_000_000_000,
        rate_per_s: rate,
        latency: vec![LatencySummary::from_histogram("one call", &h).expect("encodes")],
        steal_ns: 0,
        interrupts: BTreeMap::new(),
        module_counts: BTreeMap::new(),
    }
}

fn sample(scheduler: &str, solo: bool, repeat: u32, rate: f64) -> Sample {
    let yields = if solo { [0, 0, 0] } else { [10, 6, 4] };
    let names = [
        "yield.asked",
        "yield.honoured",
        "yield.refused_by_scheduler",
    ];
    Sample {
        window: repeat,
        phase: "tlb".to_owned(),
        scheduler: scheduler.to_owned(),
        solo,
        repeat,
        factor: 40.0,
        sched_ext: None,
        disturbed: false,
        redone: 0,
        start_spread_ns: 0,
        guests: [("a".to_owned(), run(rate, 2_000_000))].into(),
        elapsed_ns: 1_000_000_000,
        vm_cpu_ns: [
            ("a".to_owned(), 500_000_000),
            ("b".to_owned(), 1_500_000_000),
        ]
        .into(),
        busy_ns: 2_000_000_000,
        counters: names.iter().map(|n| (*n).to_owned()).zip(yields).collect(),
        vcpu_latency: BTreeMap::new(),
        host_task: None,
    }
}

fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for (i, (solo, eevdf, corun)) in [
        (1000.0, 200.0, 400.0),
        (1200.0, 250.0, 500.0),
        (900.0, 100.0, 250.0),
    ]
    .into_iter()
    .enumerate()
    {
        let repeat = u32::try_from(i).expect("small");
        all.push(sample("eevdf", true, repeat, solo));
        all.push(sample("eevdf", false, repeat, eevdf));
        all.push(sample("corun", false, repeat, corun));
    }
    all
}

fn result() -> CaseResult {
    let (case, samples) = (case(), samples());
    let gate = GateOutcome {
        slowdown: 2.01,
        solo_pcpus: 1.98,
        passed: true,
    };
    CaseResult {
        schema_version: SCHEMA_VERSION,
        summary: Summary::of(&case, &samples).expect("sums up"),
        schedulers: case
            .schedulers
            .iter()
            .map(|s| SchedulerInfo::of(s, 40.0))
            .collect(),
        case,
        case_text: String::new(),
        case_sha256: String::new(),
        versions: BTreeMap::new(),
        accel: "tcg".to_owned(),
        host: None,
        guests: Vec::new(),
        calibration: Some(Calibration {
            exit_ns: 30_000.0,
            switch_ns: 120_000.0,
            auto_factor: 40.0,
            factor: 40.0,
            slice_ns: 120_000_000,
            kernel_slice_ns: None,
        }),
        gate: Some(gate),
        boots: BootCounts {
            started: 2,
            emulator_faults: Vec::new(),
            gate_rejected: vec![gate],
        },
        windows: vec![machine_window(0.06, false), machine_window(0.01, true)],
        warnings: vec!["L1 kernel: WARNING: x".to_owned()],
        samples,
    }
}

fn machine_window(steal: f64, accepted: bool) -> MachineWindow {
    MachineWindow {
        window: 0,
        disturbance: Disturbance {
            steal,
            foreign: 0.02,
        },
        accepted,
    }
}

#[test]
fn figures_by_hand() {
    let s = Summary::of(&case(), &samples()).expect("sums up");
    let g = &s.guests[0];
    let spread = |s: &Option<super::super::Spread>| s.map(|s| (s.min, s.median, s.max));
    assert_eq!(spread(&g.solo), Some((900.0, 1000.0, 1200.0)));
    // The median solo rate, 1000, over 250, 200 and 100.
    assert_eq!(spread(&g.schedulers[0].slowdown), Some((4.0, 5.0, 10.0)));
    assert_eq!(spread(&g.schedulers[1].slowdown), Some((2.0, 2.5, 4.0)));
    // Weights 100 : 300 on 2 pCPUs leave `a` 0.5 of the 2 it can use.
    assert_eq!(g.ideal_slowdown, Some(4.0));
    let c = &s.counters[0];
    assert_eq!((c.windows, c.counters["yield.asked"]), (3, 30));
    assert_eq!(spread(&Some(c.cpu_share["a"])), Some((0.25, 0.25, 0.25)));
    assert!((c.ideal_cpu_share["b"] - 0.75).abs() < 1e-9);
    assert_eq!(spread(&Some(c.fair_use["b"])), Some((1.0, 1.0, 1.0)));
}

#[test]
fn a_window_without_work_voids_the_slowdown_and_stays_json() {
    let mut samples = samples();
    samples.push(sample("corun", false, 3, 0.0));
    let s = Summary::of(&case(), &samples).expect("sums up");
    assert_eq!(s.guests[0].schedulers[1].slowdown, None);
    assert!(s.guests[0].schedulers[1].rate.is_some());
}

#[test]
fn the_report_as_printed() {
    let expected = include_str!("table_golden.txt").replace("VERSION", env!("CARGO_PKG_VERSION"));
    assert_eq!(render(&result()), expected);
}

/// Distributions of one sample each.
fn times(of: &[(&str, u64)]) -> Vec<LatencySummary> {
    of.iter()
        .map(|(what, ns)| {
            let mut h = Histogram::<u64>::new(3).expect("valid");
            h.record(*ns).expect("records");
            LatencySummary::from_histogram(what, &h).expect("encodes")
        })
        .collect()
}

/// The result of a case that asks for latencies and the host's task, with three
/// windows of one second under each scheduler.
fn result_with_latency() -> CaseResult {
    let mut r = result();
    (r.case.case.latency, r.case.case.host_task) = (true, true);
    for s in r.samples.iter_mut().filter(|s| !s.solo) {
        let ipis = [("ipi", 1_000_000), ("ipi_to_preempted", 1_000_000)];
        let figures = VcpuLatency {
            times: times(&[&ipis[..], &[("wake_to_run", 20_000)]].concat()),
            sums_ns: [
                ("preempted", 300_000_000),
                ("preempted_with_ipi", 4_000_000),
            ]
            .map(|(n, v)| (n.to_owned(), v))
            .into(),
            counts: [("yields".to_owned(), 100)].into(),
        };
        s.vcpu_latency.insert("a".to_owned(), figures);
        s.host_task = times(&[("host", 7_000_000)]).pop();
    }
    r.summary = Summary::of(&r.case, &r.samples).expect("sums up");
    r
}

#[test]
fn vcpu_latencies_by_hand() {
    let r = result_with_latency();
    let v = &r.summary.vcpu_latency;
    // Solo windows have none, and guest "b" was not observed.
    assert_eq!(v.len(), 2);
    assert_eq!((v[0].scheduler.as_str(), v[0].solo), ("eevdf", false));
    assert!((v[0].seconds - 3.0).abs() < 1e-9);
    assert!((v[0].preempted_ms_per_s - 300.0).abs() < 1e-9);
    assert!((v[0].waited_ms_per_s - 4.0).abs() < 1e-9);
    assert_eq!(v[0].of("ipi").map(|l| l.count), Some(3));
    assert_eq!(v[0].ipis_to_waiting(), Some(1.0));
    // 100 yields a second over a mean of (200 + 250 + 100) / 3 calls a second.
    assert!((v[0].per_work["yields"] - 300.0 / 550.0).abs() < 1e-9);
}

#[test]
fn latency_tables_are_printed_when_asked_for() {
    let text = render(&result_with_latency());
    for row in [
        "| tlb   | a     | tlb      | eevdf |",
        "| tlb   | a     | one call   | (alone) |     3 | 2.00 ms | 2.00 ms |",
        "| tlb   | corun     |     3 | 7.00 ms | 7.00 ms | 7.00 ms |",
        "| 1.00 ms | 1.00 ms |      100.0 % |",
    ] {
        assert!(text.contains(row), "{row} is not in\n{text}");
    }
    assert!(!render(&result()).contains("wake-to-run"));
}
