// SPDX-License-Identifier: GPL-2.0-only
//! Cases by name or by file.

use anyhow::{Context, Result, bail};
use corun_lab::case::{self, Case};
use include_dir::{Dir, include_dir};
use std::path::{Path, PathBuf};

/// The cases of the repository.
static CASES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../lab/cases");

fn embedded(name: &str) -> Option<&'static str> {
    CASES.get_file(format!("{name}.toml"))?.contents_utf8()
}

fn names() -> Vec<String> {
    let stem = |path: &Path| Some(path.file_stem()?.to_str()?.to_owned());
    CASES.files().filter_map(|file| stem(file.path())).collect()
}

/// The file of the case called `name`, or the one of that name that comes with
/// corun, and its text.
pub(crate) fn find(name: &str) -> Result<(PathBuf, String)> {
    let file = PathBuf::from(name);
    if file.is_file() {
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("{name}: cannot read the case file"))?;
        return Ok((file, text));
    }
    let Some(text) = embedded(name) else {
        bail!(
            "no case {name:?}: neither a file nor one of {}",
            names().join(", ")
        );
    };
    let file = PathBuf::from(format!("lab/cases/{name}.toml"));
    Ok((file, text.to_owned()))
}

/// The case called `name`, as [`find`] finds it, with its text.
pub(crate) fn load(name: &str) -> Result<(Case, String)> {
    let (file, text) = find(name)?;
    Ok((case::parse(&text, &file)?, text))
}

/// Prints the list of cases, or one case's text.
pub(crate) fn print(name: Option<&str>) -> Result<()> {
    if let Some(name) = name {
        let text = embedded(name)
            .with_context(|| format!("no case {name:?}: there is {}", names().join(", ")))?;
        print!("{text}");
        return Ok(());
    }
    for name in names() {
        let (case, _) = load(&name)?;
        println!("{name:<14} {}", case.case.title);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_that_comes_with_corun_is_valid() {
        assert!(names().contains(&"demo".to_owned()));
        for name in names() {
            let (case, _) = load(&name).unwrap_or_else(|e| panic!("{name}: {e:#}"));
            assert_eq!(case.case.name, name, "a case's name is its file's");
            assert!(!case.case.title.is_empty(), "{name} has no title");
        }
    }

    #[test]
    fn an_unknown_case_lists_the_known_ones() {
        let error = load("nonesuch").unwrap_err().to_string();
        assert!(error.contains("demo"), "{error}");
    }
}
