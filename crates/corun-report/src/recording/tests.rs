// SPDX-License-Identifier: GPL-2.0-only
//! A recording of two vCPUs, written by hand.

use super::*;
use crate::latency;
use crate::recording::tracker::State;
use serde_json::json;

/// Events are (time, kind, vCPU, argument), all of VM 0 on pCPU 0.
fn recording(header: &Value, events: &[(u64, &str, u32, u64)]) -> Result<Recording, String> {
    let mut text = format!("{header}\n");
    for (at, kind, vcpu, arg) in events {
        let event =
            json!({ "at_ns": at, "kind": kind, "pcpu": 0, "vm": 0, "vcpu": vcpu, "arg": arg });
        text += &event.to_string();
        text.push('\n');
    }
    read(header, text.as_bytes())
}

fn header() -> Value {
    json!({
        "corun_events": 1, "source": "host", "title": "t", "pcpus": 1,
        "vms": [{ "name": "a", "vcpus": 2 }], "drops": [3, 4], "kernel": "7.3", "window_ns": 2_000,
    })
}

const EVENTS: [(u64, &str, u32, u64); 9] = [
    (0, "wake", 0, 0),
    (100, "switch_in", 0, 0),
    (200, "ipi_send", 0, 1),
    // The same again: the turn goes on.
    (300, "switch_in", 0, 0),
    (1_100, "switch_out", 0, 1),
    (1_100, "switch_in", 1, 0),
    (1_150, "ipi_take", 1, 2),
    (1_600, "switch_out", 1, 0),
    (1_600, "switch_in", 0, 0),
];

#[test]
fn every_nanosecond_is_in_one_state() {
    let recording = recording(&header(), &EVENTS).expect("reads");
    let of = |vcpu: usize| recording.tracker.vcpus().nth(vcpu).map(|(.., ns)| *ns);
    let mut first = [0; 5];
    first[State::Woken as usize] = 100;
    first[State::Running as usize] = 1_000;
    first[State::Preempted as usize] = 500;
    assert_eq!(of(0), Some(first));
    let mut second = [0; 5];
    second[State::Unseen as usize] = 1_100;
    second[State::Running as usize] = 500;
    assert_eq!(of(1), Some(second));
    let all: u64 = recording.vms()[0].states_ns.iter().sum();
    assert_eq!(all, 2 * recording.length_ns);
}

#[test]
fn times_are_those_between_the_events() {
    let recording = recording(&header(), &EVENTS).expect("reads");
    let times = &recording.times()[0].histograms;
    let only = |what: usize| (times[what].len(), times[what].max());
    let near = |ns: u64| latency::of(&[ns]).max();
    assert_eq!(only(0), (1, 100), "{}", TIMES[0]);
    assert_eq!(only(1).0, 1);
    assert!(
        only(1).1.abs_diff(near(500)) <= 5,
        "{}: {:?}",
        TIMES[1],
        only(1)
    );
    assert_eq!(only(2).0, 2, "{}", TIMES[2]);
    assert_eq!(only(3).0, 1, "{}", TIMES[3]);
    assert!(only(3).1.abs_diff(950) <= 10, "{:?}", only(3));
    let longest = recording.tracker.timeline.longest.expect("one waited");
    assert_eq!(
        (longest.vcpu, longest.from_ns, longest.to_ns),
        (0, 1_100, 1_600)
    );
    assert!(
        recording
            .tracker
            .timeline
            .around
            .iter()
            .any(|i| i.vcpu == 1)
    );
}

#[test]
fn an_interrupt_is_taken_by_its_vector_or_if_it_is_an_ipi() {
    let taken = |events: &[(u64, &str, u32, u64)]| {
        let recording = recording(&header(), events).expect("reads");
        recording.times()[0].histograms[3].len()
    };
    let vector = |v: u64| v << 32;
    assert_eq!(
        taken(&[(0, "ipi_send", 0, 1), (9, "ipi_take", 1, 4)]),
        0,
        "a timer"
    );
    assert_eq!(taken(&[(0, "ipi_send", 0, 1), (9, "ipi_take", 1, 1)]), 1);
    let send = (0, "ipi_send", 0, vector(0xfb) | 1);
    assert_eq!(taken(&[send, (9, "ipi_take", 1, vector(0xfd))]), 0);
    assert_eq!(taken(&[send, (9, "ipi_take", 1, vector(0xfb))]), 1);
    // A target that the VM does not have is nobody's.
    assert_eq!(taken(&[(0, "ipi_send", 0, 7), (9, "ipi_take", 1, 1)]), 0);
}

#[test]
fn what_is_lost_is_said() {
    let recording = recording(&header(), &EVENTS).expect("reads");
    assert_eq!(recording.losses(), ["drops: 7"]);
    let facts = recording.facts();
    let fact = |name: &str| {
        facts
            .iter()
            .find(|f| f.name == name)
            .map(|f| f.value.as_str())
    };
    assert_eq!(fact("kernel"), Some("7.3"));
    assert_eq!(fact("window"), Some("2.00 us"));
    let mut silent = header();
    silent.as_object_mut().expect("is one").remove("drops");
    let losses = self::recording(&silent, &EVENTS).expect("reads").losses();
    assert!(losses[0].contains("does not say"), "{losses:?}");
}

#[test]
fn a_torn_recording_is_read_as_far_as_it_goes() {
    let recording = recording(&header(), &[EVENTS[0], (50, "no_such_kind", 0, 0)]).expect("reads");
    assert_eq!(recording.events, 1);
    assert!(
        recording.losses()[1].contains("line 3"),
        "{:?}",
        recording.losses()
    );
    let nothing = self::recording(&header(), &[(50, "no_such_kind", 0, 0)]);
    assert!(nothing.is_err_and(|e| e.contains("line 2")));
    let stranger = self::recording(&header(), &[(50, "wake", 2, 0)]);
    assert!(stranger.is_err_and(|e| e.contains("vCPU 2")));
}

#[test]
fn a_thousand_vcpus_have_a_report() {
    let mut header = header();
    header["vms"] = json!(
        (0..500)
            .map(|i| json!({ "name": format!("vm{i}"), "vcpus": 2 }))
            .collect::<Vec<_>>()
    );
    let recording = recording(&header, &EVENTS).expect("reads");
    assert_eq!(recording.times().len(), 6);
    assert_eq!(recording.times()[5].name, "495 other VMs");
    let sections = recording.sections();
    let text = serde_json::to_string(&sections).expect("is JSON");
    assert!(
        text.contains("960 more vCPUs are not drawn"),
        "{}",
        text.len()
    );
    let none = json!({ "corun_events": 1, "source": "sim", "title": "", "pcpus": 1, "vms": [] });
    let empty = self::recording(&none, &[]).expect("reads");
    assert!(!empty.sections().is_empty());
}

#[test]
fn sizes_that_no_host_has_are_refused() {
    let mut header = header();
    header["vms"] = json!([{ "name": "a", "vcpus": u32::MAX }]);
    let error = recording(&header, &EVENTS).expect_err("too many");
    assert!(error.contains("at most 65536"), "{error}");
    let late = recording(&self::header(), &[(u64::MAX, "wake", 0, 0)]);
    assert!(late.is_err_and(|e| e.contains("expected at most")));
    let long = recording(&self::header(), &[EVENTS[1], (MOST_NS, "switch_out", 0, 0)]);
    let long = long.expect("reads");
    assert_eq!(
        long.vms()[0].states_ns[State::Running as usize],
        MOST_NS - 100
    );
    assert!(!long.sections().is_empty());
}
