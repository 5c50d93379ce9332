// SPDX-License-Identifier: GPL-2.0-only
//! `--set key=value`: keys of a case set from elsewhere.

use crate::error::CaseError;
use crate::locate::{self, Step};
use crate::{Case, parse};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use toml::{Table, Value};

/// A key of a case and the value that it gets: `scheduler[1].sim.cfs.latency_ns=6000000`.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    path: Vec<Step>,
    value: Value,
    text: String,
}

/// A text that is no override.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {what}")]
pub struct OverrideError {
    text: String,
    what: &'static str,
}

impl Override {
    /// The key, as messages show it.
    pub fn key(&self) -> String {
        locate::display(&self.path)
    }

    /// The value, as it was given.
    pub fn value(&self) -> &str {
        &self.text
    }

    /// Whether this override may be to blame for a problem at `path`.
    pub(crate) fn touches(&self, path: &[Step]) -> bool {
        let common = self.path.len().min(path.len());
        self.path[..common] == path[..common]
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key(), self.text)
    }
}

impl FromStr for Override {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |what| OverrideError {
            text: text.to_owned(),
            what,
        };
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| bad("expected key=value, for example sim.kvm.ple.window_cycles=8192"))?;
        let path = parse_path(key.trim()).ok_or_else(|| {
            bad("expected a key such as sim.seed, guest[0].vcpus or phase[0].run.a.threads")
        })?;
        let value = value.trim();
        Ok(Self {
            path,
            value: parse_value(value)
                .ok_or_else(|| bad("the value is no TOML; text needs quotes: '\"...\"'"))?,
            text: value.to_owned(),
        })
    }
}

/// `a.b[1].c` as steps.
fn parse_path(text: &str) -> Option<Vec<Step>> {
    let mut path = Vec::new();
    for part in text.split('.') {
        let (key, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        let word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if key.is_empty() || !key.chars().all(word) {
            return None;
        }
        path.push(Step::Key(key.to_owned()));
        while !rest.is_empty() {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            path.push(Step::Index(index.parse().ok()?));
            rest = after;
        }
    }
    Some(path)
}

/// A TOML value; a bare word is text, so that shells need no second quotes.
fn parse_value(text: &str) -> Option<Value> {
    let table: Result<Table, _> = format!("v = {text}").parse();
    if let Ok(mut table) = table {
        // More than one key: the text held a line of its own.
        return table.remove("v").filter(|_| table.is_empty());
    }
    let word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    (!text.is_empty() && text.chars().all(word)).then(|| Value::String(text.to_owned()))
}

/// The case in `text`, which is one, with `overrides` set.
pub(crate) fn apply(text: &str, file: &Path, overrides: &[Override]) -> Result<Case, CaseError> {
    let failed =
        |by: &Override, what: &str| CaseError::without_place(file, format!("--set {by}: {what}"));
    let mut root: Value = toml::from_str::<Table>(text)
        .map(Value::Table)
        .map_err(|e| CaseError::without_place(file, e.to_string()))?;
    let read = |root: &Value| -> Result<Case, String> {
        let case = root.clone().try_into();
        case.map_err(|e: toml::de::Error| parse::reword(e.message()))
    };
    for by in overrides {
        let with = |value: Value| -> Result<Value, String> {
            let mut root = root.clone();
            *place(&mut root, &by.path)? = value;
            read(&root).map(|_| root)
        };
        // `spin_handler=2011` is a number to TOML and a name to the case.
        let as_text = |error| with(Value::String(by.text.clone())).map_err(|_| error);
        root = with(by.value.clone())
            .or_else(as_text)
            .map_err(|what: String| failed(by, &what))?;
    }
    read(&root).map_err(|what| CaseError::without_place(file, what))
}

/// The value at `path`; tables that are missing on the way are made.
fn place<'a>(root: &'a mut Value, path: &[Step]) -> Result<&'a mut Value, String> {
    let mut here = root;
    for (depth, step) in path.iter().enumerate() {
        let at = || locate::display(&path[..depth]);
        here = match (step, here) {
            (Step::Key(key), Value::Table(table)) => table
                .entry(key.clone())
                .or_insert_with(|| Value::Table(Table::new())),
            (Step::Index(i), Value::Array(array)) => {
                let count = array.len();
                array
                    .get_mut(*i)
                    .ok_or_else(|| format!("{} has {count} entries, counted from 0", at()))?
            }
            (Step::Key(_), Value::Array(_)) => {
                return Err(format!("{0} is a list: expected {0}[0]", at()));
            }
            (Step::Index(_), Value::Table(_)) => return Err(format!("{} is no list", at())),
            (_, _) => return Err(format!("{} is no table", at())),
        };
    }
    Ok(here)
}

#[cfg(test)]
mod tests;
