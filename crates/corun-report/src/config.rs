// SPDX-License-Identifier: GPL-2.0-only
//! The configuration as facts: taken from the JSON by path, so that results of
//! older versions, which lack some, are read as well.

use crate::model::Fact;
use corun_lab::results::format::nanos;
use serde_json::Value;

/// Facts of `value`; each is a name and a JSON pointer. What is missing is left
/// out.
pub(crate) fn facts(value: &Value, wanted: &[(&str, &str)]) -> Vec<Fact> {
    let fact = |(name, pointer): &(&str, &str)| {
        let text = text(value.pointer(pointer)?)?;
        Some(Fact::new(name, text))
    };
    wanted.iter().filter_map(fact).collect()
}

/// The same of times in nanoseconds.
pub(crate) fn times(value: &Value, wanted: &[(&str, &str)]) -> Vec<Fact> {
    let fact = |(name, pointer): &(&str, &str)| {
        let ns = value.pointer(pointer)?.as_f64()?;
        Some(Fact::new(name, nanos(ns)))
    };
    wanted.iter().filter_map(fact).collect()
}

/// A value for people; `None` when there is nothing to say.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(s) => (!s.is_empty()).then(|| s.clone()),
        Value::Array(values) => {
            let texts: Vec<String> = values.iter().filter_map(text).collect();
            (!texts.is_empty()).then(|| texts.join(", "))
        }
        Value::Object(map) => {
            let pair = |(key, value): (&String, &Value)| Some(format!("{key} {}", text(value)?));
            let texts: Vec<String> = map.iter().filter_map(pair).collect();
            (!texts.is_empty()).then(|| texts.join(", "))
        }
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.to_owned()),
        Value::Number(number) => Some(number.to_string()),
    }
}

/// The case's guests, one fact each.
pub(crate) fn guests(case: &Value) -> Vec<Fact> {
    let guests = case.get("guest").and_then(Value::as_array);
    guests.into_iter().flatten().filter_map(guest).collect()
}

fn guest(guest: &Value) -> Option<Fact> {
    let mut parts = Vec::new();
    for (key, unit) in [("vcpus", "vCPUs"), ("memory_mib", "MiB")] {
        if let Some(number) = guest.get(key).and_then(Value::as_u64) {
            parts.push(format!("{number} {unit}"));
        }
    }
    for (key, name) in [("weight", "weight"), ("kernel", "kernel")] {
        if let Some(value) = guest.get(key).and_then(text) {
            parts.push(format!("{name} {value}"));
        }
    }
    let features = guest.get("pv").and_then(Value::as_object);
    let on: Vec<&str> = features
        .into_iter()
        .flatten()
        .filter(|(_, on)| on.as_bool() == Some(true))
        .map(|(name, _)| name.as_str())
        .collect();
    if !on.is_empty() {
        parts.push(format!("pv {}", on.join(", ")));
    }
    let name = guest.get("name")?.as_str()?;
    Some(Fact::new(&format!("guest {name}"), parts.join(" · ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn facts_are_found_by_path_and_left_out_when_missing() {
        let value = json!({ "a": { "b": [1, "x", null] }, "c": null, "d": true });
        let facts = facts(
            &value,
            &[
                ("one", "/a/b"),
                ("two", "/c"),
                ("three", "/no"),
                ("four", "/d"),
            ],
        );
        let pairs: Vec<(&str, &str)> = facts
            .iter()
            .map(|f| (f.name.as_str(), f.value.as_str()))
            .collect();
        assert_eq!(pairs, [("one", "1, x"), ("four", "yes")]);
    }

    #[test]
    fn a_guest_is_one_line() {
        let case = json!({ "guest": [{
            "name": "a", "vcpus": 2, "weight": 100, "memory_mib": 192, "kernel": "7.3",
            "pv": { "ipi": false, "unhalt": true },
        }, { "no": "name" }] });
        let facts = guests(&case);
        assert_eq!(facts.len(), 1);
        assert_eq!(
            facts[0].value,
            "2 vCPUs · 192 MiB · weight 100 · kernel 7.3 · pv unhalt"
        );
    }
}
