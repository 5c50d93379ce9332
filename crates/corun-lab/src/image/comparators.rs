// SPDX-License-Identifier: GPL-2.0-only
//! Schedulers to compare with, built from the Rust registry when a case asks for them.

use super::ImageError;
use crate::case::Comparator;
use crate::packages::{PackageError, Stop, tool};
use crate::progress::{Progress, Unit};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the folder of programs that are built once per machine; `scripts/lint`
/// uses it, too.
const TOOLS_VARIABLE: &str = "CORUN_TOOLS";
/// Compilers for BPF programs, best first; what `scripts/setup` installs is
/// among them.
const CLANGS: [&str; 4] = ["clang-22", "clang-21", "clang-20", "clang-19"];
/// Names a compiler for BPF programs to the crates' build scripts.
const CLANG_VARIABLE: &str = "BPF_CLANG";

/// The program of `comparator`, built when this machine does not have it yet.
pub(super) fn find_or_build(
    comparator: &Comparator,
    progress: Progress,
    stop: Stop<'_>,
) -> Result<PathBuf, ImageError> {
    let tools = tools(|name| env::var_os(name).filter(|v| !v.is_empty()).map(Into::into));
    // A folder for each version: a program that is there is the right one.
    let root = tools
        .ok_or(ImageError::NoToolsFolder)?
        .join(format!("{}-{}", comparator.program, comparator.version));
    let program = root.join("bin").join(comparator.program);
    if !program.is_file() {
        build(comparator, &root, progress, stop)?;
    }
    Ok(program)
}

fn build(
    comparator: &Comparator,
    root: &Path,
    progress: Progress,
    stop: Stop<'_>,
) -> Result<(), ImageError> {
    let Comparator {
        program, version, ..
    } = comparator;
    progress.note(&format!(
        "{program} {version} is built into {} (once, some minutes)",
        root.display()
    ));
    let task = progress.task(&format!("Building {program}"), 1, Unit::Items);
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--locked", "--version", version, "--root"]);
    cargo.arg(root).arg(program);
    if env::var_os(CLANG_VARIABLE).is_none()
        && let Some(clang) = CLANGS.into_iter().find(|name| is_there(name))
    {
        cargo.env(CLANG_VARIABLE, clang);
    }
    tool::output(&mut cargo, stop).map_err(|said| match said {
        PackageError::Interrupted => said.into(),
        said => ImageError::Comparator {
            program,
            version,
            said,
        },
    })?;
    task.set(1);
    task.finish();
    Ok(())
}

fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// As `scripts/lint` finds it.
fn tools(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let cache = || var("XDG_CACHE_HOME").or_else(|| Some(var("HOME")?.join(".cache")));
    var(TOOLS_VARIABLE).or_else(|| Some(cache()?.join("corun/tools")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_folder_is_the_one_of_the_lint_script() {
        let all = |name: &str| Some(PathBuf::from(format!("/{name}")));
        assert_eq!(tools(all), Some("/CORUN_TOOLS".into()));
        let no_own = |name: &str| (name != TOOLS_VARIABLE).then(|| PathBuf::from("/x"));
        assert_eq!(tools(no_own), Some("/x/corun/tools".into()));
        let home = |name: &str| (name == "HOME").then(|| PathBuf::from("/h"));
        assert_eq!(tools(home), Some("/h/.cache/corun/tools".into()));
        assert_eq!(tools(|_| None), None);
    }
}
