// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use crate::sim::result::Latency;
use crate::sim::summary::SchedulerFigures;

fn spread(median: f64) -> Spread {
    Spread {
        median,
        min: median * 0.5,
        max: median * 2.0,
        count: 3,
    }
}

fn figures(rate: f64) -> Figures {
    let latency = Latency {
        count: 1200,
        mean_ns: 2_500.0,
        p50_ns: 2_000,
        p99_ns: 7_340_000,
        max_ns: 9_000_000,
    };
    Figures {
        rate: Some(spread(rate)),
        profile: [("user", spread(0.25)), ("k:tlb", spread(0.75))].into(),
        latency: [("tlb".to_owned(), latency)].into(),
        histograms: [].into(),
    }
}

fn guest() -> GuestSummary {
    GuestSummary {
        phase: "tlb".to_owned(),
        guest: "a".to_owned(),
        workload: "tlb".to_owned(),
        solo: Some(figures(4000.0)),
        ideal_slowdown: Some(2.0),
        ideal_cpu_share: Some(0.5),
        schedulers: vec![SchedulerFigures {
            scheduler: "corun".to_owned(),
            slowdown: Some(spread(2.5)),
            cpu_share: Some(spread(0.4)),
            figures: figures(1600.0),
        }],
    }
}

#[test]
fn rates_have_a_row_for_each_scheduler() {
    assert_eq!(
        rates(&[guest()]).to_string(),
        "| phase | guest | workload | scheduler | solo/s               | co-run/s           | slowdown           | ideal | CPU share           | entitled to |\n\
         |-------|-------|----------|-----------|----------------------|--------------------|--------------------|-------|---------------------|-------------|\n\
         | tlb   | a     | tlb      | corun     | 4,000 [2,000..8,000] | 1,600 [800..3,200] | 2.50x [1.25..5.00] | 2.00x | 40.0 % [20.0..80.0] |      50.0 % |"
    );
}

#[test]
fn profiles_and_latencies_show_the_guest_alone_too() {
    assert_eq!(
        profiles(&[guest()]).to_string(),
        "| phase | guest | scheduler | user | k:lock | k:tlb | k:other |\n\
         |-------|-------|-----------|------|--------|-------|---------|\n\
         | tlb   | a     | (solo)    | 25.0 |      - |  75.0 |       - |\n\
         | tlb   | a     | corun     | 25.0 |      - |  75.0 |       - |"
    );
    let table = latencies(&[guest()]).to_string();
    let row = "| tlb   | a     | corun     | TLB shootdown | 1,200 | 2.50 us | 2.00 us | 7.34 ms |";
    assert!(table.contains(row), "{table}");
}
