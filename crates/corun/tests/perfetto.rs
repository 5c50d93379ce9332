// SPDX-License-Identifier: GPL-2.0-only
//! Traces for Perfetto as Perfetto's own parser reads them: `make perfetto-test`.

use corun_events::export::Flows;
use corun_events::state::{Follower, State};
use corun_events::{Event, Header, Kind, recording};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Set where a parser that cannot be had is a failure: in CI.
const REQUIRED: &str = "CORUN_PERFETTO_REQUIRED";
/// How scripts/perfetto-check says that it could not check.
const UNCHECKED: i32 = 2;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn corun(args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_corun"))
        .args(args)
        .current_dir(REPOSITORY)
        .output()
        .expect("corun starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
}

/// Records a moment of the demo's shootdowns: IPIs, wake-ups, directed yields.
fn record(folder: &Path) -> PathBuf {
    let file = folder.join("tlb.trace.zst");
    let moment = ["case.measure_s=0.05", "case.warmup_s=0.1"];
    let out = file.display().to_string();
    corun(&[
        "sim",
        "trace",
        "demo",
        "--phase",
        "tlb",
        "--scheduler",
        "eevdf",
        "--set",
        moment[0],
        "--set",
        moment[1],
        "--out",
        &out,
    ]);
    file
}

fn export(recording: &Path) -> PathBuf {
    let trace = recording.with_extension("perfetto-trace");
    let (from, to) = (recording.display(), trace.display());
    corun(&[
        "trace",
        "export",
        &from.to_string(),
        "--format",
        "perfetto",
        "-o",
        &to.to_string(),
    ]);
    trace
}

/// What the parser makes of `traces`, and whether all is well; `None` where there
/// is no parser, which is said.
fn check(traces: &[PathBuf]) -> Option<(Vec<Value>, bool)> {
    let output = Command::new(format!("{REPOSITORY}/scripts/perfetto-check"))
        .arg("--json")
        .args(traces)
        .output()
        .expect("the script starts");
    let Output {
        status,
        stdout,
        stderr,
    } = output;
    let said = String::from_utf8_lossy(&stderr);
    if status.code() == Some(UNCHECKED) {
        assert!(
            std::env::var_os(REQUIRED).is_none(),
            "{REQUIRED} is set: {said}"
        );
        println!("SKIP: Perfetto's parser did not look at any trace: {said}");
        return None;
    }
    let found = String::from_utf8(stdout).expect("text");
    let found = found
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let found: Vec<Value> = found.collect();
    assert_eq!(found.len(), traces.len(), "{said}");
    Some((found, status.success()))
}

/// What a recording's trace must have: slices and samples counted without the
/// exporter, and the arrows that it was given.
#[derive(Debug, Default)]
struct Wanted {
    slices: BTreeMap<&'static str, u64>,
    flows: BTreeMap<&'static str, u64>,
    samples: u64,
}

impl Wanted {
    fn of(file: &Path) -> (Self, Header) {
        let recording = recording::open(file).expect("a recording");
        let header = recording.header.clone();
        let events: Vec<Event> = recording.map(|event| event.expect("an event")).collect();
        let mut flows = Flows::new(&header);
        for event in &events {
            flows.take(event);
        }
        let mut wanted = Self::default();
        let mut follower = Follower::new(&header);
        for (number, event) in (0..).zip(&events) {
            wanted.slices_of(event, &mut follower);
            let begun = flows.of(number).iter().filter(|flow| !flow.ends).count();
            wanted.flows_of(event.kind, begun as u64);
        }
        (wanted, header)
    }

    fn slices_of(&mut self, event: &Event, follower: &mut Follower) {
        let before = follower.state(event.vm, event.vcpu);
        let kind = match event.kind {
            Kind::Enter => "guest",
            Kind::Exit => "exit",
            Kind::SwitchIn => "pcpu",
            Kind::SwitchOut | Kind::Halt | Kind::HaltEnd => "",
            _ => "event",
        };
        let mut count = |kind| *self.slices.entry(kind).or_default() += 1;
        if !kind.is_empty() {
            count(kind);
        }
        if follower.take(event).is_some() {
            count("state");
            let now = follower.state(event.vm, event.vcpu);
            let is_ready = |state| matches!(state, State::Ready(_));
            self.samples += u64::from(before.is_on() != now.is_on());
            self.samples += u64::from(is_ready(before) != is_ready(now));
        }
    }

    fn flows_of(&mut self, kind: Kind, number: u64) {
        let name = match kind {
            _ if number == 0 => return,
            Kind::IpiSend => "ipi",
            Kind::Wake => "wake",
            Kind::YieldGrant => "yield",
            other => panic!("{other:?} led to something"),
        };
        *self.flows.entry(name).or_default() += number;
    }
}

#[test]
#[ignore = "wants Perfetto's parser: make perfetto-test"]
fn the_parser_finds_all_that_was_recorded() {
    let folder = tempfile::tempdir().expect("folder");
    let recording = record(folder.path());
    let Some((found, good)) = check(&[export(&recording)]) else {
        return;
    };
    let found = &found[0];
    assert!(good, "{}", found["problems"]);
    let (wanted, header) = Wanted::of(&recording);
    assert_eq!(wanted.flows.len(), 3, "{wanted:?}");
    assert_eq!(found["flows"], json!(wanted.flows));
    assert_eq!(found["slices"], json!(wanted.slices));
    assert_eq!(found["samples"], wanted.samples);
    assert_eq!(found["counters"], 2 * header.vms.len());
    assert_eq!(found["pcpus"], header.pcpus);
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().expect("a list").iter();
        list.map(|name| name.as_str().expect("text").to_owned())
            .collect()
    };
    let vms = names(&found["vms"]);
    assert_eq!(vms.len(), header.vms.len());
    for (vm, found) in header.vms.iter().zip(&vms) {
        assert!(found.ends_with(&format!(" VM {}", vm.name)), "{vms:?}");
    }
    let vcpus: u32 = header.vms.iter().map(|vm| vm.vcpus).sum();
    assert_eq!(names(&found["vcpus"]).len(), vcpus as usize);
}

/// Bytes that tell an event's type: its field, and the next one's tag.
const fn event_type(number: u8) -> [u8; 3] {
    [0x48, number, 0x58]
}
const END: [u8; 3] = event_type(2);
const INSTANT: [u8; 3] = event_type(3);
/// Tags of fields.
const COUNTER_VALUE: [u8; 2] = [0xf0, 0x01];
const FLOW: [u8; 2] = [0xf9, 0x02];
const FLOW_END: [u8; 2] = [0x81, 0x03];

/// A trace's packets, each with its tag and length.
fn packets(mut trace: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while !trace.is_empty() {
        let digits = trace[1..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
        let length = trace[1..=digits].iter().rev();
        let length = length.fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
        let (packet, rest) = trace.split_at(1 + digits + length);
        packets.push(packet.to_vec());
        trace = rest;
    }
    packets
}

fn place(packet: &[u8], bytes: &[u8]) -> Option<usize> {
    packet
        .windows(bytes.len())
        .position(|window| window == bytes)
}

/// The first packet that has all of `parts`.
fn first(packets: &[Vec<u8>], parts: &[&[u8]]) -> usize {
    let has_all = |packet: &Vec<u8>| parts.iter().all(|part| place(packet, part).is_some());
    packets
        .iter()
        .position(has_all)
        .expect("a packet with these")
}

/// Traces that were damaged, each with what is to be said of it.
fn damaged(trace: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let whole = packets(trace);
    let without = |parts: &[&[u8]]| {
        let mut packets = whole.clone();
        packets.remove(first(&whole, parts));
        packets.concat()
    };
    let end = first(&whole, &[&END]);
    let mut twice = whole.clone();
    twice.insert(end, whole[end].clone());
    let mut counts_wrong = whole.clone();
    let counter = &mut counts_wrong[first(&whole, &[&COUNTER_VALUE])];
    let value = place(counter, &COUNTER_VALUE).expect("is there") + COUNTER_VALUE.len();
    counter[value] = 100;
    vec![
        ("bytes are missing", trace[..trace.len() - 3].to_vec()),
        ("slices that do not end", without(&[&END])),
        ("ends of slices are in the file", twice.concat()),
        (
            "beginnings of flows are in the file",
            without(&[&INSTANT, &FLOW_END]),
        ),
        ("ends of flows are in the file", without(&[&INSTANT, &FLOW])),
        ("on no thread of a VM", without(&[b"vCPU 0"])),
        ("on no track of a pCPU", without(&[b"pCPU 0"])),
        ("samples of counters not between", counts_wrong.concat()),
    ]
}

#[test]
#[ignore = "wants Perfetto's parser: make perfetto-test"]
fn damage_is_noticed() {
    let folder = tempfile::tempdir().expect("folder");
    let trace = fs::read(export(&record(folder.path()))).expect("a trace");
    let damaged = damaged(&trace);
    let mut files = Vec::new();
    for (number, (_, trace)) in damaged.iter().enumerate() {
        files.push(folder.path().join(format!("{number}.perfetto-trace")));
        fs::write(&files[number], trace).expect("written");
    }
    let Some((found, good)) = check(&files) else {
        return;
    };
    assert!(!good);
    for ((words, _), found) in damaged.iter().zip(found) {
        let problems = found["problems"].to_string();
        assert!(problems.contains(words), "no {words:?} in {problems}");
    }
}
