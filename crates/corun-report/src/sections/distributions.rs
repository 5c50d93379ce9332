// SPDX-License-Identifier: GPL-2.0-only
//! Distributions of times, and profiles.

use crate::latency;
use crate::model::{Block, Chart, Plot, Section};
use crate::outcome::{Latency, Outcome, Waits};
use hdrhistogram::Histogram;
use std::fmt::Write as _;

/// What the lab calls the waits, and what they are.
const WAITS: [(&str, &str); 3] = [
    ("wake_to_run", "from wake-up to running"),
    ("preempted", "preempted, until it runs again"),
    ("ipi", "a sibling's IPI, from sending to injection"),
];

/// A chart of a few distributions; `None` when all are empty.
pub(crate) fn chart(id: &str, title: &str, named: &[(String, &Histogram<u64>)]) -> Option<Block> {
    Some(Block::Chart(Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        text: String::new(),
        plot: latency::cdf(named)?,
    }))
}

/// An anchor out of a name that may have anything in it.
pub(crate) fn anchor(start: &str, number: usize) -> String {
    let mut id = start.to_owned();
    // Writing to a String cannot fail.
    let _ = write!(id, "-{}", number + 1);
    id
}

fn find<'a>(latency: &'a [Latency], what: &str) -> Option<&'a Histogram<u64>> {
    latency
        .iter()
        .find(|l| l.what == what)
        .map(|l| &l.histogram)
}

/// The latency of single operations, a chart for each kind of each guest.
pub(super) fn operations(outcome: &Outcome) -> Option<Section> {
    let text = "How long one operation took, as the guest saw it, over all repeats. The further \
                left a curve, the better; where it reaches the top is the worst case.";
    let mut section = Section::new("latency", "Latency of operations", text);
    for row in &outcome.rows {
        let mut runs: Vec<(&str, &[Latency])> = Vec::new();
        runs.extend(row.alone.iter().map(|f| ("alone", f.latency.as_slice())));
        runs.extend(
            row.under
                .iter()
                .map(|(s, f)| (s.as_str(), f.latency.as_slice())),
        );
        let mut kinds: Vec<&str> = Vec::new();
        for latency in runs.iter().flat_map(|(_, l)| *l) {
            if !kinds.contains(&latency.what.as_str()) {
                kinds.push(&latency.what);
            }
        }
        for what in kinds {
            let named = runs
                .iter()
                .filter_map(|(n, l)| Some(((*n).to_owned(), find(l, what)?)));
            let named: Vec<_> = named.collect();
            let id = anchor("latency", section.blocks.len());
            let title = format!("{}: {what}", row.name());
            section.blocks.extend(chart(&id, &title, &named));
        }
    }
    (!section.blocks.is_empty()).then_some(section)
}

/// What vCPUs waited for.
pub(super) fn waits(outcome: &Outcome) -> Option<Section> {
    let text = "What the vCPUs waited for, as the host saw it.";
    let mut section = Section::new("waits", "What vCPUs waited for", text);
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for waits in &outcome.waits {
        if !keys.contains(&(&waits.phase, &waits.guest)) {
            keys.push((&waits.phase, &waits.guest));
        }
    }
    for (phase, guest) in keys {
        for (what, means) in WAITS {
            let of = outcome
                .waits
                .iter()
                .filter(|w| w.phase == phase && w.guest == guest);
            let named: Vec<_> = of
                .filter_map(|w| Some((under(w), find(&w.latency, what)?)))
                .collect();
            let id = anchor("waits", section.blocks.len());
            section
                .blocks
                .extend(chart(&id, &format!("{phase} · {guest}: {means}"), &named));
        }
    }
    (!section.blocks.is_empty()).then_some(section)
}

fn under(waits: &Waits) -> String {
    if waits.scheduler.is_empty() {
        "alone".to_owned()
    } else {
        waits.scheduler.clone()
    }
}

/// Where the guests' own time went.
pub(super) fn profiles(outcome: &Outcome) -> Option<Section> {
    let (mut rows, mut profiles) = (Vec::new(), Vec::new());
    for row in &outcome.rows {
        let alone = row.alone.iter().map(|f| ("alone", f));
        let under = row.under.iter().map(|(s, f)| (s.as_str(), f));
        for (name, figures) in alone.chain(under).filter(|(_, f)| !f.profile.is_empty()) {
            rows.push(format!("{} · {name}", row.name()));
            profiles.push(&figures.profile);
        }
    }
    let mut parts: Vec<&String> = profiles.iter().flat_map(|p| p.keys()).collect();
    parts.sort_unstable();
    parts.dedup();
    // The guest's programs first, the kernel's waits after them.
    parts.sort_by_key(|p| *p != "user");
    let share = |profile: &std::collections::BTreeMap<String, f64>| -> Vec<f64> {
        let of = |part: &&String| profile.get(*part).copied().unwrap_or(0.0);
        parts.iter().map(of).map(latency::round).collect()
    };
    let shares: Vec<Vec<f64>> = profiles.iter().map(|p| share(p)).collect();
    let text = "Of the guest's own user and kernel time: its programs, spinning for locks, waiting \
                for TLB shootdowns, all else. Medians over repeats.";
    let mut section = Section::new("profile", "Where guests' time went", text);
    section.blocks.push(Block::Chart(Chart {
        id: "profile-chart".to_owned(),
        title: "Shares of the guest's time".to_owned(),
        text: String::new(),
        plot: Plot::Stack {
            parts: parts.iter().map(|p| (*p).clone()).collect(),
            rows,
            shares,
        },
    }));
    (!profiles.is_empty()).then_some(section)
}
