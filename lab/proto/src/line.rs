// SPDX-License-Identifier: GPL-2.0-only
//! One message, one line of JSON.

use serde::{Serialize, de::DeserializeOwned};

/// A line that is no message of the channel.
#[derive(Debug, thiserror::Error)]
#[error("not a message of this channel: {source}: {line:?}")]
pub struct LineError {
    /// The line as received.
    pub line: String,
    /// What the JSON reader says.
    pub source: serde_json::Error,
}

/// Encodes `message` as one line, newline included.
pub fn to_line<T: Serialize>(message: &T) -> Result<String, serde_json::Error> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    Ok(line)
}

/// Decodes one line; white space at both ends is ignored.
pub fn from_line<T: DeserializeOwned>(line: &str) -> Result<T, LineError> {
    serde_json::from_str(line.trim()).map_err(|source| LineError {
        line: line.trim_end().to_owned(),
        source,
    })
}
