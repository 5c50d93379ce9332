// SPDX-License-Identifier: GPL-2.0-only
//! From a key to its place in the file, and back.

use std::fmt::Write as _;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One step of a key path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A key of a table.
    Key(String),
    /// An element of an array.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// `guest[1].vcpus` for people. Indices count from 0, as in JSON paths.
pub(super) fn display(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        // Writing to a String cannot fail.
        let _ = match step {
            Step::Key(k) if text.is_empty() => write!(text, "{k}"),
            Step::Key(k) => write!(text, ".{k}"),
            Step::Index(i) => write!(text, "[{i}]"),
        };
    }
    text
}

/// The span of the value at `path`, or of its nearest ancestor in the file (a
/// key that is absent has its table's place).
pub(super) fn span_of(source: &str, path: &[Step]) -> Range<usize> {
    let Ok(root) = DeTable::parse(source) else {
        return 0..0;
    };
    let (mut span, root) = (0..0, DeValue::Table(root.into_inner()));
    let mut value = &root;
    for step in path {
        let next = match (step, value) {
            (Step::Key(k), DeValue::Table(t)) => t.get(k.as_str()),
            (Step::Index(i), DeValue::Array(a)) => a.get(*i),
            _ => None,
        };
        let Some(next) = next else { break };
        span = next.span();
        value = next.get_ref();
    }
    span
}

/// The path of the innermost key or value that covers `span`.
pub(super) fn path_at(source: &str, span: &Range<usize>) -> Vec<Step> {
    let mut path = Vec::new();
    if let Ok(root) = DeTable::parse(source) {
        descend_table(root.get_ref(), span, &mut path);
    }
    path
}

fn covers(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn descend_table(table: &DeTable<'_>, span: &Range<usize>, path: &mut Vec<Step>) {
    for (key, value) in table {
        if covers(&key.span(), span) {
            path.push(Step::Key(key.get_ref().to_string()));
            return;
        }
        let before = path.len();
        path.push(Step::Key(key.get_ref().to_string()));
        if descend(value, span, path) {
            return;
        }
        path.truncate(before);
    }
}

/// Whether `span` is in `value`; the path is extended by what is found inside.
fn descend(value: &Spanned<DeValue<'_>>, span: &Range<usize>, path: &mut Vec<Step>) -> bool {
    let here = path.len();
    match value.get_ref() {
        DeValue::Table(t) => descend_table(t, span, path),
        DeValue::Array(a) => {
            for (i, element) in a.iter().enumerate() {
                path.push(Step::Index(i));
                if descend(element, span, path) {
                    return true;
                }
                path.truncate(here);
            }
        }
        _ => {}
    }
    path.len() > here || covers(&value.span(), span)
}
