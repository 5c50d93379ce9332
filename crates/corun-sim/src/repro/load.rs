// SPDX-License-Identifier: GPL-2.0-only
//! Finds and reads experiments: those in the program, or those of a folder.

use super::format::TableFile;
use super::table::Table;
use crate::batch::Models;
use include_dir::{Dir, include_dir};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The experiments of the repository.
static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../experiments");

/// Why experiments cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or folder cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file is wrong.
    #[error("{path}: {what}")]
    Content {
        /// Which.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// Nothing has that name.
    #[error("no experiment {name:?}; there is {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
}

/// The texts of all experiments, by `SEED/FILE`.
#[derive(Debug, Clone, Default)]
pub struct Library {
    files: BTreeMap<String, String>,
}

impl Library {
    /// Those that come with corun.
    pub fn embedded() -> Self {
        let mut files = BTreeMap::new();
        for folder in EMBEDDED.dirs() {
            for file in folder.files().filter(|f| is_toml(f.path())) {
                if let (Some(name), Some(text)) = (file.path().to_str(), file.contents_utf8()) {
                    files.insert(name.replace('\\', "/"), text.to_owned());
                }
            }
        }
        Self { files }
    }

    /// Those in `folder`, which is laid out as `experiments/` is.
    pub fn from_folder(folder: &Path) -> Result<Self, LoadError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| LoadError::Io { path, error }
        };
        let mut files = BTreeMap::new();
        for seed in std::fs::read_dir(folder).map_err(io(folder))? {
            let seed = seed.map_err(io(folder))?.path();
            if !seed.is_dir() {
                continue;
            }
            for file in std::fs::read_dir(&seed).map_err(io(&seed))? {
                let file = file.map_err(io(&seed))?.path();
                if !is_toml(&file) {
                    continue;
                }
                let text = std::fs::read_to_string(&file).map_err(io(&file))?;
                let part = |p: Option<&std::ffi::OsStr>| {
                    p.map(|p| p.to_string_lossy().into_owned())
                        .unwrap_or_default()
                };
                let name = format!("{}/{}", part(seed.file_name()), part(file.file_name()));
                files.insert(name, text);
            }
        }
        Ok(Self { files })
    }

    /// `SEED/TABLE` of every table.
    pub fn names(&self) -> Vec<String> {
        let tables = self.files.keys().filter_map(|f| f.strip_suffix(".toml"));
        let is_case = |name: &str| {
            name.split('/')
                .nth(1)
                .is_some_and(|f| f.starts_with("case"))
        };
        tables
            .filter(|name| !is_case(name))
            .map(str::to_owned)
            .collect()
    }

    /// The names that `wanted` means: a table, all of a seed (its number, its
    /// name or both), or everything if it is empty.
    pub fn select(&self, wanted: &[String]) -> Result<Vec<String>, LoadError> {
        let known = self.names();
        for name in wanted {
            if !known.iter().any(|k| is_meant(name, k)) {
                return Err(LoadError::Unknown {
                    name: name.clone(),
                    known,
                });
            }
        }
        let mut names = known;
        names.retain(|k| wanted.is_empty() || wanted.iter().any(|w| is_meant(w, k)));
        Ok(names)
    }

    /// Reads one table with its case.
    pub fn table(&self, name: &str, models: &Models) -> Result<Table, LoadError> {
        let path = format!("{name}.toml");
        let content = |what: String| LoadError::Content {
            path: format!("experiments/{path}"),
            what,
        };
        let text = self.file(&path)?;
        let file: TableFile = toml::from_str(text).map_err(|e| content(e.to_string()))?;
        let seed = name.split('/').next().unwrap_or(name);
        let case_path = format!("{seed}/{}", file.case);
        let case = self.file(&case_path)?;
        let case_path = PathBuf::from(format!("experiments/{case_path}"));
        Table::new(name, file, case, &case_path, models).map_err(content)
    }

    fn file(&self, path: &str) -> Result<&str, LoadError> {
        let text = self.files.get(path).map(String::as_str);
        text.ok_or_else(|| LoadError::Content {
            path: format!("experiments/{path}"),
            what: "no such file".to_owned(),
        })
    }
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "toml")
}

/// Whether `wanted` means the table `known`: `000`, `shoot4u`, `000-shoot4u`,
/// each also with `/TABLE`.
fn is_meant(wanted: &str, known: &str) -> bool {
    let (seed, table) = known.split_once('/').unwrap_or((known, ""));
    let (wanted_seed, wanted_table) = match wanted.trim_end_matches('/').split_once('/') {
        Some((s, t)) => (s, Some(t)),
        None => (wanted.trim_end_matches('/'), None),
    };
    let (number, name) = seed.split_once('-').unwrap_or((seed, seed));
    let table_name = wanted_table.map(|t| t.trim_end_matches(".toml"));
    [seed, number, name].contains(&wanted_seed) && table_name.is_none_or(|t| t == table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_go_by_number_name_or_both() {
        let known = "000-shoot4u/table-1";
        for wanted in [
            "000",
            "shoot4u",
            "000-shoot4u",
            "000/table-1",
            "shoot4u/table-1.toml",
        ] {
            assert!(is_meant(wanted, known), "{wanted}");
        }
        for wanted in ["00", "table-1", "001", "000/table-2", "shoot"] {
            assert!(!is_meant(wanted, known), "{wanted}");
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = Library::embedded()
            .select(&["nonesuch".to_owned()])
            .expect_err("no such experiment");
        assert!(error.to_string().contains("000-shoot4u/table-1"), "{error}");
    }

    #[test]
    fn cases_are_no_tables() {
        let names = Library::embedded().names();
        assert!(!names.is_empty());
        assert!(names.iter().all(|n| !n.contains("/case")), "{names:?}");
    }
}
