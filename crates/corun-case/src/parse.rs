// SPDX-License-Identifier: GPL-2.0-only
//! Reads a case file.

use crate::error::CaseError;
use crate::{Case, check, locate, suggest};
use std::path::Path;

/// Reads and checks the case in `file`; also returns its text.
pub fn load(file: &Path) -> Result<(Case, String), CaseError> {
    let text = std::fs::read_to_string(file).map_err(|e| CaseError::unreadable(file, &e))?;
    Ok((parse(&text, file)?, text))
}

/// Reads and checks the case in `text`; `file` is for messages.
pub fn parse(text: &str, file: &Path) -> Result<Case, CaseError> {
    let case: Case = toml::from_str(text).map_err(|e| from_toml(text, file, &e))?;
    match check::check(&case) {
        Ok(()) => Ok(case),
        Err(problem) => {
            let span = locate::span_of(text, &problem.path);
            let key = locate::display(&problem.path);
            Err(CaseError::at(file, text, span, key, problem.message))
        }
    }
}

fn from_toml(text: &str, file: &Path, error: &toml::de::Error) -> CaseError {
    let span = error.span().unwrap_or(0..0);
    let key = locate::display(&locate::path_at(text, &span));
    CaseError::at(file, text, span, key, reword(error.message()))
}

/// serde's words, made ours where they name Rust things or lack a hint.
fn reword(message: &str) -> String {
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
