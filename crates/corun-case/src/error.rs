// SPDX-License-Identifier: GPL-2.0-only
//! What is wrong in a case file, and where.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// An error in a case file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseError {
    /// The file.
    pub file: PathBuf,
    /// Where in the file; `None` when the file could not be read, or when what
    /// is wrong came from elsewhere.
    pub place: Option<Place>,
    /// What is wrong and what was expected.
    pub message: String,
}

/// A place in a case file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The key, for example `guest[1].vcpus`; empty at the top level.
    pub key: String,
    /// The line's text.
    pub text: String,
    /// How many characters of the line to mark.
    pub width: usize,
}

impl CaseError {
    /// A file that cannot be read.
    pub(super) fn unreadable(file: &Path, error: &std::io::Error) -> Self {
        Self::without_place(file, format!("cannot read the case file: {error}"))
    }

    /// An error that no place in the file is to blame for.
    pub(super) fn without_place(file: &Path, message: String) -> Self {
        Self {
            file: file.to_owned(),
            place: None,
            message,
        }
    }

    /// An error at a byte range of `source`.
    pub(super) fn at(
        file: &Path,
        source: &str,
        span: Range<usize>,
        key: String,
        message: String,
    ) -> Self {
        Self {
            file: file.to_owned(),
            place: Some(Place::new(source, span, key)),
            message,
        }
    }
}

impl Place {
    fn new(source: &str, span: Range<usize>, key: String) -> Self {
        let start = floor_char_boundary(source, span.start);
        let end = floor_char_boundary(source, span.end).max(start);
        let line_start = source[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = source[start..]
            .find('\n')
            .map_or(source.len(), |i| start + i);
        Self {
            line: source[..start].matches('\n').count() + 1,
            column: source[line_start..start].chars().count() + 1,
            key,
            text: source[line_start..line_end].trim_end().to_owned(),
            width: source[start..end.min(line_end)]
                .trim_end()
                .chars()
                .count()
                .max(1),
        }
    }
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else {
            return write!(f, "{}: {}", self.file.display(), self.message);
        };
        write!(
            f,
            "{}:{}:{}: ",
            self.file.display(),
            place.line,
            place.column
        )?;
        if !place.key.is_empty() {
            write!(f, "{}: ", place.key)?;
        }
        let number = place.line.to_string();
        let gutter = " ".repeat(number.len());
        let indent = " ".repeat(place.column - 1);
        let marks = "^".repeat(place.width);
        write!(
            f,
            "{}\n {gutter} |\n {number} | {}\n {gutter} | {indent}{marks}",
            self.message, place.text
        )
    }
}

impl std::error::Error for CaseError {}
