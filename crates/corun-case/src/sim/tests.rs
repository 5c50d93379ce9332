// SPDX-License-Identifier: GPL-2.0-only

use super::*;
use serde_json::Value;

/// The keys' reference.
const PAGE: &str = include_str!("../../../../docs/src/reference/sim.md");

/// Checks that the page has a row for each leaf of `value`, with its default.
fn documented(value: &Value, key: &str) {
    match value {
        Value::Object(table) => table.iter().for_each(|(key, value)| documented(value, key)),
        leaf => {
            let row = format!("| `{key}` | {leaf} | ");
            assert!(PAGE.contains(&row), "docs/src/reference/sim.md lacks {row}");
        }
    }
}

#[test]
fn the_reference_has_every_key_and_its_default() {
    let json = |value: Result<Value, serde_json::Error>| value.expect("encodes");
    let mut section = json(serde_json::to_value(SimSection::default()));
    // No key with a default, but tables by guests' names.
    section.as_object_mut().and_then(|s| s.remove("guest"));
    documented(&section, "sim");
    documented(&json(serde_json::to_value(SchedTunables::default())), "sim");
    documented(&json(serde_json::to_value(GuestKernel::default())), "guest");
}
