// SPDX-License-Identifier: GPL-2.0-only
//! Counts of events by kind, and of exits by reason.

use super::Recording;
use super::tracker::Tally;
use corun_events::{EXITS, Event, Kind};
use serde_json::Value;
use std::collections::BTreeSet;

/// Kind as its number, and the reason of an exit; others have 0.
pub(crate) type Key = (u8, u64);

/// What an event is counted as.
pub(super) fn key(event: &Event) -> Key {
    let reason = match event.kind {
        Kind::Exit => event.reason(),
        _ => 0,
    };
    (event.kind as u8, reason)
}

/// Names of exit reasons: the recording's own, or the simulator's.
pub(super) fn exits(header: &Value) -> Vec<String> {
    let own = header.get("exits").and_then(Value::as_array);
    let own: Vec<String> = own
        .into_iter()
        .flatten()
        .map(|name| name.as_str().unwrap_or_default().to_owned())
        .collect();
    if own.is_empty() {
        EXITS.map(str::to_owned).to_vec()
    } else {
        own
    }
}

impl Recording {
    /// Everything that any of `vms` counted, with its name, in the names' order.
    pub(crate) fn counted<'a>(
        &self,
        vms: impl IntoIterator<Item = &'a Tally>,
    ) -> BTreeSet<(String, Key)> {
        let keys = vms.into_iter().flat_map(|vm| vm.counts.keys());
        keys.map(|key| (self.name(*key), *key)).collect()
    }

    fn name(&self, (kind, reason): Key) -> String {
        let kind = self.tracker.kinds.get(&kind);
        // The name that the format gives the kind.
        let name = kind.and_then(|kind| serde_json::to_value(kind).ok());
        let name = name.as_ref().and_then(Value::as_str).unwrap_or("event");
        if kind != Some(&Kind::Exit) {
            return name.replace('_', " ");
        }
        let exit = usize::try_from(reason).ok().and_then(|r| self.exits.get(r));
        exit.map_or_else(|| format!("exit {reason}"), |exit| format!("exit {exit}"))
    }
}
