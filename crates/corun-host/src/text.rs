// SPDX-License-Identifier: GPL-2.0-only
//! Small readers of kernel text.

use std::collections::BTreeSet;
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

/// CPUs in a list like `0-3,8`; `None` when it is none.
pub(crate) fn cpus_in_list(list: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
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
    fn cpu_lists_are_read() {
        let count = |list| cpus_in_list(list).map(|cpus| cpus.len());
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("0-3,8,10-11"), Some(7));
        assert_eq!(count("3-0"), None);
        assert_eq!(count(""), None);
    }

    #[test]
    fn an_unreadable_file_has_no_line() {
        assert_eq!(first_line("/nonexistent/file"), None);
    }
}
