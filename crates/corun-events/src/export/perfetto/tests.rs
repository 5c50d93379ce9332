// SPDX-License-Identifier: GPL-2.0-only
//! Decodes what was written by the wire format alone, and holds it to what
//! viewers expect. Perfetto's own parser has its say in `make perfetto-test`.

use super::super::flows::Flows;
use super::*;
use crate::{Vm, interrupt_arg, out};
use corun_symbols::Library;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A field's value.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// A message as its fields.
type Fields = Vec<(u64, Value)>;

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint of more than 64 bits");
}

fn decode(mut bytes: &[u8]) -> Fields {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_first_chunk::<8>().expect("8 bytes");
                bytes = rest;
                Value::Number(u64::from_le_bytes(*value))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).expect("fits");
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

fn numbers(fields: &Fields, field: u64) -> Vec<u64> {
    let of = fields.iter().filter(|(f, _)| *f == field);
    of.map(|(_, v)| match v {
        Value::Number(n) => *n,
        Value::Bytes(_) => panic!("field {field} is no number"),
    })
    .collect()
}

fn messages(fields: &Fields, field: u64) -> Vec<Vec<u8>> {
    let of = fields.iter().filter(|(f, _)| *f == field);
    of.map(|(_, v)| match v {
        Value::Bytes(bytes) => bytes.clone(),
        Value::Number(_) => panic!("field {field} is a number"),
    })
    .collect()
}

fn text(fields: &Fields, field: u64) -> String {
    let bytes = messages(fields, field).pop().unwrap_or_default();
    String::from_utf8(bytes).expect("text")
}

/// What a trace has, checked on the way.
#[derive(Debug, Default)]
struct Seen {
    tracks: BTreeMap<u64, String>,
    slices: BTreeMap<u64, Vec<String>>,
    counters: BTreeMap<u64, Vec<u64>>,
    begun: BTreeSet<u64>,
    ended: BTreeSet<u64>,
}

/// Tracks are described before they are used and once, slices nest and all end,
/// times of a track never go back.
fn check(trace: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let mut open: HashMap<u64, u64> = HashMap::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    for packet in messages(&decode(trace), 1) {
        let packet = decode(&packet);
        assert_eq!(numbers(&packet, 10), [1], "one sequence");
        for track in messages(&packet, 60) {
            let track = decode(&track);
            let uuid = numbers(&track, 1)[0];
            for parent in numbers(&track, 5) {
                assert!(seen.tracks.contains_key(&parent), "parent of {uuid:#x}");
            }
            let name = text(&track, 2);
            assert!(seen.tracks.insert(uuid, name).is_none(), "{uuid:#x} twice");
        }
        for event in messages(&packet, 11) {
            let event = decode(&event);
            let at_ns = numbers(&packet, 8)[0];
            let uuid = numbers(&event, 11)[0];
            assert!(seen.tracks.contains_key(&uuid), "track {uuid:#x}");
            let before = last.insert(uuid, at_ns).unwrap_or(0);
            assert!(before <= at_ns, "{uuid:#x}: {at_ns} after {before}");
            let depth = open.entry(uuid).or_default();
            match numbers(&event, 9)[0] {
                1 => {
                    *depth += 1;
                    let inside = matches!(text(&event, 22).as_str(), "guest" | "exit");
                    assert_eq!(*depth, 1 + u64::from(inside), "{}", text(&event, 23));
                    seen.slices.entry(uuid).or_default().push(text(&event, 23));
                }
                2 => *depth = depth.checked_sub(1).expect("an end has its begin"),
                3 => assert!(!text(&event, 23).is_empty()),
                4 => seen
                    .counters
                    .entry(uuid)
                    .or_default()
                    .extend(numbers(&event, 30)),
                other => panic!("event type {other}"),
            }
            seen.begun.extend(numbers(&event, 47));
            seen.ended.extend(numbers(&event, 48));
        }
    }
    assert!(open.values().all(|depth| *depth == 0), "{open:?}");
    seen
}

fn export(events: &[Event]) -> (Seen, Flows) {
    let mut header = Header::new("host", "test", 2, vec![Vm::new("a", 2)]);
    header.duration_ns = 100;
    header.vms[0].pid = 500;
    header.vms[0].tids = vec![501, 0];
    header.marks = vec!["here".to_owned()];
    header.tasks.insert(9, "kworker".to_owned());
    let symbols = Symbols::new(&header, &Library::default()).expect("no maps");
    let mut flows = Flows::new(&header);
    for event in events {
        flows.take(event);
    }
    let mut exporter = Perfetto::new(Vec::new(), &header, &symbols, &flows).expect("begins");
    for event in events {
        exporter.take(event).expect("goes on");
    }
    (check(&exporter.finish().expect("ends")), flows)
}

fn event(at_ns: u64, vcpu: u32, kind: Kind, arg: u64) -> Event {
    Event {
        at_ns,
        kind,
        pcpu: vcpu,
        vm: 0,
        vcpu,
        arg,
        ip: 0,
    }
}

fn story() -> Vec<Event> {
    let vector = |to| interrupt_arg(to, 0xfc);
    let host = |at_ns, kind, arg| Event {
        vm: crate::NO_VM,
        ..event(at_ns, 0, kind, arg)
    };
    vec![
        event(1, 1, Kind::SwitchOut, out::BLOCKED),
        event(2, 0, Kind::Enter, 0),
        event(5, 0, Kind::Exit, 0),
        event(6, 0, Kind::IpiSend, vector(1)),
        event(7, 1, Kind::Wake, 1),
        event(8, 0, Kind::Enter, 0),
        event(9, 1, Kind::SwitchIn, 0),
        event(9, 1, Kind::IpiTake, vector(0)),
        event(10, 1, Kind::Enter, 0),
        host(11, Kind::Mark, 0),
        event(12, 0, Kind::Exit, 3),
        event(13, 0, Kind::YieldAsk, 1),
        event(14, 0, Kind::SwitchOut, out::YIELDED),
        host(14, Kind::HostIn, 9),
        event(20, 0, Kind::SwitchIn, 0),
        event(22, 0, Kind::Halt, 0),
        event(24, 0, Kind::IpiSend, vector(1)),
    ]
}

#[test]
fn slices_nest_and_flows_resolve() {
    let (seen, flows) = export(&story());
    assert_eq!(flows.count(), 2);
    assert_eq!(seen.begun.len(), 2);
    assert_eq!(seen.begun, seen.ended);
    let names = |track| seen.slices[&track].join(", ");
    assert_eq!(
        names(vcpu_track(0, 0)),
        "running, guest, exit icr, guest, exit pause, ready: yielded, running, polling"
    );
    assert_eq!(
        names(vcpu_track(0, 1)),
        "halted, ready: woken, running, guest"
    );
    assert_eq!(names(pcpu_track(0)), "host: kworker (9), a/0");
    assert_eq!(seen.tracks[&group::VM], "VM a");
    assert_eq!(seen.counters[&group::RUNNING], [1, 2, 1, 2]);
    assert_eq!(seen.counters[&group::READY], [1, 0, 1, 0]);
}

#[test]
fn events_of_strangers_and_out_of_order_do_no_harm() {
    let mut events = story();
    events.push(event(3, 0, Kind::Enter, 0));
    events.push(event(30, 7, Kind::SwitchIn, 0));
    events.push(event(30, 7, Kind::IpiSend, interrupt_arg(1, 0xfd)));
    events.push(event(30, 1, Kind::IpiTake, interrupt_arg(0, 0xfd)));
    events.push(Event {
        vm: 9,
        ..event(31, 0, Kind::SwitchIn, 0)
    });
    events.push(Event {
        pcpu: 99,
        ..event(32, 0, Kind::SwitchOut, out::PREEMPTED)
    });
    let (seen, _) = export(&events);
    assert_eq!(seen.begun, seen.ended);
}

#[test]
fn an_empty_recording_is_a_trace_too() {
    let (seen, _) = export(&[]);
    assert!(seen.slices.is_empty() && seen.tracks.len() > 5);
}
