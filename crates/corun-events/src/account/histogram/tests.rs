// SPDX-License-Identifier: GPL-2.0-only

use super::*;

#[test]
fn buckets_follow_each_other_and_end_where_the_kernels_do() {
    for i in 0..303 {
        let (first, width) = bounds(i);
        assert_eq!(bounds(i + 1).0, first + width, "after bucket {i}");
        assert!(width == 1 || width * 8 <= first, "bucket {i}");
    }
    let (first, width) = bounds(303);
    assert_eq!(first + width, 1 << 40);
    assert_eq!(Histogram::BUCKETS, 304);
}

#[test]
fn a_time_is_within_its_buckets_bounds() {
    for ns in [0, 1, 7, 8, 9, 15, 16, 1_000, 123_456_789, (1 << 40) - 1] {
        let index = u32::try_from(bucket(ns)).expect("small");
        let (first, width) = bounds(index);
        assert!((first..first + width).contains(&ns), "{ns} in {index}");
    }
    assert_eq!(bucket(u64::MAX), Histogram::BUCKETS - 1);
}

#[test]
fn quantiles_are_near_the_samples() {
    let all: Vec<u64> = (1..=1000).map(|i| i * 1000).collect();
    let d = Histogram::of(&all);
    for (q, exact) in [(0.5, 500_000.0), (0.9, 900_000.0), (0.99, 990_000.0)] {
        let found = d.quantile_ns(q) as f64;
        assert!((found / exact - 1.0).abs() < 0.07, "{q}: {found}");
    }
    assert_eq!(d.quantile_ns(1.0), 1_000_000);
    assert!((d.mean_ns() - 500_500.0).abs() < 1e-6);
}

#[test]
fn the_largest_is_exact_and_no_sample_is_lost() {
    let d = Histogram::of(&[5, 100, 100, 1_000_003]);
    let samples: Vec<_> = d.samples().collect();
    assert_eq!(samples.iter().map(|s| s.1).sum::<u64>(), 4);
    assert_eq!(samples.last(), Some(&(1_000_003, 1)));
    assert_eq!(samples.first(), Some(&(5, 1)));
    assert_eq!(d.buckets().map(|b| b.1).sum::<u64>(), 4);
    assert!(d.buckets().all(|(last, _)| last >= 5));
}

#[test]
fn merging_is_counting_together() {
    let mut a = Histogram::of(&[1, 2000]);
    a.merge(&Histogram::of(&[70, 300_000]));
    assert_eq!(a, Histogram::of(&[1, 2000, 70, 300_000]));
    let mut none = Histogram::default();
    none.merge(&Histogram::of(&[9]));
    assert_eq!((none.count, none.quantile_ns(0.5)), (1, 9));
    assert_eq!(Histogram::default().quantile_ns(0.5), 0);
}

#[test]
fn a_difference_is_what_came_after() {
    let before = Histogram::of(&[10, 1_000_000]);
    let mut now = before.clone();
    now.merge(&Histogram::of(&[10, 2_000]));
    now.subtract(&before);
    assert_eq!((now.count, now.sum_ns), (2, 2_010));
    let samples: Vec<_> = now.samples().collect();
    assert_eq!(samples.len(), 2);
    assert!(now.max_ns >= 2_000 && now.max_ns < 2_300, "{}", now.max_ns);
    let mut same = before.clone();
    same.subtract(&before);
    assert_eq!(same, Histogram::default());
}

#[test]
fn json_keeps_all_and_refuses_what_is_no_bucket() {
    let d = Histogram::of(&[5, 100, 100, 1_000_003]);
    let json = serde_json::to_string(&d).expect("json");
    assert!(json.contains("[[5,1],"), "{json}");
    assert_eq!(serde_json::from_str::<Histogram>(&json).expect("reads"), d);
    let bad = r#"{"count":1,"sum_ns":1,"max_ns":1,"buckets":[[304,1]]}"#;
    let error = serde_json::from_str::<Histogram>(bad).expect_err("no such bucket");
    assert!(error.to_string().contains("less than 304"), "{error}");
}
