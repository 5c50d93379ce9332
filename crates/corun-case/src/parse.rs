// SPDX-License-Identifier: GPL-2.0-only
//! Reads a case file.

use crate::error::CaseError;
use crate::{Case, Override, Target, check, locate, overrides, suggest};
use std::path::Path;

/// Reads the case in `file` and checks it for the lab; also returns its text.
pub fn load(file: &Path) -> Result<(Case, String), CaseError> {
    load_for(file, Target::Lab)
}

/// Reads the case in `file` and checks it for `target`; also returns its text.
pub fn load_for(file: &Path, target: Target<'_>) -> Result<(Case, String), CaseError> {
    let text = std::fs::read_to_string(file).map_err(|e| CaseError::unreadable(file, &e))?;
    Ok((parse_for(&text, file, target, &[])?, text))
}

/// Reads the case in `text` and checks it for the lab; `file` is for messages.
pub fn parse(text: &str, file: &Path) -> Result<Case, CaseError> {
    parse_for(text, file, Target::Lab, &[])
}

/// Reads the case in `text`, sets `overrides` in their order, and checks the
/// result for `target`; `file` is for messages.
pub fn parse_for(
    text: &str,
    file: &Path,
    target: Target<'_>,
    overrides: &[Override],
) -> Result<Case, CaseError> {
    // First as it stands: only then are there places for messages.
    let mut case: Case = toml::from_str(text).map_err(|e| from_toml(text, file, &e))?;
    if !overrides.is_empty() {
        case = overrides::apply(text, file, overrides)?;
    }
    let Err(problem) = check::check(&case, target) else {
        return Ok(case);
    };
    let key = locate::display(&problem.path);
    if let Some(by) = overrides.iter().rev().find(|o| o.touches(&problem.path)) {
        let message = format!("--set {by}: {key}: {}", problem.message);
        return Err(CaseError::without_place(file, message));
    }
    let span = locate::span_of(text, &problem.path);
    Err(CaseError::at(file, text, span, key, problem.message))
}

fn from_toml(text: &str, file: &Path, error: &toml::de::Error) -> CaseError {
    let span = error.span().unwrap_or(0..0);
    let key = locate::display(&locate::path_at(text, &span));
    CaseError::at(file, text, span, key, reword(error.message()))
}

/// serde's words, made ours where they name Rust things or lack a hint.
pub(super) fn reword(message: &str) -> String {
    if message.contains("untagged enum ParamValue") {
        return "wrong type: expected a whole number or text".to_owned();
    }
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (Some((found, expected)), true) = (
        quoted.split_first(),
        message.starts_with("unknown field") || message.starts_with("unknown variant"),
    ) else {
        return message
            .replace("missing field", "missing key")
            .trim_end()
            .to_owned();
    };
    let what = if message.starts_with("unknown field") {
        "key"
    } else {
        "value"
    };
    format!(
        "unknown {what} `{found}`: expected one of {}{}",
        expected.join(", "),
        suggest::hint(found, expected.iter().copied())
    )
}

#[cfg(test)]
mod tests;
