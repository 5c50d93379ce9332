// SPDX-License-Identifier: GPL-2.0-only
//! Which Debian mirror this machine uses, from its own apt configuration.

use super::PackageError;
use super::tool::{self, Stop};
use std::process::Command;

/// One line per index: URI of the archive, origin, label.
const FORMAT: &str = "$(REPO_URI)|$(ORIGIN)|$(LABEL)";

/// The archive's base address, ending in a slash.
pub(super) fn find(stop: Stop<'_>) -> Result<String, PackageError> {
    let mut cmd = Command::new("apt-get");
    cmd.args(["indextargets", "--format", FORMAT, "Created-By: Packages"]);
    let targets = tool::output(&mut cmd, stop)?;
    if let Some(uri) = from_index_targets(&targets) {
        return Ok(uri);
    }
    // Before the first `apt-get update` apt knows no origins, only addresses.
    from_source_files(&read_source_files()).ok_or(PackageError::NoMirror)
}

/// Picks the Debian archive itself: not its security part, no third party.
fn from_index_targets(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut fields = line.split('|').map(str::trim);
        let (uri, origin, label) = (fields.next()?, fields.next()?, fields.next()?);
        (origin == "Debian" && label == "Debian" && !uri.starts_with("file:"))
            .then(|| with_slash(uri))
    })
}

/// Finds the archive in sources files of either format: the address whose last
/// path element is `debian`.
fn from_source_files(text: &str) -> Option<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .find(|word| word.contains("://") && word.trim_end_matches('/').ends_with("/debian"))
        .map(with_slash)
}

fn with_slash(uri: &str) -> String {
    format!("{}/", uri.trim_end_matches('/'))
}

fn read_source_files() -> String {
    let mut files = vec!["/etc/apt/sources.list".into()];
    if let Ok(parts) = std::fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(
            parts
                .flatten()
                .map(|e| e.path())
                .filter(|p| p.extension().is_some_and(|e| e == "list" || e == "sources")),
        );
    }
    files.sort();
    files
        .iter()
        .filter_map(|f: &std::path::PathBuf| std::fs::read_to_string(f).ok())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_told_from_security_and_third_parties() {
        let targets = "http://m.example/tools/|Tools Inc|Tools\n\
                       http://m.example/debian-security/|Debian|Debian-Security\n\
                       http://m.example/debian/|Debian|Debian\n";
        let uri = from_index_targets(targets);
        assert_eq!(uri.as_deref(), Some("http://m.example/debian/"));
        assert_eq!(
            from_index_targets("http://m.example/ubuntu/|Ubuntu|Ubuntu"),
            None
        );
        assert_eq!(from_index_targets(""), None);
    }

    #[test]
    fn both_formats_of_sources_files_are_read() {
        let one_line = "# deb http://old.example/debian x main\n\
                        deb [arch=amd64] https://m.example/mirror/debian bookworm main";
        let uri = from_source_files(one_line);
        assert_eq!(uri.as_deref(), Some("https://m.example/mirror/debian/"));
        let deb822 = "Types: deb\nURIs: http://m.example/debian-security\n\n\
                      Types: deb\nURIs: http://m.example/debian/\nSuites: bookworm";
        let uri = from_source_files(deb822);
        assert_eq!(uri.as_deref(), Some("http://m.example/debian/"));
        assert_eq!(from_source_files("URIs: http://m.example/ubuntu"), None);
    }
}
