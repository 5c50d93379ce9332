// SPDX-License-Identifier: GPL-2.0-only
//! Small readers of kernel text.

use std::path::Path;

/// A NUL-terminated C string in a BPF array.
#[allow(clippy::cast_sign_loss, reason = "C's char is a byte here")]
pub(crate) fn c_string(bytes: &[i8]) -> String {
    let text: Vec<u8> = bytes
        .iter()
        .take_while(|b| **b != 0)
        .map(|b| *b as u8)
        .collect();
    String::from_utf8_lossy(&text).into_owned()
}

/// A file's first line without white space around; `None` when it cannot be read.
pub(crate) fn first_line(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().next().unwrap_or("").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_strings_end_at_nul() {
        assert_eq!(c_string(&[104, 105, 0, 120]), "hi");
        assert_eq!(c_string(&[104, 105]), "hi");
        assert_eq!(c_string(&[]), "");
    }

    #[test]
    fn an_unreadable_file_has_no_line() {
        assert_eq!(first_line("/nonexistent/file"), None);
    }
}
