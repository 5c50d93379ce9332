// SPDX-License-Identifier: GPL-2.0-only
//! Reads a recording in one pass and with bounded memory, however long it is.

mod bins;
mod counts;
mod sections;
mod timeline;
mod tracker;

use crate::config;
use crate::model::Fact;
use corun_events::{Event, Header, ReadError, Reader};
use corun_lab::results::format::nanos;
use serde_json::Value;
use std::io::BufRead;
pub(crate) use tracker::{STATES, TIMES, Tally, Times, Tracker};

/// Header fields that are shown elsewhere, or are no facts for people.
const HIDDEN: [&str; 10] = [
    "corun_events",
    "source",
    "title",
    "pcpus",
    "vms",
    "exits",
    "locks",
    "symbols",
    "tasks",
    "start_ns",
];

/// VM of an event that is the host's own.
const NO_VM: u32 = u32::MAX;

/// vCPUs and VMs of a recording, and its length: what sums of times hold, and
/// far beyond any host. A file that says more is broken.
const MOST_VCPUS: u64 = 1 << 16;
const MOST_NS: u64 = 1 << 47;

/// What a recording says.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) title: String,
    header: Header,
    /// Fields of the header that are not [`HIDDEN`], by name.
    extra: Vec<Fact>,
    /// Time of the last event. Nanoseconds since the recording's start.
    pub(crate) length_ns: u64,
    events: u64,
    /// Names of exit reasons.
    exits: Vec<String>,
    /// Why the file was not read to its end.
    torn: Option<String>,
    tracker: Tracker,
}

/// Reads all of `input`, whose first line is `header`.
pub(crate) fn read(header: &Value, input: impl BufRead) -> Result<Recording, String> {
    let mut reader = Reader::new(input).map_err(|e| e.to_string())?;
    let vms = &reader.header.vms;
    let vcpus: u64 = vms.iter().map(|vm| u64::from(vm.vcpus)).sum();
    if vcpus.max(vms.len() as u64) > MOST_VCPUS {
        return Err(format!(
            "{} VMs with {vcpus} vCPUs: expected at most {MOST_VCPUS}",
            vms.len()
        ));
    }
    let mut tracker = Tracker::new(&reader.header);
    let (mut length_ns, mut events, mut torn) = (0, 0, None);
    for event in reader.by_ref() {
        match checked(event, &tracker) {
            Ok(event) => {
                events += 1;
                length_ns = event.at_ns.max(length_ns);
                if event.vm != NO_VM {
                    tracker.take(&event);
                }
            }
            // A recorder that was killed leaves half a line; what is before it counts.
            Err(problem) if events > 0 => {
                torn = Some(problem);
                break;
            }
            Err(problem) => return Err(problem),
        }
    }
    tracker.finish(length_ns);
    let fields = header.as_object().into_iter().flatten();
    let shown = fields.filter(|(key, _)| !HIDDEN.contains(&key.as_str()));
    Ok(Recording {
        title: reader.header.title.clone(),
        extra: shown.filter_map(|(key, value)| field(key, value)).collect(),
        exits: counts::exits(header),
        header: reader.header,
        length_ns,
        events,
        torn,
        tracker,
    })
}

/// An event whose vCPU is in the header, or that is the host's own.
fn checked(event: Result<Event, ReadError>, tracker: &Tracker) -> Result<Event, String> {
    let event = event.map_err(|e| e.to_string())?;
    if event.at_ns > MOST_NS {
        return Err(format!(
            "event at {} ns: expected at most {MOST_NS}",
            event.at_ns
        ));
    }
    if event.vm == NO_VM || tracker.knows(&event) {
        return Ok(event);
    }
    Err(format!(
        "event at {} ns: the header has no VM {} with a vCPU {}",
        event.at_ns, event.vm, event.vcpu
    ))
}

/// A field of the header, for people.
fn field(key: &str, value: &Value) -> Option<Fact> {
    let name = key.trim_end_matches("_ns").replace('_', " ");
    let numbers = value.as_array().filter(|a| !a.is_empty());
    let sum: Option<u64> = numbers.and_then(|a| a.iter().map(Value::as_u64).sum());
    let text = match (sum, value.as_f64()) {
        // Of each pCPU.
        (Some(sum), _) => sum.to_string(),
        (None, Some(ns)) if key.ends_with("_ns") => nanos(ns),
        _ => config::text(value)?,
    };
    Some(Fact::new(&name, text))
}

/// Whether a header's field tells of what is not in the recording.
fn tells_loss(name: &str) -> bool {
    ["drop", "lost", "missing"].iter().any(|w| name.contains(w))
}

impl Recording {
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let vcpus: u32 = self.header.vms.iter().map(|vm| vm.vcpus).sum();
        let mut facts = vec![
            Fact::new("recorded by", &self.header.source),
            Fact::new("format version", self.header.corun_events.to_string()),
            Fact::new("host pCPUs", self.header.pcpus.to_string()),
            Fact::new(
                "VMs",
                format!("{} with {vcpus} vCPUs", self.header.vms.len()),
            ),
            Fact::new("length (s)", format!("{:.6}", self.length_ns as f64 / 1e9)),
            Fact::new("events", self.events.to_string()),
        ];
        let told = self.extra.iter().filter(|f| !tells_loss(&f.name));
        facts.extend(told.cloned());
        facts
    }

    pub(crate) fn losses(&self) -> Vec<String> {
        let told = self.extra.iter().filter(|f| tells_loss(&f.name));
        let mut losses: Vec<String> = told.map(|f| format!("{}: {}", f.name, f.value)).collect();
        if losses.is_empty() {
            losses.push(match self.header.source.as_str() {
                "sim" => "nothing: the simulator records every event".to_owned(),
                _ => "the recording does not say whether events were dropped".to_owned(),
            });
        }
        if let Some(problem) = &self.torn {
            losses.push(format!(
                "the file ends early: all from here on is left out: {problem}"
            ));
        }
        losses
    }

    pub(crate) fn vms(&self) -> &[Tally] {
        &self.tracker.vms
    }

    pub(crate) fn times(&self) -> &[Times] {
        &self.tracker.times
    }
}

#[cfg(test)]
mod tests;
