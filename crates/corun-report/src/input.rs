// SPDX-License-Identifier: GPL-2.0-only
//! Files, recognised by what is in them.

use crate::model::{Report, SCHEMA_VERSION, SourceInfo};
use crate::outcome::Outcome;
use crate::recording::{self, Recording};
use crate::repro::{self, Repro};
use crate::{config, lab, sections, sim};
use corun_events::recording::open_text;
use serde_json::Value;
use std::io::{BufRead, Read};
use std::path::Path;

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A result of `corun lab run`.
    Lab,
    /// A result of `corun sim run`.
    Sim,
    /// A result of `corun sim repro`.
    Repro,
    /// A recording.
    Recording,
}

impl Kind {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lab => "result of corun lab run",
            Self::Sim => "result of corun sim run",
            Self::Repro => "result of corun sim repro",
            Self::Recording => "recording",
        }
    }
}

const ACCEPTED: &str = "accepted are results of `corun lab run` (out/CASE.json), of \
     `corun sim run --out` and `corun sim repro --out`, and recordings of `corun trace record` \
     and `corun sim trace`";

/// Versions of results that are understood.
const RESULT_VERSION: u64 = 1;

/// Why a file makes no report.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read.
    #[error("{file}: {error}")]
    Io {
        /// Its name.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// It is none of those that are known.
    #[error("{file}: {found}; {ACCEPTED}")]
    Unknown {
        /// Its name.
        file: String,
        /// What it is instead.
        found: String,
    },
    /// It is one of them, but wrong in itself.
    #[error("{file}: a {kind} that cannot be read: {problem}", kind = kind.name())]
    Broken {
        /// Its name.
        file: String,
        /// What it is.
        kind: Kind,
        /// What is wrong with it.
        problem: String,
    },
}

/// A file's content.
#[derive(Debug)]
pub struct Input {
    /// Its name as it was given.
    pub(crate) file: String,
    /// What it is.
    pub kind: Kind,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    /// Lab or simulator.
    Outcome(Box<Outcome>),
    Repro(Repro),
    Recording(Box<Recording>),
}

impl Input {
    /// Reads `file`, which zstd may have compressed, and finds out what it is.
    pub fn read(file: &Path) -> Result<Self, ReadError> {
        let name = file.display().to_string();
        let io = |error| ReadError::Io {
            file: name.clone(),
            error,
        };
        let mut input = open_text(file).map_err(io)?;
        let mut first = Vec::new();
        // A recording's first line is its header; it is short.
        input
            .by_ref()
            .take(1 << 20)
            .read_until(b'\n', &mut first)
            .map_err(io)?;
        if let Some(header) = recording_header(&first) {
            let recording = recording::read(&header, first.as_slice().chain(input));
            return Self::of(
                name,
                Kind::Recording,
                recording.map(|r| Content::Recording(Box::new(r))),
            );
        }
        let mut text = first;
        input.read_to_end(&mut text).map_err(io)?;
        Self::parse(&name, &text)
    }

    /// Recognises a result.
    fn parse(file: &str, text: &[u8]) -> Result<Self, ReadError> {
        let unknown = |found: String| ReadError::Unknown {
            file: file.to_owned(),
            found,
        };
        if text.trim_ascii().is_empty() {
            return Err(unknown("an empty file".to_owned()));
        }
        let value: Value =
            serde_json::from_slice(text).map_err(|e| unknown(format!("no JSON ({e})")))?;
        let kind = kind_of(&value).ok_or_else(|| unknown(describe(&value)))?;
        let version = value.get("schema_version").and_then(Value::as_u64);
        if kind != Kind::Repro && version != Some(RESULT_VERSION) {
            let version = value.get("schema_version").and_then(config::text);
            return Err(unknown(format!(
                "a {} of version {}, expected {RESULT_VERSION}",
                kind.name(),
                version.unwrap_or_else(|| "?".to_owned())
            )));
        }
        let outcome = |o| Content::Outcome(Box::new(o));
        let content = match kind {
            Kind::Lab => lab::read(&value).map(outcome),
            Kind::Sim => sim::read(&value).map(outcome),
            _ => repro::read(&value).map(Content::Repro),
        };
        Self::of(file.to_owned(), kind, content)
    }

    fn of(file: String, kind: Kind, content: Result<Content, String>) -> Result<Self, ReadError> {
        match content {
            Ok(content) => Ok(Self {
                file,
                kind,
                content,
            }),
            Err(problem) => Err(ReadError::Broken {
                file,
                kind,
                problem,
            }),
        }
    }

    /// What the report says of the file itself.
    pub(crate) fn source(&self, label: &str) -> SourceInfo {
        let (title, facts, losses) = match &self.content {
            Content::Outcome(o) => (o.title.clone(), o.facts.clone(), o.losses.clone()),
            Content::Repro(r) => (r.title(), r.facts(), r.losses()),
            Content::Recording(r) => (r.title.clone(), r.facts(), r.losses()),
        };
        SourceInfo {
            label: label.to_owned(),
            kind: self.kind.name().to_owned(),
            file: self.file.clone(),
            title,
            facts,
            losses,
        }
    }
}

/// The report of one file. `generator` is the program and version that makes it.
pub fn report(input: &Input, generator: &str) -> Report {
    let source = input.source("");
    let sections = match &input.content {
        Content::Outcome(outcome) => sections::of(outcome),
        Content::Repro(repro) => repro.sections(),
        Content::Recording(recording) => recording.sections(),
    };
    Report {
        schema_version: SCHEMA_VERSION,
        generator: generator.to_owned(),
        title: source.title.clone(),
        sources: vec![source],
        sections,
    }
}

fn recording_header(line: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(line).ok()?;
    value.get("corun_events").is_some().then_some(value)
}

fn kind_of(value: &Value) -> Option<Kind> {
    let has = |keys: &[&str]| keys.iter().all(|k| value.get(k).is_some());
    if has(&["schema_version", "case", "samples", "summary"]) {
        Some(Kind::Lab)
    } else if has(&["schema_version", "case", "runs", "summary"]) {
        Some(Kind::Sim)
    } else if has(&["seeds", "summary", "tables"]) {
        Some(Kind::Repro)
    } else {
        None
    }
}

/// Something of JSON that is nothing we know, for the error.
fn describe(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "an empty JSON object".to_owned(),
        Value::Object(map) => {
            let keys: Vec<&str> = map.keys().take(6).map(String::as_str).collect();
            format!("JSON of another kind (it has {})", keys.join(", "))
        }
        _ => "JSON of another kind".to_owned(),
    }
}
